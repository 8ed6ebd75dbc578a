"""Shapes of results that depend on symbolic dimensions of arguments, from TensorFlow's shape inference at some sizes.

For TensorFlow a size is known or unknown. This module infers the shapes at several sizes. The shape is an expression of
the dimensions that gives all of these. It must explain more sizes than it has coefficients, among them the
least permitted ones and larger ones.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.core.avals import ShapedArray
from bedrax.shape_poly import SymbolicScope, scope_of
from bedrax.shape_poly.expressions import variable

_SIZES = (*range(1, 13), 16, 24, 32, 40, 48, 64, 96)
_HOLDS = {"==": int.__eq__, ">=": int.__ge__, "<=": int.__le__}
Env = Mapping[str, int]


def inferred_shapes(
    avals: Sequence[ShapedArray], shapes_at: Callable[[list[Any]], list[Any] | None]
) -> list[tuple[Any, ...]] | None:
    """The shapes of results in terms of the symbolic dimensions of the arguments, or None.

    Args:
      shapes_at: the shapes of all results for types of static shapes; None if TensorFlow raises for these.
    """
    scope = scope_of([a.shape for a in avals])
    sizes = [d for a in avals for d in a.shape if dims.is_symbolic(d)]
    names = sorted(set().union(*[d.variables for d in sizes]))
    terms = _terms(names, scope)
    seen: list[tuple[Env, list[Any]]] = []
    for env in _environments(names, scope, sizes):
        static = [a.update(shape=tuple([_at(d, env) for d in a.shape])) for a in avals]
        shapes = shapes_at(static)
        if shapes is not None:
            if any(n is None for shape in shapes for n in shape) or (seen and _ranks(shapes) != _ranks(seen[0][1])):
                return None
            seen.append((env, shapes))
        if len(seen) == len(terms) + 4:
            break
    else:
        return None
    find = lambda r, axis: _expression([(env, shapes[r][axis]) for env, shapes in seen], terms, sizes)
    found = [[find(r, axis) for axis in range(len(shape))] for r, shape in enumerate(seen[0][1])]
    return None if any(d is None for shape in found for d in shape) else [tuple(shape) for shape in found]


def _ranks(shapes: Sequence[tuple]) -> list[int]:
    return [len(s) for s in shapes]


def _at(d: Any, env: Env) -> int:
    return int(d.evaluate(env)) if dims.is_symbolic(d) else d


def _terms(names: Sequence[str], scope: SymbolicScope) -> list:
    """The possible terms of a size: 1, the variables, products of two of them."""
    variables = [variable(scope, n) for n in names]
    return [1, *variables, *[a * b for a, b in itertools.combinations_with_replacement(variables, 2)]]


def _environments(names: Sequence[str], scope: SymbolicScope, sizes: Sequence[Any]) -> Iterator[Env]:
    """Sizes that the scope permits: the least first, then some of all kinds."""
    draw = random.Random(0)
    least = [{n: size for n in names} for size in _SIZES]
    others = [{n: draw.choice(_SIZES) for n in names} for _ in range(100)]
    tried: list[Env] = []
    for envs, count in ((least, 3), (others, len(others))):
        for env in envs:
            allowed = all(_HOLDS[relation](_at(a, env), _at(b, env)) for _, a, relation, b in scope.checks)
            if allowed and count and env not in tried and all(_at(d, env) >= 1 for d in sizes):
                tried.append(env)
                count -= 1
                yield env


def _expression(seen: Sequence[tuple[Env, int]], terms: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """An expression with these values; None if no expression of the supported forms has them."""
    fits = lambda d: all(_at(d, env) == n for env, n in seen)
    values = [n for _, n in seen]
    simple = [values[0], *sizes]
    quotients = (
        (d + k) // q + more for d in dict.fromkeys(sizes) for q in (2, 3, 4, 8) for k in range(-8, q) for more in (0, 1)
    )
    for candidate in itertools.chain(simple, _sum(seen, terms), quotients):
        if fits(candidate):
            return candidate
    return None


def _sum(seen: Sequence[tuple[Env, int]], terms: Sequence[Any]) -> Iterator[Any]:
    table = np.array([[_at(t, env) for t in terms] for env, _ in seen], float)
    solution, *_ = np.linalg.lstsq(table, np.array([n for _, n in seen], float), rcond=None)
    whole = np.rint(solution)
    if np.abs(solution - whole).max() < 1e-3:
        yield sum([int(c) * t for c, t in zip(whole, terms, strict=True) if c])
