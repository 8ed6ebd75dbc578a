"""Convolutions beyond the records: dimension numbers, shapes, transposes, and errors."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.lax.decompositions.convolution import sum_of_products

X = np.ones((2, 4, 7, 8), np.float32)
K = np.ones((6, 4, 3, 2), np.float32)
LAST = ("NHWC", "HWIO", "NHWC")


def shape_of(fun, *args):
    return staging.program_of(lambda *xs: [fun(*xs)], [aval_of(a) for a in args]).out_avals[0].shape


def test_dimension_numbers():
    of = lambda numbers: tuple(lax.conv_dimension_numbers((2, 7, 8, 4), (3, 2, 4, 6), numbers))
    assert of(None) == ((0, 1, 2, 3),) * 3
    assert of(LAST) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert of(("NHWC", "WHIO", "NCWH")) == ((0, 3, 2, 1), (3, 2, 0, 1), (0, 1, 2, 3))
    assert lax.conv_general_permutations(("NHWC", "WHIO", "NCWH")) == of(("NHWC", "WHIO", "NCWH"))


def test_shapes():
    assert lax.conv_general_shape_tuple((2, 7, 8, 4), (3, 2, 4, 6), (1, 2), "SAME", LAST) == (2, 7, 4, 6)
    assert lax.conv_shape_tuple((2, 4, 7, 8), (6, 4, 3, 2), (1, 2), ((0, 0), (1, 1))) == (2, 6, 5, 5)
    assert lax.conv_shape_tuple((2, 4, 7, 8), (6, 4, 3, 2), (1, 2), "VALID") == (2, 6, 5, 4)
    assert lax.conv_transpose_shape_tuple((2, 7, 8, 4), (3, 2, 4, 6), (1, 2), "SAME", LAST) == (2, 7, 16, 6)
    assert lax.conv_transpose_shape_tuple((2, 7, 8, 4), (3, 2, 4, 6), (1, 2), ((0, 0), (1, 1)), LAST) == (2, 5, 16, 6)


def test_same_padding_counts_the_dilated_kernel():
    assert shape_of(lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "same", rhs_dilation=(2, 3)), X, K) == (
        2,
        6,
        4,
        8,
    )
    assert shape_of(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", batch_group_count=2), X, K) == (
        1,
        6,
        5,
        7,
    )


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv_transpose_is_the_matrix_transpose(stride, size, padding):
    """As documented, with `transpose_kernel` it is the gradient of the strided convolution with this kernel."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(size, 2, 3)).astype(np.float32)
    n = 4 * stride if padding == "SAME" else 3 * stride + max(size, stride)
    forward = lambda x: np.asarray(
        lax.conv_general_dilated(x, kernel, (stride,), padding, dimension_numbers=("NHC", "HIO", "NHC"))
    )
    basis = np.eye(n * 2, dtype=np.float32).reshape(n * 2, n, 2)
    matrix = forward(basis).reshape(n * 2, -1)
    y = rng.normal(size=(1, 4, 3)).astype(np.float32)
    out = np.asarray(lax.conv_transpose(y, kernel, (stride,), padding, transpose_kernel=True))
    np.testing.assert_allclose(out.reshape(-1), matrix @ y.reshape(-1), rtol=1e-4, atol=1e-5)


def test_conv_transpose_paddings():
    x, k = np.ones((1, 4, 7, 8), np.float32), np.ones((3, 2, 8, 5), np.float32)
    assert shape_of(lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", rhs_dilation=(2, 2)), x, k) == (1, 8, 14, 5)
    assert shape_of(lambda x, k: lax.conv_transpose(x, k, (2, 2), ((1, 2), (1, 0))), x, k) == (1, 8, 13, 5)
    consistent = lambda x, k: lax.conv_transpose(x, k, (2, 2), ((1, 0), (0, 1)), use_consistent_padding=True)
    assert shape_of(consistent, x, k) == (1, 8, 13, 5)


@pytest.mark.parametrize(
    "args, options, error, message",
    [
        ((X, K.astype(np.float16), (1, 1), "SAME"), {}, TypeError, "lhs and rhs have one dtype, got float"),
        ((X, K, (1,), "SAME"), {}, ValueError, "window_strides has one entry per spatial axis"),
        ((X, K, (1, 1), "FOO"), {}, RuntimeError, "or pairs, got"),
        ((X, K, (1, 1), ((0, 0),)), {}, TypeError, "per spatial axis"),
        (
            (X, K, (1, 1), "SAME"),
            dict(lhs_dilation=(2, 2)),
            ValueError,
            "give pairs of integers, or use conv_transpose",
        ),
        ((X, K[:, :3], (1, 1), "SAME"), {}, ValueError, "features of lhs in feature_group_count"),
        (
            (X, K[:5, :2], (1, 1), "SAME"),
            dict(feature_group_count=2),
            ValueError,
            "must divide the output features of rhs",
        ),
        ((X, K, (1, 1), "SAME"), dict(batch_group_count=3), ValueError, "must divide the batch of lhs"),
        (
            (X, K[:, :2], (1, 1), "SAME"),
            dict(batch_group_count=2, feature_group_count=2),
            ValueError,
            "features or the batch have groups",
        ),
        ((X, K, (1, 1), "SAME"), dict(feature_group_count=0), ValueError, "feature_group_count is"),
        ((X, K[..., 0], (1, 1), "SAME"), {}, TypeError, "lhs and rhs have one rank, got shapes"),
        ((X, K, (0, 1), ((0, 0), (0, 0))), {}, ValueError, "window_strides are positive, got"),
        ((X, K, (1, 1), "SAME"), dict(dimension_numbers=("NCHW", "OIHW", "NHW")), TypeError, "letters for rank"),
        ((X, K, (1, 1), "SAME"), dict(dimension_numbers=("NCHW", "OIHW", "NHWD")), TypeError, "has N, C, none twice"),
        (
            (X, K, (1, 1), "SAME"),
            dict(preferred_element_type=np.int32),
            TypeError,
            "integers give integers or floats, others their own kind",
        ),
    ],
)
def test_errors(args, options, error, message):
    x, k, *rest = args
    with pytest.raises(error, match=re.escape(message)):
        shape_of(lambda x, k: lax.conv_general_dilated(x, k, *rest, **options), x, k)


def test_sums_of_products_without_places_or_elements_of_the_window():
    """GPUs convolve integers in this way."""
    for space, window, places in ((1, 3, 0), (4, 0, 5), (5, 3, 3)):
        x, k = np.ones((1, 2, space), np.int32), np.ones((3, 2, window), np.int32)
        numbers = lax.conv_dimension_numbers(x.shape, k.shape, None)
        found = sum_of_products(
            x,
            k,
            window_strides=(1,),
            padding=((0, 0),),
            lhs_dilation=(1,),
            rhs_dilation=(1,),
            dimension_numbers=numbers,
        )
        assert found.dtype == np.int32
        np.testing.assert_array_equal(np.asarray(found), np.full((1, 3, places), 2 * window))
