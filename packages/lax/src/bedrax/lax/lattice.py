"""Implicit promotion: the common dtype of values, with weak types.

A weakly typed value takes the type of the value that it is combined with. Promotion is the least upper bound in the lattice
written down in `_STANDARD_EDGES` (https://docs.jax.dev/en/latest/type_promotion.html).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bedrax.core import config, dtypes
from bedrax.core.codes import coded

_SCALARS = (bool, int, float, complex)
_NAMED = {d.name: d for d in dtypes.all_dtypes}
_KNOWN = frozenset(dtypes.all_dtypes)

# Nodes are dtypes, and Python's int, float and complex for weakly typed values of these kinds. An edge points to a
# node that its start may be converted to implicitly.
_STANDARD_EDGES: dict[Any, tuple[Any, ...]] = {
    "bool": (int,),
    int: ("uint8", "int8", *(d.name for d in dtypes.narrow_int_dtypes)),
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "uint64": (float,),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": (float,),
    float: ("bfloat16", "float16", complex, *(d.name for d in dtypes.narrow_float_dtypes)),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    complex: ("complex64",),
    "complex64": ("complex128",),
}

# Strict: only Python scalars, and only within or to the next kind.
_STRICT_EDGES: dict[Any, tuple[Any, ...]] = {
    int: (float, *(d.name for d in dtypes.integer_dtypes)),
    float: (complex, *(d.name for d in dtypes.float_dtypes)),
    complex: tuple(d.name for d in dtypes.complex_dtypes),
}


def _upper_sets(edges: dict[Any, tuple]) -> dict[Any, frozenset]:
    node = lambda n: n if isinstance(n, type) else _NAMED[n]
    graph = {node(k): [node(v) for v in vs] for k, vs in edges.items()}

    @functools.cache
    def above(n: Any) -> frozenset:
        return frozenset([n]).union(*(above(m) for m in graph.get(n, ())))

    return {n: above(n) for n in (*dtypes.all_dtypes, int, float, complex)}


_UPPER = {"standard": _upper_sets(_STANDARD_EDGES), "strict": _upper_sets(_STRICT_EDGES)}


def _least_upper_bound(mode: str, a: Any, b: Any) -> Any:
    """The least node above both, or None."""
    upper = _UPPER[mode]
    common = upper[a] & upper[b]
    return next((n for n in common if upper[n] == common), None)


def _node(dtype: Any, weak: bool) -> Any:
    if not weak:
        return dtype
    scalar = dtypes.scalar_type_of(dtype)
    return dtype if scalar is bool else scalar


def _no_path(nodes: Iterable[Any], mode: str) -> dtypes.TypePromotionError:
    nodes = list(dict.fromkeys(nodes))
    names = ", ".join(f"a Python {n.__name__}" if isinstance(n, type) else f"'{n}'" for n in nodes)
    text = f"no dtype is the common one of {names}"
    if mode == "strict":
        return dtypes.TypePromotionError(
            f"{text} while jax_numpy_dtype_promotion=strict. Convert the operands to the dtype that the result is to "
            "have, or set jax_numpy_dtype_promotion=standard."
        )
    narrow = [n for n in nodes if n in dtypes.narrow_float_dtypes or n in dtypes.narrow_int_dtypes]
    why = (
        f": {', '.join(map(str, narrow))} combine implicitly only with themselves and Python scalars" if narrow else ""
    )
    return dtypes.TypePromotionError(f"{text}{why}. Cast explicitly, for example with x.astype('float32').")


def _describe(x: Any) -> tuple[Any, bool]:
    """(dtype, weak) of an argument of `result_type`. Only a value with an `aval` may be of 64 bits without x64."""
    if type(x) in _SCALARS:
        return dtypes.python_scalar_dtype(type(x)), type(x) is not bool
    aval = getattr(x, "aval", None)
    if aval is not None and hasattr(aval, "dtype"):
        return aval.dtype, aval.weak_type
    if isinstance(x, type) and x in _SCALARS:
        return dtypes.python_scalar_dtype(x), x is not bool
    if dtypes.is_python_scalar(x):  # of a subclass of int, float or complex
        return dtypes.python_scalar_dtype(dtypes.scalar_type_of(x)), True
    if isinstance(x, (np.dtype, dtypes.ExtendedDType, str, type)) or x is None:
        return dtypes.canonicalize_dtype(x, allow_extended_dtype=True), False
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, (np.dtype, dtypes.ExtendedDType)):
        return dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True), False
    if hasattr(x, "__jax_array__"):  # a symbolic dimension
        return dtypes.dtype_of(x), True
    raise TypeError(f"Cannot determine dtype of {x!r}: an array, a scalar or a dtype is needed")


_promotions: dict[tuple[Any, ...], tuple[Any, bool]] = {}


def promote(types: Sequence[Any], weaks: Sequence[bool]) -> tuple[Any, bool]:
    """(dtype, weak_type) of the combination of values with these dtypes and weak types.

    Equal dtypes are unchanged; different ones are made canonical before promotion.
    """
    first = types[0]
    for dtype in types:
        if dtype is not first and dtype != first:
            break
    else:
        return first, first != dtypes.bool_dtype and all(weaks)
    key = (tuple(types), tuple(weaks), config.numpy_dtype_promotion.value, config.enable_x64.value)
    found = _promotions.get(key)
    if found is None:
        found = _promotions[key] = _join(*key[:3])
    return found


def _join(types: tuple, weaks: tuple, mode: str) -> tuple[Any, bool]:
    upper = _UPPER[mode]
    nodes = []
    for dtype, weak in zip(types, weaks, strict=True):
        if dtype not in upper:
            if isinstance(dtype, np.dtype) and dtype != dtypes.float0:
                raise TypeError(_not_for_arrays(dtype))
            raise dtypes.ExtendedPromotionError(
                coded(
                    "BX-KEY-ARITHMETIC",
                    f"dtype {dtype} combines implicitly with no other dtype, got {', '.join(map(str, types))}; for"
                    " another key, use jax.random.fold_in(key, number)",
                )
            )
        nodes.append(_node(dtypes.canonicalize_dtype(dtype), weak))
    result = nodes[0]
    for n in nodes[1:]:
        result = _least_upper_bound(mode, result, n)
        if result is None:
            raise _no_path(nodes, mode)
    if isinstance(result, type):
        return dtypes.python_scalar_dtype(result), True
    return dtypes.canonicalize_dtype(result), False


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """(dtype, weak_type) that the values and dtypes `args` combine to; see `result_type`."""
    if not args:
        raise ValueError("result_type: at least one array or dtype is required, got no argument")
    result = promote(*zip(*map(_describe, args), strict=True))
    if result[0] not in _KNOWN:  # reached only if all are the same
        dtype = result[0]
        if isinstance(dtype, np.dtype) and dtype != dtypes.float0:
            raise TypeError(_not_for_arrays(dtype))
    return result


def _not_for_arrays(dtype: np.dtype) -> str:
    return f"arrays hold numbers and bools, got dtype {dtype}"


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that the values and dtypes `args` combine to; with `return_weak_type_flag`, (dtype, weak_type).

    Args:
      args: arrays, traced values, NumPy values, Python scalars (weakly typed), and dtypes. Python's `int`, `float`
        and `complex` denote weakly typed scalars, None denotes the default float type.

    Raises:
      ValueError: no arguments.
      dtypes.TypePromotionError: they have no implicit common type.
      TypeError: an argument has no dtype, or one that arrays cannot have.

    Examples:

      >>> jax.dtypes.result_type(jnp.int32, 1.5)
      dtype('float32')
    """
    dtype, weak = lattice_result_type(*args)
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> Any:
    """The least dtype, in the current mode, that both dtypes convert to implicitly.

    Python's `int`, `float` and `complex` denote weakly typed values. Raises dtypes.TypePromotionError if there is none.
    """
    as_written = (np.dtype, dtypes.ExtendedDType, str, type)
    return lattice_result_type(*(x if isinstance(x, as_written) else dtypes.as_dtype(x) for x in (a, b)))[0]


__all__ = ["lattice_result_type", "promote", "promote_types", "result_type"]
