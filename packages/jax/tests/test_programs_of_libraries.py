"""Functions on programs that libraries call, compared with what the transformations of users return."""

import functools
import importlib
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import experimental
from jax.experimental import hijax
from jax.interpreters import ad, batching
from jax.interpreters import partial_eval as pe

from bedrax.core.typed_values import TypedValue

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)


def f(x, y):
    return jnp.sin(x) * y + np.arange(3, dtype=np.float32)


def evaluated(program, *args):
    return jax.core.eval_jaxpr(program, program.consts, *args)


def test_a_call_is_transformed_as_its_program():
    call_p = jax.extend.core.create_call_primitive("call_of_a_library")
    program = jax.make_jaxpr(f)(X, X)

    def call(x, y):
        return call_p.bind(x, y, call_jaxpr=program)[0]

    for way in (lambda g: g, jax.jit, jax.jacrev, lambda g: jax.jacfwd(g, 1)):
        np.testing.assert_allclose(way(call)(X, X), way(f)(X, X), rtol=1e-6)
    both = np.stack([X, 2 * X])
    np.testing.assert_allclose(jax.vmap(call, (0, None))(both, X), jax.vmap(f, (0, None))(both, X), rtol=1e-6)


@pytest.mark.parametrize("inlined", [True, False])
def test_a_transposed_call_is_the_transposed_program(inlined):
    call_p = jax.extend.core.Primitive("linear_call_of_a_library")
    call_p.multiple_results = True
    rule = functools.partial(jax.extend.core.eval_jaxpr_transpose, call_p) if inlined else None
    jax.extend.core.register_call_primitive_rules(call_p, transpose_rule=rule)
    program = jax.make_jaxpr(lambda x: 3 * x[::-1])(X)
    (found,) = jax.linear_transpose(lambda x: call_p.bind(x, call_jaxpr=program)[0], X)(X)
    np.testing.assert_allclose(found, 3 * X[::-1])


def test_backward_pass_and_jvp_of_a_program():
    program = jax.make_jaxpr(f)(X, X)
    pushed, with_tangent = ad.jvp_jaxpr(program, [True, False], False)
    assert with_tangent == [True]
    out, tangent = evaluated(pushed, X, X, 2 * X)
    wanted = jax.jvp(lambda x: f(x, X), (X,), (2 * X,))
    np.testing.assert_allclose(out, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(tangent, wanted[1], rtol=1e-6)
    linear = jax.make_jaxpr(lambda y, x: jnp.cos(x) * y)(X, X)
    cotangents = ad.backward_pass(linear, False, linear.consts, [ad.UndefinedPrimal(linear.in_avals[0]), X], [X])
    np.testing.assert_allclose(cotangents[0], np.cos(X) * X, rtol=1e-6)


def test_a_program_on_batches():
    found = []

    def rule(axis, args, dims):
        program, mapped = batching.batch_jaxpr_axes(
            jax.make_jaxpr(lambda x: (2 * x, jnp.ones(2)))(1.0), axis, dims, [0, None]
        )
        found.append((mapped, [a.shape for a in program.out_avals]))
        return evaluated(program, *args)[0], 0

    prim = jax.extend.core.Primitive("doubled_by_a_library")
    batching.fancy_primitive_batchers[prim] = rule
    np.testing.assert_allclose(jax.vmap(prim.bind)(X), 2 * X)
    assert found == [([True, False], [(3,), (2,)])]


def test_programs_are_taken_apart_and_put_together():
    program = jax.make_jaxpr(f)(X, X)
    wanted = f(X, 2 * X)
    known, rest, unknown, residuals = pe.partial_eval_jaxpr_nounits(program, [False, True], False)
    assert unknown == [True] and {a.shape for a in residuals} == {(3,)}
    np.testing.assert_allclose(evaluated(rest, *evaluated(known, X), 2 * X)[0], wanted, rtol=1e-6)
    moved = pe.move_binders_to_back(program, [True, False])
    np.testing.assert_allclose(evaluated(moved, 2 * X, X)[0], wanted, rtol=1e-6)
    open_program = pe.convert_constvars_jaxpr(program)
    np.testing.assert_allclose(evaluated(open_program, *program.consts, X, 2 * X)[0], wanted, rtol=1e-6)
    for same in (pe.close_jaxpr(program), pe.lower_jaxpr2(program)):
        np.testing.assert_allclose(evaluated(same, X, 2 * X)[0], wanted, rtol=1e-6)
    two = jax.make_jaxpr(lambda x: (x, -x))(X)
    (only,) = evaluated(pe.prune_closed_jaxpr_outputs(two, [False, True]), X)
    np.testing.assert_allclose(only, -X)
    (aval,) = pe.abstract_eval_fun(lambda x, *, n: [jnp.tile(x, n)], program.in_avals[0], n=2)
    assert aval.shape == (6,)


def test_backward_rules_that_log_or_add():
    def bwd(x, ct):
        return (2 * x * ct,), {"cotangent": ct}

    logging = jax.custom_vjp(lambda x: x * x)
    logging.defvjp_with_logs(lambda x: (x * x, x), bwd)
    _, pullback = jax.vjp(logging, X)
    np.testing.assert_allclose(pullback(X)[0], 2 * X * X, rtol=1e-6)
    gradient, logs = pullback.with_logs(X)
    np.testing.assert_allclose(gradient[0], 2 * X * X, rtol=1e-6)
    np.testing.assert_allclose(logs["cotangent"], X)

    adding = jax.custom_vjp(lambda x: x * x)
    adding.defvjp_with_accums(lambda x: (x * x, x), lambda x, ct, accum: accum.accum(2 * x * ct))
    np.testing.assert_allclose(jax.grad(lambda x: adding(x).sum())(X), 2 * X, rtol=1e-6)
    for refused in (adding.defremat, adding.defremat_with_logs):
        with pytest.raises(NotImplementedError):
            refused(None, None, None)


def test_a_pullback_may_omit_its_arguments():
    x = jnp.asarray(X)
    kept = jax.vjp(lambda x: x * jnp.sin(x), x)[1]
    left = jax.vjp(lambda x: x * jnp.sin(x), x, saveable_args=False)[1]
    assert isinstance(left.args_res[0], jax.ad.NotSaveable) and not isinstance(kept.args_res[0], jax.ad.NotSaveable)
    left.args_res[0] = x
    np.testing.assert_allclose(left(X)[0], kept(X)[0], rtol=1e-6)
    named = jax.ad_checkpoint.checkpoint_name_fwd
    np.testing.assert_allclose(jax.grad(lambda x: named(x * x, "square").sum())(X), 2 * X)


def test_kinds_of_operations_of_libraries():
    assert issubclass(hijax.VJPHiPrimitive, hijax.HiPrim)

    class Twice(hijax.HiPrim):
        def __init__(self, n):
            self.in_avals, self.out_aval = (jax.typeof(X),), jax.typeof(X)
            self.params = {"n": n}
            super().__init__()

        def expand(self, x):
            return 2 * x

        def vjp_fwd(self, nzs_in, x):
            return self(x), None

        def vjp_bwd_retval(self, res, outgrad):
            return (2 * outgrad,)

    twice = Twice(3)
    assert twice.pp_params() == {"n": 3} and Twice.defines("vjp_bwd_retval")
    assert not Twice.defines("vjp_bwd") and not Twice.defines("vjp_bwd_retval_logs")
    np.testing.assert_allclose(jax.grad(lambda x: twice(x).sum())(X), [2, 2, 2])


def test_compiled_programs_have_values_of_a_library_inside():
    from jax import export

    class Angle:
        def __init__(self, turns):
            self.turns = turns

    kind = jax.typeof(jnp.ones(3))

    class AngleType(hijax.HiType):
        __eq__ = lambda self, other: isinstance(other, AngleType)
        __hash__ = lambda self: hash(AngleType)
        __repr__ = lambda self: "angle"
        lo_ty = lambda self: [kind]
        lower_val = lambda self, angle: [angle.turns]
        raise_val = lambda self, turns: Angle(turns)
        to_tangent_aval = lambda self: kind

    hijax.register_hitype(Angle, lambda angle: AngleType())

    class Turns(hijax.HiPrim):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (kind,), AngleType(), {}
            super().__init__()

        expand = lambda self, x: Angle(x % 1)
        vjp_fwd = lambda self, nzs_in, x: (self(x), None)
        vjp_bwd_retval = lambda self, residuals, ct: (ct,)

    class Read(hijax.HiPrim):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (AngleType(),), kind, {}
            super().__init__()

        expand = lambda self, angle: angle.turns
        vjp_fwd = lambda self, nzs_in, angle: (self(angle), None)
        vjp_bwd_retval = lambda self, residuals, ct: (ct,)

    x = jnp.array([0.25, 1.5, 2.75])
    wrapped = np.array([0.25, 0.5, 0.75])
    whole = jax.jit(lambda x: Read()(Turns()(x)))
    angle = jax.jit(Turns())(x)
    assert type(angle) is Angle
    for found in (whole(x), jax.jit(Read())(angle), whole.lower(x).compile()(x), export.export(whole)(x).call(x)):
        np.testing.assert_allclose(found, wrapped)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: (whole(x) ** 2).sum()))(x), 2 * wrapped)
    np.testing.assert_allclose(jax.grad(lambda a: (jax.jit(Read())(a) ** 2).sum())(angle), 2 * wrapped)
    np.testing.assert_allclose(jax.jit(Read()).lower(angle).compile()(angle), wrapped)
    with pytest.raises(NotImplementedError, match="a value of a library's type"):
        export.export(jax.jit(Read()))(angle)


def test_lowered_programs_take_and_return_values_of_a_library():
    from jax.experimental import serialize_executable

    class Scaled:
        def __init__(self, numbers, scale):
            self.numbers, self.scale = numbers, scale

    class ScaledType(hijax.HiType):
        def __init__(self, size):
            self.size = size

        __eq__ = lambda self, other: isinstance(other, ScaledType) and self.size == other.size
        __hash__ = lambda self: hash(self.size)
        __repr__ = str_short = lambda self, *_: f"scaled[{self.size}]"
        lo_ty = lambda self: [jax.core.ShapedArray((self.size,), np.dtype(np.int8)), jax.typeof(np.float32(1))]
        lower_val = lambda self, x: [x.numbers, x.scale]
        raise_val = lambda self, numbers, scale: Scaled(numbers, scale)

    hijax.register_hitype(Scaled, lambda x: ScaledType(len(x.numbers)))

    class Make(hijax.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), ScaledType(*aval.shape), {}
            super().__init__()

        expand = lambda self, x: Scaled((x / x.max() * 100).astype(np.int8), x.max() / 100)

    class Value(hijax.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), jax.core.ShapedArray((aval.size,), X.dtype), {}
            super().__init__()

        expand = lambda self, x: x.numbers.astype(np.float32) * x.scale

    def double(y, x, ref):
        ref[...] += 1
        x = Value(jax.typeof(x))(x)
        return {"a": jnp.sum(y), "b": Make(jax.typeof(x))(2 * x), "c": x}

    x = Scaled(jnp.array([25, 50, 100], np.int8), jnp.float32(0.5))
    numbers, y, ref = np.float32([25, 50, 100]), np.ones(2, np.float32), jax.new_ref(jnp.zeros(3))
    given = y, x, ref
    jitted = jax.jit(double, donate_argnums=1)
    traced = jitted.trace(*given)
    assert traced.out_info["b"] == jax.eval_shape(double, y, ScaledType(3), ref)["b"] == ScaledType(3)
    lowered = traced.lower()
    text = lowered.as_text()
    assert lowered.in_avals[0][1] == ScaledType(3) and lowered.args_info[0][1].donated
    assert text == jitted.lower(y, ScaledType(3), ref).as_text()  # the type in place of a value
    assert "tensor<3xi8> {tf.aliasing_output = 1" in text
    assert text.count("result['b']") == 2 and text.count("result['c']") == 1 and "reference[2]" in text
    compiled = lowered.compile()
    ((of_y, of_x, of_ref), _), of_results = compiled.input_shardings, compiled.output_shardings
    assert of_x == [of_y, of_ref] and of_results == {"a": of_y, "b": [of_y, of_y], "c": of_y}
    assert [f.layout.major_to_minor for f in compiled.output_formats["b"]] == [(0,), ()]
    for k in (1, 2):
        out = compiled(y, Scaled(x.numbers + 0, x.scale + 0), ref)
        assert out["a"] == 2 and type(out["b"]) is Scaled
        np.testing.assert_allclose(out["c"], numbers / 2)
        np.testing.assert_allclose(out["b"].numbers * out["b"].scale, numbers)
        np.testing.assert_array_equal(ref[...], [k, k, k])
    with pytest.raises(TypeError, match=r"'x': expected scaled\[3\], got scaled\[2\]"):
        compiled(y, Scaled(jnp.zeros(2, np.int8), jnp.float32(1)), ref)
    with pytest.raises(TypeError, match=r"'x': expected scaled\[3\], got float32\[3\]"):
        compiled(y, jnp.ones(3), ref)
    with pytest.raises(TypeError, match="is the type of an array and has no value"):
        compiled(y, ScaledType(3), ref)
    read = jax.jit(lambda x: Value(jax.typeof(x))(x))
    with pytest.raises(ValueError, match="values of libraries' types, which bytes cannot hold"):
        serialize_executable.serialize(read.lower(x).compile())
    assert "tensor<3xi8>" in read.trace(x).lower(lowering_platforms=("cpu", "cuda")).as_text()


def test_the_class_of_a_traced_value_is_of_the_package_jax():
    """Autoray, and with it PennyLane and quimb, takes the functions for a value from the package of its class."""

    def subclasses(kind):
        for below in kind.__subclasses__():
            yield below
            yield from subclasses(below)

    experimental.jet.jet(jnp.sin, (1.0,), [[1.0]])
    experimental.sparse.sparsify(jnp.sin)(experimental.sparse.BCOO.fromdense(X))
    ours = [kind for kind in subclasses(jax.core.Tracer) if kind.__module__.startswith(("bedrax", "jax"))]
    assert {"StagedTracer", "BatchTracer", "JVPTracer", "SeriesTracer", "SparseTracer"} <= {k.__name__ for k in ours}
    for kind in ours:
        assert kind.__module__.partition(".")[0] == "jax"
        found = getattr(importlib.import_module(kind.__module__), kind.__name__)
        assert found is kind or issubclass(kind, (found, TypedValue))  # a class of `typed` has the name of its base


def test_a_traced_value_is_pickled_with_its_own_class():
    """A class of `typed` has the name of its base, which must not take its place."""
    kinds = {kind for kind in jax.core.Tracer.__subclasses__() if kind.__module__ == "jax._src.core"}
    (node,) = [kind for kind in kinds if kind.__name__ == "Node"]
    (value,) = [kind for kind in node.__subclasses__() if issubclass(kind, TypedValue)]
    assert type(pickle.loads(pickle.dumps(object.__new__(node)))) is node
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(object.__new__(value))
