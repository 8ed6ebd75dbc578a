"""Programs for a GPU, read as text: faults that were found on one do not return."""

import ml_dtypes
import numpy as np
import pytest

from bedrax import lax
from bedrax.core import config
from bedrax.lax.primitives.linalg import triangular_solve
from bedrax.xla_backend import device_put, devices, export, jit
from bedrax.xla_backend.compile import LoadedProgram
from bedrax.xla_backend.export import call_exported_p


def text(fun, *args, platform="cuda"):
    return jit(fun).trace(*args).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("base", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("exponent", ["int8", "int32", "uint32"])
def test_a_power_of_floats_with_an_integer_exponent_is_no_loop(base, exponent):
    module = text(lax.pow, lax.full((3,), 2, base), np.ones(3, exponent))
    assert "stablehlo.power" in module and "stablehlo.while" not in module


def test_the_sign_of_a_power_is_that_of_the_integer():
    n = np.array([2**24 + 1, 2**24 + 2, 2**31 - 1, -(2**31), 3, -3, 0], np.int32)
    expected = [-1 if k % 2 else 1 for k in n.tolist()]
    np.testing.assert_array_equal(jit(lax.pow)(np.full(7, -1, np.float32), n), expected)
    np.testing.assert_array_equal(jit(lax.pow)(np.float32(-1), n), expected)
    assert jit(lax.pow)(np.full(2, -1, np.float32), np.uint32(2**32 - 1)).tolist() == [-1, -1]


def matmul(x, y):
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.int32)


@pytest.mark.parametrize("summands, doubled", [(3, True), (30, True), (32, False)])
def test_products_of_int8_that_the_compiler_doubles_are_of_int32(summands, doubled):
    x, y = np.ones((2, summands), np.int8), np.ones((summands, 2), np.int8)
    converted = [
        f"tensor<2x{summands}xi8>) -> tensor<2x{summands}xi32>" in text(matmul, x, y, platform=p)
        for p in ("cuda", "cpu")
    ]
    assert converted == [doubled, False]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16"])
def test_convolutions_of_integers_are_products(dtype):
    x, k = np.ones((1, 3, 8, 8), dtype), np.ones((4, 3, 3, 3), dtype)
    convolution = lambda x, k: lax.conv(x, k, (1, 1), "SAME")
    assert "stablehlo.convolution" not in text(convolution, x, k)
    assert "stablehlo.convolution" in text(convolution, x, k, platform="cpu")
    assert "stablehlo.convolution" in text(convolution, x.astype("float32"), k.astype("float32"))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2])
def test_positions_of_extremes_of_packed_integers_are_found_among_bytes(dtype):
    """XLA refuses a reduction of packed integers with positions of another layout."""
    for function in (lax.argmax, lax.argmin):
        assert "(tensor<5xi8>, tensor<5xi32>" in text(
            lambda x, f=function: f(x, 0, np.int32), np.ones(5, dtype)
        ).replace("ui8", "i8")


def test_arguments_in_the_memory_of_the_host_are_moved_before_an_operation_and_not_before_a_loop():
    """XLA refuses a result in the memory of the device of an operation on a value in that of the host."""
    host = device_put(np.ones(4, np.float32), devices()[0]).sharding.with_memory_kind("pinned_host")
    x = device_put(np.ones(4, np.float32), host)
    to_device = '_xla_buffer_placement = "device"'
    assert text(lambda x: (x + x, lax.neg(x)), x).count(to_device) == 1
    assert text(lambda x: x, x).count(to_device) == 1
    assert to_device not in text(lambda x: device_put(x, host), x)
    assert to_device not in text(lambda x: lax.scan(lambda c, y: (c, device_put(y, host)), 0, x), x)
    assert to_device not in text(lambda x: x + x, x, platform="cpu")


def test_the_results_of_an_exported_program_are_in_its_memories():
    host = device_put(np.ones(4, np.float32), devices()[0]).sharding.with_memory_kind("pinned_host")
    exported = export.export(jit(lambda x: (lax.sin(x), x + x), out_shardings=(host, None)), platforms=["cuda"])(
        np.ones(4, np.float32)
    )
    module = text(lambda x: call_exported_p.bind(x, exported=exported), np.ones(4, np.float32))
    main = next(line for line in module.splitlines() if "@main" in line)
    assert main.partition("->")[2].count('mhlo.memory_kind = "pinned_host"') == 1
    exported = export.export(jit(lambda x: (lax.sin(x), x), in_shardings=host), platforms=["cuda", "cpu"])(
        np.ones(4, np.float32)
    )
    assert exported.mlir_module().count('_xla_buffer_placement = "device"') > 0


@pytest.mark.parametrize("dtype, solved_in", [("float16", "f32"), (ml_dtypes.bfloat16, "f32"), ("float64", "f64")])
def test_triangular_systems_are_solved_in_floats_of_the_library(dtype, solved_in):
    with config.enable_x64(True):
        a = np.eye(2, dtype=dtype)
        module = text(lambda a: triangular_solve(a, a, left_side=True), a)
    (line,) = [line for line in module.splitlines() if "stablehlo.triangular_solve" in line]
    assert f"tensor<2x2x{solved_in}>" in line


def test_programs_with_arguments_in_other_memories_are_not_dispatched_by_cpp(monkeypatch):
    """C++ copies NumPy arrays to the memory of the device, which XLA refuses in the second call."""
    runs, run = [], LoadedProgram.run
    monkeypatch.setattr(LoadedProgram, "run", lambda *args: (runs.append(1), run(*args))[1])
    x = np.ones(4, np.float32)
    host = device_put(x, devices()[0]).sharding.with_memory_kind("pinned_host")
    counts = {}
    for where in (None, host):
        f, before = jit(lax.sin, in_shardings=where), len(runs)
        f(x), f(x), f(x)
        counts[where] = len(runs) - before
    assert counts == {None: 1, host: 3}
