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
