"""Programs as modules and functions of MLIR."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.avals import AbstractValue, ShapedArray
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.xla_backend.mlir import modules, rules
from bedrax.xla_backend.mlir.contexts import JaxIrContext
from bedrax.xla_backend.mlir.rules import ir, ir_constant, register_lowering

PROGRAMS = Path(__file__).with_name("programs")

ONES = np.ones(3, np.float32)


def lowered(f, name="main_program", **changes):
    jaxpr = make_jaxpr(f)(ONES)
    options = dict(
        num_const_args=0,
        in_avals=jaxpr.in_avals,
        ordered_effects=[],
        platforms=["cpu"],
        backend=None,
        axis_context=modules.ShardingContext(1),
        donated_args=[False],
        lowering_parameters=modules.LoweringParameters(),
    )
    return modules.lower_jaxpr_to_module(name, jaxpr, **{**options, **changes})


def test_a_module_of_a_program():
    result = lowered(lax.sin)
    assert "stablehlo.sine" in str(result.module) and "main_program" in str(result.module)
    assert result.host_callbacks == [] and not result.shape_poly_state.uses_dim_vars
    for changes in (
        dict(axis_context=modules.ShardingContext(2)),
        dict(platforms=["cpu", "tpu"]),
        dict(num_const_args=1),
        dict(lowering_parameters=modules.LoweringParameters(for_export=True)),
        dict(arg_shardings=[1]),
    ):
        with pytest.raises(NotImplementedError):
            lowered(lax.sin, **changes)
    assert str(lowered(lax.sin, out_avals=[ShapedArray((3,), np.float32)]).module) == str(result.module)
    for what in ("in_avals", "out_avals"):
        with pytest.raises(TypeError, match=what):
            lowered(lax.sin, **{what: [ShapedArray((4,), np.float32)]})


def test_modules_are_merged():
    one, other = lowered(lax.sin).module, lowered(lambda x: jit(lax.cos)(lax.neg(x))).module
    name = modules.merge_mlir_modules(one, "merged", other)
    again = modules.merge_mlir_modules(one, "merged", lowered(lax.tan).module)
    assert name == "merged" and again == "merged_1"
    text = str(one)
    assert one.operation.verify() and all(f"@{n}" in text for n in ("main", "merged", "merged_1"))
    assert text.count("func.func public") == 1


def test_a_new_name_of_a_function_may_be_the_old_one_of_another():
    function = "func.func private @{}(%x: tensor<f32>) -> tensor<f32> {{ {}\n return %y : tensor<f32> }}\n"
    operation, call = "%y = stablehlo.{} %x : tensor<f32>", "%{} = call @{}(%{}) : (tensor<f32>) -> tensor<f32>\n"
    parts = [
        function.format("main", call.format("a", "f", "x") + call.format("y", "f_1", "a")),
        function.format("f", operation.format("sine")),
        function.format("f_1", operation.format("cosine")),
    ]
    context = rules.make_ir_context()
    source = ir.Module.parse("".join(parts), context)
    target = ir.Module.parse(function.format("f", operation.format("tanh")), context)
    assert modules.merge_mlir_modules(target, "merged", source) == "merged" and target.operation.verify()
    functions = {f.attributes["sym_name"].value: str(f) for f in target.body.operations}
    called = re.findall(r"call @(\w+)", functions["merged"])
    assert [re.findall(r"stablehlo\.(\w+)", functions[name]) for name in called] == [["sine"], ["cosine"]]


def test_rules_add_functions_and_programs():
    prim = Primitive("of_this_test")
    prim.abstract(lambda x: x)
    program = make_jaxpr(lambda x: lax.mul(lax.sin(x), np.arange(3, dtype=np.float32)))(ONES)
    made = []

    def rule(ctx, x):
        made.append(
            modules.lower_jaxpr_to_fun(
                ctx.module_context,
                "mine",
                program,
                [],
                num_const_args=0,
                in_avals=program.in_avals,
                out_avals=program.out_avals,
                detached=False,
            )
        )
        with pytest.raises(TypeError, match="out_avals are the types of the program's results"):
            modules.lower_jaxpr_to_fun(
                ctx.module_context, "mine", program, [], num_const_args=0, in_avals=program.in_avals, out_avals=[]
            )
        with pytest.raises(NotImplementedError, match="detached"):
            modules.lower_jaxpr_to_fun(
                ctx.module_context, "mine", program, [], num_const_args=0, in_avals=program.in_avals, detached=True
            )
        consts = [ir_constant(c) for c in program.consts]
        out, tokens = modules.jaxpr_subcomp(ctx, program, None, "tokens", consts, x)
        assert tokens == "tokens"
        return out

    register_lowering(prim, rule)
    f = jit(lambda x: lax.add(prim.bind(x), x))
    np.testing.assert_allclose(f(ONES), np.sin(ONES) * np.arange(3) + 1, rtol=1e-6)
    assert "mine" in str(made[0].attributes["sym_name"])
    with pytest.raises(TypeError, match="context of a rule"):
        modules.jaxpr_subcomp(None, program, None, None, [])


@pytest.mark.parametrize("late", [False, True])
def test_a_call_is_a_function_of_the_module_or_written_out(late):
    prim, program = Primitive(f"calls_{late}"), make_jaxpr(lambda x: lax.sin(lax.neg(x)))(ONES)
    prim.def_abstract_eval(lambda x, **_: x)

    def rule(ctx, x, **params):
        (out,) = rules.core_call_lowering(ctx, x, name="called", call_jaxpr=program, inline_jax_late=late, **params)
        return out

    register_lowering(prim, rule)
    f = jit(lambda x: prim.bind(x))
    assert ("call @called" in f.lower(ONES).as_text()) is not late
    np.testing.assert_allclose(f(ONES), np.sin(-ONES), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="core_call_lowering: the options word=.* are not supported"):
        jit(lambda x: prim.bind(x, word="more")).lower(ONES)


def test_values_in_the_structure_of_types():
    assert modules.unflatten_ir_values_like_types([1, 2, 3], ["a", ("b", "c")]) == [1, (2, 3)]
    for values, of in (([1, 2], ["a"]), ([1, None], ["a"]), ([1], ["a", "b"]), ([1], [("a", "b")])):
        with pytest.raises(ValueError, match="one value per type"):
            modules.unflatten_ir_values_like_types(values, of)


def test_contexts_of_libraries():
    context = JaxIrContext()
    module = ir.Module.parse(str(lowered(lax.sin).module), context=context)
    assert module.context is context and module.operation.verify()


class Pair(AbstractValue):
    """Two numbers, which a program has as an array."""

    __slots__ = ()


def test_a_type_of_a_library_has_an_mlir_type():
    pack, unpack = Primitive("pack_pair"), Primitive("unpack_pair")
    pack.def_abstract_eval(lambda x, y: Pair())
    unpack.def_abstract_eval(lambda pair: ShapedArray((2,), np.dtype(np.float32)))
    rules.register_lowering(pack, rules.lower_fun(lambda x, y: lax.concatenate([x, y], 0), False))
    rules.register_lowering(unpack, lambda ctx, pair: pair)
    program = jit(lambda x, y: unpack.bind(pack.bind(x, y)))
    one, two = np.ones(1, np.float32), np.full(1, 2, np.float32)
    rules.ir_type_handlers[Pair] = lambda aval: (rules.aval_to_ir_type(ShapedArray((2,), np.float32)),)
    try:
        with pytest.raises(NotImplementedError, match="one MLIR value each"):
            rules.aval_to_ir_type(Pair())
        array = rules.aval_to_ir_type(ShapedArray((2,), np.float32))
        rules.ir_type_handlers[Pair] = lambda aval: array
        assert rules.aval_to_ir_type(Pair()) == array
        np.testing.assert_array_equal(program(one, two), [1, 2])
    finally:
        del rules.ir_type_handlers[Pair]


def test_containers_of_values_are_flattened():
    value = object()
    assert rules.ir_tree_registry.flatten([value, (1, [2])])[0] == [value, 1, 2]
    assert rules.flatten_ir_values([[1], 2, ((3, [4]),)]) == [1, 2, 3, 4]


SPLIT = PROGRAMS / "split_library_values.py"


def test_a_library_value_is_split_as_its_type_states():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, SPLIT], env=environment, check=True)


class Celsius:
    """A class of a library whose values are constants of programs."""

    def __init__(self, degrees):
        self.degrees = degrees


def test_constants_of_a_library():
    prim = Primitive("with_celsius")
    prim.def_abstract_eval(lambda x: x)
    handler = lambda value, aval: rules.ir_constant(np.float32(value.degrees + 273))
    rules.register_constant_handler(Celsius, handler)
    scalar = ShapedArray((), np.float32)
    rule = lambda ctx, x: rules.lower_fun(lax.add, False)(
        ctx.replace(avals_in=[scalar, scalar]), x, ir_constant(Celsius(27))
    )
    register_lowering(prim, rule)
    assert float(jit(prim.bind)(np.float32(1))) == 301


def test_sizes_as_a_value():
    prim = Primitive("with_sizes")
    prim.def_abstract_eval(lambda x: ShapedArray((x.ndim,), np.dtype(np.int32)))
    register_lowering(prim, lambda ctx, x: rules.shape_tensor(ctx, ctx.avals_in[0].shape))
    np.testing.assert_array_equal(jit(prim.bind)(np.ones((3, 1, 5), np.float32)), [3, 1, 5])


def test_a_rule_for_an_unknown_platform_is_refused():
    prim = Primitive("of_a_platform")
    with pytest.raises(
        NotImplementedError, match="of of_a_platform: the platform 'nonsense' is unknown; known are cpu"
    ):
        rules.register_lowering(prim, lambda ctx, x: [x], platform="nonsense")
    for platform in ("cpu", "gpu", "cuda", "rocm", "tpu"):
        rules.register_lowering(prim, lambda ctx, x: [x], platform=platform)


@pytest.mark.parametrize("n", [0, 5, 2**63 - 1, 2**63, 2**64 - 1])
def test_an_unsigned_number_of_64_bits_is_an_attribute(n):
    assert str(rules.ir_attribute(np.uint64(n))) == f"{n} : ui64"
