"""The documented behaviour of differentiation: arguments, results, conventions, errors."""

import functools
import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import (
    check_grads,
    checkpoint,
    custom_jvp,
    fwd_and_bwd,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from bedrax.autodiff.taylor import jet
from bedrax.batching import vmap
from bedrax.core import config, dtypes, names
from bedrax.core.jitting import jit
from bedrax.core.public import public
from bedrax.core.staging import make_jaxpr
from bedrax.lax.primitives import linalg
from bedrax.pytree import tree_leaves

f32 = np.float32
X = np.array([0.5, -1.0, 2.0], f32)


def square(x):
    return lax.mul(x, x)


def total(x):
    return lax.reduce_sum(x, axes=tuple(range(len(x.shape))))


def exactly(text):
    facts = r"(\n(It is|The function is) .*)*(\nAt .* BX-[A-Z-]+)?"
    return "^" + re.escape(public(text)) + facts + r"(\n\(Frames of the library are left out.*)?$"


# ---- grad


def test_argnums_choose_arguments():
    f = lambda x, y: lax.mul(x, lax.mul(y, y))
    assert float(grad(f)(2.0, 3.0)) == 9
    assert [float(g) for g in grad(f, argnums=(0, 1))(2.0, 3.0)] == [9, 12]
    assert float(grad(f, argnums=-1)(2.0, 3.0)) == 12
    value, (gx,) = value_and_grad(f, argnums=(0,))(2.0, 3.0)
    assert (float(value), float(gx)) == (18, 9)


def test_gradients_are_trees_like_the_argument():
    tree = {"w": X, "b": [f32(1), None]}
    g = grad(lambda t: lax.mul(total(square(t["w"])), t["b"][0]))(tree)
    np.testing.assert_allclose(g["w"], 2 * X)
    assert g["b"][1] is None and float(g["b"][0]) == np.sum(X * X)


def test_aux_leaves_the_trace():
    g, aux = grad(lambda x: (total(square(x)), {"twice": lax.mul(x, 2.0), "name": 3}), has_aux=True)(X)
    np.testing.assert_allclose(g, 2 * X)
    np.testing.assert_allclose(np.asarray(aux["twice"]), 2 * X)
    assert aux["name"] == 3
    (value, aux), g = value_and_grad(lambda x: (square(x), x), has_aux=True)(f32(3))
    assert (float(value), float(aux), float(g)) == (9, 3, 6)
    value, pullback, aux = vjp(lambda x: (square(x), x), f32(3), has_aux=True)
    assert (float(aux), float(pullback(f32(1))[0])) == (3, 6)
    value, tangent, aux = jvp(lambda x: (square(x), x), (f32(3),), (f32(1),), has_aux=True)
    assert (float(value), float(tangent), float(aux)) == (9, 6, 3)
    value, f_jvp, aux = linearize(lambda x: (square(x), x), f32(3), has_aux=True)
    assert (float(f_jvp(f32(1))), float(aux)) == (6, 3)


def test_python_branches_on_values_while_differentiating_eagerly():
    assert float(grad(lambda x: x if x > 0 else lax.neg(x))(-2.0)) == -1
    assert float(grad(lambda x: lax.mul(x, float(x)))(3.0)) == 3


def test_tangents_of_python_numbers_that_are_results():
    """A result that is a Python number has a Python number as its tangent; that of an array is an array."""
    same = lambda x: x
    squares = custom_jvp(same)
    squares.defjvp(lambda primals, tangents: (primals[0], tangents[0] ** 2))
    outs = jvp(same, (2.0,), (3.0,)), jvp(squares, (2.0,), (3.0,))
    assert outs == ((2.0, 3.0), (2.0, 9.0))
    assert {type(x) for x in tree_leaves(outs)} == {float}
    more = jvp(lambda x: lax.add(x, 1.0), (2.0,), (3.0,)), vjp(same, 2.0)[1](3.0), grad(same)(2.0)
    assert all(x.weak_type for x in tree_leaves(more))


def test_integer_arguments():
    with pytest.raises(TypeError, match="grad differentiates by arguments of float or complex dtypes, got int32"):
        grad(lambda n: 1.0)(3)
    g = grad(lambda n, x: lax.mul(x, lax.convert_element_type(n, f32)), argnums=(0, 1), allow_int=True)(3, f32(2))
    assert g[0].dtype == dtypes.float0 and g[0].shape == () and float(g[1]) == 3
    pullback = vjp(lambda x, n: lax.mul(x, lax.convert_element_type(n, f32)), f32(2), np.int32(3))[1]
    assert pullback(f32(1))[1].dtype == dtypes.float0


@pytest.mark.parametrize(
    "f, x, text",
    [
        (
            lambda x: x,
            X,
            "grad is for functions that return one scalar, got a result of shape (3,); sum it, or use jacrev",
        ),
        (lambda x: None, 1.0, "grad is for functions that return one scalar, got the result None; return a value"),
        (
            lambda x: (x, x),
            1.0,
            "grad is for functions that return one scalar, got the result (1.0, 1.0); pass has_aux=True if the rest is"
            " not differentiated",
        ),
        (
            lambda x: lax.convert_element_type(x, np.int32),
            1.0,
            "grad differentiates results of float dtypes, got int32; convert the result, or use jax.vjp",
        ),
        (
            lambda x: lax.mul(x, np.complex64(1j)),
            np.complex64(1),
            "grad is for real outputs, got complex64. Pass holomorphic=True if the function is holomorphic; use jax.vjp"
            " if it is not.",
        ),
    ],
)
def test_errors_of_grad(f, x, text):
    with pytest.raises(TypeError, match=exactly(text)):
        grad(f)(x)


def test_too_few_arguments():
    text = (
        "grad: argnums=2 names position 2, but the number of positional arguments is 2: add was called with too few"
        " arguments; positions count from 0"
    )
    with pytest.raises(TypeError, match=exactly(text)):
        grad(lax.add, argnums=2)(1.0, 2.0)


def test_not_callable():
    with pytest.raises(TypeError, match="a callable is differentiated, got 3"):
        grad(3)


# ---- complex numbers: f(x + iy) = u + iv is a function of two real numbers


def _u(x, y):
    return lax.sub(lax.mul(x, lax.mul(x, y)), y)


def _v(x, y):
    return lax.add(lax.mul(x, 3.0), lax.mul(y, lax.sin(x)))


def _complex(z):
    x, y = lax.real(z), lax.imag(z)
    return lax.complex(_u(x, y), _v(x, y))


POINT = np.complex64(0.3 + 0.8j)


def _partials():
    x, y = f32(POINT.real), f32(POINT.imag)
    return [float(grad(f, n)(x, y)) for f in (_u, _v) for n in (0, 1)]


def test_complex_jvp_is_the_real_jacobian():
    ux, uy, vx, vy = _partials()
    c, d = 0.7, -0.4
    tangent = jvp(_complex, (POINT,), (np.complex64(c + d * 1j),))[1]
    np.testing.assert_allclose(complex(tangent), (ux * c + uy * d) + (vx * c + vy * d) * 1j, rtol=1e-5)


def test_complex_vjp_conjugates_nothing():
    ux, uy, vx, vy = _partials()
    c, d = 0.7, -0.4
    (ct,) = vjp(_complex, POINT)[1](np.complex64(c + d * 1j))
    np.testing.assert_allclose(complex(ct), ux * c - vx * d + (uy * c - vy * d) * -1j, rtol=1e-5)


def test_grad_of_a_real_function_of_a_complex_number():
    g = grad(lambda z: lax.add(lax.square(lax.real(z)), lax.square(lax.imag(z))))(np.complex64(3 + 4j))
    assert complex(g) == 6 - 8j


def test_holomorphic_functions():
    g = grad(lax.sin, holomorphic=True)(np.complex64(3 + 4j))
    np.testing.assert_allclose(complex(g), np.cos(3 + 4j), rtol=1e-6)
    assert complex(grad(lax.conj, holomorphic=True)(np.complex64(3 + 4j))) == 1
    with pytest.raises(TypeError, match="grad with holomorphic=True is for complex inputs, got float32"):
        grad(lax.sin, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="is for complex outputs, got float32"):
        grad(lax.real, holomorphic=True)(np.complex64(1))


# ---- jvp, vjp, linearize


def test_jvp_checks_its_tangents():
    with pytest.raises(TypeError, match="primals and tangents are tuples, got float, float"):
        jvp(lax.sin, 1.0, 1.0)
    with pytest.raises(TypeError, match="expected float32, got int32"):
        jvp(lax.sin, (1.0,), (2,))
    with pytest.raises(TypeError, match="for a primal of int32 expected float0"):
        jvp(lambda n: n, (1,), (2,))
    with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)"):
        jvp(lax.sin, (X,), (np.ones(4, f32),))
    with pytest.raises(TypeError, match="tangents are structured like primals"):
        jvp(lax.sin, (1.0,), (1.0, 2.0))


def test_vjp_checks_its_cotangent():
    pullback = vjp(lambda x: (lax.sin(x),), X)[1]
    with pytest.raises(ValueError, match="a cotangent is structured like the result"):
        pullback(X)
    with pytest.raises(ValueError, match=r"expected float32\[3\], got float32\[2\]"):
        pullback((np.ones(2, f32),))
    with pytest.raises(TypeError, match="takes one argument"):
        pullback(X, X)


def test_a_pullback_is_a_tree_of_its_residuals():
    value, pullback = jit(lambda x: vjp(lax.sin, x))(X)
    np.testing.assert_allclose(np.asarray(pullback(X)[0]), X * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jit(lambda p, ct: p(ct))(pullback, X)[0]), X * np.cos(X), rtol=1e-6)
    (residual,) = tree_leaves(pullback)
    np.testing.assert_allclose(np.asarray(residual), np.cos(X), rtol=1e-6)


def test_linearized_function_is_reusable_and_mappable():
    value, f_jvp = linearize(lax.sin, X)
    basis = np.eye(3, dtype=f32)
    np.testing.assert_allclose(np.asarray(vmap(f_jvp)(basis)), np.diag(np.cos(X)), rtol=1e-6)
    with pytest.raises(TypeError, match="structure"):
        f_jvp(X, X)
    with pytest.raises(ValueError, match=r"got tangent float32\[2\], expected float32\[3\]"):
        f_jvp(np.ones(2, f32))


def test_linearize_does_the_nonlinear_work_once():
    calls = []

    def f(x):
        calls.append(1)
        return lax.sin(x)

    f_jvp = linearize(f, 1.0)[1]
    f_jvp(1.0), f_jvp(2.0)
    assert len(calls) == 1
    names = [e.primitive.name for e in make_jaxpr(lambda t: f_jvp(t))(1.0).eqns]
    assert "cos" not in names and "mul" in names


def test_forward_and_backward_as_two_functions():
    fwd, bwd = fwd_and_bwd(lambda x, y: lax.mul(lax.sin(x), y), argnums=(0, 1))
    value, residuals = fwd(f32(1), f32(2))
    np.testing.assert_allclose([float(c) for c in bwd(residuals, f32(1))], [2 * np.cos(1), np.sin(1)], rtol=1e-6)


def test_linear_transpose():
    f = lambda x: lax.mul(lax.reduce_sum(x, axes=(0,)), 2.0)
    np.testing.assert_allclose(np.asarray(linear_transpose(f, X)(f32(3))[0]), [6, 6, 6])
    twice = linear_transpose(linear_transpose(f, X), f32(0))
    with pytest.raises(TypeError, match="a cotangent has the type of the result"):
        linear_transpose(f, X)(X)
    assert callable(twice)
    with pytest.raises(NotImplementedError, match="sin"):
        linear_transpose(lax.sin, X)(X)


def test_no_tangent_without_a_dependence():
    assert float(grad(lambda x: 3.0)(f32(1))) == 0
    value, tangent = jvp(lambda x: (x, 1), (1.0,), (2.0,))
    assert tangent[1].dtype == dtypes.float0


# ---- Jacobians


def test_jacobians_have_the_axes_of_result_then_argument():
    f = lambda x: lax.mul(lax.broadcast(x, (2,)), np.array([[1.0], [3.0]], f32) * np.ones((2, 3), f32))
    expected = np.stack([np.eye(3), 3 * np.eye(3)])
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(np.asarray(jacobian(f)(X)), expected)
    jac = jacrev(lambda t: {"out": lax.mul(t["a"], total(t["b"]))})({"a": X, "b": np.ones((2, 2), f32)})
    assert jac["out"]["a"].shape == (3, 3) and jac["out"]["b"].shape == (3, 2, 2)
    np.testing.assert_allclose(np.asarray(jac["out"]["b"]), np.broadcast_to(X[:, None, None], (3, 2, 2)))


def test_hessian():
    f = lambda x: total(lax.mul(lax.mul(x, x), x))
    np.testing.assert_allclose(np.asarray(hessian(f)(X)), np.diag(6 * X), rtol=1e-6)
    h, aux = hessian(lambda x: (f(x), x), has_aux=True)(X)
    np.testing.assert_allclose(np.asarray(aux), X)


def test_jacobian_errors():
    with pytest.raises(TypeError, match="jacfwd is for real inputs, got complex64"):
        jacfwd(lax.sin)(np.complex64(1))
    with pytest.raises(TypeError, match="jacrev differentiates by arguments of float or complex dtypes"):
        jacrev(lax.sin)(1)


# ---- loops keep little


def _stacked(jaxpr):
    """Types of the values that the loops of a program stack, without the carry."""
    loops = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    return [[v.aval.shape for v in e.outvars[e.params["num_carry"] :]] for e in loops]


def test_loop_invariant_residuals_are_not_stacked():
    def f(w, x):
        step = lambda c, _: (lax.mul(lax.sin(w), c), None)  # sin(w) and cos(w) are the same in every step
        return lax.scan(step, x, None, length=100)[0]

    jaxpr = make_jaxpr(grad(f, argnums=(0, 1)))(f32(1), f32(2))
    forward, backward = _stacked(jaxpr)
    assert forward == [(100,)]  # only the carry
    assert backward == []


def test_scanned_inputs_are_not_copied_into_residuals():
    f = lambda xs: lax.scan(lambda c, x: (lax.add(c, lax.mul(x, x)), None), f32(0), xs)[0]
    forward, _ = _stacked(make_jaxpr(grad(f))(np.ones(50, f32)))
    assert forward == []


def test_operands_that_no_derivative_of_a_branch_reads_are_not_stacked():
    def f(x):
        def step(c, _):
            x, kept = c
            return lax.cond(lax.lt(x, f32(1)), lambda: (lax.sin(x), kept), lambda: (x, lax.mul(kept, f32(2)))), None

        return total(lax.scan(step, (x, lax.broadcast(x, (20,))), None, length=16)[0][1])

    forward, _ = _stacked(make_jaxpr(grad(f))(f32(1)))
    assert forward == [(16,), (16,)]  # the index and cos(x), not the twenty elements of each step


def test_arguments_that_no_derivative_of_a_checkpointed_function_reads_are_not_stacked():
    @checkpoint
    def step(x, kept):
        return lax.sin(x), lax.mul(kept, f32(2))

    def f(x):
        x, kept = lax.scan(lambda c, _: (step(*c), None), (x, lax.broadcast(x, (20,))), None, length=16)[0]
        return lax.add(x, total(kept))

    forward, _ = _stacked(make_jaxpr(grad(f))(f32(1)))
    assert forward == [(16,)]  # x, not the twenty elements of each step


def test_cotangents_of_constants_add_up_in_the_carry():
    def f(w):
        return lax.scan(lambda c, _: (total(lax.sin(lax.mul(w, c))), None), f32(1), None, length=30)[0]

    forward, backward = _stacked(make_jaxpr(grad(f))(np.ones(1000, f32)))
    assert backward == []  # not one gradient of w per step


# ---- Taylor mode


@pytest.mark.parametrize(
    "f",
    [
        lax.exp,
        lax.tanh,
        lambda x: lax.div(lax.sin(x), lax.add(x, 2.0)),
        lambda x: lax.integer_pow(x, 5),
        lambda x: lax.sqrt(lax.add(lax.mul(x, x), 1.0)),
        jit(lambda x: lax.mul(lax.log(lax.add(x, 3.0)), x)),
        lambda x: lax.select(lax.gt(x, 0.0), lax.mul(x, x), x),
        lambda x: 3.0,
        lambda x: lax.scan(lambda c, _: (lax.sin(lax.mul(c, x)), None), x, None, length=2)[0],
    ],
)
def test_taylor_mode_gives_all_derivatives(f):
    with config.enable_x64(True):
        value, terms = jet(f, (0.7,), ((1.0, 0.0, 0.0, 0.0),))
        np.testing.assert_allclose(float(value), float(f(0.7)))
        derivative = f
        for term in terms:
            derivative = (lambda g: lambda x: jvp(g, (x,), (1.0,))[1])(derivative)
            np.testing.assert_allclose(float(term), float(derivative(0.7)), rtol=1e-9, atol=1e-12)


def test_taylor_coefficients_without_factorials():
    _, terms = jet(lax.exp, (f32(0),), ((f32(1), f32(0), f32(0)),), factorial_scaled=False)
    np.testing.assert_allclose([float(t) for t in terms], [1, 1 / 2, 1 / 6], rtol=1e-6)


def test_taylor_mode_checks_its_terms():
    with pytest.raises(ValueError, match="equally many"):
        jet(lax.add, (1.0, 2.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ValueError, match="shape"):
        jet(lax.sin, (X,), ((1.0,),))


# ---- compositions that once failed


def test_effects_of_a_loop_happen_once_per_step_when_differentiated():
    from bedrax.lax.primitives.callbacks import debug_callback

    seen = []

    def f(w):
        def step(c, _):
            debug_callback(lambda v: seen.append(float(v)), c)
            return lax.mul(c, lax.sin(w)), None  # sin(w) is hoisted out of the loop, the callback is not

        return lax.scan(step, f32(1), None, length=2)[0]

    grad(f)(f32(0.5))
    assert len(seen) == 2


def test_check_grads_finds_a_wrong_rule():
    from bedrax.autodiff import custom_jvp

    wrong = custom_jvp(lax.sin)
    wrong.defjvp(lambda p, t: (lax.sin(p[0]), lax.mul(t[0], 2.0)))
    check_grads(lax.sin, (1.0,), order=2)
    with pytest.raises(AssertionError):
        check_grads(wrong, (1.0,), order=1)


@pytest.mark.parametrize("wrap", [jit, functools.partial(lambda f: f)])
def test_named_scopes_do_not_change_values(wrap):
    def f(x):
        with names.named_scope("inner"):
            return lax.sin(x)

    assert np.isclose(float(wrap(grad(f))(f32(1))), np.cos(1))


row = lambda a: lax.index_in_dim(a, 0, keepdims=False)


@pytest.mark.parametrize(
    ("solve", "name"),
    [
        (lambda a: linalg.triangular_solve(a, np.ones((2, 2), np.float32), left_side=True), "triangular_solve"),
        (lambda a: linalg.tridiagonal_solve(row(a), row(a), row(a), np.ones((2, 2), np.float32)), "tridiagonal_solve"),
    ],
)
def test_solves_are_not_transposed_by_their_matrix(solve, name):
    with pytest.raises((ValueError, NotImplementedError), match=f"'{name}' is linear in its right side only"):
        linear_transpose(solve, np.ones((2, 2), np.float32))(np.ones((2, 2), np.float32))
