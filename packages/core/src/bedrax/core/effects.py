"""Effects: actions of a program besides computing its results.

An equation carries a frozenset of `Effect` objects. An effect is a hashable value. The registries below list
the classes that may be lowered, be *ordered* (kept in program order by a token), occur inside control flow or
a custom derivative, be rematerialized, be partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final


class Effect:
    """Base class of effects. Subclasses are hashable and compare by the affected object.

    Examples:

      >>> from jax.extend import core

      >>> class RingsBell(core.Effect):
      ...     __repr__ = lambda self: "rings"
      ...     __eq__ = lambda self, other: type(other) is RingsBell
      ...     __hash__ = lambda self: 1
      ...
      >>> bell_p = core.Primitive("bell")
      >>> _ = bell_p.def_effectful_abstract_eval(lambda x: (x, {RingsBell()}))
      >>> jax.make_jaxpr(lambda x: bell_p.bind(bell_p.bind(x)))(1.).effects
      frozenset({rings})
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OperandEffect(Effect):
    """An effect on one value: of an equation on an operand, of a program on a constant or an argument.

    Attributes:
      position: which operand; of a program, its constants count first. (`input_index` for libraries.)
      writes: whether the value may be changed; False in a class of effects that only read it.
    """

    position: int
    writes: ClassVar[bool] = True

    @property
    def input_index(self) -> int:
        return self.position

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.position})"


Effects = frozenset[Effect]

no_effects: Effects = frozenset()


class EffectTypeSet:
    """A set of effect classes with one meaning, e.g. "these may be lowered".

    An effect is a member if its class, or a base class of it, was added.
    """

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning
        self.types: tuple[type[Effect], ...] = ()

    def add_type(self, effect_type: type[Effect]) -> None:
        """Make all effects of class `effect_type` (and of its subclasses) members."""
        if not (isinstance(effect_type, type) and issubclass(effect_type, Effect)):
            raise TypeError(f"an effect class (a subclass of Effect) is needed, got {effect_type!r}")
        if effect_type not in self.types:
            self.types += (effect_type,)

    def contains(self, effect: Effect) -> bool:
        return isinstance(effect, self.types)

    __contains__ = contains

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return the members among `effects`, in the given order."""
        return [e for e in effects if isinstance(e, self.types)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return those of `effects` that are not members, in the given order."""
        return [e for e in effects if not isinstance(e, self.types)]

    def __repr__(self) -> str:
        return f"EffectTypeSet({self.meaning!r}: {', '.join(t.__name__ for t in self.types) or 'none'})"


ordered_effects: Final = EffectTypeSet("kept in program order by a token")
lowerable_effects: Final = EffectTypeSet("can be compiled")
shardable_ordered_effects: Final = EffectTypeSet("ordered, and may run over several devices")
control_flow_allowed_effects: Final = EffectTypeSet("may stand inside scan, while_loop and cond")
custom_derivatives_allowed_effects: Final = EffectTypeSet("may stand inside custom_jvp and custom_vjp functions")
remat_allowed_effects: Final = EffectTypeSet("may run again when a computation is rematerialized")
partial_eval_kept_effects: Final = EffectTypeSet("kept in the known part when a program is split")


class Kept(Effect):
    """The effect of an operation without results that must not be removed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Kept"


kept: Final = Kept()
for _set in (
    lowerable_effects,
    control_flow_allowed_effects,
    custom_derivatives_allowed_effects,
    remat_allowed_effects,
    partial_eval_kept_effects,
):
    _set.add_type(Kept)


def moved(effects: Iterable[Effect], place: Callable[[int], int | None]) -> Effects:
    """Return the effects with new positions: `place` maps an operand to one; None: the effect is dropped."""
    found = set()
    for e in effects:
        if isinstance(e, OperandEffect):
            at = place(e.position)
            if at is None:
                continue
            e = type(e)(at)
        found.add(e)
    return frozenset(found)


def join(*effect_sets: Iterable[Effect]) -> Effects:
    """Return the union; `no_effects` itself if all are empty."""
    result = no_effects
    for effects in effect_sets:
        if effects:
            result = result | frozenset(effects)
    return result
