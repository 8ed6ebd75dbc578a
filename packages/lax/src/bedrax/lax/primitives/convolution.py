"""Convolutions: sums of products over sliding windows, in any number of spatial dimensions.

`conv_general_dilated` is the one primitive: strided, padded, dilated on either side, and grouped. As is usual in
machine learning, the kernel is not reversed (it is a cross-correlation).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike, Shape
from bedrax.lax.elementwise_kinds import check_numbers
from bedrax.lax.primitives import conversions, elementwise, shaping
from bedrax.lax.primitives.contractions import PrecisionLike, canonical_precision, dot_general, product_dtype
from bedrax.lax.primitives.placement import placed_result
from bedrax.lax.primitives.windows import padtype_to_pads

pure_shapes.add(__name__)

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_p",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]

conv_general_dilated_p: Final = Primitive("conv_general_dilated", "convolution")


class ConvDimensionNumbers(NamedTuple):
    """The positions of the dimensions in a convolution's operands and result; all fields are tuples of ints.

    Attributes:
      lhs_spec: dimensions of the input: batch, feature, then the spatial ones.
      rhs_spec: dimensions of the kernel: output feature, input feature, then the spatial ones.
      out_spec: dimensions of the result: batch, feature, then the spatial ones.

    Examples:

      >>> numbers = lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
      >>> isinstance(numbers, lax.ConvDimensionNumbers)
      True
      >>> numbers.lhs_spec
      (0, 3, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = Any  # None | ConvDimensionNumbers | (str, str, str)


# Dimension numbers and shapes


def conv_general_permutations(dimension_numbers: tuple[str, ...]) -> tuple[Any, ...]:
    """For three strings such as ``("NHWC", "HWIO", "NHWC")``, the dimensions of each in standard order.

    The standard order is batch (``N``), feature (``C``), spatial dimensions; for the kernel, output
    (``O``) and input feature (``I``) come first. Spatial dimensions are named by any other characters
    and ordered as in the kernel's string.

    Raises:
      TypeError: a string lacks or repeats a character, or spatial names differ.

    Examples:

      >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
      ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, first) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if len(set(spec)) != len(spec) or any(c not in spec for c in first):
            raise TypeError(f"convolution: dimension_numbers[{i}] has {first[0]}, {first[1]}, none twice; got {spec!r}")
    spatial = [c for c in rhs if c not in "OI"]
    if not set(lhs) - {*"NC"} == set(out) - {*"NC"} == set(spatial):
        raise TypeError(f"convolution: dimension_numbers name one set of spatial axes thrice, got {dimension_numbers}")
    return tuple(
        tuple([spec.index(c) for c in (*first, *spatial)]) for spec, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    )


def conv_dimension_numbers(
    lhs_shape: Shape, rhs_shape: Shape, dimension_numbers: ConvDimensionNumbers | tuple[str, ...] | None
) -> ConvDimensionNumbers:
    """A user's description of a convolution's dimensions as `ConvDimensionNumbers`.

    Args:
      lhs_shape, rhs_shape: shapes of the operands.
      dimension_numbers: None (``NC...`` and ``OI...``), a `ConvDimensionNumbers`, or three strings,
        see `conv_general_permutations`.

    Raises:
      TypeError: ranks differ or the strings do not fit.

    Examples:

      >>> numbers = lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
      >>> numbers.rhs_spec
      (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*[tuple([operator.index(d) for d in spec]) for spec in dimension_numbers])
    if len(lhs_shape) != len(rhs_shape):
        raise TypeError(f"convolution: lhs and rhs have one rank, got shapes {lhs_shape} and {rhs_shape}")
    if dimension_numbers is None:
        order = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, (tuple, list)):
        raise TypeError(f"convolution: dimension_numbers is a sequence of 3 strings or None, got {dimension_numbers!r}")
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution: dimension_numbers is a sequence of 3 strings, got {len(dimension_numbers)}")
    for i, spec in enumerate(dimension_numbers):
        if not isinstance(spec, str):
            raise TypeError(f"convolution: dimension_numbers[{i}] is a string, got {spec!r}")
        if len(spec) != len(lhs_shape):
            raise TypeError(f"convolution: dimension_numbers[{i}] has {len(spec)} letters for rank {len(lhs_shape)}")
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_shape_tuple(
    lhs_shape: Shape, rhs_shape: Shape, strides: tuple[int, ...], pads: Any, batch_group_count: int = 1
) -> tuple[Any, ...]:
    """The shape of a convolution in standard order, ``(batch, feature, *spatial)``.

    Args:
      lhs_shape: ``(batch, feature, *spatial)``.
      rhs_shape: ``(output feature, input feature, *spatial)``.
      strides: one per spatial dimension.
      pads: ``"SAME"``, ``"VALID"``, or pairs.
      batch_group_count: number of groups that the batch falls into.

    Examples:

      >>> print(*lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), [(0, 0), (0, 0)]))
      1 4 3 3
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"convolution: one pad per spatial axis, {len(lhs_shape) - 2}, is needed, got {len(pads)}")
    batch = lhs_shape[0] // batch_group_count
    spatial = [
        dims.stride_dim(n + (lo + hi), k, s)
        for n, k, s, (lo, hi) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads, strict=True)
    ]
    return (batch, rhs_shape[0], *[dims.non_negative(n) for n in spatial])


def _pick(shape, spec) -> tuple:
    return tuple([shape[d] for d in spec])


def _unpick(shape, spec) -> tuple:
    out: list[Any] = [None] * len(spec)
    for n, d in zip(shape, spec, strict=True):
        out[d] = n
    return tuple(out)


def conv_general_shape_tuple(
    lhs_shape: Shape, rhs_shape: Shape, window_strides: Sequence[int], padding: str, dimension_numbers: tuple[str, ...]
) -> tuple[Any, ...]:
    """The shape of a convolution with operands in the layouts of three strings.

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      window_strides: a step for each spatial dimension.
      padding: as in `conv_general_dilated`.
      dimension_numbers: the layouts of input, kernel and result, such as ``("NHWC", "HWIO", "NHWC")``.

    Examples:

      >>> shape = lax.conv_general_shape_tuple(
      ...     (1, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", ("NHWC", "HWIO", "NHWC")
      ... )
      >>> print(*shape)
      1 8 8 4
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    return _unpick(conv_shape_tuple(_pick(lhs_shape, lhs), _pick(rhs_shape, rhs), window_strides, padding), out)


def conv_transpose_shape_tuple(
    lhs_shape: Shape,
    rhs_shape: Shape,
    window_strides: Sequence[int],
    padding: str | tuple[tuple[Any, ...], ...],
    dimension_numbers: tuple[str, ...],
) -> tuple[Any, ...]:
    """The shape of `conv_transpose` for operands in the layouts of three strings.

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      window_strides: for each spatial dimension, the factor by which the input is spread.
      padding: as in `conv_transpose`.
      dimension_numbers: the layouts of input, kernel and result, such as ``("NHWC", "HWIO", "NHWC")``.

    Examples:

      >>> shape = lax.conv_transpose_shape_tuple(
      ...     (1, 3, 3, 2), (2, 2, 2, 4), (2, 2), "VALID", ("NHWC", "HWIO", "NHWC")
      ... )
      >>> print(*shape)
      1 6 6 4
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    x, k = _pick(lhs_shape, lhs), _pick(rhs_shape, rhs)
    if isinstance(padding, str):
        padding = [_transpose_pads(n, s, padding) for n, s in zip(k[2:], window_strides, strict=True)]
    dilated = [dims.dilate_dim(n, s) for n, s in zip(x[2:], window_strides, strict=True)]
    return _unpick(conv_shape_tuple((*x[:2], *dilated), k, (1,) * len(dilated), padding), out)


# The primitive


@conv_general_dilated_p.abstract
def _conv_shape(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
):
    check_numbers("conv_general_dilated", lhs, rhs)
    name = "conv_general_dilated"
    if lhs.ndim != rhs.ndim:
        raise TypeError(f"convolution: lhs and rhs have one rank, got shapes {lhs.shape} and {rhs.shape}")
    numbers = dimension_numbers
    if any(sorted(spec) != list(range(lhs.ndim)) for spec in numbers):
        raise TypeError(f"convolution: each of dimension_numbers orders 0..{lhs.ndim - 1}, got {numbers}")
    x, k = _pick(lhs.shape, numbers.lhs_spec), _pick(rhs.shape, numbers.rhs_spec)
    n = len(x) - 2
    for what, values in (
        ("window_strides", window_strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(values) != n:
            raise ValueError(f"{name}: {what} has one entry per spatial axis, {n}, got {len(values)}")
    if any(s < 1 for s in window_strides):
        raise ValueError(f"{name}: window_strides are positive, got {window_strides}")
    if any(d < 1 for d in (*lhs_dilation, *rhs_dilation)):
        raise TypeError(f"{name}: dilations are 1 or more, got {lhs_dilation=}, {rhs_dilation=}")
    for what, count in (("feature_group_count", feature_group_count), ("batch_group_count", batch_group_count)):
        if count < 1:
            raise ValueError(f"{name}: {what} is 1 or more, got {count}")
    if not any(dims.definitely_equal(n, 1) for n in (feature_group_count, batch_group_count)):
        raise ValueError(f"{name}: features or the batch have groups; got {feature_group_count=}, {batch_group_count=}")
    if not dims.definitely_equal(x[1], k[1] * feature_group_count):
        raise ValueError(
            coded(
                "BX-CONVOLUTION",
                f"{name}: {x[1]} features of lhs in feature_group_count={feature_group_count} groups do not fit rhs,"
                f" which takes {k[1]}",
            )
        )
    for what, count in (("feature_group_count", feature_group_count), ("batch_group_count", batch_group_count)):
        if not dims.definitely_equal(k[0] % count, 0):
            raise ValueError(f"{name}: {what}={count} must divide the output features of rhs, {k[0]}")
    if not dims.definitely_equal(x[0] % batch_group_count, 0):
        raise ValueError(f"{name}: batch_group_count={batch_group_count} must divide the batch of lhs, {x[0]}")
    dilated = [dims.dilate_dim(s, d) for s, d in zip(x[2:], lhs_dilation, strict=True)]
    kernel = [dims.dilate_dim(s, d) for s, d in zip(k[2:], rhs_dilation, strict=True)]
    shape = conv_shape_tuple((*x[:2], *dilated), (*k[:2], *kernel), window_strides, padding, batch_group_count)
    dtype = product_dtype(lhs.dtype, rhs.dtype)
    if preferred_element_type is not None and preferred_element_type != dtype:
        kinds = [_kind(d) for d in (dtype, preferred_element_type)]
        if kinds not in (["integral"] * 2, ["integral", "floating"], ["floating"] * 2, ["complex"] * 2):
            raise TypeError(
                f"{name}: no result of {preferred_element_type=} for {dtype}: integers give integers or floats, others"
                " their own kind"
            )
        dtype = preferred_element_type
    return ShapedArray(_unpick(shape, numbers.out_spec), dtype)


def _kind(dtype) -> str:
    if dtypes.issubdtype(dtype, np.complexfloating):
        return "complex"
    return "floating" if dtypes.issubdtype(dtype, np.floating) else "integral"


def _ints(values, count: int) -> tuple:
    return (1,) * count if values is None else tuple([operator.index(v) for v in values])


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Convolution in ``n`` spatial dimensions, with stride, padding, dilation and groups.

    Args:
      lhs: input of rank ``n + 2``.
      rhs: kernel of rank ``n + 2``, of the same dtype.
      window_strides: ``n`` steps between windows.
      padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or ``n`` pairs ``(low, high)``, which may be negative.
      lhs_dilation: ``n`` distances between elements of the input (zeros in between), default 1: a
        transposed convolution.
      rhs_dilation: ``n`` distances between elements of the kernel, default 1: an atrous convolution.
      dimension_numbers: None for ``NC...``, ``OI...``; a `ConvDimensionNumbers`; or three strings such as
        ``("NHWC", "HWIO", "NHWC")``.
      feature_group_count: the number of groups of input features; each group is convolved with the kernel of its own
        part of the output features.
      batch_group_count: the number of groups of the batch; each group is convolved with the kernel of its own part of
        the output features.
      precision: as in `dot_general`.
      preferred_element_type: dtype of the result and, if the platform can, of the sums.
      out_sharding: optional placement of the result.

    Returns:
      An array of rank ``n + 2``.

    Raises:
      TypeError, ValueError: dtypes, ranks, sizes, groups, or dimension numbers do not fit together.

    Examples:

      >>> image, kernel = jnp.ones((1, 4, 4, 1)), jnp.ones((2, 2, 1, 1))
      >>> out = lax.conv_general_dilated(
      ...     image, kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
      ... )
      >>> out[0, :, :, 0]
      Array([[4., 4.],
             [4., 4.]], dtype=float32)
    """
    x, k = aval_of(lhs), aval_of(rhs)
    if x.dtype != k.dtype:
        raise TypeError(f"conv_general_dilated: lhs and rhs have one dtype, got {x.dtype} and {k.dtype}")
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    n = len(numbers.lhs_spec) - 2
    strides = _ints(window_strides, n)
    lhs_dilation, rhs_dilation = _ints(lhs_dilation, n), _ints(rhs_dilation, n)
    if isinstance(padding, str):
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(f"padding={padding!r} and lhs_dilation: give pairs of integers, or use conv_transpose")
        for what, values in (("window_strides", strides), ("rhs_dilation", rhs_dilation)):
            if len(values) != n:
                raise ValueError(f"conv_general_dilated: {what} has one entry per spatial axis, {n}, got {len(values)}")
        spans = [dims.dilate_dim(k.shape[d], r) for d, r in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
        padding = padtype_to_pads(_pick(x.shape, numbers.lhs_spec[2:]), spans, strides, padding)
    else:
        padding = [(lo, hi) for lo, hi in padding]
    return placed_result(
        out_sharding,
        conv_general_dilated_p.bind,
        lhs,
        rhs,
        window_strides=strides,
        padding=tuple([(_dim(lo), _dim(hi)) for lo, hi in padding]),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=dims.integer(feature_group_count, "feature_group_count"),
        batch_group_count=dims.integer(batch_group_count, "batch_group_count"),
        precision=canonical_precision(precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.canonicalize_dtype(dtypes.as_dtype(preferred_element_type)),
    )


def _dim(n):
    return n if type(n) is int or dims.is_symbolic(n) else dims.integer(n, "the padding of a convolution")


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve a batch of arrays with a kernel.

    Args:
      lhs: array with the axes ``(batch, features, *space)``.
      rhs: the kernel, with the axes ``(features of the result, features of lhs, *window)``.
      window_strides: the step of the window along each axis of space, ints.
      padding: ``"VALID"``: windows that lie within the array; ``"SAME"``: as many results as positions, with zeros
        around the array.
      precision: of the products; see `dot_general`.
      preferred_element_type: the dtype of the result. Default: that of the operands.

    Returns:
      An array with the axes ``(batch, features of the result, *space)``.

    Raises:
      ValueError: the features do not fit.

    Examples:

      >>> image, kernel = jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2))
      >>> lax.conv(image, kernel, window_strides=(1, 1), padding="VALID")
      Array([[[[4., 4.],
               [4., 4.]]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolution of ``NC...`` by ``OI...``.

    Args:
      lhs: input of rank ``n + 2``.
      rhs: kernel of rank ``n + 2``, of the same dtype.
      window_strides, padding, lhs_dilation, rhs_dilation: as in `conv_general_dilated`.
      precision, preferred_element_type: as in `conv_general_dilated`.

    Examples:

      >>> image, kernel = jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2))
      >>> lax.conv_with_general_padding(image, kernel, (1, 1), [(1, 0), (0, 0)], None, None)
      Array([[[[2., 2.],
               [4., 4.],
               [4., 4.]]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# Transposed convolutions


def _transpose_pads(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """Pads with which a convolution of the dilated input has the shape of a "SAME" or "VALID" one's gradient.

    With "SAME" the result is `stride` times the input; with "VALID" it is longer by the excess of the
    kernel over the stride.
    """
    total = kernel + stride - 2
    if padding.upper() == "SAME":
        low = kernel - 1 if stride >= kernel else math.ceil(total / 2)
    elif padding.upper() == "VALID":
        total += max(kernel - stride, 0)
        low = kernel - 1
    else:
        raise ValueError(f"conv_transpose: padding is 'SAME', 'VALID' or pairs of integers, got {padding!r}")
    return low, total - low


_CHANNELS_LAST = {3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC")}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed ("fractionally strided") convolution: the shapes of a strided convolution's gradient.

    Args:
      lhs: input of rank ``n + 2``.
      rhs: kernel of rank ``n + 2``.
      strides: ``n`` factors by which the input is spread.
      padding: ``"SAME"`` or ``"VALID"``, of the convolution that has this shape of gradient; or ``n`` pairs,
        which pad the spread input, unless `use_consistent_padding`.
      rhs_dilation: ``n`` distances between elements of the kernel.
      dimension_numbers: as in `conv_general_dilated`; by default channels come last.
      transpose_kernel: reverse the kernel in space and swap its feature dimensions, so that the result is
        the gradient of the convolution with this kernel (as in Keras's ``Conv2DTranspose``).
      precision, preferred_element_type: as in `conv_general_dilated`.
      use_consistent_padding: pairs, too, are those of the convolution that has this shape of gradient.

    Returns:
      An array of rank ``n + 2``.

    Examples:

      >>> x, kernel = jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1))
      >>> lax.conv_transpose(x, kernel, (2,), "VALID", dimension_numbers=("NHC", "HIO", "NHC")).shape
      (1, 6, 1)
    """
    x, k = aval_of(lhs), aval_of(rhs)
    if x.ndim < 2:
        raise ValueError(f"conv_transpose takes operands of rank 2 or more, got {x.ndim}")
    if dimension_numbers is None:
        dimension_numbers = _CHANNELS_LAST.get(x.ndim)
        if dimension_numbers is None:
            raise ValueError(f"conv_transpose: rank {x.ndim} has no default dimension_numbers; pass them")
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    n = x.ndim - 2
    strides, rhs_dilation = _ints(strides, n), _ints(rhs_dilation, n)
    spans = [dims.dilate_dim(k.shape[d], r) for d, r in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
    if isinstance(padding, str):
        padding = [_transpose_pads(span, s, padding) for span, s in zip(spans, strides, strict=True)]
    elif use_consistent_padding:
        padding = [(span - 1 - lo, span - 1 - hi) for span, (lo, hi) in zip(spans, padding, strict=True)]
    if transpose_kernel:
        rhs = shaping.rev(rhs, numbers.rhs_spec[2:])
        order = list(range(x.ndim))
        o, i = numbers.rhs_spec[:2]
        order[o], order[i] = i, o
        rhs = shaping.transpose(rhs, tuple(order))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * n,
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# Patches, and convolutions with a kernel for each position


@one_program(
    static=(
        "filter_shape",
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "dimension_numbers",
        "precision",
        "preferred_element_type",
    )
)
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The elements in each window of a convolution, along the feature dimension of the result.

    Args:
      lhs: input of rank ``n + 2``.
      filter_shape: ``n`` sizes of the window, in the order of the kernel's spatial dimensions.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision, preferred_element_type: as
        in `conv_general_dilated`.

    Returns:
      An array of rank ``n + 2``. Its feature dimension runs through the features and, fastest, the
      window, in the order of the kernel's spatial dimensions.

    Examples:

      >>> x = jnp.arange(4.).reshape(1, 1, 4)
      >>> lax.conv_general_dilated_patches(x, filter_shape=(2,), window_strides=(1,), padding="VALID")[0]
      Array([[0., 1., 2.],
             [1., 2., 3.]], dtype=float32)
    """
    x = aval_of(lhs)
    filter_shape = tuple([operator.index(s) for s in filter_shape])
    numbers = conv_dimension_numbers(x.shape, (0,) * x.ndim, dimension_numbers)
    channels, size = x.shape[numbers.lhs_spec[1]], math.prod(filter_shape)
    rows, columns = (shaping.broadcasted_iota(np.int32, (size, size), d) for d in (0, 1))
    one_hot = conversions.convert_element_type(elementwise.eq(rows, columns), x.dtype)
    kernel = shaping.broadcast_in_dim(one_hot, (channels, size, size), (1, 2))
    kernel = shaping.reshape(kernel, (channels * size, 1, *filter_shape))
    kernel = shaping.transpose(kernel, tuple([numbers.rhs_spec.index(d) for d in range(x.ndim)]))
    return conv_general_dilated(
        lhs,
        kernel,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=channels,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@one_program(
    static=(
        "window_strides",
        "padding",
        "filter_shape",
        "lhs_dilation",
        "rhs_dilation",
        "dimension_numbers",
        "precision",
    )
)
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Locally connected layer: like a convolution, but with a separate kernel at each position of the result.

    Args:
      lhs: input of rank ``n + 2``.
      rhs: kernels of rank ``n + 2``: spatial dimensions are those of the result, and the input feature
        dimension runs through features and window as the result of `conv_general_dilated_patches` does.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as in `conv_general_dilated`.
      filter_shape: ``n`` sizes of the window.

    Returns:
      An array of rank ``n + 2``.

    Examples:

      >>> image, kernels = jnp.ones((1, 1, 3)), jnp.array([[[1.], [1.]], [[10.], [10.]]]).reshape(1, 2, 2)
      >>> lax.conv_general_dilated_local(image, kernels, (1,), "VALID", (2,))
      Array([[[11., 11.]]], dtype=float32)
    """
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    precision = canonical_precision(precision)
    first = precision[0] if type(precision) is tuple else precision
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision=first
    )
    _, i, *spatial = numbers.rhs_spec
    batch, feature, *places = numbers.out_spec
    out = dot_general(patches, rhs, (((feature,), (i,)), (tuple(places), tuple(spatial))), precision)
    # The product has the positions first, then the batch, then the features.
    order = [*places, batch, feature]
    return shaping.transpose(out, tuple([order.index(d) for d in range(len(order))]))
