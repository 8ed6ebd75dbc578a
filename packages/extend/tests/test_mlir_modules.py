"""Programs as modules and functions of MLIR."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.avals import ShapedArray
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.extend import mlir_modules as modules
from bedrax.extend.mlir_contexts import JaxIrContext
from bedrax.extend.mlir_rules import ir, ir_constant, register_lowering

ONES = np.ones(3, np.float32)


def lowered(f, name="main_program", **changes):
    jaxpr = make_jaxpr(f)(ONES)
    options = dict(
        num_const_args=0, in_avals=jaxpr.in_avals, ordered_effects=[], platforms=["cpu"], backend=None,
        axis_context=modules.ShardingContext(1), donated_args=[False],
        lowering_parameters=modules.LoweringParameters(),
    )  # fmt: skip
    return modules.lower_jaxpr_to_module(name, jaxpr, **{**options, **changes})


def test_a_module_of_a_program():
    result = lowered(lax.sin)
    assert "stablehlo.sine" in str(result.module) and "main_program" in str(result.module)
    assert result.host_callbacks == [] and not result.shape_poly_state.uses_dim_vars
    for changes in (
        dict(axis_context=modules.ShardingContext(2)), dict(platforms=["cpu", "tpu"]), dict(num_const_args=1),
        dict(lowering_parameters=modules.LoweringParameters(for_export=True)), dict(arg_shardings=[1]),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError):
            lowered(lax.sin, **changes)
    with pytest.raises(TypeError, match="in_avals"):
        lowered(lax.sin, in_avals=[ShapedArray((4,), np.float32)])


def test_modules_are_merged():
    one, other = lowered(lax.sin).module, lowered(lambda x: jit(lax.cos)(lax.neg(x))).module
    name = modules.merge_mlir_modules(one, "merged", other)
    again = modules.merge_mlir_modules(one, "merged", lowered(lax.tan).module)
    assert name == "merged" and again == "merged_1"
    text = str(one)
    assert one.operation.verify() and all(f"@{n}" in text for n in ("main", "merged", "merged_1"))
    assert text.count("func.func public") == 1


def test_rules_add_functions_and_programs():
    prim = Primitive("of_this_test")
    prim.abstract(lambda x: x)
    program = make_jaxpr(lambda x: lax.mul(lax.sin(x), np.arange(3, dtype=np.float32)))(ONES)
    made = []

    def rule(ctx, x):
        made.append(modules.lower_jaxpr_to_fun(ctx.module_context, "mine", program, [], num_const_args=0,
                                               in_avals=program.in_avals))  # fmt: skip
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


def test_values_in_the_structure_of_types():
    assert modules.unflatten_ir_values_like_types([1, 2, 3], ["a", ("b", "c")]) == [1, (2, 3)]
    with pytest.raises(ValueError, match="more values"):
        modules.unflatten_ir_values_like_types([1, 2], ["a"])


def test_contexts_of_libraries():
    context = JaxIrContext()
    module = ir.Module.parse(str(lowered(lax.sin).module), context=context)
    assert module.context is context and module.operation.verify()
