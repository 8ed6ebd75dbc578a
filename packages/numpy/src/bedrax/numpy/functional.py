"""Functions of functions: `vectorize`, `apply_along_axis`, `apply_over_axes`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import lax, pytree
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import array, axis_index

_LABEL = r"[A-Za-z_]\w*|\d+"
_TERM = rf"\((?:(?:{_LABEL})(?:,(?:{_LABEL}))*)?,?\)"
_SIGNATURE = re.compile(rf"^(?:{_TERM}(?:,{_TERM})*)?->{_TERM}(?:,{_TERM})*$")


def parse_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The dimensions that each operand and each result of a generalized ufunc has: ``"(m,n),(n)->(m)"``."""
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    read = lambda part: [tuple(re.findall(_LABEL, term)) for term in re.findall(_TERM, part)]
    given, results = text.split("->")
    return read(given), read(results)


def _core_sizes(args: Sequence[Array], terms: list[tuple[str, ...]], sizes: dict[str, Any]) -> None:
    for k, (x, term) in enumerate(zip(args, terms, strict=True)):
        if x.ndim < len(term):
            raise ValueError(f"input with shape {x.shape} does not have enough dimensions for all core dimensions {term}"
                             f" of vectorized function with signature, at position {k}")  # fmt: skip
        for label, n in zip(term, x.shape[x.ndim - len(term) :], strict=True):
            expected = int(label) if label.isdigit() else sizes.setdefault(label, n)
            if not dims.definitely_equal(expected, n):
                raise ValueError(f"inconsistent size for core dimension {label!r}: {n} vs {expected}")


def vectorize(pyfunc: Callable, *, excluded: Any = frozenset(), signature: str | None = None) -> Callable:
    """A function of scalars (or of arrays with given core dimensions) as one of arrays, with broadcasting.

    Args:
      pyfunc: the function, traceable.
      excluded: positions and names of arguments that are passed as they are.
      signature: core dimensions of operands and results, e.g. ``"(n),(n)->()"``; default: all are scalars.

    Raises:
      TypeError, ValueError: `excluded` or `signature` does not fit.
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={set(excluded)!r}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={set(excluded)!r} contains negative numbers")
    terms = parse_signature(signature) if signature is not None else None

    @functools.wraps(pyfunc)
    def vectorized(*args, **kwargs):
        from bedrax.batching import vmap

        fixed = {k: v for k, v in kwargs.items() if k in excluded}
        named = {k: v for k, v in kwargs.items() if k not in excluded}
        positions = [i for i in range(len(args)) if i not in excluded]
        names = list(named)
        given = [args[i] for i in positions] + [named[k] for k in names]

        def function(*values):
            full = list(args)
            for i, v in zip(positions, values[: len(positions)], strict=True):
                full[i] = v
            return pyfunc(*full, **dict(zip(names, values[len(positions) :], strict=True)), **fixed)

        given = [x if x is None else lax.asarray(operand("vectorize", x, i)) for i, x in enumerate(given)]
        absent = [i for i, x in enumerate(given) if x is None]
        if absent:
            inner = function
            present = [i for i in range(len(given)) if i not in absent]

            def function(*values):
                full = [None] * (len(values) + len(absent))
                for i, v in zip(present, values, strict=True):
                    full[i] = v
                return inner(*full)

            given = [given[i] for i in present]
        if terms is None:
            inputs, outputs = [()] * len(given), None
        else:
            inputs, outputs = terms
            if absent:
                raise ValueError(f"Cannot pass None at locations {set(absent)} with signature={signature!r}")
            if len(inputs) != len(given):
                raise TypeError(
                    f"wrong number of positional arguments: expected {len(inputs)}, got {len(given)} for signature"
                    f" {signature}"
                )
        sizes: dict[str, Any] = {}
        _core_sizes(given, inputs, sizes)
        shapes = [x.shape[: x.ndim - len(term)] for x, term in zip(given, inputs, strict=True)]
        batch = lax.broadcast_shapes(*shapes) if shapes else ()

        def checked(*values):
            out = function(*values)
            results = out if isinstance(out, tuple) else (out,)
            if outputs is not None:
                if len(results) != len(outputs):
                    raise TypeError(f"wrong number of results of a function with signature {signature}: expected"
                                    f" {len(outputs)}, got {len(results)}")  # fmt: skip
                for r, term in zip(results, outputs, strict=True):
                    shape = getattr(r, "shape", ())
                    if len(shape) != len(term):
                        raise ValueError(f"output shape {shape} does not match core dimensions {term} of signature"
                                         f" {signature}")  # fmt: skip
                    for label, n in zip(term, shape, strict=True):
                        expected = int(label) if label.isdigit() else sizes.setdefault(label, n)
                        if not dims.definitely_equal(expected, n):
                            raise ValueError(
                                f"inconsistent size for core dimension {label!r}: {n} vs {expected}"
                            )
            return out

        # Axes of length 1 are not mapped, and leading ones where they exist; one vmap per axis of the result.
        plans = []
        for shape in shapes:
            offset = len(batch) - len(shape)
            plans.append([None if d < offset or (dims.definitely_equal(shape[d - offset], 1) and not
                          dims.definitely_equal(batch[d], 1)) else 0 for d in range(len(batch))])  # fmt: skip
        values = []
        for x, shape, plan in zip(given, shapes, plans, strict=True):
            offset = len(batch) - len(shape)
            drop = [d - offset for d in range(offset, len(batch)) if plan[d] is None]
            values.append(lax.squeeze(x, drop) if drop else x)
        mapped = checked
        for d in reversed(range(len(batch))):
            axes = tuple(plan[d] for plan in plans)
            mapped = vmap(mapped, in_axes=axes) if any(a == 0 for a in axes) else _repeated(mapped, batch[d])
        return mapped(*values)

    return vectorized


def _repeated(function: Callable, n: Any) -> Callable:
    """A function with its results repeated along a new first axis."""
    widen = lambda r: lax.broadcast_in_dim(r, (n, *r.shape), range(1, r.ndim + 1))
    return lambda *args: pytree.tree_map(widen, function(*args))


def apply_along_axis(func1d: Callable, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors, applied to all vectors along an axis.

    Args:
      func1d: function of a vector; the axes of its result take the place of the axis.
      axis: the axis.
      arr: array.
      *args, **kwargs: further arguments of the function.
    """
    from bedrax.batching import vmap

    x = array("apply_along_axis", arr)
    axis = axis_index(axis, x.ndim)
    function = lambda v: func1d(v, *args, **kwargs)
    for _ in range(1, x.ndim - axis):
        function = vmap(function, in_axes=1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function, in_axes=0, out_axes=0)
    return function(x)


def apply_over_axes(func: Callable, a: Any, axes: Any) -> Array:
    """A reduction applied along several axes, one after the other, keeping the rank.

    Args:
      func: function of an array and an axis that returns an array of the same or one less rank.
      a: array.
      axes: an int or several.
    """
    x = array("apply_over_axes", a)
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        axis = axis_index(axis, x.ndim)
        out = func(x, axis)
        if out.ndim == x.ndim - 1:
            out = lax.expand_dims(out, (axis,))
        elif out.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = out
    return x
