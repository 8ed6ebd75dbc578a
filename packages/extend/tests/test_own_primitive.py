"""A primitive of a library: its rules written into the tables as libraries write them."""

import textwrap

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad, jvp, linear_transpose, vjp
from bedrax.batching import vmap
from bedrax.core import ShapedArray, offers
from bedrax.core.codes import code_of, plain
from bedrax.core.ir import jaxpr_as_fun
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.extend import api_util, interpreters, linear_util, partial_eval
from bedrax.pytree import tree_structure

f32 = np.float32


def square_plus(name):
    """x, y -> x * x + y, with every rule but those that a test adds."""
    prim = Primitive(name)
    prim.def_impl(lambda x, y: lax.add(lax.mul(x, x), y))
    prim.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))
    return prim


def test_evaluation_and_tracing():
    prim = square_plus("square_plus_eval")
    assert float(prim.bind(f32(3), f32(1))) == 10
    (eqn,) = make_jaxpr(prim.bind)(f32(3), f32(1)).eqns
    assert eqn.primitive is prim and eqn.outvars[0].aval.shape == ()


def missing(fun, *args):
    """The lines of the error of a missing rule, without the last one."""
    with pytest.raises(NotImplementedError) as caught:
        fun(*args)
    assert code_of(caught.value) == "BX-RULE-ABSENT"
    return plain(caught.value).splitlines()


@pytest.mark.parametrize("interface", [True, False], ids=["with jax", "alone"])
def test_the_error_of_a_missing_rule_shows_the_lines_to_write(monkeypatch, interface):
    """The lines are those of `jax` if it is installed, and of the table's own module otherwise. They work as they are."""
    monkeypatch.setattr(offers, "_all", offers.installed() if interface else {})
    if interface:
        pytest.importorskip("jax")
    name = f"square_plus_bare_{interface}"
    prim = square_plus(name)
    x, y = f32(3), f32(1)
    rules = {
        "derivatives (jvp, grad, vjp)": (
            lambda: jvp(prim.bind, (x, y), (x, x)),
            lambda primals, tangents: (prim.bind(*primals), prim.bind(*tangents)),
        ),
        "transposition (grad, vjp, linear_transpose)": (
            lambda: vjp(prim.bind, x, y)[1](f32(1)),
            lambda ct, x, y: [ct, ct],
        ),
        "vmap, and for shard_map outside of jit": (
            lambda: vmap(prim.bind)(np.ones(3, f32), np.ones(3, f32)),
            (lambda args, dims: (prim.bind(*args), dims[0]))
            if interface
            else (lambda axis, args, dims: (prim.bind(*args), dims[0])),
        ),
    }
    for purpose, (call, rule) in rules.items():
        first, *lines = missing(call)
        assert first == f"primitive '{name}' has no rule for {purpose}. To add one:"
        assert ("from jax.interpreters import" in lines[0]) == interface and "# rule(" in lines[1]
        exec(textwrap.dedent("\n".join(lines)), {"primitive": prim, "rule": rule})
        call()
    bare = Primitive(f"square_plus_without_shape_{interface}")
    first, line = missing(make_jaxpr(bare.bind), f32(1))
    assert first == f"primitive '{bare}' has no rule for the types of its results, which tracing needs. To add one:"
    exec(line.strip(), {"primitive": bare, "rule": lambda x: x})
    make_jaxpr(bare.bind)(f32(1))


def test_derivatives_and_batches():
    prim = square_plus("square_plus_full")
    interpreters.defjvp(prim, lambda t, x, y: lax.mul(t, lax.mul(x, f32(2))), lambda t, x, y: t)
    interpreters.defvectorized(prim)
    value, tangent = jvp(prim.bind, (f32(3), f32(1)), (f32(1), f32(5)))
    assert (float(value), float(tangent)) == (10, 11)
    assert [float(g) for g in grad(prim.bind, argnums=(0, 1))(f32(3), f32(1))] == [6, 1]
    xs = np.arange(3, dtype=f32)
    np.testing.assert_allclose(np.asarray(vmap(grad(prim.bind), in_axes=(0, None))(xs, f32(1))), 2 * xs)


@pytest.mark.parametrize("axes", [(0,), (1,), (-1,), (-2, 1)])
@pytest.mark.parametrize("mapped", [0, 1, 2])
def test_reducers_are_mapped(axes, mapped):
    prim = Primitive("reducer_of_this_test")
    prim.def_impl(lambda x, axes: np.sum(x, axes))
    interpreters.defreducer(prim)
    x = np.arange(24, dtype=f32).reshape(2, 3, 4)
    expected = [np.sum(part, axes) for part in np.moveaxis(x, mapped, 0)]
    np.testing.assert_array_equal(vmap(lambda part: prim.bind(part, axes=axes), in_axes=mapped)(x), expected)


def test_tables_take_assignments():
    prim = Primitive("twice")
    prim.def_impl(lambda x: lax.mul(x, f32(2)))
    prim.def_abstract_eval(lambda x: x)

    def rule(primals, tangents):
        return prim.bind(*primals), prim.bind(tangents[0])

    interpreters.primitive_jvps[prim] = rule
    interpreters.primitive_transposes[prim] = lambda ct, x: [prim.bind(ct)]
    interpreters.primitive_batchers[prim] = lambda args, dims: (prim.bind(args[0]), dims[0])
    assert prim in interpreters.primitive_jvps
    assert float(grad(prim.bind)(f32(1))) == 2
    assert float(linear_transpose(prim.bind, f32(1))(f32(3))[0]) == 6
    np.testing.assert_allclose(np.asarray(vmap(prim.bind)(np.ones(2, f32))), [2, 2])
    interpreters.primitive_jvps[prim] = lambda primals, tangents: (prim.bind(*primals), lax.neg(tangents[0]))
    assert float(grad(prim.bind)(f32(1))) == -1  # the later rule counts
    del interpreters.primitive_jvps[prim]
    assert prim not in interpreters.primitive_jvps


def test_options_without_a_meaning_are_refused():
    x = np.ones(2, f32)
    for call in (
        lambda **given: interpreters.broadcast(x, 3, 0, **given),
        lambda **given: interpreters.bdim_at_front(x, 0, 2, **given),
    ):
        call(mesh_axis=None)
        with pytest.raises(NotImplementedError, match="mesh_axis=.* not supported here"):
            call(mesh_axis="x")
    fun, types = linear_util.wrap_init(lambda x: [x]), [ShapedArray((), f32)]
    assert len(partial_eval.trace_to_jaxpr_dynamic(fun, types)[0].outvars) == 1
    with pytest.raises(NotImplementedError, match="auto_dce=True, lower=True are not supported here"):
        partial_eval.trace_to_jaxpr_dynamic(fun, types, lower=True, auto_dce=True)


def test_functions_carry_transformations():
    wrapped = linear_util.wrap_init(lambda x, k: x + k, {"k": 1})
    assert wrapped.call_wrapped(2) == 3
    twice = linear_util.transformation2(lambda inner, times, x: inner(x) * times, wrapped, 2)
    assert twice.call_wrapped(2) == 6
    assert twice == linear_util.transformation2(twice.transforms[0][0], wrapped, 2)

    @linear_util.transformation
    def shifted(by, x):
        yield (yield (x + by,), {})

    assert shifted(wrapped, 10).call_wrapped(1) == 12


def test_calls_as_flat_lists():
    tree = tree_structure((({"a": 0, "b": 0},), {"k": 0}))
    flat, out_tree = api_util.flatten_fun(linear_util.wrap_init(lambda d, k: {"sum": d["a"] + d["b"] * k}), tree)
    assert list(flat.call_wrapped(1, 2, 3)) == [7]
    assert out_tree() == tree_structure({"sum": 0})


def test_a_primitive_inside_jit_runs_its_impl_or_is_named_in_an_error():
    prim = square_plus("square_plus_jit")
    try:
        assert float(jit(prim.bind)(f32(3), f32(1))) == 10
    except NotImplementedError as error:  # a compiler needs a rule of its own
        assert "square_plus_jit" in str(error)


def test_partly_known_values():
    seen = []

    def f(x, y, z):
        seen.append(isinstance(x, float))
        return [x * 2, lax.add(lax.mul(y, f32(3)), x), z]

    pvals = [partial_eval.PartialVal.known(5.0), *[partial_eval.PartialVal.unknown(ShapedArray((), f32))] * 2]
    jaxpr, outs, residuals = partial_eval.trace_to_jaxpr_nounits(linear_util.wrap_init(f), pvals)
    assert seen == [True] and [p.is_known() for p in outs] == [True, False, False] and outs[0].get_known() == 10
    assert jaxpr_as_fun(jaxpr)(*residuals, f32(2), f32(7)) == [11, 7]
    _, forced, _ = partial_eval.trace_to_jaxpr_nounits(f, pvals, instantiate=[True, False, False])
    assert [p.is_known() for p in forced] == [False, False, False]
