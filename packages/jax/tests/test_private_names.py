"""The private names that libraries use work: our functions under upstream's private names."""

import importlib
import unittest

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from jax._src import public_test_util, xla_bridge
from jax._src.lax import control_flow
from jax._src.util import safe_map, safe_zip

import bedrax.xla_backend.clients


def test_backends_that_have_started():
    assert "cuda" not in xla_bridge.get_backend("cpu").platform_version
    assert (
        xla_bridge.get_backend("cpu").platform == "cpu" and xla_bridge.backends()["cpu"] is xla_bridge._backends["cpu"]
    )
    assert xla_bridge.backends_are_initialized()
    assert xla_bridge._backends is bedrax.xla_backend.clients.backends()
    assert xla_bridge.devices() == jax.devices() and xla_bridge.process_index() == 0


def test_control_flow():
    assert int(control_flow.fori_loop(0, 4, lambda i, x: x + i, 0)) == 6
    (eqn,) = jax.make_jaxpr(lambda xs: control_flow.scan(lambda c, x: (c + x, c), 0.0, xs))(np.ones(3, np.float32)).eqns
    assert eqn.primitive is control_flow.scan_p
    assert list(safe_map(lambda a, b: a + b, [1, 2], [3, 4])) == [4, 6]
    with pytest.raises(ValueError):
        list(safe_zip([1], [1, 2]))


def test_values_are_close():
    close = public_test_util.check_close
    x = {"a": jnp.ones(3), "b": np.float64(2)}
    close(x, x)
    close(x, {"a": x["a"] * (1 + 1e-7), "b": x["b"]})
    close(x, {"a": x["a"], "b": np.float32(2 + 1e-7)})  # the coarser of two dtypes sets the tolerance
    close(x, {"a": x["a"] * 1.01, "b": x["b"]}, atol={"float32": 0.1, "float64": 1e-9})
    different = [
        {"a": x["a"] * 1.001, "b": x["b"]},
        {"a": x["a"][:2], "b": x["b"]},
        {"a": x["a"]},
        {"a": x["a"], "b": np.float64(2 + 1e-9)},
    ]
    for other in different:
        with pytest.raises(AssertionError, match="mine"):
            close(x, other, err_msg="mine")
    with pytest.raises(AssertionError):
        close(np.arange(3), np.arange(3) + 1)


def test_the_module_for_cudnn_attention_is_absent():
    with pytest.raises(ModuleNotFoundError):  # Keras then disables flash attention
        importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")


def test_the_guide_to_primitives():
    """The imports of the guide work, and a rule written with MLIR's own classes lowers."""
    from jax._src import api, config
    from jax._src.lax import lax
    from jax._src.lib.mlir.dialects import hlo
    from jax.extend import core
    from jax.interpreters import mlir

    assert api.jit is jax.jit and api.grad is jax.grad and lax.add is jax.lax.add
    p = core.Primitive("multiply_add")
    p.def_abstract_eval(lambda x, y, z: x)
    mlir.register_lowering(p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, y), z).result], platform="cpu")
    assert float(api.jit(p.bind)(2.0, 3.0, 4.0)) == 10
    with config.jax_export_calling_convention_version(9):
        assert jax.export.export(jax.jit(lambda x: x))(1.0).calling_convention_version == 9


def test_meshes_for_tests():
    from jax._src import test_util

    mesh = test_util.create_mesh((1, 1), ("x", "y"))
    assert dict(mesh.shape) == {"x": 1, "y": 1} and mesh.axis_types == (jax.sharding.AxisType.Auto,) * 2
    with pytest.raises(unittest.SkipTest, match="4096 devices"):
        test_util.create_mesh((4096,), ("x",))
    assert test_util.check_grads is jax.test_util.check_grads


def test_keys_of_threefry():
    from jax._src.random import threefry2x32

    key, seed = jax.random.key(7, impl="threefry2x32"), threefry2x32.threefry_seed(jnp.uint32(7))
    assert seed.tolist() == jax.random.key_data(key).tolist()
    keys = threefry2x32.threefry_split(seed, (2,))
    assert keys.tolist() == jax.random.key_data(jax.random.split(key)).tolist()
    assert threefry2x32.threefry_random_bits(seed, 8, (5,)).tolist() == jax.random.bits(key, (5,), "uint8").tolist()


def test_the_error_about_values_that_a_function_with_a_rule_closes_over():
    from jax._src.interpreters import ad

    @jax.grad
    def outer(y):
        f = jax.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (x * y, None), lambda r, ct: (ct * y,))
        return jax.jit(f)(2.0)

    with pytest.raises(ad.CustomVJPException, match="differentiated with respect to a closed-over value"):
        outer(3.0)


@pytest.mark.parametrize(
    ("operands", "inexact", "complexes", "weak"),
    [
        ((1,), "float32", "complex64", True),
        ((np.int8(1), 2.0), "float32", "complex64", True),
        ((jnp.bfloat16(1), np.arange(2)), "bfloat16", "complex64", False),
        ((True, np.float16(1)), "float16", "complex64", False),
        ((1 + 2j, 1), "complex64", "complex64", True),
        ((np.zeros((2, 0), np.int16), 1), "float32", "complex64", False),
    ],
)
def test_operands_are_promoted_to_arrays_of_inexact_numbers(operands, inexact, complexes, weak):
    from jax._src.numpy import util

    for promote, dtype in ((util.promote_dtypes_inexact, inexact), (util.promote_dtypes_complex, complexes)):
        out = promote(*operands)
        assert [(x.dtype, x.shape, x.weak_type) for x in out] == [(dtype, np.shape(x), weak) for x in operands]
        np.testing.assert_allclose(out[-1], np.asarray(operands[-1]).astype(complex))


def test_names_of_jumanji_and_jaxctx():
    from jax._src.numpy.ufuncs import ufunc
    from jax._src.scipy.special import gammaln, logsumexp
    from jax._src.typing import SupportsDType

    assert isinstance(jnp.add, ufunc) and not isinstance(jnp.where, ufunc)
    assert gammaln is jax.scipy.special.gammaln and logsumexp is jax.scipy.special.logsumexp
    assert SupportsDType.__name__ in str(jax.typing.DTypeLike)


def test_arguments_that_a_library_adds_to_a_program():
    """BrainState makes the states that a function reads arguments of its program, while it is traced."""
    from jax._src import core, source_info_util

    def f(x):
        trace = core.trace_ctx.trace
        y, n = (
            trace.new_arg(core.ShapedArray(shape, jnp.float32), source_info=source_info_util.current())
            for shape in ((2,), ())
        )
        return {"out": x + jnp.sum(y * np.arange(2.0)) * n}

    program, shapes = jax.make_jaxpr(f, return_shape=True)(1.0)
    assert [v.aval.shape for v in program.invars] == [(), (2,), ()] and shapes["out"].shape == ()
    (out,) = jax.jit(jax.core.eval_jaxpr, static_argnums=0)(
        program.jaxpr, program.consts, 1.0, jnp.array([5.0, 7.0]), 2.0
    )
    assert float(out) == 15
    inner = jax.make_jaxpr(lambda x: jax.grad(lambda x: f(x)["out"])(x))
    with pytest.raises(AttributeError, match="new_arg"):  # the trace of a derivative is no program
        inner(1.0)
    with pytest.raises(AttributeError, match="new_arg"):  # a call of this function would lack the arguments
        jax.jit(f)(1.0)


def test_elements_of_batches():
    from jax._src.interpreters import batching

    assert batching.make_iota(3).tolist() == [0, 1, 2] and batching.make_iota(0).dtype == "int32"
    rows = jnp.arange(6.0).reshape(3, 2)

    def f(x):
        trace = x._trace
        assert isinstance(x, batching.BatchTracer) and isinstance(trace, batching.BatchTrace)
        for axis, batch, position in ((0, rows, 0), (1, rows.T, 1), (-1, rows.T, 1)):
            row = batching.to_elt(trace, None, batch, axis)
            assert row.shape == (2,) and row.batch_dim == position
            x = x + row.sum()
        assert batching.to_elt(trace, None, jax.random.split(jax.random.key(0), 3), 0).shape == ()
        assert batching.to_elt(trace, None, rows, None) is rows
        with pytest.raises(ValueError, match="axis is 2, but the array has rank 2"):
            batching.to_elt(trace, None, rows, 2)
        return x

    assert jax.vmap(f)(jnp.zeros(3)).tolist() == [3, 15, 27]


def test_programs_that_brainstate_optimizes():
    from jax._src.core import JaxprEqnContext
    from jax.extend import core

    program = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    (eqn,) = program.eqns
    other = core.JaxprEqn(
        eqn.invars, eqn.outvars, jax.lax.cos_p, {"accuracy": None}, set(), eqn.source_info, JaxprEqnContext()
    )
    assert other.primitive is jax.lax.cos_p
    info = program.debug_info.with_unknown_names()
    assert (info.func_src_info, info.arg_names, info.result_paths) == (program.debug_info.func_src_info, None, None)


def test_shardings_of_jaxns():
    from jax._src.pjit import auto_axes
    from jax._src.sharding_impls import UNSPECIFIED, canonicalize_sharding
    from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

    assert float(jax.jit(jnp.sin, in_shardings=UNSPECIFIED, out_shardings=UNSPECIFIED)(0.0)) == 0
    mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
    other = jax.make_mesh((1,), ("y",), axis_types=(AxisType.Explicit,))
    automatic = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    place = NamedSharding(mesh, PartitionSpec("x"))
    x = jax.device_put(jnp.arange(4.0), place)
    assert canonicalize_sharding(None, "f") is None
    assert canonicalize_sharding(jax.typeof(jnp.ones(3)).sharding, "f") is None
    for given in (place, jax.typeof(x).sharding):
        found = canonicalize_sharding(given, "f")
        assert found == jax.typeof(x).sharding and found.mesh._any_axis_explicit
    assert not automatic.abstract_mesh._any_axis_explicit
    with jax.set_mesh(mesh):
        assert canonicalize_sharding(PartitionSpec("x"), "f") == jax.typeof(x).sharding
        assert auto_axes(lambda x: x[::2], out_sharding=found, axes=found.mesh.explicit_axes)(x).tolist() == [0, 2]
        with pytest.raises(ValueError, match="current mesh is .*'x'"):
            canonicalize_sharding(NamedSharding(other, PartitionSpec("y")), "f")
        assert canonicalize_sharding(NamedSharding(other, PartitionSpec("y")), "f", False).mesh.axis_names == ("y",)
    with pytest.raises(ValueError, match="none is in force"):
        canonicalize_sharding(PartitionSpec("x"), "f")
    with pytest.raises(ValueError, match="out_sharding of f: .* 'x', which is Auto"):
        canonicalize_sharding(NamedSharding(automatic, PartitionSpec("x")), "f")
    for wrong in (3, SingleDeviceSharding(jax.devices()[0])):
        with pytest.raises(TypeError, match="out_sharding of f"):
            canonicalize_sharding(wrong, "f")


@pytest.mark.parametrize("static", [(), 0])
def test_the_function_of_a_jitted_function(static):
    def f(x):
        return x

    jitted = jax.jit(f, static_argnums=static)
    assert jitted._fun is f and jax.jit(jitted)._fun is jitted  # nutpie differentiates it, Qwix reads its code
