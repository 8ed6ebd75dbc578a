"""Exported programs: their values, shapes and platforms, and the errors."""

import collections
import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.core import effects
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.callbacks import io_callback
from bedrax.parallel import AbstractMesh, PartitionSpec
from bedrax.shape_poly import symbolic_args_specs, symbolic_shape
from bedrax.xla_backend import NamedSharding, jit
from bedrax.xla_backend import export as ex
from bedrax.xla_backend.tables import lowering_rules, platform_rule

F32 = np.dtype(np.float32)


def arange(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32) / 7 - 1).reshape(shape)


def spec(text, dtype=np.float32, **options):
    return ShapeDtypeStruct(symbolic_shape(text, **options), dtype)


def round_trip(exported, vjp_order=0):
    return ex.deserialize(exported.serialize(vjp_order))


def test_documented_example():
    def f(x):
        return 2 * x * x

    exported = ex.export(jit(f))(ShapeDtypeStruct((), np.float32))
    assert exported.fun_name == "f" and str(exported.in_avals) == "(ShapedArray(float32[]),)"
    assert "@main" in exported.mlir_module() and exported.platforms == (ex.default_export_platform(),)
    again = round_trip(exported)
    assert again.in_avals == exported.in_avals and again.in_tree == exported.in_tree
    assert isinstance(exported.serialize(), bytearray)

    def callee(y):
        return 3.0 * again.call(y * 4.0)

    assert float(callee(1.0)) == 96.0
    assert float(jit(callee)(1.0)) == 96.0


def test_symbolic_shapes():
    a, b = symbolic_shape("a, b")
    exported = ex.export(jit(lambda x: lax.concatenate([x, x], 1)))(ShapeDtypeStruct((a, b), np.int32))
    assert str(exported.in_avals) == "(ShapedArray(int32[a,b]),)"
    assert str(exported.out_avals) == "(ShapedArray(int32[a,2*b]),)"
    for e in (exported, round_trip(exported)):
        for shape in ((3, 4), (1, 1), (5, 2)):
            x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            np.testing.assert_array_equal(e.call(x), np.concatenate([x, x], 1))


def test_dimensions_as_values():
    exported = ex.export(
        jit(lambda x: (5.0 + x.shape[0], x.shape[0] - np.arange(5, dtype=np.int32), x + x.shape[0], x.shape[0]))
    )(spec("b", np.int32))
    x = np.ones(3, np.int32)
    out = exported.call(x)
    assert (
        float(out[0]) == 8 and out[1].tolist() == [3, 2, 1, 0, -1] and out[2].tolist() == [4, 4, 4] and int(out[3]) == 3
    )
    assert exported.out_avals[0].weak_type and exported.out_avals[0].dtype == F32


PROGRAMS = {
    "softmax": (lambda x: lax.exp(x) / lax.broadcast_in_dim(lax.reduce_sum(lax.exp(x), axes=(1,)), x.shape, (0,)), ["b, n"], [(3, 4)]),
    "flatten": (lambda x: lax.reshape(x, (x.shape[0] * x.shape[1],)), ["b, 4"], [(3, 4)]),
    "slice": (lambda x: lax.slice_in_dim(x, 1, x.shape[0] - 1, 2), ["b + 1, 4"], [(6, 4)]),
    "dynamic_slice": (lambda x: lax.dynamic_slice_in_dim(x, 1, x.shape[0] - 1), ["b + 1, 4"], [(3, 4)]),
    "pad": (lambda x: lax.pad(x, np.float32(0), ((x.shape[0], 1, 0), (1, 1, 1))), ["b, 4"], [(3, 4)]),
    "iota": (lambda x: lax.iota(np.int32, 2 * x.shape[0] + 1), ["b"], [(3,)]),
    "conv": (lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), ["b, h, w, 3", None], [(2, 7, 8, 3), (3, 3, 3, 5)]),
    "pool": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), ["b, h, w, _"], [(2, 7, 8, 3)]),
    "cumsum": (lambda x: lax.cumsum(x, axis=0), ["b, 4"], [(3, 4)]),
    "sort": (lambda x: lax.sort(x, dimension=0), ["b, 4"], [(3, 4)]),
    "top_k": (lambda x: lax.top_k(x, 2), ["b, _"], [(3, 4)]),
    "argmax": (lambda x: lax.argmax(x, 0, np.int32), ["b, _"], [(3, 4)]),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a + x.shape[0]), lax.full((4,), 0.0, np.float32), x), ["b, _"], [(3, 4)]),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] + x), (0, x)), ["b, _"], [(3, 4)]),
    "cond": (lambda x: lax.cond(lax.reduce_sum(x, axes=(0, 1)) < 1, lambda y: y + 1, lambda y: y * y.shape[0], x), ["b, _"], [(3, 4)]),
    "inner jit": (lambda x: jit(lambda y: y * y.shape[0])(x), ["b, _"], [(3, 4)]),
    "batched product": (lambda x: lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))), ["b, n, _"], [(2, 3, 4)]),
    "update": (lambda x: lax.dynamic_update_slice(x, lax.full((1, 4), 1.0, np.float32), (1, 0)), ["b, _"], [(3, 4)]),
    "special": (lambda x: lax.erf(x) + lax.lgamma(x + 3) + lax.sinh(x) + lax.asinh(x), ["b, _"], [(3, 4)]),
    "pytree": (lambda x, d: {"s": x + d["y"][0], "n": (d["y"][0],)}, ["b", None], None),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_the_function(name):
    f, specs, shapes = PROGRAMS[name]
    args = [arange(*s) for s in shapes] if shapes else [arange(3), {"y": (np.float32(2),)}]
    exported = ex.export(jit(f))(*symbolic_args_specs(args, specs))
    expected, tree = _flat(f(*args))
    got, got_tree = _flat(round_trip(exported).call(*args))
    assert got_tree == tree
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        assert x.dtype == y.dtype


def _flat(x):
    from bedrax import pytree

    return pytree.tree_flatten(x)


def test_symbolic_k_of_top_k():
    (k,) = symbolic_shape("k", constraints=["k <= 10"])
    x = np.array([[3, 1, 3, np.nan, -1, 2, 0, 7, 7, 5]], np.float32)
    exported = ex.export(jit(lambda dimensions, x: lax.top_k(x, dimensions.shape[1])))(
        ShapeDtypeStruct((0, k), np.int32), x
    )
    assert exported.module_kept_var_idx == (0, 1)
    for n in (1, 4, 10):
        values, index = exported.call(np.zeros((0, n), np.int32), x)
        expected = lax.top_k(x, n)
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(index, expected[1])


@pytest.mark.parametrize(
    "text, options, shape, message",
    [
        ("b, b, 2*d", {}, (3, 3, 5), "Division had remainder 1 when computing the value of 'd'"),
        (
            "b, b",
            {},
            (3, 4),
            "Found inconsistency between dimension size args[0].shape[1] (= 4) and the specification 'b' (= 3)",
        ),
        ("b", {}, (0,), "Expected value >= 1 for dimension variable 'b'"),
        ("b", {"constraints": ["b >= 4"]}, (3,), "symbolic shape constraint b >= 4"),
        ("a, 5", {}, (3, 6), "argument 0: expected size 5 of axis 1, as of shape (a, 5); got shape (3, 6)"),
        ("a, 5", {}, (3,), "argument 0: expected rank 2, of shape (a, 5); got shape (3,)"),
    ],
)
def test_wrong_shapes(text, options, shape, message):
    exported = ex.export(jit(lambda x: x + 1))(spec(text, **options))
    with pytest.raises(ValueError) as e:
        exported.call(np.ones(shape, np.float32))
    assert message in str(e.value)


def test_shapes_are_checked_by_the_module_too():
    from bedrax.xla_backend.lowering import linking, types

    exported = ex.export(jit(lambda x: x))(spec("b, b, 2*d"))
    wrong = types.tensor_type((3, 3, 5), F32)
    with pytest.raises(ValueError, match="Division had remainder 1 when computing the value of 'd'"):
        linking.specialize(exported.mlir_module_serialized, [wrong], None, True)
    right = types.tensor_type((3, 3, 4), F32)
    assert "tensor<3x3x4xf32>" in str(linking.specialize(exported.mlir_module_serialized, [right], None, True))


def test_wrong_arguments():
    exported = ex.export(jit(lambda x, *, y: x + y))(spec("b"), y=arange(1))
    with pytest.raises(ValueError, match="exported for arguments of one structure"):
        exported.call(arange(3))
    with pytest.raises(ValueError, match="argument 0: expected dtype float32, got int32"):
        exported.call(np.arange(3, dtype=np.int32), y=arange(1))
    with pytest.raises(ValueError, match="needs a function made by jit"):
        ex.export(lambda x: x)
    (a,) = symbolic_shape("a")
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables {'a'}"):
        ex.export(jit(lambda x: x.shape[0]))(ShapeDtypeStruct((a * a,), np.float32))
    with pytest.raises(KeyError, match="Encountered dimension variable 'k' that is not appearing"):
        (k,) = symbolic_shape("k")
        ex.export(jit(lambda x: lax.broadcast(x, (k,))))(arange(2))
    with pytest.raises(NotImplementedError, match="no value here"):
        a + 1.0


def test_platforms():
    exported = ex.export(jit(lax.cos), platforms=["tpu"])(np.float32(1))
    with pytest.raises(ValueError, match="'cos' was exported for tpu and is called on cpu"):
        exported.call(np.float32(1))
    unsafe = ex.export(jit(lax.cos), platforms=["tpu"], disabled_checks=[ex.DisabledSafetyCheck.platform()])(
        np.float32(1)
    )
    assert abs(float(round_trip(unsafe).call(np.float32(1))) - np.cos(1)) < 1e-6
    with pytest.raises(ValueError, match="unknown platforms"):
        ex.export(jit(lax.cos), platforms=["abacus"])


@pytest.mark.parametrize("start", [np.uint32(4_000_000_000), np.uint32(1), np.int32(-7), np.uint8(200)], ids=repr)
def test_a_start_of_a_symbolic_slice_is_clamped_as_it_is(start):
    """It was cut to 32 bits first."""
    f = jit(lambda x, i: lax.dynamic_slice(x, (i,), (x.shape[0] - 2,)))
    exported = ex.export(f)(spec("n + 2"), ShapeDtypeStruct((), start.dtype))
    np.testing.assert_array_equal(exported.call(arange(5), start), f(arange(5), start))


def test_several_platforms():
    """Equations with one form for all platforms appear once. The call passes the index that selects the others."""
    f = jit(lambda x: lax.cumsum(lax.sin(x), axis=0))
    x = arange(5, 3)
    exported = ex.export(f, platforms=["tpu", "cpu", "cuda"])(x)
    text = exported.mlir_module()
    assert text.count("stablehlo.sine") == 1 and "stablehlo.case" in text and "_platform_index" in text
    np.testing.assert_allclose(round_trip(exported).call(x), np.cumsum(np.sin(x), 0), rtol=1e-5, atol=1e-6)
    plain = ex.export(jit(lambda x: lax.dot(x, x)), platforms=["cpu", "cuda"])(arange(3, 3))
    assert "stablehlo.case" not in plain.mlir_module()
    symbolic = ex.export(f, platforms=["cuda", "cpu"])(spec("b, 3"))
    np.testing.assert_allclose(symbolic.call(x), np.cumsum(np.sin(x), 0), rtol=1e-5, atol=1e-6)


def test_each_platform_gets_its_own_branch():
    where_p = Primitive("where_am_i", "calls")
    where_p.abstract(lambda x: x)
    names = ("cpu", "cuda", "tpu")
    lowering_rules.add(where_p, lambda ctx, x: ctx.constant(np.float32(names.index(ctx.platform))))
    exported = ex.export(jit(lambda x: where_p.bind(x) + x), platforms=["tpu", "cuda", "cpu"])(np.float32(0))
    assert float(exported.call(np.float32(10))) == 10
    from bedrax.xla_backend.lowering import linking, types

    scalar = types.tensor_type((), F32)
    for i, name in enumerate(("tpu", "cuda", "cpu")):
        module = str(linking.specialize(exported.mlir_module_serialized, [scalar], i, True))
        assert "stablehlo.case" not in module and f"dense<{names.index(name)}.0" in module


def test_symbolic_shapes_of_operations_that_were_lowered_for_comparison():
    """A rule of one platform finds the shapes of its operands, and no shapes of the erased operations of another."""
    seen = []

    def rule(ctx, x):
        seen.append((str(ctx.shape(x)), len(ctx.program.shapes)))
        return ctx.lower_fun(lambda x: lax.slice_in_dim(lax.concatenate([x, x], 0), 0, x.shape[0]), x)

    for_two_platforms_p = Primitive("for_two_platforms", "calls")
    for_two_platforms_p.abstract(lambda x: x)
    lowering_rules.add(for_two_platforms_p, rule)
    platform_rule(for_two_platforms_p, "gpu")(lambda ctx, x: rule(ctx, x))
    exported = ex.export(jit(for_two_platforms_p.bind), platforms=["cpu", "cuda"])(spec("b, 3"))
    assert len(seen) > 1 and set(seen) == {("(b, 3)", 1)}
    np.testing.assert_array_equal(exported.call(arange(4, 3)), arange(4, 3))


def test_exported_inside_exported():
    inner = ex.export(jit(lambda x, y: lax.dot(x, y)))(*symbolic_args_specs([arange(1, 1)] * 2, ["a, b", "b, c"]))
    args = symbolic_args_specs([arange(2, 3)], ["n, m"])
    outer = ex.export(jit(lambda x: inner.call(x, lax.transpose(x, (1, 0)))))(*args)
    assert str(outer.out_avals[0].shape) == "(n, n)"
    x = arange(2, 3)
    np.testing.assert_allclose(round_trip(outer).call(x), x @ x.T, rtol=1e-5)
    fixed = ex.export(jit(lambda x: inner.call(lax.full((4, 5), 1.0, np.float32), x)))(spec("5, n"))
    np.testing.assert_allclose(fixed.call(arange(5, 2)), np.ones((4, 5)) @ arange(5, 2), rtol=1e-5)


def test_functions_of_exported_programs_with_equal_names():
    """The new name of a function of the outer program is the old name of one of the inner program's."""

    def exported(factor, also):
        def part(x):
            return factor * x

        def f(x):
            return jit(part)(x) + also(x)

        return ex.export(jit(f))(np.float32(1))

    outer = exported(100.0, exported(2.0, lambda x: 1.0).call)
    again = ex.export(jit(outer.call))(np.float32(1))
    assert [float(e.call(np.float32(3))) for e in (outer, again)] == [307.0, 307.0]


def test_derivatives():
    exported = ex.export(jit(lambda x: 7 * x * x * x))(1.0)
    f = round_trip(exported, 3).call
    assert abs(float(f(0.1)) - 0.007) < 1e-6
    expected = [7 * 3 * 0.01, 42 * 0.1, 42.0]
    for value in expected:
        f = grad(f)
        assert abs(float(f(0.1)) - value) < 1e-4
    with pytest.raises(ValueError, match="No VJP is available"):
        grad(f)(0.1)
    with pytest.raises(ValueError, match="No VJP is available"):
        round_trip(exported).vjp()
    assert not round_trip(exported).has_vjp() and exported.has_vjp()


def test_a_call_without_a_derivative_may_be_unused_in_a_derivative():
    program = ex.deserialize(ex.export(jit(lax.sin))(ShapeDtypeStruct((), np.float32)).serialize())

    def f(x):
        program.call(x)
        return x * program.call(lax.stop_gradient(x))

    for run in (f, jit(f)):
        np.testing.assert_allclose(grad(run)(np.float32(1)), np.sin(np.float32(1)), rtol=1e-6)
    with pytest.raises(ValueError, match="No VJP is available"):
        grad(program.call)(np.float32(1))


def test_derivative_at_symbolic_shapes():
    def f(x, n):
        return lax.reduce_sum(lax.sin(x) * n.shape[0], axes=(0,)) * 2, n + 1

    exported = ex.export(jit(f))(*symbolic_args_specs([arange(1), np.ones(1, np.int32)], ["b", "m"]))
    again = round_trip(exported, 1)
    x, n = arange(3), np.arange(2, dtype=np.int32)
    g = grad(lambda x: again.call(x, n)[0])(x)
    np.testing.assert_allclose(g, 4 * np.cos(x), rtol=1e-5)
    np.testing.assert_allclose(jit(grad(lambda x: again.call(x, n)[0]))(arange(5)), 4 * np.cos(arange(5)), rtol=1e-5)


def test_trees_of_registered_classes():
    Point = collections.namedtuple("Point", "x y")
    with pytest.raises(ValueError, match="Cannot serialize PyTreeDef with type"):
        ex.export(jit(lambda p: p.x + p.y))(Point(1.0, 2.0)).serialize()
    ex.register_namedtuple_serialization(Point, serialized_name="tests.Point")
    exported = round_trip(ex.export(jit(lambda p: Point(p.y, [p.x, None])))(Point(1.0, 2.0)))
    out = exported.call(Point(1.0, 2.0))
    assert isinstance(out, Point) and float(out.x) == 2 and float(out.y[0]) == 1 and out.y[1] is None
    with pytest.raises(ValueError, match="registered for serialization already"):
        ex.register_namedtuple_serialization(Point, serialized_name="tests.Point2")

    from bedrax import pytree

    class Tagged:
        def __init__(self, value, tag):
            self.value, self.tag = value, tag

    with pytest.raises(ValueError, match="is not a pytree node yet"):
        ex.register_pytree_node_serialization(
            Tagged, serialized_name="t", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
        )
    pytree.register_pytree_node(Tagged, lambda t: ((t.value,), t.tag), lambda tag, c: Tagged(c[0], tag))
    ex.register_pytree_node_serialization(
        Tagged, serialized_name="tests.Tagged", serialize_auxdata=str.encode, deserialize_auxdata=lambda b: b.decode()
    )
    out = round_trip(ex.export(jit(lambda t: t))(Tagged(1.0, "left"))).call(Tagged(3.0, "left"))
    assert out.tag == "left" and float(out.value) == 3


def test_damaged_bytes():
    blob = bytes(ex.export(jit(lax.sin))(np.float32(1)).serialize())
    with pytest.raises(ValueError, match="not an exported program, or a damaged one"):
        ex.deserialize(b"something else")
    with pytest.raises(ValueError, match="damaged"):
        ex.deserialize(blob[:-9])


def mutations(blob, count):
    """Copies of bytes with one byte changed, or a part deleted, inserted, or zeroed."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        mutated = bytearray(blob)
        kind, at = rng.integers(4), int(rng.integers(len(blob)))
        end = min(len(blob), at + int(rng.integers(1, 64)))
        if kind == 0:
            mutated[at] ^= int(rng.integers(1, 256))
        elif kind == 1:
            del mutated[at:end]
        elif kind == 2:
            mutated[at:at] = rng.bytes(end - at)
        else:
            mutated[at:end] = bytes(end - at)
        if mutated != blob:
            yield bytes(mutated)


MUTATIONS = 100_000 if os.environ.get("BEDRAX_FAULTS") == "whole" else 1000


@pytest.mark.parametrize("keys", ["a", 1])  # whether the public format can express it
def test_mutated_bytes(keys):
    """Reading mutated bytes raises ValueError, for every mutation."""
    blob = bytes(ex.export(jit(lambda d: lax.sin(d[keys])))({keys: np.float32(1)}).serialize(vjp_order=1))
    for mutated in mutations(blob, MUTATIONS):
        if mutated[4:8] != blob[4:8]:  # the bytes name another implementation, and have no digest
            continue
        with pytest.raises(ValueError, match=r"damaged|no exported program"):
            ex.deserialize(mutated)


def test_mutated_tables():
    """Programs of other implementations have no digest: the reader returns consistent data or raises ValueError."""
    mesh = AbstractMesh((4, 2), ("a", "b"))
    x = ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(mesh, PartitionSpec("a", ("b",))))
    exported = ex.export(jit(lambda x, d: {"sum": x + d["k"][0], "rest": (None, d)}))(x, {"k": [spec("n, 8, 4")]})
    hlo = dataclasses.replace(exported, _in_named_shardings=(), _out_named_shardings=())
    read = 0
    for program, order in ((exported, 1), (hlo, 0)):
        blob = bytes(program.serialize(order))
        for mutated in mutations(blob[:4] + b"\0\0\0\0" + blob[8:], MUTATIONS // 2):
            try:
                found = ex.deserialize(mutated)
            except ValueError:
                continue
            read += 1
            assert found.in_tree.num_leaves == len(found.in_avals) == len(found.in_shardings_hlo)
            assert found.out_tree.num_leaves == len(found.out_avals) == len(found.out_shardings_hlo)
    assert read > 0  # at least those whose module was changed


def test_the_public_format_is_written_if_it_suffices():
    """The public format, if it can express the program. Extra data is kept."""
    scope = ex.SymbolicScope(["n >= 3"])
    n = ShapeDtypeStruct(symbolic_shape("n", scope=scope), np.float32)
    public = ex.export(jit(lambda x, y: (x, y * 2)))(n, 1.0)
    blob = public.serialize()
    assert blob[4:8] == b"BDX3"
    again = ex.deserialize(blob)
    assert str(again.in_avals) == "(ShapedArray(float32[n]), ShapedArray(float32[]))"  # weak types are not kept
    assert str(public.in_avals) == "(ShapedArray(float32[n]), ShapedArray(float32[], weak_type=True))"
    with pytest.raises(ValueError, match="n >= 3"):
        again.call(np.ones(2, np.float32), 1.0)
    import ml_dtypes

    for given in ({1: np.float32(1)}, np.ones(2, ml_dtypes.int2)):
        blob = ex.export(jit(lambda x: x))(given).serialize()
        assert blob[:6] == b"BDXEXP" and ex.deserialize(blob).in_tree == ex.deserialize(blob).in_tree
    ordered = collections.OrderedDict(b=np.float32(1), a=np.float32(2))
    assert list(round_trip(ex.export(jit(lambda d: d))(ordered)).call(ordered)) == ["b", "a"]


def test_effects():
    from bedrax.xla_backend import ffi

    call = ffi.ffi_call("mine", ShapeDtypeStruct((), np.float32), has_side_effect=True)
    exported = ex.export(jit(call), disabled_checks=[ex.DisabledSafetyCheck.custom_call("mine")])(np.float32(1))
    again = round_trip(exported)
    assert again.ordered_effects == () and [type(e) for e in again.unordered_effects] == [ffi.FfiEffect]
    unknown = dataclasses.replace(exported, unordered_effects=(effects.OperandEffect(0),))
    with pytest.raises(ValueError, match="OperandEffect.* cannot be serialized"):
        unknown.serialize()
    blob = bytes(exported.serialize()).replace(b"FfiEffect", b"AbcEffect")
    with pytest.raises(ValueError, match="AbcEffect.*import its class"):
        ex.deserialize(blob[:4] + bytes(4) + blob[8:])


class FirstEffect(effects.Effect):
    __eq__ = lambda self, other: type(other) is type(self)
    __hash__ = lambda self: hash(type(self))


class LaterEffect(FirstEffect):
    pass


for _registry in (effects.lowerable_effects, effects.ordered_effects, effects.control_flow_allowed_effects):
    _registry.add_type(FirstEffect)

tell_p = Primitive("tell", "calls")
tell_p.abstract(lambda x, *, effect: x)
effect_rules.add(tell_p, lambda x, *, effect: {effect})


@lowering_rules.rule(tell_p)
def _tell(ctx, x, *, effect):
    ctx.set_token(effect, ctx.emit("stablehlo.after_all", [ctx.token(effect)], ctx.token(effect).type))
    return ctx.emit("stablehlo.add", [x, x])


def with_effects(x):
    return tell_p.bind(tell_p.bind(tell_p.bind(x, effect=LaterEffect()), effect=FirstEffect()), effect=LaterEffect())


def plain(exported):
    """The module without the lines of source locations."""
    return re.sub(r" loc\([^()]*\)", "", exported.mlir_module())


@pytest.mark.parametrize(
    ("given", "platforms", "arguments"),
    [
        (ShapeDtypeStruct((3,), F32), ("cpu",), "%arg0: !T, %arg1: !T, %arg2: tensor<3xf32>"),
        (spec("b"), ("tpu", "cpu"), "%arg0: tensor<i32> {G}, %arg1: !T, %arg2: !T, %arg3: tensor<?xf32>"),
    ],
)
def test_ordered_effects_are_tokens(given, platforms, arguments):
    """Tokens come after the index of the platform and before the arguments, likewise among the results."""
    exported = ex.export(jit(with_effects), platforms=platforms)(given)
    assert 'tensor<3xf32> loc("x")' in exported.mlir_module() or 'tensor<?xf32> loc("x")' in exported.mlir_module()
    text = plain(exported).replace('jax.global_constant = "_platform_index"', "G")
    assert f"@main({arguments})" in text.replace("!stablehlo.token {jax.token = true}", "!T")
    again = round_trip(exported)
    assert (
        again.ordered_effects == exported.ordered_effects == (FirstEffect(), LaterEffect())
        and again.unordered_effects == ()
    )
    np.testing.assert_array_equal(np.asarray(again.call(arange(3))), 8 * arange(3))

    twice = ex.export(jit(lambda x: again.call(again.call(x))))(ShapeDtypeStruct((3,), F32))
    assert twice.ordered_effects == (FirstEffect(), LaterEffect())
    np.testing.assert_array_equal(np.asarray(round_trip(twice).call(arange(3))), 64 * arange(3))
    main = [line.strip() for line in plain(twice).split("func.func private")[0].splitlines()]
    calls = [line for line in main if " call @" in line]
    assert "(%arg0, %arg1, %arg2)" in calls[0] and "(%0#0, %0#1, %0#2)" in calls[1]
    assert any(line.startswith("return %1#0, %1#1, %1#2 ") for line in main)


def test_ordered_effects_of_many_devices_are_refused():
    split = NamedSharding(AbstractMesh((2,), ("a",)), PartitionSpec("a"))
    with pytest.raises(ValueError, match="'with_effects' is for 2 devices and has the ordered effects .*FirstEffect"):
        ex.export(jit(with_effects))(ShapeDtypeStruct((4,), np.float32, sharding=split))


def test_callbacks_are_named():
    def logged(x):
        return x

    def f(x):
        return lax.cond(x > 0, lambda: io_callback(logged, x, x, ordered=True), lambda: x)

    with pytest.raises(
        NotImplementedError, match=r"'f' calls back .*io_callback of the callback logged, .*test_export.py:\d+"
    ):
        ex.export(jit(f))(np.float32(1))


def test_custom_calls_need_a_promise():
    custom_p = Primitive("my_custom", "calls")
    custom_p.abstract(lambda x: x)
    lowering_rules.add(custom_p, lambda ctx, x: ctx.custom_call("my_target", [x], x.type))
    f = jit(lambda x: custom_p.bind(x))
    with pytest.raises(ValueError, match="custom calls that other versions may not support: my_target"):
        ex.export(f)(np.float32(1))
    check = ex.DisabledSafetyCheck.custom_call("my_target")
    assert check.is_custom_call() == "my_target" and ex.DisabledSafetyCheck.platform().is_custom_call() is None
    exported = ex.export(f, disabled_checks=[check])(np.float32(1))
    assert "my_target" in exported.mlir_module()
    assert list(round_trip(exported).disabled_safety_checks) == [check]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "float16", "complex64", "float8_e4m3fn"])
def test_dtypes(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    exported = round_trip(ex.export(jit(lambda x: lax.rev(x, (0,))))(spec("b", dtype)))
    x = np.array([1, 0, 1]).astype(dtype)
    out = exported.call(x)
    assert out.dtype == dtype
    np.testing.assert_array_equal(np.asarray(out).astype(np.complex64), x[::-1].astype(np.complex64))


MANY_DEVICES = Path(__file__).with_name("programs") / "export_for_devices.py"


def test_many_devices():
    import os
    import subprocess
    import sys

    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "8", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    result = subprocess.run(
        [sys.executable, MANY_DEVICES], env=environment, capture_output=True, text=True, check=False
    )
    assert "done" in result.stdout, result.stderr


def test_an_initial_value_is_combined_with_one_element_of_a_symbolic_number():
    fold = lambda x: lax.reduce(x, F32.type(3), lambda a, b: lax.max(a, b) * F32.type(1), (0,))
    exported = ex.export(jit(fold))(spec("n - 1, m"))
    for rows, expected in ((0, 3), (1, 3), (2, 3)):
        assert np.asarray(exported.call(-np.ones((rows, 2), np.float32))).tolist() == [expected] * 2
    assert np.asarray(exported.call(np.full((1, 2), 5, np.float32))).tolist() == [5, 5]
