"""Contractions: sums of products over shared dimensions.

`dot_general` is the one primitive behind every matrix product; `ragged_dot_general` multiplies by a
different matrix per group of rows; `scaled_dot` multiplies block-scaled low-precision operands. The
accuracy of products (`Precision`, `DotAlgorithm`) is defined here, too.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.tables import print_rules, pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax import flags
from bedrax.lax.elementwise_kinds import check_numbers
from bedrax.lax.primitives.placement import placed_result

pure_shapes.add(__name__)

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "RaggedDotDimensionNumbers",
    "batch_matmul",
    "dot",
    "dot_general",
    "dot_general_p",
    "ragged_dot",
    "ragged_dot_general",
    "ragged_dot_general_p",
    "scaled_dot",
    "scaled_dot_p",
]

dot_general_p: Final = Primitive("dot_general", "contractions")
ragged_dot_general_p: Final = Primitive("ragged_dot_general", "contractions")
scaled_dot_p: Final = Primitive("scaled_dot", "contractions")

DotDimensionNumbers = Any  # ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))


# Precision


class Precision(enum.Enum):
    """The share of the operands' precision that a product must use.

    ``DEFAULT`` is the fastest the platform offers (on an accelerator this may round the operands to
    fewer bits), ``HIGH`` slower and more accurate, ``HIGHEST`` as accurate as the dtype. A function that takes a
    ``precision`` also accepts the strings ``"default"`` (``"bfloat16"``, ``"fastest"``), ``"high"``
    (``"bfloat16_3x"``, ``"tensorfloat32"``) and ``"highest"`` (``"float32"``). The CPU ignores it.

    Examples:

      >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.Precision.HIGHEST)
      Array(3., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return _PRECISION_NAMES.get(value) if isinstance(value, str) or value is None else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISION_NAMES = {
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    None: Precision.DEFAULT,
}


class DotAlgorithm(NamedTuple):
    """The arithmetic of a product, spelled out (fields as in StableHLO's ``dot_general``).

    Attributes:
      lhs_precision_type, rhs_precision_type: dtypes the operands are rounded to.
      accumulation_type: dtype of the sums.
      lhs_component_count, rhs_component_count, num_primitive_operations: for algorithms that split
        operands into parts and combine several products, to emulate a higher precision.
      allow_imprecise_accumulation: whether some steps may accumulate in fewer bits.

    The available algorithms depend on the platform; the compilation of another one raises.

    Examples:

      >>> algorithm = lax.DotAlgorithm(np.float16, np.float16, np.float32)
      >>> algorithm.accumulation_type is np.float32
      True
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named `DotAlgorithm`\\ s: ``<lhs type>_<rhs type>_<accumulation type>[_X<products>]``.

    Examples:

      >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.DotAlgorithmPreset.F32_F32_F32)
      Array(3., dtype=float32)
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def accumulation_type(self) -> type | None:
        """The dtype of the sums, or None where the platform chooses."""
        return _SCALAR_TYPES.get(self.name.removesuffix("_FAST_ACCUM").split("_X")[0].rsplit("_", 1)[-1])

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes the operand may be stored in (others are converted to the first), or None for any."""
        kind = self.name.split("_")[0]
        if kind in ("DEFAULT", "ANY"):
            return None
        if kind == "TF32" or "_X" in self.name:
            return (np.float32,)
        if kind == "BF16":
            return (ml_dtypes.bfloat16, np.float32)
        return (_SCALAR_TYPES[kind],)

    supported_rhs_types = supported_lhs_types

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """Dtypes the platform's product may have, or None for any; other dtypes are reached by a conversion."""
        if self.supported_lhs_types is None:
            return None
        accumulation = self.accumulation_type
        if self.name.startswith("BF16_BF16_F32") and "_X" not in self.name:
            if np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == np.dtype(ml_dtypes.bfloat16):
                return (np.float32, ml_dtypes.bfloat16)
        return (accumulation,)


_SCALAR_TYPES = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32, "F64": np.float64}

PrecisionLike = Any  # None | str | Precision | (Precision, Precision) | DotAlgorithm | DotAlgorithmPreset


def canonical_precision(precision: PrecisionLike) -> Any:
    """A user's `precision` as a parameter: None, a pair of `Precision`, or an algorithm.

    None is replaced by the option ``jax_default_matmul_precision``.
    """
    if precision is None:
        precision = flags.default_matmul_precision.value
        if precision is None:
            return None
    found = _parse_precision(precision)
    if found is None:
        names = list(_PRECISION_NAMES)
        raise ValueError(
            f"precision is None, a lax.Precision or its name (one of {names}), a pair of these, a lax.DotAlgorithmPreset"
            f" or its name, or a lax.DotAlgorithm; got {precision!r}"
        )
    return None if found is DotAlgorithmPreset.DEFAULT else found


def _parse_precision(precision):
    if isinstance(precision, Precision):
        return precision, precision
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str):
        one = _PRECISION_NAMES.get(precision)
        return (one, one) if one is not None else DotAlgorithmPreset.__members__.get(precision)
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        pair = tuple(p if isinstance(p, Precision) else _PRECISION_NAMES.get(p) for p in precision)
        return pair if None not in pair else None
    return None


# dot_general


def _width(dtype: np.dtype) -> tuple:
    if dtype not in dtypes.all_dtypes:
        raise TypeError(f"dot_general takes numbers or booleans, got dtype {dtype}")
    if dtype == np.bool_:
        return (0, 0, 0)
    if dtype in dtypes.integer_dtypes:
        return (1, dtypes.itemsize_bits(dtype), -int(dtypes.iinfo(dtype).min))
    return (3 if dtype in dtypes.complex_dtypes else 2, dtypes.itemsize_bits(dtype), float(dtypes.finfo(dtype).max))


def product_dtype(x: np.dtype, y: np.dtype) -> np.dtype:
    """The dtype of a product of two dtypes: the higher kind, then the wider, then the one with the larger range."""
    return x if x == y or _width(x) >= _width(y) else y


def canonical_dot_dimensions(dimension_numbers: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    """Dot dimension numbers as nested tuples of ints."""
    try:
        (lc, rc), (lb, rb) = dimension_numbers
        index = operator.index
        return (
            (tuple([index(d) for d in lc]), tuple([index(d) for d in rc])),
            (tuple([index(d) for d in lb]), tuple([index(d) for d in rb])),
        )
    except (TypeError, ValueError):
        raise TypeError(
            f"dimension_numbers are ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), sequences of"
            f" integers; got {dimension_numbers}"
        ) from None


def free_dims(ndim: int, *used: tuple[Any, ...]) -> list[int]:
    """The dimensions below `ndim` in none of the groups, ascending."""
    taken = {d for group in used for d in group}
    return [d for d in range(ndim) if d not in taken]


def check_dot_dimensions(
    name: str, lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: tuple[tuple[Any, ...], ...]
) -> None:
    """Raise TypeError unless the dimension numbers fit the types of the operands."""
    (lc, rc), (lb, rb) = dimension_numbers
    for side, aval, batch, contract in (("lhs", lhs, lb, lc), ("rhs", rhs, rb, rc)):
        if not all(0 <= d < aval.ndim for d in (*batch, *contract)):
            raise TypeError(f"{name}: {side} of rank {aval.ndim} lacks some of batch {batch}, contracting {contract}")
    if len(lb) != len(rb):
        raise TypeError(f"{name}: as many lhs as rhs batch dimensions are needed, got {lb} and {rb}")
    for side, batch, contract in (("lhs", lb, lc), ("rhs", rb, rc)):
        for what, group in (("batch", batch), ("contracting", contract)):
            if len(set(group)) != len(group):
                raise TypeError(f"{name}: the {what} dimensions {group} of {side} name one twice")
        if not set(batch).isdisjoint(contract):
            raise TypeError(f"{name}: {side} has batch {batch} and contracting {contract} dimensions; none is both")
    for what, ls, rs in (("batch", lb, rb), ("contracting", lc, rc)):
        xs, ys = tuple(lhs.shape[d] for d in ls), tuple(rhs.shape[d] for d in rs)
        if xs != ys:
            raise TypeError(
                coded(
                    "BX-DOT",
                    f"{name} requires {what} dimensions to have the same shape, got {list(xs)} and {list(ys)}, of lhs"
                    f" and rhs, whose shapes are {tuple(lhs.shape)} and {tuple(rhs.shape)}",
                )
            )


def _dot_shape(lhs, rhs, dimension_numbers) -> tuple:
    (lc, rc), (lb, rb) = dimension_numbers
    xs, ys = lhs.shape, rhs.shape
    return (
        *[xs[d] for d in lb],
        *[xs[d] for d in free_dims(len(xs), lc, lb)],
        *[ys[d] for d in free_dims(len(ys), rc, rb)],
    )


def _result_dtype(lhs, rhs, preferred) -> np.dtype:
    dtype = lhs.dtype if lhs.dtype == rhs.dtype else product_dtype(lhs.dtype, rhs.dtype)
    if preferred is None or preferred == dtype:
        if dtype not in dtypes.all_dtypes:
            _width(dtype)  # raises
        return dtype
    kind, bits, _ = _width(preferred)
    if kind <= 1 and _width(dtype)[0] == 1 and bits < _width(dtype)[1]:
        raise TypeError(f"preferred_element_type={preferred} has fewer bits than the result, {dtype}; convert that")
    return preferred


@dot_general_p.abstract
def _dot_general_shape(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    check_numbers("dot_general", lhs, rhs)
    check_dot_dimensions("dot_general", lhs, rhs, dimension_numbers)
    return ShapedArray(_dot_shape(lhs, rhs, dimension_numbers), _result_dtype(lhs, rhs, preferred_element_type))


def _print_dot(params):
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    shown = {"dimension_numbers": (([*lc], [*rc]), ([*lb], [*rb]))}
    return shown | {k: v for k, v in params.items() if v is not None and k not in shown}


print_rules.add(dot_general_p, _print_dot)


def _dtype_or_none(dtype):
    return None if dtype is None else dtypes.canonicalize_dtype(dtypes.as_dtype(dtype))


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]],
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Contract two arrays: the sum over shared dimensions of their products.

    Args:
      lhs, rhs: arrays; they may differ in dtype.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, four
        sequences of dimensions. Contracted dimensions are paired and summed over, batch
        dimensions are paired and kept.
      precision: see `Precision` and `DotAlgorithm`; None is the default of the platform.
      preferred_element_type: dtype of the result (and, if the platform can, of the sums); by default the
        operands' dtype, or the higher of the two.
      out_sharding: optional placement of the result.

    Returns:
      An array whose dimensions are the batch dimensions, then the rest of `lhs`, then the rest of `rhs`.

    Raises:
      TypeError: the dimension numbers do not fit the shapes, or the preferred integer dtype is narrower.

    Examples:

      >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 4, 3))
      >>> contract, batch = ((2,), (2,)), ((0,), (0,))
      >>> lax.dot_general(x, y, (contract, batch)).shape
      (5, 2, 4)
    """
    params = dict(
        dimension_numbers=canonical_dot_dimensions(dimension_numbers),
        precision=canonical_precision(precision),
        preferred_element_type=_dtype_or_none(preferred_element_type),
    )
    return placed_result(out_sharding, dot_general_p.bind, lhs, rhs, **params)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Product of vectors and matrices, or with `dimension_numbers` any contraction; see `dot_general`.

    Without dimension numbers, operands have rank 1 or 2 and the last dimension of `lhs` is contracted with the first of
    `rhs`.

    Args:
      lhs, rhs: arrays; they may differ in dtype.
      dimension_numbers: as in `dot_general`.
      precision, preferred_element_type, out_sharding: as in `dot_general`.

    Raises:
      ValueError: shapes are not those of an unbatched product and there are no dimension numbers.

    Examples:

      >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
      >>> lax.dot(jnp.ones(3, jnp.bfloat16), jnp.ones(3, jnp.bfloat16), preferred_element_type=jnp.float32)
      Array(3., dtype=float32)
    """
    if dimension_numbers is None:
        xs, ys = aval_of(lhs).shape, aval_of(rhs).shape
        if not (1 <= len(xs) <= 2 and 1 <= len(ys) <= 2 and xs[-1] == ys[0]):
            raise ValueError(
                coded("BX-DOT", f"lax.dot: shapes {xs} and {ys} do not fit as matrices; give dimension_numbers")
            )
        dimension_numbers = (((len(xs) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products over equal leading batch dimensions: ``[..., m, k]`` with ``[..., k, n]``.

    Args:
      lhs, rhs: arrays of equal rank, 2 at least.
      precision: as in `dot_general`.

    Raises:
      ValueError: ranks below 2.
      TypeError: ranks, batch or contracted sizes differ.

    Examples:

      >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
      (5, 2, 4)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError(f"batch_matmul takes operands of rank 2 or more, got ranks {x.ndim} and {y.ndim}")
    if x.ndim != y.ndim:
        raise ValueError(f"batch_matmul takes operands of one rank, got ranks {x.ndim} and {y.ndim}")
    batch = tuple(range(x.ndim - 2))
    return dot_general(lhs, rhs, (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)), precision)


# ragged_dot_general


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The dimension of the `lhs` of a ragged product that falls into groups.

    Args:
      dot_dimension_numbers: those of `dot_general`.
      lhs_ragged_dimensions: the one dimension of `lhs` that is cut into groups.
      rhs_group_dimensions: the dimension of `rhs` along which groups are counted, if it has one.

    Examples:

      >>> numbers = lax.RaggedDotDimensionNumbers(
      ...     dot_dimension_numbers=(((1,), (1,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[0]
      ... )
      >>> x, w = jnp.ones((4, 2)), jnp.ones((2, 2, 3))
      >>> lax.ragged_dot_general(x, w, jnp.array([1, 3]), numbers).shape
      (4, 3)
    """

    dot_dimension_numbers: tuple[Any, ...]
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        vars(self).update(
            dot_dimension_numbers=canonical_dot_dimensions(self.dot_dimension_numbers),
            lhs_ragged_dimensions=tuple(map(operator.index, self.lhs_ragged_dimensions)),
            rhs_group_dimensions=tuple(map(operator.index, self.rhs_group_dimensions)),
        )


def ragged_kind(lhs_ndim: int, numbers: RaggedDotDimensionNumbers) -> tuple[str, tuple[Any, ...]]:
    """The kind of the ragged dimension, and the dimensions of `lhs` that index `group_sizes` before its last.

    The kind is ``"free"`` (a matrix per group of rows), ``"contracting"`` (a product per group of
    summands) or ``"batch"``.
    """
    (lc, _), (lb, _) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    for kind, group, before in (("batch", lb, ()), ("contracting", lc, lb), ("free", free_dims(lhs_ndim, lc, lb), lb)):
        if ragged in group:
            return kind, (*before, *[d for d in group[: list(group).index(ragged)]])
    raise TypeError(f"ragged_dot_general: lhs has no dimension {ragged}, its rank is {lhs_ndim}")


@ragged_dot_general_p.abstract
def _ragged_dot_shape(
    lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None
):
    check_numbers("ragged_dot_general", lhs, rhs)
    name, numbers = "ragged_dot_general", ragged_dot_dimension_numbers
    if not dtypes.issubdtype(group_sizes.dtype, np.integer):
        raise TypeError(f"{name}: group_sizes are integers, got dtype {group_sizes.dtype}")
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"{name}: lhs has one ragged dimension, got {numbers.lhs_ragged_dimensions}")
    if len(numbers.rhs_group_dimensions) > 1:
        raise TypeError(f"{name}: rhs has one group dimension or none, got {numbers.rhs_group_dimensions}")
    check_dot_dimensions(name, lhs, rhs, numbers.dot_dimension_numbers)
    kind, prefix = ragged_kind(lhs.ndim, numbers)
    sizes = tuple(lhs.shape[d] for d in prefix)
    if not group_sizes.ndim or group_sizes.shape[:-1] not in ((), sizes):
        raise TypeError(f"{name}: group_sizes has shape (n,) or {(*sizes, 'n')}, got {group_sizes.shape}")
    groups = group_sizes.shape[-1]
    (_, rc), (_, rb) = numbers.dot_dimension_numbers
    if (kind == "free") != bool(numbers.rhs_group_dimensions):
        raise TypeError(
            f"{name}: rhs has {'one group dimension' if kind == 'free' else 'no group dimension'} where the ragged"
            f" dimension of lhs is a {kind} one, got rhs_group_dimensions={numbers.rhs_group_dimensions}"
        )
    shape = _dot_shape(lhs, rhs, numbers.dot_dimension_numbers)
    if kind == "free":
        (group,) = numbers.rhs_group_dimensions
        if group in rc or group in rb or not 0 <= group < rhs.ndim:
            raise TypeError(f"{name}: rhs group dimension {group} must be neither a batch nor a contracting dimension")
        if rhs.shape[group] != groups and not offset:
            raise TypeError(f"{name}: rhs has {rhs.shape[group]} groups, there are {groups} group_sizes")
        rest = free_dims(rhs.ndim, rc, rb, (group,))
        shape = (*shape[: lhs.ndim - len(rc)], *[rhs.shape[d] for d in rest])
    elif offset:
        raise NotImplementedError(
            f"{name}: group_offset is supported only for a free ragged dimension, this one is {kind}"
        )
    elif kind == "contracting":
        shape = (groups, *shape)
    if offset and offset[0].shape != (1,):
        raise TypeError(f"{name}: group_offset has shape (1,), got {offset[0].shape}")
    return ShapedArray(shape, _result_dtype(lhs, rhs, preferred_element_type))


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Products with one operand per group.

    Exactly one dimension of `lhs` is ragged: its positions fall into consecutive groups of
    `group_sizes` positions. Its role decides the form, with ``b`` batch, ``m``, ``n`` free and ``k``
    contracted dimensions, and ``x`` the dimensions of the ragged one's kind before it:

    1. free: ``[b,m,k], [g,b,k,n], [b,x,g] -> [b,m,n]``: rows of group ``i`` times matrix ``i``. Rows
       that are in no group give zero.
    2. contracted: ``[b,m,k], [b,k,n], [b,x,g] -> [g,b,m,n]``: one product per group of summands.
    3. batch: ``[b,m,k], [b,k,n], [x,g] -> [b,m,n]``: groups of independent products.

    `group_sizes` may always have shape ``[g]``.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers.
      ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.
      precision, preferred_element_type, out_sharding: as in `dot_general`.
      group_offset: in form 1, array of shape ``(1,)``: the group to which the first matrix of
        `rhs` belongs, so that `rhs` may hold fewer matrices than there are groups.

    Examples:

      >>> numbers = lax.RaggedDotDimensionNumbers(
      ...     dot_dimension_numbers=(((1,), (1,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[0]
      ... )
      >>> x, w = jnp.ones((3, 2)), jnp.array([[[1.], [1.]], [[10.], [10.]]])
      >>> lax.ragged_dot_general(x, w, jnp.array([1, 2]), numbers)
      Array([[ 2.],
             [20.],
             [20.]], dtype=float32)
    """
    operands = (lhs, rhs, group_sizes) if group_offset is None else (lhs, rhs, group_sizes, group_offset)
    params = dict(
        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=_dtype_or_none(preferred_element_type),
    )
    return placed_result(out_sharding, ragged_dot_general_p.bind, *operands, **params)


_MATRIX_PER_GROUP = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply consecutive groups of rows of `lhs` each by its own matrix.

    Args:
      lhs: shape ``(m, k)``.
      rhs: shape ``(g, k, n)``.
      group_sizes: ``(g,)`` integers, the number of rows in each group.
      precision, preferred_element_type, out_sharding: as in `dot_general`.
      group_offset: see `ragged_dot_general`.

    Returns:
      An array of shape ``(m, n)``; rows beyond the groups are zero.

    Examples:

      >>> x, w = jnp.ones((3, 2)), jnp.array([[[1.], [1.]], [[10.], [10.]]])
      >>> lax.ragged_dot(x, w, group_sizes=jnp.array([1, 2]))
      Array([[ 2.],
             [20.],
             [20.]], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _MATRIX_PER_GROUP, precision, preferred_element_type, group_offset, out_sharding
    )


# scaled_dot


@scaled_dot_p.abstract
def _scaled_dot_shape(lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
    check_numbers("scaled_dot", lhs, rhs, lhs_scale, rhs_scale)
    check_dot_dimensions("scaled_dot", lhs, rhs, dimension_numbers)
    (lc, rc), _ = dimension_numbers
    for side, aval, scale, contract in (("LHS", lhs, lhs_scale, lc), ("RHS", rhs, rhs_scale, rc)):
        if scale.ndim != aval.ndim:
            raise TypeError(f"{side} scale must have the rank of {side}, {aval.ndim}, got {scale.ndim}.")
        for d, (size, blocks) in enumerate(zip(aval.shape, scale.shape, strict=True)):
            if d not in contract:
                if size != blocks:
                    raise TypeError(f"{side} dim {d} has size {size}, its scale {blocks}; they must be equal")
            elif not blocks or size % blocks:
                raise TypeError(f"{side} dim {d} of size {size} must be divisible by its scale's size {blocks}")
    return ShapedArray(_dot_shape(lhs, rhs, dimension_numbers), preferred_element_type)


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Product of block-scaled operands: ``(lhs * lhs_scale) @ (rhs * rhs_scale)``.

    Args:
      lhs, rhs: arrays, typically of an 8- or 4-bit float dtype.
      lhs_scale, rhs_scale: factors, of the operand's shape except in the contracted dimension, where
        each factor serves a block of at least two consecutive elements. None disables scaling.
      dimension_numbers: as in `dot_general`; by default a matrix product, batched over dimension 0 for
        rank 3.
      preferred_element_type: dtype in which it is computed and returned, default ``bfloat16``.

    Raises:
      TypeError: shapes do not fit.

    Examples:

      >>> x, w = jnp.ones((2, 4), jnp.float8_e4m3fn), jnp.ones((4, 3), jnp.float8_e4m3fn)
      >>> x_scale = jnp.array([[2., 1.], [4., 1.]], jnp.float8_e8m0fnu)
      >>> lax.scaled_dot(x, w, lhs_scale=x_scale, preferred_element_type=jnp.float32)
      Array([[ 6.,  6.,  6.],
             [10., 10., 10.]], dtype=float32)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None:
        if x.ndim not in (2, 3):
            raise ValueError(f"scaled_dot: dimension_numbers have defaults for rank 2 and 3, got {x.ndim}")
        batch = (0,) if x.ndim == 3 else ()
        dimension_numbers = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    numbers = canonical_dot_dimensions(dimension_numbers)
    dtype = _dtype_or_none(ml_dtypes.bfloat16 if preferred_element_type is None else preferred_element_type)
    scales = []
    for side, aval, scale, contract in (("LHS", x, lhs_scale, numbers[0][0]), ("RHS", y, rhs_scale, numbers[0][1])):
        if scale is None:
            shape = [1 if d in contract else n for d, n in enumerate(aval.shape)]
            scale = lax.full(shape, 1, np.dtype(ml_dtypes.float8_e8m0fnu))
        else:
            for d in contract:
                blocks = aval_of(scale).shape[d]
                if blocks and aval.shape[d] % blocks == 0 and aval.shape[d] // blocks < 2:
                    raise TypeError(
                        f"{side}: each scale must span at least 2 elements of dim {d}, got {aval.shape[d] // blocks}"
                    )
        scales.append(scale)
    return scaled_dot_p.bind(lhs, rhs, *scales, dimension_numbers=numbers, preferred_element_type=dtype)
