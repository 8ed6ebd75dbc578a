"""Results derived from a program are kept in the program and freed with it. Programs are immutable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bedrax.core import config, typecheck
from bedrax.core.ir import Jaxpr
from bedrax.core.tracing import current
from bedrax.core.typing import P, R

_missing = object()
_itself = object()  # a program that refers to itself would be freed by the garbage collector only


def fact(program: Jaxpr, key: Any, make: Callable[[], Any]) -> Any:
    """Return ``make()``, called once for this program and key.

    Args:
      key: hashable; begins with a function or a name that only this use has.
    """
    found = program.cache.get(key, _missing)
    if found is not _missing:
        return program if found is _itself else found
    shared = _becomes_shared(program)
    try:
        found = make()
    finally:
        if shared:
            current.shared = False
    return _kept(program, key, found)


def _becomes_shared(program: Jaxpr) -> bool:
    """Return whether this call has set `current.shared`, which the caller puts back.

    A program without lines is shared by calls in several lines, and so are those made of it.
    """
    if current.shared or not program.eqns or any([eqn.place for eqn in program.eqns]):
        return False
    current.shared = True
    return True


def _kept(program: Jaxpr, key: Any, found: Any) -> Any:
    if config.enable_checks.value:
        _check_programs(found)
    program.cache[key] = _itself if found is program else found
    return found


def cached(derive: Callable[P, R]) -> Callable[P, R]:
    """Decorator for functions ``(program, *hashable) -> result``: each result is a `fact` of the program."""

    @functools.wraps(derive)
    def lookup(program, *args):
        key = (derive, args)
        found = program.cache.get(key, _missing)
        if found is not _missing:
            return program if found is _itself else found
        shared = _becomes_shared(program)  # as in `fact`, without its frames: programs nest deeply
        try:
            found = derive(program, *args)
        finally:
            if shared:
                current.shared = False
        return _kept(program, key, found)

    return lookup


def _check_programs(result: Any) -> None:
    """Check the types of the programs in a derived result (with `jax_enable_checks`)."""
    if type(result) is Jaxpr:
        typecheck.check_jaxpr(result)
    elif isinstance(result, tuple | list):
        for part in result:
            _check_programs(part)
