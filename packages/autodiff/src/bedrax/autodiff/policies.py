"""Policies of `checkpoint`: which intermediate values may be saved.

A policy is called for every operation of a program: ``policy(prim, *avals, **params)`` says whether its results may
be saved, as a boolean or as `Saveable`, `Recompute` or `Offloadable`. Those made here from names or other policies
compare by value: what is derived from a program and a policy is kept with the program, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bedrax.lax.primitives.calls import name_p


class Saveable:
    """A policy's answer: save the result."""


class Recompute:
    """A policy's answer: recompute the result."""


class Offloadable(NamedTuple):
    """A policy's answer: save the result in another memory space."""

    src: str
    dst: str


def everything_saveable(*_, **__) -> bool:
    """Save every result: no recomputation, as without `checkpoint`."""
    return True


def nothing_saveable(*_, **__) -> bool:
    """Save nothing but the arguments: recompute everything."""
    return False


def dots_saveable(prim, *_, **__) -> bool:
    """Save the results of matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated", "ragged_dot_general", "scaled_dot")


def dots_with_no_batch_dims_saveable(prim, *_, **params) -> bool:
    """Save the results of matrix products without batch dimensions."""
    if prim.name != "dot_general":
        return False
    (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


@dataclass(frozen=True)
class _ByName:
    """Answers by the name of a named value (`checkpoint_name`), with one answer for other names and one for all else."""

    answers: frozenset[tuple[str, Any]]
    other_names: Any
    unnamed: Any

    def __call__(self, prim, *_, **params):
        if prim is not name_p:
            return self.unnamed
        return dict(self.answers).get(params["name"], self.other_names)


def _by_name(names, answer, other_names, unnamed) -> _ByName:
    return _ByName(frozenset((name, answer) for name in names), other_names, unnamed)


@dataclass(frozen=True)
class _Either:
    """Saves what one of two policies saves."""

    first: Callable
    second: Callable

    def __call__(self, prim, *avals, **params):
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)


@dataclass(frozen=True)
class _OffloadDots:
    """Offloads the results of matrix products without batch dimensions."""

    where: Offloadable

    def __call__(self, prim, *_, **params):
        return self.where if dots_with_no_batch_dims_saveable(prim, **params) else Recompute


def save_anything_except_these_names(*names_not_to_save: str) -> Callable:
    """Save every named value (`checkpoint_name`) except these, and all that has no name."""
    return _by_name(names_not_to_save, False, True, True)


def save_any_names_but_these(*names_not_to_save: str) -> Callable:
    """Save only named values, except these."""
    return _by_name(names_not_to_save, False, True, False)


def save_only_these_names(*names_which_can_be_saved: str) -> Callable:
    """Save only the values with these names."""
    return _by_name(names_which_can_be_saved, True, False, False)


def save_from_both_policies(policy_1: Callable, policy_2: Callable) -> Callable:
    """Save what either policy saves."""
    return _Either(policy_1, policy_2)


def save_and_offload_only_these_names(
    *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src: str, offload_dst: str
) -> Callable:
    """Save some named values, offload others to another memory space.

    Raises:
      ValueError: a name stands in both lists.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(f"save_and_offload_only_these_names: {sorted(saved & offloaded)} are both saved and offloaded")
    answers = [(name, Saveable) for name in saved]
    answers += [(name, Offloadable(offload_src, offload_dst)) for name in offloaded]
    return _ByName(frozenset(answers), Recompute, Recompute)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable:
    """Offload the results of matrix products without batch dimensions to another memory space."""
    return _OffloadDots(Offloadable(offload_src, offload_dst))


class checkpoint_policies:
    """The policies for ``checkpoint(..., policy=...)``."""

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    offload_dot_with_no_batch_dims = staticmethod(offload_dot_with_no_batch_dims)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_only_these_names = staticmethod(save_only_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names = staticmethod(save_and_offload_only_these_names)
