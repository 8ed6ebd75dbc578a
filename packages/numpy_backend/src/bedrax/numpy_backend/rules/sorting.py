"""NumPy evaluation of the sorting primitives."""

from __future__ import annotations

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import sorting
from bedrax.lax.primitives.shaping import canonical_axis
from bedrax.numpy_backend.rules.reductions import comparable
from bedrax.numpy_backend.tables import numpy_rules


def _keys(x: np.ndarray) -> list:
    """Return arrays to compare in turn. NumPy puts NaN last; -0 becomes 0."""
    if np.iscomplexobj(x):
        return [*_keys(x.real), *_keys(x.imag)]
    x = comparable(x)
    return [np.where(x == 0, np.zeros((), x.dtype), x)]


@numpy_rules.rule(sorting.sort_p)
def _sort(*operands, dimension, is_stable, num_keys):
    keys = [key for x in operands[:num_keys] for key in _keys(x)]
    order = np.lexsort(keys[::-1], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def total_order(x: np.ndarray) -> np.ndarray:
    """Return integers in the total order of IEEE 754 of `x` (real or bool)."""
    if not dtypes.issubdtype(x.dtype, np.floating):
        return x.astype(np.uint8) if x.dtype == np.bool_ else comparable(x)
    x = comparable(x)
    bits = x.view(np.dtype(f"i{x.dtype.itemsize}"))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _largest(x: np.ndarray, k: int, axis: int, largest: bool = True) -> list:
    order = total_order(x)
    index = np.argsort(~order if largest else order, axis, kind="stable")
    index = np.take(index, np.arange(k), axis)
    return [np.take_along_axis(x, index, axis), index.astype(np.int32)]


numpy_rules.add(sorting.top_k_p, lambda x, *, k, axis, is_stable=True: _largest(x, k, axis))


@numpy_rules.rule(sorting.approx_top_k_p)
def _approx_top_k(
    x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override, aggregate_to_topk
):
    axis = canonical_axis(reduction_dimension, x.ndim)
    size = sorting.approx_output_size(
        x.shape[axis], x.ndim, k, recall_target, reduction_input_size_override, aggregate_to_topk
    )
    return _largest(x, size, axis, is_max_k)
