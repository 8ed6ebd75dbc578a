"""Primitives that libraries define: rules registered in the public tables, and every transformation of them."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.extend.mlir.dialects import stablehlo as hlo
from jax.interpreters import ad, batching, mlir, xla


def scaled_difference():
    """``scale * x - y``: linear in both operands; all its rules come from the tables."""
    prim = Primitive("scaled_difference")
    prim.def_impl(partial(xla.apply_primitive, prim))
    prim.def_abstract_eval(lambda x, y, *, scale: jax.core.ShapedArray(x.shape, x.dtype))

    def bind(x, y, scale):
        return prim.bind(x, y, scale=scale)

    def lowering(ctx, x, y, *, scale):
        (aval,) = ctx.avals_out
        scalar = mlir.ir_constant(np.asarray(scale, aval.dtype))
        factor = hlo.broadcast_in_dim(mlir.aval_to_ir_type(aval), scalar, mlir.dense_int_array([]))
        return [hlo.subtract(hlo.multiply(x, factor), y)]

    def jvp(primals, tangents, *, scale):
        assert type(primals) is tuple and type(tangents) is tuple
        tangents = [t.instantiate() if type(t) is ad.Zero else ad.instantiate_zeros(t) for t in tangents]
        return bind(*primals, scale), bind(*tangents, scale)

    def transpose(ct, x, y, *, scale):
        return [ct * scale if ad.is_undefined_primal(x) else None, -ct if ad.is_undefined_primal(y) else None]

    def batch(args, dims, *, scale):
        assert type(args) is tuple and type(dims) is tuple
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not batching.not_mapped)
        x, y = (batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True))
        return bind(x, y, scale), 0

    mlir.register_lowering(prim, lowering)
    ad.primitive_jvps[prim] = jvp
    ad.primitive_transposes[prim] = transpose
    batching.primitive_batchers[prim] = batch
    return bind


X, Y = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.5, np.float32)


def test_eagerly_and_compiled():
    f = scaled_difference()
    for call in (f, jax.jit(f, static_argnums=2)):
        np.testing.assert_array_equal(call(X, Y, 3.0), 3 * X - Y)
    assert "scaled_difference[scale=3.0]" in str(jax.make_jaxpr(lambda x, y: f(x, y, 3.0))(X, Y))


def test_derivatives():
    f = scaled_difference()

    def loss(x, y):
        return jnp.sum(jnp.sin(f(x, y, 3.0)))

    inner = np.cos(3 * X - Y)
    for transform in (lambda g: g, jax.jit):
        gx, gy = transform(jax.grad(loss, (0, 1)))(X, Y)
        np.testing.assert_allclose(gx, 3 * inner, rtol=1e-5)
        np.testing.assert_allclose(gy, -inner, rtol=1e-5)
    _, tangent = jax.jvp(lambda x: f(x, Y, 3.0), (X,), (np.ones_like(X),))
    np.testing.assert_allclose(tangent, 3.0)
    (back,) = jax.linear_transpose(lambda y: f(jnp.zeros_like(X), y, 3.0), Y)(X)
    np.testing.assert_allclose(back, -X)


@pytest.mark.parametrize("in_axes", [(0, 0), (1, None), (None, 1)])
def test_batching(in_axes):
    f = scaled_difference()
    x = X if in_axes[0] is not None else X.take(0, in_axes[1])
    y = Y if in_axes[1] is not None else Y.take(0, in_axes[0])
    out = jax.vmap(lambda a, b: f(a, b, 2.0), in_axes)(x, y)
    loop = jax.vmap(lambda a, b: 2 * a - b, in_axes)(x, y)
    np.testing.assert_array_equal(out, loop)
    grads = jax.vmap(jax.grad(lambda a, b: f(a, b, 2.0).sum()), in_axes)(x, y)
    np.testing.assert_allclose(grads, 2.0)


def test_inside_control_flow():
    f = scaled_difference()

    def run(x):
        return jax.lax.fori_loop(0, 3, lambda i, c: f(c, Y, 2.0), x).sum()

    expected = X
    for _ in range(3):
        expected = 2 * expected - Y
    np.testing.assert_allclose(run(X), expected.sum())
    np.testing.assert_allclose(jax.grad(run)(X), 8.0)


def test_several_results_and_lower_fun():
    prim = Primitive("both_parts")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x, *, power: [jax.core.ShapedArray(x.shape, x.dtype)] * 2)
    prim.def_impl(partial(xla.apply_primitive, prim))
    mlir.register_lowering(prim, mlir.lower_fun(lambda x, *, power: [jnp.sin(x) ** power, jnp.cos(x)], True))
    for call in (prim.bind, jax.jit(prim.bind, static_argnames="power")):
        s, c = call(X, power=2)
        np.testing.assert_allclose(s, np.sin(X) ** 2, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(c, np.cos(X), rtol=1e-5, atol=1e-6)


def test_lower_fun_of_a_callable_without_hash():
    class Shifted:
        __hash__ = None

        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x + self.by

    prim = Primitive("shifted_without_hash")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, mlir.lower_fun(Shifted(2), multiple_results=False))
    for size in (2, 3):
        np.testing.assert_array_equal(jax.jit(prim.bind)(jnp.zeros(size)), np.full(size, 2))


def test_lower_fun_of_one_result():
    prim = Primitive("shifted")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    np.testing.assert_array_equal(jax.jit(prim.bind)(X), X + 1)


def test_rules_by_platform_win():
    prim = Primitive("which_platform")
    prim.def_abstract_eval(lambda x: x)
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x * 0, multiple_results=False))
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="cpu")
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x + 2, multiple_results=False), platform="gpu")
    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_array_equal(jax.jit(prim.bind)(X), X + 1)
    text = jax.jit(prim.bind).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "2.0" in text and "1.0" not in text


def test_axis_aware_batching():
    seen = []
    prim = Primitive("axis_aware")
    prim.def_abstract_eval(lambda x: x)
    prim.def_impl(lambda x: x)

    def rule(size, name, trace_type, args, dims):
        seen.append((size, name))
        return args[0], dims[0]

    batching.axis_primitive_batchers[prim] = rule
    jax.vmap(prim.bind, axis_name="rows")(X)
    assert seen == [(2, "rows")]


def test_short_forms_of_rules():
    double = Primitive("double")
    double.def_abstract_eval(lambda x: x)
    double.def_impl(lambda x: x * 2)
    ad.deflinear2(double, lambda ct, x: [ct * 2])
    batching.defvectorized(double)
    mlir.register_lowering(double, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(double.bind(x) ** 2))(X), 8 * X)
    np.testing.assert_allclose(jax.vmap(double.bind, 1, 1)(X), 2 * X)

    cube = Primitive("cube")
    cube.def_abstract_eval(lambda x: x)
    cube.def_impl(lambda x: x**3)
    ad.defjvp(cube, lambda t, x: 3 * x**2 * t)
    assert jax.grad(jax.grad(cube.bind))(2.0) == 12.0

    total = Primitive("total")
    total.def_abstract_eval(
        lambda x, *, axes: jax.core.ShapedArray([n for i, n in enumerate(x.shape) if i not in axes], x.dtype)
    )
    total.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    batching.defreducer(total)
    three = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for axis in range(3):
        got = jax.vmap(lambda x: total.bind(x, axes=(1,)), axis)(three)
        np.testing.assert_array_equal(got, np.stack([r.sum(1) for r in np.moveaxis(three, axis, 0)]))


def test_the_error_of_a_missing_rule_names_the_primitive():
    prim = Primitive("without_rules")
    prim.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="without_rules"):
        jax.jit(prim.bind)(1.0)
    with pytest.raises(NotImplementedError, match="without_rules"):
        jax.vmap(prim.bind)(X)
    with pytest.raises(NotImplementedError, match="without_rules"):
        jax.grad(prim.bind)(1.0)


def test_a_callback_emitted_by_a_rule():
    prim = Primitive("host_sine")
    prim.multiple_results = True
    prim.def_abstract_eval(lambda x: [jax.core.ShapedArray(x.shape, x.dtype)])

    def rule(ctx, x):
        out, _, keep = mlir.emit_python_callback(
            ctx, lambda v: (np.sin(v),), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        ctx.module_context.add_keepalive(keep)
        return out

    mlir.register_lowering(prim, rule)
    np.testing.assert_allclose(jax.jit(prim.bind)(X)[0], np.sin(X), rtol=1e-6)


def test_attributes_and_types():
    assert str(mlir.dtype_to_ir_type(np.dtype("bfloat16"))) == "bf16"
    assert str(mlir.aval_to_ir_type(jax.core.ShapedArray((2, 3), np.float32))) == "tensor<2x3xf32>"
    assert str(mlir.i32_attr(3)) == "3 : i32" and str(mlir.i64_attr(4)) == "4 : i64"
    assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
    assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
    assert str(mlir.ir_attribute([1, True])) == "[1 : i32, true]"
    assert str(mlir.ir_attribute({"a": np.float32(2)})) == "{a = 2.000000e+00 : f32}"
    assert str(mlir.token_type()) == "!stablehlo.token"


def test_custom_functions_inside_derivative_rules():
    """A function with its own derivative, applied to tangents, is linear in them: its own operations are transposed."""

    @jax.custom_jvp
    def identity(x):
        return x * 1.0

    identity.defjvp(lambda primals, tangents: (identity(primals[0]), identity(tangents[0])))

    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(primals[0]), jnp.cos(primals[0]) * identity(tangents[0])))
    for transform in (lambda f: f, jax.jit):
        np.testing.assert_allclose(transform(jax.grad(sine))(1.0), np.cos(1.0), rtol=1e-6)
        np.testing.assert_allclose(transform(jax.grad(jax.grad(sine)))(1.0), -np.sin(1.0), rtol=1e-6)


def test_functions_of_an_equation_with_a_jvp_rule():
    y = jnp.float32(5)

    @jax.custom_jvp
    def scaled(x):
        return x * y

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 3 * tangents[0]))
    (eqn,) = jax.make_jaxpr(scaled)(2.0).eqns
    params = eqn.primitive.get_bind_params(eqn.params)
    fun, pushed = params["subfuns"]
    consts = [y] * (len(eqn.invars) - 1)
    zeros = [jnp.zeros_like(c) for c in consts]
    assert fun.call_wrapped(*consts, 2.0) == [10]
    assert pushed.call_wrapped(*consts, 2.0, *zeros, 7.0) == [10, 21]
    with pytest.raises(TypeError, match="two functions with a method call_wrapped, .* got function"):
        eqn.primitive.bind(*consts, 2.0, subfuns=(lambda x: x,), symbolic_zeros=False)
    with pytest.raises(TypeError, match="the only other param is symbolic_zeros, unchanged"):
        eqn.primitive.bind(*consts, 2.0, **(params | {"symbolic_zeros": True}))


@pytest.mark.parametrize("symbolic_zeros", [False, True])
def test_functions_of_a_library_are_bound_as_a_function_with_a_jvp_rule(symbolic_zeros):
    from jax.custom_derivatives import SymbolicZero
    from jax.extend import linear_util

    seen = []

    def pushed(x, y, x_dot, y_dot):
        seen.append(type(y_dot) is SymbolicZero)
        return [x * y, y, 7 * x_dot, y_dot]

    subfuns = tuple(map(linear_util.wrap_init, (lambda x, y: [x * y, y], pushed)))
    bind = lambda x, y: jax.extend.core.primitives.custom_jvp_call_p.bind(
        x, y, subfuns=subfuns, symbolic_zeros=symbolic_zeros
    )
    assert [float(v) for v in bind(2.0, 3.0)] == [6, 3]
    for wrap in (lambda f: f, jax.jit, jax.checkpoint):
        assert float(jax.grad(lambda x, wrap=wrap: sum(wrap(bind)(x, 3.0)))(2.0)) == 7
    assert float(jax.jvp(lambda x: bind(x, 3.0)[1], (2.0,), (1.0,))[1]) == 0
    assert set(seen) == {symbolic_zeros}
    assert jax.vmap(bind, (0, None))(jnp.arange(3.0), 2.0)[0].tolist() == [0, 2, 4]


def test_equations_are_bound_again_with_their_params():
    @jax.custom_jvp
    def halved(x):
        return x / 2

    halved.defjvp(lambda primals, tangents: (halved(*primals), 3 * tangents[0]))

    @jax.custom_vjp
    def doubled(x):
        return 2 * x

    doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (5 * ct,))

    def read(program, *args):
        values = dict(zip(program.jaxpr.invars, args, strict=True)) | dict(
            zip(program.jaxpr.constvars, program.consts, strict=True)
        )
        look_up = lambda x: x.val if isinstance(x, jax.extend.core.Literal) else values[x]
        for eqn in program.jaxpr.eqns:
            outs = eqn.primitive.bind(*map(look_up, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
            values |= zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True)
        return look_up(program.jaxpr.outvars[0])

    for fun, slope in (
        (halved, 3.0),
        (doubled, 5.0),
        (jax.checkpoint(jnp.sin), np.cos(2.0)),
        (jax.jit(jnp.sin), np.cos(2.0)),
        (lambda x: jax.lax.scan(lambda c, _: (2 * c, None), x, length=3)[0], 8.0),
        (lambda x: jax.lax.cond(x > 0, jnp.sin, jnp.cos, x), np.cos(2.0)),
    ):
        again = partial(read, jax.make_jaxpr(fun)(2.0))
        np.testing.assert_allclose(again(2.0), fun(2.0), rtol=1e-6)
        np.testing.assert_allclose(jax.grad(again)(2.0), slope, rtol=1e-6)
