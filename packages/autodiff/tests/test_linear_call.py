"""`linear_call`, and custom_vjp functions whose forward rule is dropped where `checkpoint` drops the residuals."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_vjp, grad, hessian, jvp, linear_transpose, value_and_grad
from bedrax.autodiff.linear_call import linear_call
from bedrax.batching import vmap
from bedrax.core.jitting import jit

ONE = np.float32(1)
XS = np.arange(1, 4, dtype=np.float32)


def halved(r, x):
    """x / r, with a transpose that is marked by a factor of ten."""
    return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, r, x)


def transposed(f):
    return lambda y: linear_transpose(f, ONE)(y)[0]


def test_the_transpose_is_the_given_one_and_its_transpose_the_function():
    f = lambda x: halved(np.float32(2), x)
    assert f(ONE) == 0.5
    assert transposed(f)(ONE) == 5
    assert transposed(transposed(f))(ONE) == 0.5
    assert transposed(transposed(transposed(f)))(ONE) == 5


def test_derivatives():
    r, x = np.float32(2), np.float32(6)
    assert jvp(lambda x: halved(r, x), (x,), (ONE,))[1] == 0.5
    assert grad(halved, 1)(r, x) == 5
    assert grad(halved, 0)(r, x) == -1.5  # the derivative of the function itself: -x / r^2
    assert grad(lambda v: halved(v, v), 0)(r) == -0.5 + 5
    assert jit(grad(grad(halved, 0), 0))(r, x) == 2 * 6 / 8
    np.testing.assert_allclose(hessian(lambda r: halved(r, x))(r), 1.5)


def test_mapped():
    for axes, args in [((0, None), (XS, ONE)), ((None, 0), (ONE, XS)), ((0, 0), (XS, XS))]:
        r, x = np.broadcast_arrays(*args)
        np.testing.assert_allclose(vmap(halved, axes)(*args), x / r)
        np.testing.assert_allclose(vmap(grad(halved, 1), axes)(*args), 10 / r, rtol=1e-6)
        np.testing.assert_allclose(jit(vmap(grad(halved, 0), axes))(*args), -x / r**2, rtol=1e-6)


def test_linear_call_takes_trees_and_closures():
    def f(y):
        out = linear_call(
            lambda r, p: {"a": p[0] * y, "b": p[1]}, lambda r, ct: (ct["a"] * y * 5, ct["b"]), (), (y, ONE)
        )
        return out["a"]

    np.testing.assert_allclose(grad(f)(np.float32(2)), 2 + 10)


def test_a_transpose_of_another_type():
    with pytest.raises(TypeError, match="must return what the linear arguments are like"):
        linear_call(lambda r, x: x, lambda r, ct: (ct, ct), (), ONE)


def tripled(optimize_remat):
    """Twice the argument, with a forward rule that is marked by a factor of three."""

    @custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 3, lax.cos(x)), lambda res, ct: (ct * res,), optimize_remat=optimize_remat)
    return f


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
def test_optimize_remat(how):
    x = np.float32(1.5)
    value = lambda f: how(value_and_grad(f))(x)
    np.testing.assert_allclose(value(tripled(True)), (4.5, np.cos(1.5)), rtol=1e-6)
    np.testing.assert_allclose(value(checkpoint(tripled(False))), (4.5, np.cos(1.5)), rtol=1e-6)
    np.testing.assert_allclose(value(checkpoint(tripled(True))), (3, np.cos(1.5)), rtol=1e-6)
    np.testing.assert_allclose(value(checkpoint(jit(tripled(True)))), (3, np.cos(1.5)), rtol=1e-6)
    values, slopes = how(vmap(value_and_grad(checkpoint(tripled(True)))))(XS)
    np.testing.assert_allclose(values, 2 * XS)
    np.testing.assert_allclose(slopes, np.cos(XS), rtol=1e-6)
    np.testing.assert_allclose(grad(grad(checkpoint(tripled(True))))(x), -np.sin(1.5), rtol=1e-6)


def test_linear_functions_of_integers_are_transposed():
    (out,) = linear_transpose(lambda x: lax.mul(x, np.int32(2)), np.int32(1))(np.int32(3))
    assert out == 6 and out.dtype == np.int32
    with pytest.raises(TypeError, match="linear_transpose only supports functions of arrays of numbers, got bool"):
        linear_transpose(lambda x: x, np.bool_(True))
