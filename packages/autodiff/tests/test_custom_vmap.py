"""Functions with a batching rule of their own, differentiated: the rule is differentiated, too."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_vjp, grad, hessian, jacfwd, jvp, linear_transpose, linearize, vjp
from bedrax.batching import custom_vmap, sequential_vmap, vmap
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr

XS = np.arange(1.0, 4.0, dtype=np.float32)


def make():
    """sin, with a cube as its batching rule, so that results show which of them ran."""

    @custom_vmap
    def f(x):
        return lax.sin(x)

    @f.def_vmap
    def rule(size, mapped, x):
        return lax.integer_pow(x, 3), mapped[0]

    return f


def test_the_function_is_differentiated_if_it_is_not_mapped():
    f = make()
    np.testing.assert_allclose(grad(f)(1.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (1.0,), (2.0,))[1], 2 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(grad(f)))(1.0), -np.sin(1.0), rtol=1e-6)


DERIVATIVES = {
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "jacfwd": jacfwd,
    "grad": grad,
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
    "jit inside": lambda f: grad(jit(f)),
    "jit outside": lambda f: jit(grad(f)),
    "checkpoint": lambda f: grad(checkpoint(f)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_the_batching_rule_is_differentiated_if_the_function_is_mapped(derivative):
    g = derivative(make())
    np.testing.assert_allclose(vmap(g)(XS), 3 * XS**2, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(g))(XS), 3 * XS**2, rtol=1e-6)
    check_jaxpr(make_jaxpr(vmap(g))(XS))
    check_jaxpr(make_jaxpr(g)(XS[0]))


def test_second_derivatives():
    f = make()
    np.testing.assert_allclose(vmap(hessian(f))(XS), 6 * XS, rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(grad(f)))(XS), 6 * XS, rtol=1e-6)


def test_differentiating_the_mapped_function_is_the_same():
    f = make()
    np.testing.assert_allclose(grad(lambda x: lax.reduce_sum(vmap(f)(x), axes=(0,)))(XS), 3 * XS**2)


def test_only_the_tangent_is_mapped():
    f = make()
    primal, tangent = vmap(lambda t: jvp(f, (np.float32(2.0),), (t,)))(XS)
    np.testing.assert_allclose(primal, np.full(3, np.sin(2.0)), rtol=1e-6)
    np.testing.assert_allclose(tangent, 12 * XS)


def test_inside_a_loop():
    f = make()

    def twice(x):
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    np.testing.assert_allclose(vmap(grad(twice))(XS), 9 * XS**8, rtol=1e-5)


def test_several_arguments_and_integer_results():
    @custom_vmap
    def f(p, x, n):
        return {"y": lax.mul(p, x), "n": lax.add(n, np.int32(1))}

    @f.def_vmap
    def rule(size, mapped, p, x, n):
        p, x, n = (v if m else lax.broadcast(v, (size,)) for v, m in zip((p, x, n), mapped, strict=True))
        return {"y": lax.mul(lax.square(p), x), "n": n}, {"y": True, "n": True}

    g = grad(lambda p, x, n: f(p, x, n)["y"], (0, 1))
    p, n = np.float32(2.0), np.int32(5)
    np.testing.assert_allclose(g(p, XS[0], n), (1.0, 2.0))
    for axes, args, expected in [
        ((None, 0, None), (p, XS, n), (2 * 2 * XS, [4.0] * 3)),
        ((0, None, None), (XS, p, n), (2 * XS * 2, XS**2)),
        ((None, None, 0), (p, p, np.arange(3, dtype=np.int32)), ([8.0] * 3, [4.0] * 3)),
    ]:
        for how in (lambda f: f, jit):
            for actual, want in zip(how(vmap(g, axes))(*args), expected, strict=True):
                np.testing.assert_allclose(actual, want)


def test_linear_functions_are_transposed_with_their_rule():
    @custom_vmap
    def f(x):
        return lax.mul(x, np.float32(2))

    @f.def_vmap
    def rule(size, mapped, x):
        return lax.mul(x, np.full(x.shape, 3, np.float32)), mapped[0]

    transposed = linear_transpose(f, np.float32(1))
    np.testing.assert_allclose(transposed(np.float32(1.0)), (2.0,))
    np.testing.assert_allclose(vmap(transposed)(XS)[0], 3 * XS)


def test_values_that_are_closed_over():
    def h(y):
        @custom_vmap
        def f(x):
            return lax.mul(x, y)

        f.def_vmap(lambda size, mapped, x: (lax.mul(x, lax.broadcast(y, (size,))), True))
        return lax.reduce_sum(vmap(f)(XS), axes=(0,)) + f(np.float32(1.0))

    for g in (grad(h), jit(grad(h)), lambda y: jvp(h, (y,), (np.float32(1),))[1]):
        np.testing.assert_allclose(g(np.float32(2.0)), XS.sum() + 1)


def test_sequential_vmap():
    f = sequential_vmap(lambda x, y: lax.mul(lax.square(x), y))
    y = np.float32(2.0)
    dx, dy = vmap(grad(f, (0, 1)), (0, None))(XS, y)
    np.testing.assert_allclose(dx, 4 * XS)
    np.testing.assert_allclose(dy, XS**2)


def test_the_structure_that_a_rule_returns():
    @custom_vmap
    def f(x):
        return x

    f.def_vmap(lambda size, mapped, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match=r"the vmap rule of f returned structure PyTreeDef\(\(\*, \*\)\), but"):
        vmap(f)(XS)


def test_a_function_with_rules_of_both_kinds():
    f = custom_vjp(custom_vmap(lambda x: lax.sin(x)))
    f.def_vmap(lambda size, mapped, x: (lax.integer_pow(x, 3), mapped[0]))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (lax.mul(ct, lax.mul(x, 7.0)),))
    np.testing.assert_allclose(f(XS[0]), np.sin(XS[0]), rtol=1e-6)
    np.testing.assert_allclose(vmap(f)(XS), XS**3, rtol=1e-6)
    np.testing.assert_allclose(grad(f)(XS[1]), 14.0)
    with pytest.raises(AttributeError, match="def_vmap"):
        custom_vjp(lax.sin).def_vmap(None)
    with pytest.raises(AttributeError, match="no attribute 'rules'"):
        f.rules
