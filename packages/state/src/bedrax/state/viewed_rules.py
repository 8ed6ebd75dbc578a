"""Functions with derivative rules and arguments that are views of references: the operands are the parts of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bedrax.core.array import Array
from bedrax.lax.primitives.custom_rules import custom_lin_p
from bedrax.lax.symbolic_zeros import Zero
from bedrax.state.views import TransformedRef


class Parts(NamedTuple):
    """The position of an argument in a list of parts. The first part of a view is its reference.

    Attributes:
      start: the position of its first part.
      count: the number of its parts.
      transforms: the transforms of the view; None: the argument is not a view.
    """

    start: int
    count: int
    transforms: tuple[Any, ...] | None

    def of(self, values: Sequence[Any]) -> Any:
        """The argument from the list of parts."""
        first, *operands = values[self.start : self.start + self.count]
        return first if self.transforms is None else TransformedRef(first, self.transforms, operands)


def _taken_apart(args: Sequence[Any]) -> tuple[list, tuple]:
    parts: list[Any] = []
    places = []
    for x in args:
        view = isinstance(x, TransformedRef)
        own = (x.ref, *x.operands) if view else (x,)
        places.append(Parts(len(parts), len(own), x.transforms if view else None))
        parts += own
    return parts, tuple(places)


def bind_parts(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Bind a backward rule to the parts of its residuals."""
    count = params["num_res"]
    parts, places = _taken_apart(args[:count])
    own = dict(bwd=ViewedPullback(params["bwd"], places, None), num_res=len(parts))
    return custom_lin_p.bind(*parts, *args[count:], **{**params, **own})


def parts_of_call(rule: Any, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """A function with rules and its arguments, as a function of the parts of the arguments."""
    if not any(isinstance(x, TransformedRef) for x in args):
        return rule, args
    parts, places = _taken_apart(args)
    return ViewedRule(rule, places), parts


@dataclass(frozen=True)
class ViewedRule:
    """A rule on arguments, as a rule on their parts."""

    rule: Any
    places: tuple[Any, ...]

    @property
    def name(self) -> Any:
        return self.rule.name

    @property
    def symbolic_zeros(self) -> Any:
        return self.rule.symbolic_zeros

    @property
    def optimize_remat(self) -> Any:
        return self.rule.optimize_remat

    @property
    def out_tree(self) -> Any:
        return self.rule.out_tree

    def _whole(self, parts: Sequence[Any]) -> list:
        return [p.of(parts) for p in self.places]

    def primal(self, *parts: Array) -> list[Any]:
        """The function on parts."""
        return self.rule.primal(*self._whole(parts))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and tangents. The tangent of a view is a view of the reference's tangent, with the same operands."""
        moved = []
        for p in self.places:
            t = tangents[p.start]
            where = primals[p.start + 1 : p.start + p.count]
            given = p.transforms is not None and type(t) is not Zero
            moved.append(TransformedRef(t, p.transforms, where) if given else t)
        return self.rule.jvp(self._whole(primals), moved)

    def forward(self, parts: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], ViewedPullback]:
        """Results, residuals, and the backward rule that reads them."""
        outs, residuals, bwd = self.rule.forward(self._whole(parts), [active[p.start] for p in self.places])
        return outs, residuals, ViewedPullback(bwd, None, self.places)


@dataclass(frozen=True)
class ViewedPullback:
    """A backward rule whose residuals (`residuals`), or arguments (`arguments`), are split into parts."""

    bwd: Any
    residuals: tuple[Any, ...] | None
    arguments: tuple[Any, ...] | None

    @property
    def logs(self) -> Any:
        return getattr(self.bwd, "logs", False)

    def __call__(self, values: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or None per part."""
        back = self.bwd(values if self.residuals is None else [p.of(values) for p in self.residuals], cts)
        if self.arguments is None:
            return back
        return [x for p, ct in zip(self.arguments, back, strict=True) for x in (ct, *[None] * (p.count - 1))]
