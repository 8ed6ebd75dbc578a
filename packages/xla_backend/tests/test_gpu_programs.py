"""Programs for a GPU, read as text: faults that were found on one do not return."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.xla_backend import jit


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
