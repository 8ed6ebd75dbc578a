"""The values that a pullback keeps of the point: the arguments, and its own residuals."""

import gc
import weakref

import numpy as np
import pytest

from bedrax import lax, pytree
from bedrax.autodiff import checkpoint, grad, linearize, vjp
from bedrax.autodiff.linear_maps import NotNeeded
from bedrax.core.jitting import jit

jnp = pytest.importorskip("bedrax.numpy")  # above this package

ONES = np.ones(2, np.float32)


def product(x, w):
    return jnp.sin(x) @ w["w"] + w["b"]


def point():
    return jnp.ones((2, 3)), {"w": jnp.arange(6.0).reshape(3, 2), "b": jnp.ones(2)}


def pulled(f, ct):
    return [np.asarray(leaf) for leaf in pytree.tree_leaves(f(ct))]


@pytest.mark.parametrize("transformed", [lambda f: f, jit])
def test_residuals_are_classified_by_their_origin(transformed):
    x, w = point()
    y, f = vjp(transformed(product), x, w)
    before = pulled(f, y)
    kept_x, kept_w = f.args_res
    assert kept_x == NotNeeded() and kept_w["b"] == NotNeeded() and kept_w["w"] is w["w"]
    known = [np.cos(x), np.sin(x)]
    assert len(f.opaque_residuals) == 2
    assert all(any(np.allclose(r, k) for k in known) for r in f.opaque_residuals)
    assert len(pytree.tree_leaves(f)) == 3
    for a, b in zip(before, pulled(f, y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_residuals_can_be_replaced():
    x, y = jnp.asarray(ONES), jnp.asarray(2 * ONES)
    f = vjp(lax.mul, x, y)[1]
    assert f.args_res[0] is x and f.args_res[1] is y and f.opaque_residuals == []
    f.args_res[0] = jnp.asarray(5 * ONES)
    np.testing.assert_array_equal(f(jnp.asarray(ONES)), [2 * ONES, 5 * ONES])
    doubled = pytree.tree_map(lambda x: x * 2, f)
    np.testing.assert_array_equal(doubled(jnp.asarray(ONES)), [4 * ONES, 10 * ONES])
    g = vjp(jnp.sin, x)[1]
    g.opaque_residuals = [jnp.asarray(3 * ONES)]
    np.testing.assert_array_equal(g(jnp.asarray(ONES)), [3 * ONES])
    g.opaque_residuals = []
    with pytest.raises(ValueError, match="needs 1 opaque_residuals, there are 0"):
        g(jnp.asarray(ONES))


def test_an_argument_may_be_left_out_of_the_residuals():
    x, w = point()

    @jit
    def forward(x, w):
        y, f = vjp(product, x, w)
        f.args_res[1] = None
        return y, f

    y, f = forward(x, w)
    assert len(pytree.tree_leaves(f)) == 2
    with pytest.raises(ValueError, match="taken out of its args_res: put it back"):
        f(y)
    f.args_res[1] = w
    for a, b in zip(pulled(f, y), pulled(vjp(product, x, w)[1], y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    f.args_res = [None, w]
    assert pulled(f, y)


def test_arguments_that_are_not_needed_are_not_kept():
    class Watched(np.ndarray):
        pass

    x = np.ones(2, np.float32).view(Watched)
    gone = weakref.ref(x)
    f = vjp(lambda x, y: lax.mul(jnp.asarray(x, np.float32), np.float32(2)) + y, x, jnp.asarray(ONES))[1]
    del x
    gc.collect()
    assert gone() is None
    assert all(isinstance(x, NotNeeded) for x in f.args_res)


def _used_linearize(f, x):
    linearize(f, x)[1](x)


def _used_twice(f, x):
    pull = vjp(f, x)[1]
    pull(np.float32(1)), pull(np.float32(2))


@pytest.mark.parametrize(
    "use",
    [
        lambda f, x: grad(f)(x),
        lambda f, x: grad(checkpoint(f))(x),
        lambda f, x: grad(lambda x: grad(f)(x).sum())(x),
        lambda f, x: jit(grad(f))(x),
        _used_linearize,
        _used_twice,
    ],
    ids=["grad", "checkpoint", "second derivative", "jit", "linearize", "vjp"],
)
def test_residuals_are_freed_without_the_garbage_collector(use):
    gc.collect()
    gc.disable()
    try:
        held = jnp.arange(5.0)
        freed = weakref.ref(held)
        use(lambda x, held=held: (jnp.sin(x) * held).sum(), jnp.ones(5))
        del held
        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("ct", [np.int32(7), np.float32(7), True, np.zeros((), [("float0", "V")])], ids=repr)
def test_the_cotangent_of_a_result_without_derivative_is_any_array_of_its_shape(ct):
    value, pull = vjp(lambda x, n: (lax.mul(x, x), n), np.float32(3), np.int32(2))
    by_x, by_n = pull((np.float32(1), ct))
    assert by_x == 6 and by_n.dtype == np.dtype([("float0", "V")])
    with pytest.raises(ValueError, match=r"a cotangent has the type of the result: expected float0\[\], got"):
        pull((np.float32(1), np.ones(3, np.int32)))


def test_a_cotangent_float0_has_any_shape():
    # NumPy has no such array of a symbolic shape.
    _, pull = vjp(lambda x: (x, lax.convert_element_type(x, np.int32)), np.float32([1, 2]))
    np.testing.assert_array_equal(pull((np.float32([3, 4]), np.zeros((), [("float0", "V")])))[0], [3, 4])
