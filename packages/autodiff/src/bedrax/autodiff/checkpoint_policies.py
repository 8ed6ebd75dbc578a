"""Policies of `checkpoint`: which intermediate values may be saved.

A policy is called for every operation of a program: ``policy(prim, *avals, **params)`` returns whether its results
may be saved, as a boolean or as `Saveable`, `Recompute` or `Offloadable`. The policies made here from names or other
policies compare by value: each derivation from a program and a policy is computed once and kept with the program.

Examples:

  >>> policy = jax.checkpoint_policies.dots_saveable
  >>> layer = jax.checkpoint(lambda w, x: jnp.sin(w @ x).sum(), policy=policy)
  >>> jax.grad(layer)(jnp.eye(2), jnp.zeros(2))
  Array([[0., 0.],
         [0., 0.]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bedrax.lax.primitives.calls import name_p
from bedrax.lax.primitives.contractions import dot_general_p

if TYPE_CHECKING:
    from bedrax.core.avals import ShapedArray
    from bedrax.core.tracing import Primitive


class Saveable:
    """A policy's answer: save the result.

    Examples:

      >>> from jax.ad_checkpoint import Recompute, Saveable
      >>> def only_sines(prim, *args, **params):
      ...     return Saveable if prim.name == "sin" else Recompute
      ...
      >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)) ** 2, policy=only_sines)
      >>> jax.ad_checkpoint.print_saved_residuals(f, 1.)
      f32[] from the argument x
      f32[] output of sin from <doctest ...>:1:38 (<lambda>)
      f32[] output of sin from <doctest ...>:1:30 (<lambda>)
    """


class Recompute:
    """A policy's answer: recompute the result.

    Examples:

      >>> from jax.ad_checkpoint import Recompute
      >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *args, **params: Recompute)
      >>> jax.ad_checkpoint.print_saved_residuals(f, 1.)  # nothing is kept that can be computed again
      f32[] from the argument x
    """


class Offloadable(NamedTuple):
    """A policy's answer: save the result in another memory space.

    Examples:

      >>> from jax.ad_checkpoint import Offloadable, Recompute
      >>> def policy(prim, *args, **params):
      ...     return Offloadable("device", "pinned_host") if prim.name == "sin" else Recompute
      ...
      >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)
      >>> jax.grad(f)(0.), policy(lax.sin_p)
      (Array(1., dtype=float32, weak_type=True), Offloadable(src='device', dst='pinned_host'))
    """

    src: str
    dst: str


def everything_saveable(*_: ShapedArray | Primitive, **__: Any) -> bool:
    """Save every result: no recomputation, as without `checkpoint`.

    Args:
      *_, **__: what `checkpoint` passes: an operation, the types of its operands, and its parameters.

    Examples:

      >>> jax.checkpoint_policies.everything_saveable(lax.sin_p)
      True
    """
    return True


def nothing_saveable(*_: ShapedArray | Primitive, **__: Any) -> bool:
    """Save nothing but the arguments: recompute everything.

    Args:
      *_, **__: what `checkpoint` passes: an operation, the types of its operands, and its parameters.

    Examples:

      >>> jax.checkpoint_policies.nothing_saveable(lax.sin_p)
      False
    """
    return False


def dots_saveable(prim: Primitive, *_: ShapedArray, **__: Any) -> bool:
    """Save the results of matrix products and convolutions.

    Args:
      prim: the operation, which `checkpoint` passes.
      *_, **__: the types of its operands, and its parameters.

    Examples:

      >>> policy = jax.checkpoint_policies.dots_saveable
      >>> policy(lax.dot_general_p), policy(lax.sin_p)
      (True, False)
      >>> jax.checkpoint_policies.checkpoint_dots is policy  # the older name
      True
    """
    return prim.family in ("contractions", "convolution")


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: ShapedArray, **params: Any) -> bool:
    """Save the results of matrix products without batch dimensions.

    Args:
      prim: the operation, which `checkpoint` passes.
      *_, **params: the types of its operands, and its parameters.

    Examples:

      >>> policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
      >>> matrix, batched = (((1,), (0,)), ((), ())), (((2,), (1,)), ((0,), (0,)))
      >>> [policy(lax.dot_general_p, dimension_numbers=numbers) for numbers in (matrix, batched)]
      [True, False]
      >>> jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims is policy  # the older name
      True
    """
    if prim is not dot_general_p:
        return False
    (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


checkpoint_dots: Final = dots_saveable
checkpoint_dots_with_no_batch_dims: Final = dots_with_no_batch_dims_saveable


@dataclass(frozen=True, init=False, repr=False)
class _ByName:
    """A policy by the name of a value (`checkpoint_name`), with defaults for other names and for unnamed values."""

    answers: frozenset[tuple[str, Any]]
    other_names: Any
    unnamed: Any

    def _answer(self, names: Iterable[str], answer: Any, other_names: Any, unnamed: Any) -> None:
        object.__setattr__(self, "answers", frozenset((name, answer) for name in names))
        object.__setattr__(self, "other_names", other_names)
        object.__setattr__(self, "unnamed", unnamed)

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> Any:
        if prim is not name_p:
            return self.unnamed
        return dict(self.answers).get(params["name"], self.other_names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(repr(name) for name, _ in self.answers))})"


class SaveOnlyTheseNames(_ByName):
    """The policy that `save_only_these_names` returns: saves the values with these names, and no others.

    Examples:

      >>> policy = jax.checkpoint_policies.save_only_these_names("y", "z")
      >>> policy
      SaveOnlyTheseNames('y', 'z')
      >>> isinstance(policy, jax.checkpoint_policies.SaveOnlyTheseNames)
      True
    """

    def __init__(self, *names_which_can_be_saved: str) -> None:
        self._answer(names_which_can_be_saved, True, False, False)


class SaveAnyNamesButThese(_ByName):
    """The policy that `save_any_names_but_these` returns: saves all named values except those with these names.

    Examples:

      >>> policies = jax.checkpoint_policies
      >>> policies.SaveAnyNamesButThese("y") == policies.save_any_names_but_these("y")
      True
    """

    def __init__(self, *names_not_to_save: str) -> None:
        self._answer(names_not_to_save, False, True, False)


class _SaveAnythingExceptTheseNames(_ByName):
    def __init__(self, *names_not_to_save: str) -> None:
        self._answer(names_not_to_save, False, True, True)


class SaveAndOffloadOnlyTheseNames(_ByName):
    """The policy that `save_and_offload_only_these_names` returns.

    Args:
      names_which_can_be_saved: names of values that are saved.
      names_which_can_be_offloaded: names of values that are moved from the memory `offload_src` to `offload_dst`.

    Raises:
      ValueError: a name stands in both.

    Examples:

      >>> policy = jax.checkpoint_policies.SaveAndOffloadOnlyTheseNames(
      ...     names_which_can_be_saved=["y"], names_which_can_be_offloaded=["z"],
      ...     offload_src="device", offload_dst="pinned_host")
      >>> policy
      SaveAndOffloadOnlyTheseNames('y', 'z')
    """

    def __init__(
        self,
        *,
        names_which_can_be_saved: Iterable[str],
        names_which_can_be_offloaded: Iterable[str],
        offload_src: str,
        offload_dst: str,
    ) -> None:
        saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(
                f"save_and_offload_only_these_names: {sorted(saved & offloaded)} are both saved and offloaded"
            )
        self._answer((), None, Recompute, Recompute)
        answers = [(name, Saveable) for name in saved]
        answers += [(name, Offloadable(offload_src, offload_dst)) for name in offloaded]
        object.__setattr__(self, "answers", frozenset(answers))


@dataclass(frozen=True)
class _Either:
    """Saves a value if either of two policies saves it."""

    first: Callable[..., Any]
    second: Callable[..., Any]

    def __call__(self, prim: Primitive, *avals: ShapedArray, **params: Any) -> bool:
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)


@dataclass(frozen=True)
class _OffloadDots:
    """Offloads the results of matrix products without batch dimensions."""

    where: Offloadable

    def __call__(self, prim: Primitive, *_: ShapedArray, **params: Any) -> Offloadable | type:
        return self.where if dots_with_no_batch_dims_saveable(prim, **params) else Recompute


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., Any]:
    """Save every named value (`checkpoint_name`) except these, and every value without a name.

    Examples:

      >>> from jax.ad_checkpoint import name_p
      >>> policy = jax.checkpoint_policies.save_anything_except_these_names("y")
      >>> policy(name_p, name="y"), policy(name_p, name="z"), policy(lax.sin_p)
      (False, True, True)
    """
    return _SaveAnythingExceptTheseNames(*names_not_to_save)


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., Any]:
    """Save only named values, except these.

    Examples:

      >>> from jax.ad_checkpoint import name_p
      >>> policy = jax.checkpoint_policies.save_any_names_but_these("y")
      >>> policy(name_p, name="y"), policy(name_p, name="z"), policy(lax.sin_p)
      (False, True, False)
    """
    return SaveAnyNamesButThese(*names_not_to_save)


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., Any]:
    """Save only the values with these names.

    Examples:

      >>> from jax.ad_checkpoint import checkpoint_name, print_saved_residuals
      >>> policy = jax.checkpoint_policies.save_only_these_names("y")
      >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "y")), policy=policy)
      >>> print_saved_residuals(f, 1.)
      f32[] from the argument x
      f32[] named 'y' from <doctest ...>:1:38 (<lambda>)
    """
    return SaveOnlyTheseNames(*names_which_can_be_saved)


def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Callable[..., Any]:
    """Save a value if either policy saves it.

    Args:
      policy_1, policy_2: policies.

    Examples:

      >>> from jax.ad_checkpoint import name_p
      >>> dots, names = jax.checkpoint_policies.dots_saveable, jax.checkpoint_policies.save_only_these_names("y")
      >>> policy = jax.checkpoint_policies.save_from_both_policies(dots, names)
      >>> policy(lax.dot_general_p), policy(name_p, name="y"), policy(lax.sin_p)
      (True, True, False)
    """
    return _Either(policy_1, policy_2)


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: list[str], names_which_can_be_offloaded: list[str], offload_src: str, offload_dst: str
) -> Callable[..., Any]:
    """Save some named values, offload others to another memory space.

    Args:
      names_which_can_be_saved: the names of `checkpoint_name` whose values are saved.
      names_which_can_be_offloaded: the names whose values are offloaded.
      offload_src, offload_dst: as in `offload_dot_with_no_batch_dims`.

    Raises:
      ValueError: a name stands in both lists.

    Examples:

      >>> from jax.ad_checkpoint import name_p
      >>> policy = jax.checkpoint_policies.save_and_offload_only_these_names(
      ...     names_which_can_be_saved=["y"], names_which_can_be_offloaded=["z"],
      ...     offload_src="device", offload_dst="pinned_host")
      >>> policy(name_p, name="z")
      Offloadable(src='device', dst='pinned_host')
    """
    return SaveAndOffloadOnlyTheseNames(
        names_which_can_be_saved=names_which_can_be_saved,
        names_which_can_be_offloaded=names_which_can_be_offloaded,
        offload_src=offload_src,
        offload_dst=offload_dst,
    )


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """Offload the results of matrix products without batch dimensions to another memory space.

    Args:
      offload_src: the memory space of the results, e.g. ``"device"``.
      offload_dst: the memory space to which they go, e.g. ``"pinned_host"``.

    Examples:

      >>> policy = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
      >>> policy(lax.dot_general_p, dimension_numbers=(((1,), (0,)), ((), ())))
      Offloadable(src='device', dst='pinned_host')
    """
    return _OffloadDots(Offloadable(offload_src, offload_dst))
