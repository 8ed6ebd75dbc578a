"""Caches of traces: per function, weak, and bounded. `bedrax.core.facts` caches results derived from programs.

`forget` empties these, and the tables of the modules above that hold meshes, devices or programs (`remembered`).
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final

from bedrax.core.context import forget_blocks, trace_context
from bedrax.core.tracing import current
from bedrax.core.typing import F


def context() -> tuple[Any, ...]:
    """Return the state that a trace depends on besides the function and the types of arguments: options, named axes."""
    return trace_context(), tuple(current.axes.items()), current.varying


class Recent:
    """The most recently used results, by key. Threads may share it."""

    __slots__ = ("found", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.found: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any) -> Any:
        """Return the value for `key`; None if there is none."""
        value = self.found.get(key)
        if value is not None and len(self.found) > 1:
            try:
                self.found.move_to_end(key)
            except KeyError:  # another thread dropped it just now
                pass
        return value

    def keep(self, key: Any, value: Any) -> None:
        """Keep `value`; the least recently used one may be dropped."""
        self.found[key] = value
        while len(self.found) > self.size:
            try:
                self.found.popitem(last=False)
            except KeyError:
                break

    def keys(self) -> list[Any]:
        """Return the keys, the most recently used last."""
        return list(self.found)

    def clear(self) -> None:
        """Forget everything."""
        self.found.clear()

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Any]:
        return iter(tuple(self.found))


class FunctionCache:
    """The most recently used results of each function. They are freed with it, and must not refer to it.

    Args:
      size: how many results are kept for one function.
    """

    def __init__(self, size: int = 1024) -> None:
        self.size = size
        self._tables: weakref.WeakKeyDictionary[Callable[..., Any], Recent] = weakref.WeakKeyDictionary()

    def of(self, fun: Callable[..., Any]) -> Recent:
        """Return the results for `fun`; a new table each time if `fun` has no hash or cannot be weakly referenced.

        A function that is made from another one for every call has an attribute `traces_of`, a pair (the other
        function, a key for the purpose). Its results are kept with the other one.
        """
        owner, role = getattr(fun, "traces_of", (fun, None)) if type(fun) is FunctionType else (fun, None)
        try:
            table = self._tables.get(owner)
            if table is None:
                table = self._tables.setdefault(owner, Recent(self.size))
        except TypeError:
            return Recent(self.size)
        return table if role is None else _Role(table, role)

    def clear(self) -> None:
        """Forget everything."""
        for table in list(self._tables.values()):
            table.clear()


class _Role:
    """A table of results of functions made from another one for a purpose."""

    __slots__ = ("role", "table")

    def __init__(self, table: Recent, role: Any) -> None:
        self.table, self.role = table, role

    def get(self, key: Any) -> Any:
        return self.table.get((self.role, key))

    def keep(self, key: Any, value: Any) -> None:
        self.table.keep((self.role, key), value)

    def keys(self) -> list[Any]:
        return [key[1] for key in self.table.keys() if len(key) == 2 and key[0] == self.role]


traces: Final = FunctionCache()  # of `jit`, loops, branches, and other primitives that trace a user's function

emptied: Final[list[Callable[[], None]]] = [traces.clear, forget_blocks]  # functions that `forget` calls


def remembered(size: int) -> Callable[[F], F]:
    """Decorator: keep the last results, at most `size`. For results or arguments that hold meshes, devices or programs."""

    def decorate(function: F) -> F:
        found = functools.lru_cache(size)(function)
        emptied.append(found.cache_clear)
        return found  # type: ignore[return-value]

    return decorate


def forget() -> None:
    """Forget every trace, and everything else that can be made again."""
    for empty in list(emptied):
        empty()
