"""Operations of kernels for TPUs on arrays: bits in elements of other widths, rolls, reshapes, convolutions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.numpy import take_along_axis


def _width(dtype: Any) -> int:
    """The number of bits of an element."""
    dtype = dtypes.as_dtype(dtype)
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).bits)
    return 8 * dtype.itemsize


def _unsigned(width: int) -> Any:
    return dtypes.as_dtype(f"uint{width}")


def _as_bits(x: Any) -> Any:
    """The bits of each element, as an unsigned integer of at least 8 bits."""
    width = _width(aval_of(x).dtype)
    bits = x if aval_of(x).dtype == _unsigned(width) else lax.bitcast_convert_type(x, _unsigned(width))
    return lax.convert_element_type(bits, _unsigned(max(width, 8)))


def _of_bits(bits: Any, dtype: Any) -> Any:
    """Elements of a dtype from the lowest of these bits: unsigned integers of at least 8."""
    dtype = dtypes.as_dtype(dtype)
    narrow = lax.convert_element_type(_field(bits, 0, _width(dtype)), _unsigned(_width(dtype)))
    return narrow if narrow.dtype == dtype else lax.bitcast_convert_type(narrow, dtype)


def _field(bits: Any, low: int, width: int) -> Any:
    """`width` bits of unsigned integers, from bit `low`."""
    dtype = aval_of(bits).dtype
    moved = lax.shift_right_logical(bits, lax.full_like(bits, low)) if low else bits
    return lax.bitwise_and(moved, lax.full_like(bits, (1 << width) - 1)) if width < _width(dtype) else moved


def bitcast(x: Any, ty: Any, dim: int = -2) -> Any:
    """The bits of an array as elements of another dtype. One axis becomes longer or shorter; the rank stays.

    Args:
      x: an array of rank 1 or more.
      ty: the dtype of the result.
      dim: the axis that changes: the last but one (-2), or the last (-1). Consecutive elements along it are
        the parts of one wider element, the lowest bits first.

    Returns:
      An array whose axis `dim` is ``w / v`` times as long, for elements of `w` bits that become elements of `v` bits.

    Raises:
      ValueError: the axis does not exist, or its length does not fit.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.bitcast(jnp.array([[1., -2.]]), jnp.int32)
      Array([[ 1065353216, -1073741824]], dtype=int32)
      >>> pltpu.bitcast(jnp.array([[0x0201], [0x0403]], jnp.uint16), jnp.uint8)
      Array([[1],
             [2],
             [3],
             [4]], dtype=uint8)
    """
    ndim, dtype = aval_of(x).ndim, dtypes.as_dtype(ty)
    axis = dim + ndim if dim < 0 else dim
    if axis < max(ndim - 2, 0) or axis >= ndim:
        raise ValueError(
            f"bitcast: dim is the last axis (-1) or the one before (-2), got {dim} for an array of rank {ndim}"
        )
    if dtypes.as_dtype(aval_of(x).dtype) == np.bool_ or dtype == np.bool_:
        raise ValueError(f"bitcast: booleans have no bits to cast, got {aval_of(x).dtype} and {dtype}; use astype")
    shape, old, new = aval_of(x).shape, _width(aval_of(x).dtype), _width(dtype)
    if shape[axis] * old % new:
        raise ValueError(
            f"bitcast: axis {dim} of {shape[axis]} elements of {aval_of(x).dtype} is not a whole number of elements of {dtype}"
        )
    bits = _as_bits(x)
    if new < old:
        parts = [
            lax.convert_element_type(_field(bits, i * new, new), _unsigned(max(new, 8))) for i in range(old // new)
        ]
        joined = lax.concatenate([lax.expand_dims(p, (axis + 1,)) for p in parts], axis + 1)
        bits = lax.reshape(joined, (*shape[:axis], shape[axis] * old // new, *shape[axis + 1 :]))
    elif new > old:
        count, wide = new // old, _unsigned(max(new, 8))
        split = lax.reshape(bits, (*shape[:axis], shape[axis] // count, count, *shape[axis + 1 :]))
        bits = None
        for i in range(count):
            part = lax.convert_element_type(lax.index_in_dim(split, i, axis + 1, keepdims=False), wide)
            part = lax.shift_left(part, lax.full_like(part, i * old))
            bits = part if bits is None else lax.bitwise_or(bits, part)
    return _of_bits(bits, dtype)


_SEGMENTS = {2: "int2", 4: "int4"}


def split_bits(x: Any, bitwidths: Sequence[int]) -> tuple[Any, ...]:
    """Fields of the bits of bytes, the lowest first.

    Args:
      x: an array of int8 or uint8.
      bitwidths: the width of each field, 2 or 4; together at most 8.

    Returns:
      For each width an array of the shape of `x`, of int2 or int4.

    Raises:
      ValueError: another width, or too many bits.
      TypeError: `x` is not an array of bytes.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> low, high = pltpu.split_bits(jnp.array([0x12, 0x47], jnp.uint8), (4, 4))
      >>> low.astype(jnp.int32), high.astype(jnp.int32)
      (Array([2, 7], dtype=int32), Array([1, 4], dtype=int32))
    """
    _bytes("split_bits", x)
    widths = tuple(bitwidths)
    if not set(widths) <= _SEGMENTS.keys() or sum(widths) > 8:
        raise ValueError(f"split_bits: the widths of fields are 2 or 4 and at most 8 together, got {widths}")
    bits, found, low = _as_bits(x), [], 0
    for width in widths:
        found.append(_of_bits(_field(bits, low, width), _SEGMENTS[width]))
        low += width
    return tuple(found)


def join_bits(*, two_bits: Any = None, four_bits: Any = None) -> Any:
    """Bytes with the given bits: `four_bits` lowest, `two_bits` above them (or lowest), and zeros.

    Args:
      two_bits: None or an array of int2 or uint2.
      four_bits: None or an array of int4 or uint4, of the same shape.

    Returns:
      An array of int8 of that shape.

    Raises:
      ValueError: both are None, or the shapes differ.
      TypeError: an element has another width.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> two, four = jnp.array([1, 0], jnp.int2), jnp.array([2, 7], jnp.int4)
      >>> pltpu.join_bits(two_bits=two, four_bits=four)
      Array([18,  7], dtype=int8)
    """
    given = [(4, four_bits), (2, two_bits)]
    given = [(width, x) for width, x in given if x is not None]
    if not given or len({aval_of(x).shape for _, x in given}) > 1:
        raise ValueError(f"join_bits: two_bits, four_bits or both are needed, of one shape, got {given}")
    out, low = None, 0
    for width, x in given:
        if not dtypes.is_integer(aval_of(x).dtype) or _width(aval_of(x).dtype) != width:
            raise TypeError(f"join_bits: integers of {width} bits are needed, got {aval_of(x).dtype}")
        part = _as_bits(x)
        part = lax.shift_left(part, lax.full_like(part, low)) if low else part
        out, low = part if out is None else lax.bitwise_or(out, part), low + width
    return _of_bits(out, np.int8)


def pack_fp6(fp6_in_8b: Any) -> tuple[Any, Any]:
    """Floats of 6 bits in the lowest bits of bytes, as two arrays.

    Args:
      fp6_in_8b: an array of int8 or uint8.

    Returns:
      ``(two_bits, four_bits)``, int2 and int4 of the same shape: bits 4 and 5, and bits 0 to 3.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> two, four = pltpu.pack_fp6(jnp.array([0b01_0011], jnp.uint8))
      >>> int(two[0]), int(four[0])
      (1, 3)
    """
    four, two = split_bits(fp6_in_8b, (4, 2))
    return two, four


def unpack_fp6(two_bits: Any, four_bits: Any) -> Any:
    """The operand of `pack_fp6`: bytes (int8) with zeros in bits 6 and 7.

    Args:
      two_bits: int2 or uint2, bits 4 and 5.
      four_bits: int4 or uint4 of the same shape, bits 0 to 3.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.unpack_fp6(*pltpu.pack_fp6(jnp.array([19, 63], jnp.int8)))
      Array([19, 63], dtype=int8)
    """
    return join_bits(two_bits=two_bits, four_bits=four_bits)


def _bytes(what: str, x: Any) -> None:
    if aval_of(x).dtype not in (np.int8, np.uint8):
        raise TypeError(f"{what}: an array of int8 or uint8 is needed, got {aval_of(x).dtype}")


def pack_elementwise(xs: Sequence[Any], *, packed_dtype: Any) -> Any:
    """Several arrays in one: each element holds one element of each, converted to a narrower dtype, the first lowest.

    Args:
      xs: arrays of one shape and dtype, as many as elements of `packed_dtype` fit into one of theirs.
      packed_dtype: a dtype of the same kind; of integers the lowest bits are kept.

    Returns:
      An array of unsigned integers of the width of `xs`.

    Raises:
      ValueError: the number of arrays, or their types, do not fit.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.pack_elementwise([jnp.array([1, 2]), jnp.array([3, -1])], packed_dtype=jnp.int16)
      Array([    196609, 4294901762], dtype=uint32)
    """
    avals = [aval_of(x) for x in xs]
    packed, kinds = dtypes.as_dtype(packed_dtype), {(a.shape, str(a.dtype)) for a in avals}
    wide, narrow = _width(avals[0].dtype) if avals else 0, _width(packed)
    if len(kinds) != 1 or wide % narrow or wide // narrow != len(avals):
        raise ValueError(
            f"pack_elementwise: arrays of one type are needed, as many as {packed} fit into one of its elements, got"
            f" {[a.short() for a in avals]}"
        )
    whole = dtypes.is_integer(packed)
    if whole != dtypes.is_integer(avals[0].dtype):
        raise ValueError(
            f"pack_elementwise: integers pack into integers, floats into floats, got {avals[0].dtype} into {packed}"
        )
    out = None
    for i, x in enumerate(xs):
        bits = _field(_as_bits(x), 0, narrow) if whole else _as_bits(lax.convert_element_type(x, packed))
        bits = lax.convert_element_type(bits, _unsigned(wide))
        bits = lax.shift_left(bits, lax.full_like(bits, i * narrow)) if i else bits
        out = bits if out is None else lax.bitwise_or(out, bits)
    return out


def unpack_elementwise(x: Any, *, index: int, packed_dtype: Any, unpacked_dtype: Any) -> Any:
    """One of the arrays that `pack_elementwise` packed, converted.

    Args:
      x: a result of it.
      index: the number of the array: 0 is the lowest.
      packed_dtype: the dtype of the parts.
      unpacked_dtype: the dtype of the result.

    Raises:
      ValueError: the part does not exist.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> packed = pltpu.pack_elementwise([jnp.array([1, 2]), jnp.array([3, -1])], packed_dtype=jnp.int16)
      >>> pltpu.unpack_elementwise(packed, index=1, packed_dtype=jnp.int16, unpacked_dtype=jnp.int32)
      Array([ 3, -1], dtype=int32)
    """
    narrow, wide = _width(packed_dtype), _width(aval_of(x).dtype)
    if not 0 <= index < wide // narrow:
        raise ValueError(f"unpack_elementwise: index is one of {wide // narrow} parts, got {index}")
    bits = lax.convert_element_type(_field(_as_bits(x), index * narrow, narrow), _unsigned(max(narrow, 8)))
    return lax.convert_element_type(_of_bits(bits, packed_dtype), unpacked_dtype)


def stochastic_round(x: Any, random_bits: Any, *, target_dtype: Any) -> Any:
    """Floats rounded up or down at random, to the nearer neighbour with the higher probability: the mean is `x`.

    Args:
      x: an array of float32.
      random_bits: uint32 of the same shape; the lowest bits that `target_dtype` drops are used.
      target_dtype: bfloat16. Others raise NotImplementedError.

    Returns:
      An array of `target_dtype`; nan and infinities stay.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> x = jnp.full(2, 1 + 2.0**-9)  # between two neighbours of bfloat16
      >>> bits = jnp.array([0, 0xFFFF], jnp.uint32)
      >>> pltpu.stochastic_round(x, bits, target_dtype=jnp.bfloat16).astype(jnp.float32)
      Array([1.       , 1.0078125], dtype=float32)
    """
    if dtypes.as_dtype(target_dtype) != dtypes.as_dtype("bfloat16"):
        raise NotImplementedError(f"stochastic_round: bfloat16 is supported as target_dtype, got {target_dtype}")
    if aval_of(x).dtype != np.float32 or aval_of(random_bits).dtype != np.uint32:
        raise TypeError(
            f"stochastic_round: float32 and uint32 are needed, got {aval_of(x).dtype} and {aval_of(random_bits).dtype}"
        )
    bits = _as_bits(x)
    moved = lax.add(bits, _field(random_bits, 0, 16))
    kept = lax.convert_element_type(lax.shift_right_logical(moved, lax.full_like(moved, 16)), np.uint16)
    rounded = lax.bitcast_convert_type(kept, dtypes.as_dtype("bfloat16"))
    return lax.select(lax.is_finite(x), rounded, lax.convert_element_type(x, rounded.dtype))


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """The elements moved along an axis; elements that leave at the end enter at the front.

    Args:
      x: an array.
      shift: the number of positions, an integer that is not negative, or a scalar.
      axis: the axis, not negative.
      stride: the additional shift at each further position of `stride_axis`, not negative; None: no additional shift.
      stride_axis: another axis.

    Raises:
      ValueError: a number is negative, or an axis does not exist.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.roll(jnp.arange(4), 1, 0)
      Array([3, 0, 1, 2], dtype=int32)
      >>> pltpu.roll(jnp.arange(8).reshape(2, 4), 1, 1, stride=1, stride_axis=0)
      Array([[3, 0, 1, 2],
             [6, 7, 4, 5]], dtype=int32)
    """
    shape = aval_of(x).shape
    known = isinstance(shift, (int, np.integer))
    if known and shift < 0:
        raise ValueError(f"roll: shift is not negative, got {shift}")
    axes = (axis,) if stride_axis is None else (axis, stride_axis)
    if not all(0 <= a < len(shape) for a in axes) or len(set(axes)) < len(axes):
        raise ValueError(f"roll: axes are different ones of 0 to {len(shape) - 1}, got {axes}")
    if (stride is None) != (stride_axis is None) or (stride is not None and stride < 0):
        raise ValueError(
            f"roll: stride (not negative) and stride_axis must be given together, got {stride} and {stride_axis}"
        )
    n = shape[axis]
    if not n:
        return x
    at = lax.broadcasted_iota(np.int32, shape, axis)
    by = lax.broadcast(lax.rem(lax.convert_element_type(shift, np.int32), np.int32(n)), shape)
    if stride is not None:
        steps = lax.broadcasted_iota(np.int32, shape, stride_axis)
        by = lax.rem(lax.add(by, lax.mul(steps, lax.full_like(steps, stride % n))), lax.full_like(steps, n))
    source = lax.rem(lax.add(lax.sub(at, by), lax.full_like(at, n)), lax.full_like(at, n))
    return take_along_axis(x, source, axis)


def einshape(equation: str, x: Any, assert_is_tile_preserving: bool = False, **sizes: int) -> Any:
    """Split, transpose and merge axes by names, ``"a(bc)->(ab)c"``.

    Args:
      equation: a letter for each axis on both sides; brackets around the parts of a split axis, or around merged axes.
      x: an array.
      assert_is_tile_preserving: false. True raises NotImplementedError, as arrays have no tiles here.
      **sizes: lengths of axes, for each split all or all but one.

    Returns:
      An array of the same elements.

    Raises:
      ValueError: the equation has another form, or does not fit the shape or `sizes`.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.einshape("a(bc)->(ab)c", jnp.arange(8).reshape(2, 4), b=2)
      Array([[0, 1],
             [2, 3],
             [4, 5],
             [6, 7]], dtype=int32)
    """
    if assert_is_tile_preserving:
        raise NotImplementedError("einshape: arrays have no tiles here; leave assert_is_tile_preserving out")
    left, arrow, right = equation.replace(" ", "").partition("->")
    sides = [[group or letter for group, letter in re.findall(r"\((\w+)\)|(\w)", side)] for side in (left, right)]
    letters = ["".join(side) for side in sides]
    spelled = ["".join(f"({g})" if len(g) > 1 else g for g in side) for side in sides]
    plain = [side.replace("(", "").replace(")", "") for side in (left, right)]
    shape = aval_of(x).shape
    if (
        not arrow
        or plain != letters
        or sorted(letters[0]) != sorted(letters[1])
        or len(set(letters[0])) != len(letters[0])
        or len(sides[0]) != len(shape)
        or not all(spelled)
    ):
        raise ValueError(
            f"einshape: an equation names each axis once on both sides, {len(shape)} of them (or groups) on the left, got"
            f" {equation!r} for shape {shape}"
        )
    if sizes.keys() - set(letters[0]):
        raise ValueError(f"einshape: {equation!r} has no axes {sorted(sizes.keys() - set(letters[0]))}")
    known = dict(sizes)
    for group, length in zip(sides[0], shape, strict=True):
        free = [a for a in group if a not in known]
        rest = math.prod(known[a] for a in group if a in known)
        if len(free) > 1 or (not free and rest != length) or (free and (not rest or length % rest)):
            raise ValueError(f"einshape: axis {group!r} of length {length} does not split with sizes {sizes}")
        known.update((a, length // rest) for a in free)
    split = lax.reshape(x, [known[a] for a in letters[0]])
    turned = lax.transpose(split, [letters[0].index(a) for a in letters[1]])
    return lax.reshape(turned, [math.prod(known[a] for a in group) for group in sides[1]])


def conv(
    lhs: Any,
    rhs: Any,
    acc: Any = None,
    *,
    dimension_numbers: Any,
    window_strides: Sequence[int] | None = None,
    padding: Any = None,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    window_reversal: Sequence[bool] | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution in a kernel, added to an accumulator.

    Args:
      lhs: the input, of rank ``n + 2``.
      rhs: the window, of rank ``n + 2``.
      acc: an array with the type of the result, which is added; None: 0.
      dimension_numbers: three strings, ``("NHWC", "HWIO", "NHWC")``, or a `ConvDimensionNumbers`.
      window_strides: `n` steps between windows; None: 1.
      padding: ``"SAME"``, ``"VALID"``, or `n` pairs ``(low, high)``; None: 0.
      lhs_dilation, rhs_dilation: `n` distances between elements; None: 1.
      window_reversal: `n` booleans, for the axes of the window that are reversed.
      feature_group_count, batch_group_count, precision, preferred_element_type: see `jax.lax.conv_general_dilated`.

    Returns:
      An array of the output's layout.

    Raises:
      ValueError: shapes do not fit, or `acc` has another type than the result.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> x, window = jnp.arange(4.).reshape(1, 4, 1), jnp.array([1., 10.]).reshape(2, 1, 1)
      >>> pltpu.conv(x, window, dimension_numbers=("NWC", "WIO", "NWC")).ravel()
      Array([10., 21., 32.], dtype=float32)
    """
    n = aval_of(lhs).ndim - 2
    numbers = lax.conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    if window_reversal is not None:
        if len(window_reversal) != n:
            raise ValueError(f"conv: window_reversal has a boolean per spatial axis, {n}, got {window_reversal}")
        rhs = lax.rev(rhs, [axis for axis, on in zip(numbers.rhs_spec[2:], window_reversal, strict=True) if on])
    out = lax.conv_general_dilated(
        lhs,
        rhs,
        (1,) * n if window_strides is None else window_strides,
        ((0, 0),) * n if padding is None else padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    if acc is None:
        return out
    if aval_of(acc).shape != out.shape or aval_of(acc).dtype != out.dtype:
        raise ValueError(f"conv: acc has the type of the result, {aval_of(out).short()}, got {aval_of(acc).short()}")
    return lax.add(acc, out)
