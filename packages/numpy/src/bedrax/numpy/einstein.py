"""Einstein's notation: `einsum` and the order of its contractions.

Labels and shapes determine a program of contractions of one or two operands, which is cached.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax import lattice
from bedrax.lax.primitives.contractions import canonical_precision, dot_general_p
from bedrax.numpy.arguments import typed
from bedrax.numpy.diagonals import masked_diagonal

__all__ = ["einsum", "einsum_path"]


class _Ellipsis(NamedTuple):
    """Label of a dimension in `...`, counted from the right."""

    position: int


def _split_labels(term: str) -> list:
    term = term.replace(" ", "")
    head, dots, tail = term.partition("...")
    if "." in head or "." in tail:
        raise ValueError(f"einsum: one ellipsis '...' at most per operand, and no other dots, got {term!r}")
    for c in (*head, *tail):
        if not c.isalnum():
            raise ValueError(f"einsum: Character {c!r} in {term!r} is neither a letter nor a digit.")
    return [*head, *([...] if dots else []), *tail]


@functools.lru_cache(2048)
def _parse(subscripts: str, ranks: tuple) -> tuple:
    """(labels of each operand, labels of the result) of a subscripts string."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    if "-" in inputs or ">" in inputs or "-" in output or ">" in output:
        raise ValueError(f"einsum: subscripts can only contain one '->', got {subscripts!r}")
    terms = [_split_labels(t) for t in inputs.split(",")]
    return _resolve(terms, _split_labels(output) if arrow else None, ranks, subscripts)


def _resolve(terms: list, output: list | None, ranks: tuple, shown: Any) -> tuple:
    if len(terms) != len(ranks):
        raise ValueError(
            coded(
                "BX-EINSUM",
                f"einsum: {shown!r} has {len(terms)} terms for {len(ranks)} operands; write one per operand",
            )
        )
    longest, resolved = 0, []
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        hidden = rank - len(term) + 1 if ... in term else 0
        if hidden < 0 or (... not in term and len(term) != rank):
            named = "".join("..." if c is ... else str(c) for c in term)
            raise ValueError(
                coded("BX-EINSUM", f"einsum: subscript {named!r} does not fit operand {i} of rank {rank}, in {shown!r}")
            )
        longest = max(longest, hidden)
        resolved.append(_expand(term, hidden))
    if output is None:
        counts: dict[Any, Any] = {}
        for term in resolved:
            for c in term:
                counts[c] = counts.get(c, 0) + 1
        once = [c for c, k in counts.items() if k == 1 and not isinstance(c, _Ellipsis)]
        labels = (*_expand([...], longest), *sorted(once))
    else:
        labels = _expand(output, longest)
        known = {c for term in resolved for c in term}
        for c in labels:
            if c not in known:
                raise ValueError(
                    coded("BX-EINSUM", f"einsum: Output character {c!r} did not appear in the input, in {shown!r}")
                )
        if len(set(labels)) != len(labels):
            raise ValueError(f"einsum: Output character appeared more than once, in {shown!r}")
    return tuple(resolved), labels


def _expand(term: list, hidden: int) -> tuple:
    out: list[Any] = []
    for c in term:
        out.extend(map(_Ellipsis, range(hidden - 1, -1, -1)) if c is ... else [c])
    return tuple(out)


def _arguments(subscripts, operands: tuple) -> tuple:
    """(operands, a function from their ranks to the labels), for both call forms of einsum."""
    if isinstance(subscripts, str):
        return operands, functools.partial(_parse, subscripts)
    everything = (subscripts, *operands)
    output = list(everything[-1]) if len(everything) % 2 else None
    arrays = everything[: len(everything) // 2 * 2 : 2]
    terms = [list(t) for t in everything[1::2]]
    return arrays, lambda ranks: _resolve(terms, output, ranks, (terms, output))


class _Step(NamedTuple):
    """One contraction: take operands out of the list, multiply them, append the result."""

    positions: tuple[Any, ...]
    operands: tuple[Any, ...]  # per operand: (pairs of axes of repeated labels, axes to sum, axes of size 1 to drop)
    numbers: tuple[Any, ...] | None  # of the product of two operands; None for one operand
    permutation: tuple[Any, ...] | None


@functools.lru_cache(2048)
def _steps(inputs: tuple, output: tuple, shapes: tuple, optimize: Any) -> tuple:
    """The program of contractions for operands with these labels and shapes."""
    sizes: dict[Any, Any] = {}
    for term, shape in zip(inputs, shapes, strict=True):
        for c, d in zip(term, shape, strict=True):
            known = sizes.setdefault(c, d)
            if dims.definitely_equal(known, 1):
                sizes[c] = d
            elif not dims.definitely_equal(known, d) and not dims.definitely_equal(d, 1):
                label = "..." if isinstance(c, _Ellipsis) else c
                raise ValueError(
                    coded(
                        "BX-EINSUM",
                        f"einsum: label {label!r} has lengths {known} and {d} in operands of shapes {list(shapes)}; the"
                        " lengths of a label must be equal, or 1",
                    )
                )
    terms = [list(zip(term, shape, strict=True)) for term, shape in zip(inputs, shapes, strict=True)]
    steps: list[_Step] = []
    for group in _path(inputs, output, sizes, optimize):
        group = sorted(group, reverse=True)
        taken = [terms.pop(i) for i in group]
        # More than two operands of one step (an unoptimized path) are contracted from left to right.
        taken.reverse()
        positions = tuple(reversed(group))
        while True:
            pair, rest = taken[:2], taken[2:]
            wanted = {c for t in (*rest, *terms) for c, _ in t} | set(output)
            last = not rest and not terms
            step, result = _step(positions[: len(pair)], pair, wanted, sizes, output if last else None)
            steps.append(step)
            if not rest:
                break
            # the result is the last one; the other positions have shifted
            count = len(terms) + len(rest)
            positions = (count, *[p - sum(q < p for q in positions[:2]) for p in positions[2:]])
            taken = [result, *rest]
        terms.append(result)
    return tuple(steps)


def _step(positions, pair, wanted, sizes, output):
    # The remaining part of each operand: its labels, once each, without dimensions of size 1 that only broadcast
    # against the label's size in another operand.
    remains = [_without_broadcast(term, sizes) for term in pair]
    prepared, labels = [], []
    for i, (diagonals, drop, left) in enumerate(remains):
        elsewhere = {c for j, (_, _, other) in enumerate(remains) if j != i for _, c, _ in other} | wanted
        total = [second for _, second in diagonals] + [axis for axis, c, _ in left if c not in elsewhere]
        prepared.append((diagonals, tuple(sorted(total)), drop))
        labels.append([(c, d) for _, c, d in left if c in elsewhere])
    if len(pair) == 1:
        result, numbers = labels[0], None
    else:
        result, numbers, swap = _pair_numbers(labels[0], labels[1], wanted, output)
        if swap:
            prepared.reverse()
            positions = positions[::-1]
    permutation = None
    if output is not None:
        order = [c for c, _ in result]
        permutation = tuple(order.index(c) for c in output)
        if permutation == tuple(range(len(order))):
            permutation = None
        by_label = dict(result)
        result = [(c, by_label[c]) for c in output]
    return _Step(tuple(positions), tuple(prepared), numbers, permutation), result


def _without_broadcast(term, sizes):
    """(pairs of axes of repeated labels, axes of size 1 to drop, the other axes as (axis, label, size))."""
    names = [c for c, _ in term]
    widest = {}
    for c, d in term:
        if c not in widest or dims.definitely_equal(widest[c], 1):
            widest[c] = d
    diagonals = tuple((names.index(c), axis) for axis, c in enumerate(names) if names.index(c) != axis)
    first = [axis for axis, c in enumerate(names) if names.index(c) == axis]
    one = lambda d: dims.definitely_equal(d, 1)
    drop = tuple(axis for axis in first if one(widest[names[axis]]) and not one(sizes[names[axis]]))
    return diagonals, drop, [(axis, names[axis], widest[names[axis]]) for axis in first if axis not in drop]


def _pair_numbers(lhs, rhs, wanted, output):
    in_lhs, in_rhs = [c for c, _ in lhs], [c for c, _ in rhs]
    shared = [c for c in in_lhs if c in in_rhs]
    batch = [c for c in shared if c in wanted]
    if output is not None:
        batch.sort(key=output.index)
    contract = [c for c in shared if c not in wanted]
    free_lhs, free_rhs = [c for c in in_lhs if c not in shared], [c for c in in_rhs if c not in shared]
    swap = output is not None and list(output) == [*batch, *free_rhs, *free_lhs] and bool(free_lhs and free_rhs)
    if swap:
        lhs, rhs, in_lhs, in_rhs, free_lhs, free_rhs = rhs, lhs, in_rhs, in_lhs, free_rhs, free_lhs
    at = lambda names, wanted: tuple(names.index(c) for c in wanted)
    numbers = ((at(in_lhs, contract), at(in_rhs, contract)), (at(in_lhs, batch), at(in_rhs, batch)))
    sized = dict([*rhs, *lhs])
    return [(c, sized[c]) for c in (*batch, *free_lhs, *free_rhs)], numbers, swap


def _path(inputs, output, sizes, optimize) -> list:
    n = len(inputs)
    if n <= 2:
        return [tuple(range(n))]
    if optimize is False:
        return [tuple(range(n))]
    if isinstance(optimize, tuple):
        steps = optimize[1:] if optimize[:1] == ("einsum_path",) else optimize
        return [*steps]
    return _opt_einsum_path(inputs, output, sizes, optimize)[0]


def _opt_einsum_path(inputs, output, sizes, optimize):
    import opt_einsum

    # opt_einsum needs letters, and numbers for symbolic sizes; it reads only costs.
    labels = {c for t in inputs for c in t}
    free = (s for s in map(opt_einsum.get_symbol, itertools.count()) if s not in labels)
    letters = {c: c if isinstance(c, str) else next(free) for c in sorted(labels, key=repr)}
    name = letters.__getitem__
    text = ",".join("".join(map(name, t)) for t in inputs) + "->" + "".join(map(name, output))
    number = lambda d: int(d) if dims.is_constant_dim(d) else 64
    shapes = [tuple(number(sizes[c]) for c in t) for t in inputs]
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize)


def _hashable(optimize):
    if isinstance(optimize, (list, tuple)):
        return tuple(tuple(s) if isinstance(s, (list, tuple)) else s for s in optimize)
    return optimize


def _prepare(x, spec, dtype):
    """Diagonals, sums and broadcast dimensions of one operand, before it is multiplied. Sums are computed in `dtype`."""
    diagonals, total, drop = spec
    for first, second in diagonals:
        aval = aval_of(x)
        # sizes 1 and n: the dimension of size 1 broadcasts along the diagonal
        if dims.definitely_equal(aval.shape[first], aval.shape[second]):
            x = masked_diagonal(x, aval, first, second)
        elif dims.definitely_equal(aval.shape[first], 1):
            wide = tuple(aval.shape[second] if d == first else s for d, s in enumerate(aval.shape))
            x = lax.broadcast_in_dim(x, wide, tuple(range(len(wide))))
            x = masked_diagonal(x, aval_of(x), first, second)
    if total:
        if dtypes.is_complex(dtype) or not dtypes.is_complex(aval_of(x).dtype):
            x = lax.convert_to(x, dtype)
        x = lax.reduce_or(x, total) if aval_of(x).dtype == np.bool_ else lax.reduce_sum(x, total)
    if drop:
        x = lax.squeeze(x, tuple(d - sum(t < d for t in total) for d in drop))
    return x


def einsum(
    subscripts: np.ndarray[Any, Any] | str,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[Any] = "auto",
    precision: Any = None,
    preferred_element_type: np.dtype[Any] | type | None = None,
    _dot_general: Callable[..., Any] | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sum of products in Einstein's notation.

    Args:
      subscripts: labels of the axes of each operand and of the result, as in ``"ij,jk->ik"``; ``...`` stands for
        any number of broadcast axes. Without ``->``, the result has the labels that occur once, sorted. Or the
        interleaved form: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
      operands: arrays.
      optimize: how the order of three or more operands is found: the name of a strategy of the package
        opt_einsum, True for ``"optimal"``, False for left to right, or a path from `einsum_path`.
      precision: see `jax.lax.Precision`.
      preferred_element_type: dtype of the result; by default the promoted dtype of the operands.
      out_sharding: optional placement of the result.
      out: only None.

    Raises:
      TypeError: an operand is not an array.
      ValueError: the subscripts do not fit the operands.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.einsum("ij,jk->ik", x, x)
      Array([[ 7, 10],
             [15, 22]], dtype=int32)
      >>> jnp.einsum("ii", x)
      Array(5, dtype=int32)
      >>> jnp.einsum("ij->ji", x)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("jnp.einsum: out is not supported, as arrays are immutable; use what is returned")
    operands, labels_of = _arguments(subscripts, operands)
    if not operands:
        raise ValueError(f"einsum needs at least one operand, got only the subscripts {subscripts!r}")
    pairs = [typed("einsum", i, x) for i, x in enumerate(operands)]
    avals = [aval for _, aval in pairs]
    inputs, output = labels_of(tuple(len(v.shape) for v in avals))
    steps = _steps(inputs, output, tuple(v.shape for v in avals), _hashable(optimize))
    if preferred_element_type is not None:
        dtype, weak = dtypes.explicit_dtype(preferred_element_type, "einsum"), False
    else:
        dtype, weak = lattice.promote([v.dtype for v in avals], [v.weak_type for v in avals])

    def product(*values):
        if _dot_general is not None:
            return lax.convert_to(_contracted(values, steps, precision, dtype, _dot_general), dtype, weak)
        return _einsum.of(steps, canonical_precision(precision), dtype, weak)(values)

    values = [x for x, _ in pairs]
    return product(*values) if out_sharding is None else lax.placed_call(out_sharding, product, *values)


@one_program(static=("steps", "precision", "dtype", "weak"))
def _einsum(values, steps, precision, dtype, weak):
    return lax.convert_to(_contracted(values, steps, precision, dtype, None), dtype, weak)


def _contracted(values, steps, precision, dtype, dot_general):
    """The products of `steps`, one after the other."""
    values = list(values)
    for step in steps:
        taken = [_prepare(values[p], spec, dtype) for p, spec in zip(step.positions, step.operands, strict=True)]
        for p in sorted(step.positions, reverse=True):
            del values[p]
        if step.numbers is None:
            x = taken[0]
        elif dot_general is None:
            x = dot_general_p.bind(
                *taken, dimension_numbers=step.numbers, precision=precision, preferred_element_type=dtype
            )
        else:
            x = dot_general(*taken, step.numbers, precision, preferred_element_type=dtype)
        values.append(x if step.permutation is None else lax.transpose(x, step.permutation))
    return values[0]


def einsum_path(
    subscripts: str, /, *operands: ArrayLike, optimize: bool | str | list[Any] = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would contract its operands, found by the package opt_einsum.

    Args:
      subscripts, operands: as for `einsum`.
      optimize: a strategy of opt_einsum; True for ``"optimal"``, False for all in one step.

    Returns:
      A list of positions to contract step by step, which `einsum` takes as `optimize`, and a report to print.

    Examples:

      >>> x = jnp.ones((8, 8))
      >>> path, report = jnp.einsum_path("ij,jk,kl->il", x, x, x)
      >>> path
      [(0, 1), (0, 1)]
    """
    arrays, labels_of = _arguments(subscripts, operands)
    avals = [typed("einsum_path", i, x)[1] for i, x in enumerate(arrays)]
    inputs, output = labels_of(tuple(v.ndim for v in avals))
    sizes: dict[Any, Any] = {}
    for term, v in zip(inputs, avals, strict=True):
        for c, d in zip(term, v.shape, strict=True):
            sizes[c] = d if dims.definitely_equal(sizes.get(c, 1), 1) else sizes[c]
    return _opt_einsum_path(inputs, output, sizes, optimize)
