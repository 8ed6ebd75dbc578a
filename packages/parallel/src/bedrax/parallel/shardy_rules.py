"""The relation of a function's dimensions, in the form of Shardy.

A rule gives each dimension of the operands and results a name, a *factor*: dimensions with the same name have the same
split. A dimension may have several factors, the outermost first. `SdyShardingRule.text` is the rule in Shardy's syntax.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "parse_rule"]

BATCHING = "…"  # at the beginning of a mapping: all remaining dimensions; digits distinguish several kinds

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BATCH = re.compile(rf"{BATCHING}\d*")
_KINDS = {
    "reduction_factors": "reduction",
    "need_replication_factors": "need_replication",
    "permutation_factors": "permutation",
}


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ValueError(
            f"sharding rule: a factor is a letter followed by letters, digits and underscores, got {name!r}"
        )


class CompoundFactor(tuple):
    """The factors of one dimension, the outermost first.

    Args:
      *factors: two names or more.

    Raises:
      ValueError: there are fewer, or an object that is not a name (such as `BATCHING`).

    Examples:

      >>> from jax.experimental import custom_partitioning as cp

      >>> flat = cp.ArrayMapping(cp.CompoundFactor("row", "col"))
      >>> unflatten = cp.SdyShardingRule((flat,), (cp.ArrayMapping("row", "col"),))
      >>> unflatten.text([(6,)], [(2, 3)])
      '#sdy.op_sharding_rule<([ij])->([i, j]) {i=2, j=3}, custom>'
      >>> cp.CompoundFactor("row")
      Traceback (most recent call last):
          ...
      ValueError: CompoundFactor: a dimension of several factors has two or more, got ('row',)
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"CompoundFactor: a dimension of several factors has two or more, got {factors}")
        for f in factors:
            _check_name(f)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The dimensions of one operand or result.

    Args:
      *dim_mappings: for each dimension, a factor's name or a `CompoundFactor`; the first may be `BATCHING`, alone or
        followed by digits, for any number of dimensions.

    Raises:
      ValueError: another object is among them.

    Examples:

      >>> from jax.experimental import custom_partitioning as cp

      >>> transposed = cp.SdyShardingRule((cp.ArrayMapping("i", "j"),), (cp.ArrayMapping("j", "i"),))
      >>> transposed.text([(5, 7)], [(7, 5)])
      '#sdy.op_sharding_rule<([i, j])->([j, i]) {i=5, j=7}, custom>'
      >>> halved = cp.SdyShardingRule((cp.ArrayMapping(cp.BATCHING),), (cp.ArrayMapping(cp.BATCHING),))
      >>> halved.text([(2, 3, 4)], [(2, 3, 4)])  # any number of dimensions
      '#sdy.op_sharding_rule<([i, j, k])->([i, j, k]) {i=2, j=3, k=4}, custom>'
    """

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for i, d in enumerate(dim_mappings):
            if isinstance(d, str) and _BATCH.fullmatch(d):
                if i:
                    raise ValueError(f"ArrayMapping: BATCHING must be before all other dimensions, got {dim_mappings}")
            elif not isinstance(d, CompoundFactor):
                _check_name(d)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """The relation of the dimensions of operands and results.

    Args:
      operand_mappings, result_mappings: an `ArrayMapping` each.
      reduction_factors: factors that are summed over: split operands give partial results.
      need_replication_factors: factors that are never split.
      permutation_factors: factors along which devices exchange elements.
      **factor_sizes: the sizes of factors that occur in compound factors only.

    Raises:
      ValueError: sizes are missing, or given for whole dimensions; a factor has two kinds, or is not in the rule.

    Examples:

      >>> from jax.experimental import custom_partitioning as cp

      >>> a, b, out = cp.ArrayMapping("i", "k"), cp.ArrayMapping("k", "j"), cp.ArrayMapping("i", "j")
      >>> product = cp.SdyShardingRule((a, b), (out,), reduction_factors=("k",))
      >>> product.text([(4, 8), (8, 2)], [(4, 2)])  # i, j, k in the order of their appearance
      '#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=4, j=8, k=2} reduction={j}, custom>'
      >>> cp.SdyShardingRule((a,), (out,), reduction_factors=("batch",))
      Traceback (most recent call last):
          ...
      ValueError: SdyShardingRule: factor 'batch' is given as of a kind, and is not in the rule
    """

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings: tuple[ArrayMapping, ...] = tuple(operand_mappings)
        self.result_mappings: tuple[ArrayMapping, ...] = tuple(result_mappings)
        self.reduction_factors: tuple[str, ...] = tuple(reduction_factors)
        self.need_replication_factors: tuple[str, ...] = tuple(need_replication_factors)
        self.permutation_factors: tuple[str, ...] = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        mappings = (*self.operand_mappings, *self.result_mappings)
        for m in mappings:
            if not isinstance(m, ArrayMapping):
                raise ValueError(f"SdyShardingRule: operands and results have an ArrayMapping each, got {m!r}")
        whole = {d for m in mappings for d in m if isinstance(d, str)}
        parts = {f for m in mappings for d in m if not isinstance(d, str) for f in d}
        for f in factor_sizes:
            if f not in parts or f in whole:
                why = "is a whole dimension, which has its own" if f in whole else "is not in the rule"
                raise ValueError(f"SdyShardingRule: a size is given for factor {f!r}, which {why}; leave it out")
        missing = sorted(parts - whole - factor_sizes.keys())
        if missing:
            raise ValueError(f"SdyShardingRule: the factors {missing} are parts of dimensions only; give their sizes")
        seen: set[Any] = set()
        for f in (f for kind in _KINDS for f in getattr(self, kind)):
            if f not in whole | parts or f in seen:
                why = "stands among two kinds" if f in seen else "is not in the rule"
                raise ValueError(f"SdyShardingRule: factor {f!r} is given as of a kind, and {why}")
            seen.add(f)

    def _key(self) -> tuple:
        kinds = tuple(getattr(self, kind) for kind in _KINDS)
        return self.operand_mappings, self.result_mappings, kinds, frozenset(self.factor_sizes.items())

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, SdyShardingRule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        kinds = "".join(f" {k}={getattr(self, k)}" for k in _KINDS if getattr(self, k))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{kinds})"

    def text(self, operand_shapes: Sequence[tuple[Any, ...]], result_shapes: Sequence[tuple[Any, ...]]) -> str:
        """The rule for operands and results of some shapes, as an attribute of Shardy.

        Raises:
          ValueError: other numbers of operands, results or dimensions, or dimensions that are not their factors'
            product.
        """
        sizes: dict[str, int] = dict(self.factor_sizes)
        batches: dict[str, int] = {}
        sides = []
        for what, mappings, shapes in (
            ("operand", self.operand_mappings, operand_shapes),
            ("result", self.result_mappings, result_shapes),
        ):
            if len(mappings) != len(shapes):
                raise ValueError(
                    f"sharding rule {self}: it is for {len(mappings)} {what}s, the function has {len(shapes)}"
                )
            sides.append(
                [
                    self._dimensions(f"{what} {i}", m, shape, sizes, batches)
                    for i, (m, shape) in enumerate(zip(mappings, shapes))
                ]
            )
        symbols: dict[str, str] = {}
        for dims in (dims for side in sides for dims in side):
            for f in (f for d in dims for f in d):
                symbols.setdefault(f, _symbol(len(symbols)))
        for shapes, side in zip((operand_shapes, result_shapes), sides):
            for dims, shape in zip(side, shapes):
                for d, n in zip(dims, shape):
                    if len(d) > 1 and math.prod(sizes[f] for f in d) != n:
                        raise ValueError(
                            f"sharding rule {self}: the factors {d} of sizes {sizes} make no dimension of {n}"
                        )
        write = lambda side: ", ".join(f"[{', '.join(''.join(symbols[f] for f in d) for d in dims)}]" for dims in side)
        listed = ", ".join(f"{s}={sizes[f]}" for f, s in symbols.items())
        kinds = "".join(
            f" {word}={{{', '.join(sorted((symbols[f] for f in getattr(self, kind)), key=_order))}}}"
            for kind, word in _KINDS.items()
            if getattr(self, kind)
        )
        factors = f" {{{listed}}}" if listed else ""
        return f"#sdy.op_sharding_rule<({write(sides[0])})->({write(sides[1])}){factors}{kinds}, custom>"

    def _dimensions(self, what: str, mapping: ArrayMapping, shape: tuple, sizes: dict, batches: dict) -> list[tuple]:
        """The factors of each dimension of an array. Records the sizes of factors that are whole dimensions."""
        dims: list[tuple[Any, ...]] = []
        own = list(mapping)
        if own and isinstance(own[0], str) and own[0].startswith(BATCHING):
            name = own.pop(0)
            count = batches.setdefault(name, max(len(shape) - len(own), 0))
            dims = [(f"{name}/{i}",) for i in range(count)]
        dims += [(d,) if isinstance(d, str) else tuple(d) for d in own]
        if len(dims) != len(shape):
            raise ValueError(f"sharding rule {self}: it gives {what} {len(dims)} dimensions, its shape is {shape}")
        for d, n in zip(dims, shape):
            if len(d) == 1:
                sizes[d[0]] = min(n, sizes.get(d[0], n))
        return dims


def _symbol(i: int) -> str:
    """Shardy's names: i, j, ..., z, z_1, z_2..."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"


def _order(symbol: str) -> tuple:
    return len(symbol), symbol


def parse_rule(text: str, **options: Any) -> SdyShardingRule:
    """The rule from its text: ``"b (h i), i j -> b h j"``.

    Args:
      text: spaces separate dimensions, commas arrays, and ``->`` operands and results. Parentheses hold the
        factors of one dimension; ``...`` (and ``...1``) stands for `BATCHING`.
      **options: see `SdyShardingRule`.

    Raises:
      ValueError: the text is not a rule.
    """
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"sharding rule {text!r}: write one '->' between operands and results")
    return SdyShardingRule(*(tuple(_mapping(part, text) for part in side.split(",")) for side in sides), **options)


def _mapping(part: str, text: str) -> ArrayMapping:
    found: list[Any] = []
    rest = part.replace("...", BATCHING).strip()
    token = re.compile(rf"\(([^()]*)\)|({BATCHING}\d*|[A-Za-z0-9_]+)")
    while rest:
        m = token.match(rest)
        if m is None:
            raise ValueError(
                f"sharding rule {text!r}: cannot read {rest!r}; dimensions are names, (several names) or ..."
            )
        factors = None if m[1] is None else m[1].split()
        found.append(m[2] if factors is None else factors[0] if len(factors) == 1 else CompoundFactor(*factors))
        rest = rest[m.end() :].strip()
    return ArrayMapping(*found)
