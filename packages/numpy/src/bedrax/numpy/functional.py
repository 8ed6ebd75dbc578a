"""Functions of functions: `vectorize`, `apply_along_axis`, `apply_over_axes`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import lax, pytree
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.lax.promotion import operand, report_rank_promotion
from bedrax.numpy.arguments import array, axis_index

_LABEL = r"[A-Za-z_]\w*|\d+"
_TERM = rf"\((?:(?:{_LABEL})(?:,(?:{_LABEL}))*)?,?\)"
_SIGNATURE = rf"^(?:{_TERM}(?:,{_TERM})*)?->{_TERM}(?:,{_TERM})*$"


def parse_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The dimensions that each operand and each result of a generalized ufunc has: ``"(m,n),(n)->(m)"``."""
    text = re.sub(r"\s+", "", signature)
    if not re.match(_SIGNATURE, text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    read = lambda part: [tuple(re.findall(_LABEL, term)) for term in re.findall(_TERM, part)]
    given, results = text.split("->")
    return read(given), read(results)


def _core_sizes(args: Sequence[Array], terms: list[tuple[str, ...]], sizes: dict[str, Any]) -> None:
    for k, (x, term) in enumerate(zip(args, terms, strict=True)):
        if x.ndim < len(term):
            raise ValueError(f"vectorize: the signature needs axes {term} at position {k}, got shape {x.shape}")
        for label, n in zip(term, x.shape[x.ndim - len(term) :], strict=True):
            expected = int(label) if label.isdigit() else sizes.setdefault(label, n)
            if not dims.definitely_equal(expected, n):
                raise ValueError(f"inconsistent size for core dimension {label!r}: {n} vs {expected}")


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """A function of scalars (or of arrays with given core dimensions) as a function of arrays, with broadcasting.

    Args:
      pyfunc: the function, traceable.
      excluded: positions and names of arguments that are passed unchanged.
      signature: core dimensions of operands and results, e.g. ``"(n),(n)->()"``; default: all are scalars.

    Raises:
      TypeError, ValueError: `excluded` or `signature` does not fit.

    Examples:

      >>> pair_sum = jnp.vectorize(lambda x, y: jnp.sum(x) + y, signature="(n),()->()")
      >>> pair_sum(jnp.ones((2, 3)), jnp.array([10., 20.]))
      Array([13., 23.], dtype=float32)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(f"vectorize: excluded holds positions (ints) and names of arguments, got {set(excluded)!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers; count positions from the front")
    terms = parse_signature(signature) if signature is not None else None

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        mapped = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        names = [k for k, x in kwargs.items() if k not in excluded and x is not None]
        if terms is not None:
            absent = {i for i, x in enumerate(args) if x is None and i not in excluded}
            if absent:
                raise ValueError(f"vectorize: with {signature=} every argument is an array; None at {absent}")

        def function(*values):
            full = list(args)
            for i, v in zip(mapped, values[: len(mapped)], strict=True):
                full[i] = v
            return pyfunc(*full, **{**kwargs, **dict(zip(names, values[len(mapped) :], strict=True))})

        given = [args[i] for i in mapped] + [kwargs[k] for k in names]
        given = [lax.asarray(operand("vectorize", x, i)) for i, x in enumerate(given)]
        inputs, outputs = ([()] * len(given), None) if terms is None else terms
        if len(inputs) != len(given):
            raise TypeError(f"vectorize: {len(given)} arrays, but signature {signature} has {len(inputs)}")
        sizes: dict[str, Any] = {}
        _core_sizes(given, inputs, sizes)

        def checked(*values):
            out = function(*values)
            if outputs is not None:
                _check_results(out if isinstance(out, tuple) else (out,), outputs, sizes, signature)
            return out

        ranks = [x.ndim - len(term) for x, term in zip(given, inputs, strict=True)]
        return _mapped_over_leading_axes(checked, given, ranks)

    return vectorized


def _check_results(results: tuple, terms: Sequence, sizes: dict, signature: str | None) -> None:
    """Raise if the results do not have the core dimensions of the signature."""
    if len(results) != len(terms):
        raise TypeError(f"vectorize: {len(results)} results, but signature {signature} has {len(terms)}")
    for r, term in zip(results, terms, strict=True):
        shape = getattr(r, "shape", ())
        if len(shape) != len(term):
            raise ValueError(f"output shape {shape} does not match core dimensions {term} of signature {signature}")
        for label, n in zip(term, shape, strict=True):
            expected = int(label) if label.isdigit() else sizes.setdefault(label, n)
            if not dims.definitely_equal(expected, n):
                raise ValueError(f"inconsistent size for core dimension {label!r}: {n} vs {expected}")


def _mapped_over_leading_axes(function: Callable, values: Sequence[Array], ranks: Sequence[int]) -> Any:
    """`function` of arrays, mapped over the first `ranks` axes of each, which are broadcast."""
    from bedrax.batching import vmap  # on first use: few functions here map

    shapes = [x.shape[:rank] for x, rank in zip(values, ranks, strict=True)]
    if len({rank for x, rank in zip(values, ranks, strict=True) if x.ndim}) > 1:
        report_rank_promotion("vectorize", [x.shape for x in values])
    batch = lax.broadcast_shapes(*shapes) if shapes else ()
    # Missing leading axes and broadcast axes of length 1 are not mapped; one vmap per axis of the result.
    plans, kept = [], []
    for x, shape in zip(values, shapes, strict=True):
        offset = len(batch) - len(shape)
        plan: list[Any] = [None] * offset
        for n, joint in zip(shape, batch[offset:], strict=True):
            stretched = dims.definitely_equal(n, 1) and not dims.definitely_equal(joint, 1)
            plan.append(None if stretched else 0)
        plans.append(plan)
        drop = [d for d in range(len(shape)) if plan[d + offset] is None]
        kept.append(lax.squeeze(x, drop) if drop else x)
    for d in reversed(range(len(batch))):
        axes = tuple(plan[d] for plan in plans)
        function = vmap(function, in_axes=axes) if any(a == 0 for a in axes) else _repeated(function, batch[d])
    return function(*kept)


def _repeated(function: Callable, n: Any) -> Callable:
    """A function with its results repeated along a new first axis."""
    widen = lambda r: lax.broadcast_in_dim(r, (n, *r.shape), range(1, r.ndim + 1))
    return lambda *args: pytree.tree_map(widen, function(*args))


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors, applied to all vectors along an axis.

    Args:
      func1d: function of a vector; the axes of its result take the place of the axis.
      axis: the axis.
      arr: array.
      *args, **kwargs: further arguments of the function.

    Examples:

      >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
      >>> jnp.apply_along_axis(lambda row: row[::-1], 1, x)
      Array([[3, 2, 1],
             [6, 5, 4]], dtype=int32)
    """
    from bedrax.batching import vmap

    x = array("apply_along_axis", arr)
    axis = axis_index(axis, x.ndim)
    function = lambda v: func1d(v, *args, **kwargs)
    for _ in range(1, x.ndim - axis):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    """A reduction along several axes, one after the other, with the rank kept.

    Args:
      func: function of an array and an axis that returns an array of the same or one less rank.
      a: array.
      axes: an int or several.

    Examples:

      >>> x = jnp.ones((2, 3, 4))
      >>> jnp.apply_over_axes(jnp.sum, x, [0, 2])
      Array([[[8.],
              [8.],
              [8.]]], dtype=float32)
    """
    x = array("apply_over_axes", a)
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        axis = axis_index(axis, x.ndim)
        out = func(x, axis)
        if out.ndim == x.ndim - 1:
            out = lax.expand_dims(out, (axis,))
        elif out.ndim != x.ndim:
            raise ValueError(
                "function is not returning an array of the correct shape: its result has as many axes as its argument, or"
                f" one fewer; it got shape {x.shape} and returned {out.shape}"
            )
        x = out
    return x
