"""Pairs of texts for the compiler: of operations that are traced in a block, and of calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.context import Variable, enter, leave
from bedrax.core.names import without_last
from bedrax.core.tracing import current
from bedrax.lax.primitives.calls import program_order_p, xla_metadata_call_p

Pairs = tuple[tuple[str, str], ...]

# A program traced under hints differs from one without them, so hints are part of every key.
_in_force = Variable("hints_in_force", ())  # the metadata that `set_xla_metadata` adds


def pairs_of(what: str, metadata: Mapping[str, Any]) -> Pairs:
    """Booleans, numbers and strings by name, as texts.

    Raises:
      TypeError: a value is something else.
    """
    for name, value in metadata.items():
        if not isinstance(value, bool | int | float | str):
            raise TypeError(f"{what}: {name} is a boolean, a number or a string, got {value!r} of type {type(value)}")
    return tuple([(k, str(v).lower() if isinstance(v, bool) else str(v)) for k, v in metadata.items()])


class Hinted:
    """Operations that are traced inside get pairs: a context manager, and a decorator."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs

    def __enter__(self) -> None:
        names = current.names
        try:
            current.names = (*names, self.pairs)
            enter(self, {_in_force: (*_in_force.value, *self.pairs)})  # last: an interrupt inside leaves no entry
        except BaseException:
            current.names = names
            raise

    def __exit__(self, *_: Any) -> None:
        try:
            leave(self)
        finally:
            names = current.names
            current.names = names[:-1] if names and names[-1] is self.pairs else without_last(names, self.pairs)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        return _Under(self, fun)


class _Under:
    """A function that runs with pairs in force, as do its methods (`lower`, `trace`)."""

    def __init__(self, hints: Hinted, fun: Callable[..., Any]) -> None:
        self._hints, self._fun = hints, fun
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._hints:
            return self._fun(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._fun, name)
        return _Under(self._hints, value) if callable(value) else value


def _called(prim, fun: Callable, **params: Any) -> Callable:
    """`fun`, of pytrees of arrays, as a call of its program by a primitive."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        types = tuple([aval_of(x) for x in leaves])
        program, consts, out_tree = staging.trace_function(fun, in_tree, types)
        return pytree.tree_unflatten(out_tree, prim.bind(*consts, *leaves, jaxpr=program, **params))

    return call


def marked_call(fun: Callable[..., Any], pairs: Pairs, of_derivatives: Pairs | str = "same") -> Callable[..., Any]:
    """`fun`, of pytrees of arrays, as a function of the module; its calls have pairs for the compiler.

    Args:
      of_derivatives: the pairs of the linear calls that derivatives make of it; ``"same"`` for `pairs`.
    """
    pairs = tuple(sorted(pairs))
    return _called(xla_metadata_call_p, fun, xla_metadata=pairs, ad_metadata=of_derivatives)


def ordered_call(fun: Callable[..., Any], enforce: bool, strict_in: bool, strict_out: bool) -> Callable[..., Any]:
    """`fun`, of pytrees of arrays, with its operations executed in program order."""
    return _called(program_order_p, fun, enforce=enforce, strict_in=strict_in, strict_out=strict_out)
