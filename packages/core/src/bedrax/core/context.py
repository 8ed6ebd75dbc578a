"""The context of a thread: the values that programs depend on besides functions and arguments.

A `Variable` is one of these values: an option, the mesh of `set_mesh`, a user's context. A thread has one `Context`, an
immutable record of the variables that it changed. A block (``with enable_x64(True):``) replaces it by another record:

    with variable(value): ...

Records are interned: there is one object per combination of values. Caches compare keys by identity: `trace_context`
returns the key of the values in force.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from bedrax.core.exact import exact


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<unset>"


UNSET: Any = _Unset()


class TraceContext:
    """A key: the keyed variables with other values than their defaults, as pairs (name, value).

    There is one object per combination of values, so keys are compared by identity. A variable that is declared later
    changes no key.
    """

    __slots__ = ("__weakref__", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values: dict[str, Any] = values

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.values.items())

    def __repr__(self) -> str:
        return repr(self.values)


class Context:
    """The variables that a thread changed. Immutable; one object per combination of values.

    Attributes:
      values: the changed variables: name -> value.
      own: the key of the keyed ones among them; None if there are none.
      derived: what was derived from the values in force, by whose owner's name; freed with the record.
    """

    __slots__ = ("__weakref__", "_after", "_resolved", "derived", "own", "values")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values: dict[str, Any] = values
        keyed = {name: value for name, value in values.items() if _variables[name].keyed}
        self.own: TraceContext | None = _interned(_keys, TraceContext, keyed) if keyed else None
        self._resolved: tuple[int, Any] = (-1, None)
        self.derived: dict[str, Any] = {}
        self._after: dict[Any, Context] = {}  # changes -> context: a block that is entered again finds its context

    def changed(self, changes: dict[Variable, Any]) -> Context:
        """Return the context with other values; `UNSET` removes a variable."""
        step = tuple([(variable.name, exact(value)) for variable, value in changes.items()])
        try:
            found = self._after.get(step)
        except TypeError as error:
            raise TypeError(
                f"programs depend on {', '.join(v.name for v in changes)}: values are hashable, got {[*changes.values()]}"
            ) from error
        if found is None:
            values = self.values | {variable.name: value for variable, value in changes.items()}
            found = _interned(_contexts, Context, {n: v for n, v in values.items() if v is not UNSET})
            if len(self._after) > 64:
                self._after.clear()
            self._after[step] = found
        return found

    def key(self) -> TraceContext:
        """Return the key of the values in force in a thread with this context."""
        resolved, key = self._resolved
        if resolved != epoch:
            resolved = epoch  # before the values are read: another thread may change a global value now
            values = {v.name: self.values.get(v.name, v.global_value) for v in _keyed}
            key = _interned(_keys, TraceContext, {n: x for n, x in values.items() if not _variables[n].is_default(x)})
            self._resolved = resolved, key
        return key


def _interned(table: Any, kind: Callable[..., Any], values: dict[str, Any]) -> Any:
    name = frozenset([(n, exact(v)) for n, v in values.items()])
    with _lock:
        found = table.get(name)
        if found is None:
            found = table[name] = kind(values)
        return found


_variables: dict[str, Variable] = {}
_keyed: list[Variable] = []
_keys: weakref.WeakValueDictionary[Any, TraceContext] = weakref.WeakValueDictionary()
_contexts: weakref.WeakValueDictionary[Any, Context] = weakref.WeakValueDictionary()
_lock = threading.RLock()
epoch: int = 0  # counts changes of global values of keyed variables, and of rules
_unchanged: Context = _interned(_contexts, Context, {})


class _Thread(threading.local):
    context: Context = _unchanged

    def __init__(self) -> None:
        self.entered: list[tuple[object, Any]] = []  # see `note_entered`

    def __reduce__(self) -> str:  # functions that close over it are pickled with the name, not with a state
        return "thread"


thread: Final = _Thread()
_followers: list[Callable[[Context], None]] = []


def trace_context() -> TraceContext:
    """Return the key of the keyed variables in this thread."""
    return thread.context.key()


def global_trace_context() -> TraceContext:
    """Return the key of the keyed variables in threads that change none."""
    return _unchanged.key()


def globals_changed() -> None:
    """Note that a global value of a keyed variable, or a rule that was registered before, has changed."""
    global epoch
    with _lock:
        epoch += 1


def forget_blocks() -> None:
    """Forget the contexts of blocks that have ended, and the values in them."""
    with _lock:
        known = list(_contexts.values())
    for context in known:
        context._after.clear()


def follow(callback: Callable[[Context], None]) -> None:
    """Call `callback(context)` whenever a thread replaces its context, in this thread."""
    _followers.append(callback)


def _install(context: Context) -> None:
    thread.context = context
    for callback in _followers:
        callback(context)


def _change(changes: dict[Variable, Any]) -> None:
    """Change variables in this thread; all of them, or none if an error or an interrupt occurs."""
    before = thread.context
    try:
        for variable in changes:
            variable.may_be_local = True
        _install(before.changed(changes))
        for variable in changes:
            for callback in variable.listeners:
                callback(variable)
    except BaseException:
        _install(before)
        raise


class Variable:
    """A value that programs may depend on, which a thread can change.

    Calling it, `variable(value)`, returns a context manager that changes it in this thread.

    Args:
      name: unique among all variables.
      default: the value of threads that do not change it; hashable.
      keyed: whether it is part of the trace context.
    """

    __slots__ = ("__weakref__", "may_be_local", "default", "keyed", "listeners", "name")

    def __init__(self, name: str, default: Hashable, *, keyed: bool = True) -> None:
        self.name: str = name
        self.default: Any = default
        self.keyed: bool = keyed
        self.may_be_local: bool = False  # whether a thread ever changed it; until then, threads are not checked
        self.listeners: list[Callable[[Any], None]] = []  # called after each change, in the changing thread
        with _lock:
            if name in _variables:
                raise ValueError(f"the variable {name} is declared already")
            _variables[name] = self
            if keyed:
                _keyed.append(self)

    @property
    def value(self) -> Any:
        """The value in force in this thread."""
        return thread.context.values.get(self.name, self.default)

    @property
    def global_value(self) -> Any:
        """The value of threads that do not change it."""
        return self.default

    @property
    def local_value(self) -> Any:
        """The value that this thread gave it, or `UNSET`."""
        return thread.context.values.get(self.name, UNSET)

    def is_default(self, value: Any) -> bool:
        """Return whether `value` is the default, by type and bits."""
        return value is self.default or exact(value) == exact(self.default)

    def set_local(self, value: Any) -> None:
        """Change the value in this thread only, from now on; `UNSET` restores the global value."""
        _change({self: value})

    def __call__(self, value: Any, /) -> Changes:
        return Changes({self: value})

    def __reduce__(self) -> tuple[Any, ...]:
        return _variable_named, (self.name,)

    def __repr__(self) -> str:
        return f"<variable {self.name}={self.value!r}>"


def _variable_named(name: str) -> Variable:
    return _variables[name]


def note_entered(manager: object, saved: Any) -> None:
    """Keep the value that a context manager restores when this thread leaves it. The manager itself keeps nothing:
    threads may share it, and a thread may enter it again while it is active."""
    thread.entered.append((manager, saved))


def end_entered(manager: object) -> Any:
    """Return the value that `note_entered` kept when this thread last entered `manager`, and drop it.

    Raises:
      RuntimeError: this thread has not entered it.
    """
    return thread.entered.pop(_last_entry(manager))[1]


def _last_entry(manager: object) -> int:
    entered = thread.entered
    for i in range(len(entered) - 1, -1, -1):
        if entered[i][0] is manager:
            return i
    raise RuntimeError(f"this thread leaves {manager!r}, which it has not entered")


def enter(manager: object, changes: dict[Variable, Any]) -> None:
    """Change variables in this thread until it leaves `manager`. An interrupt leaves nothing behind."""
    saved: dict[Variable, Any] = {}
    try:
        saved.update({variable: variable.local_value for variable in changes})
        note_entered(manager, saved)
        _change(changes)
    except BaseException:  # the block is not entered, and its `__exit__` is not called
        _undo(saved)
        raise


def continue_block(manager: object, saved: dict[Variable, Any]) -> None:
    """Let a change that this thread has made end when it leaves `manager`.

    Args:
      saved: the local values before the change.
    """
    try:
        note_entered(manager, saved)
    except BaseException:
        _undo(saved)
        raise


def _undo(saved: dict[Variable, Any]) -> None:
    _change(saved)
    thread.entered[:] = [entry for entry in thread.entered if entry[1] is not saved]


def leave(manager: object, *_: object) -> None:
    """Restore the variables that `enter` changed. Blocks may end in another order than they began.

    It is the method `__exit__` of context managers: a method that calls it could be interrupted before the call.

    Raises:
      RuntimeError: this thread has not entered `manager`.
    """
    found: list[Any] = []
    try:
        _end(manager, found)
    except BaseException as error:
        if found or not isinstance(error, RuntimeError):  # interrupted
            _end(manager, found)
        raise


def _end(manager: object, found: list) -> None:
    """Restore what one entry of a thread saved. A second call completes what an interrupted one began."""
    entered = thread.entered
    if not found:
        found.append(entered[_last_entry(manager)])
    (entry,) = found
    i = next((i for i in range(len(entered) - 1, -1, -1) if entered[i] is entry), None)
    if i is None:
        return
    saved = entry[1]
    if i + 1 < len(entered):  # a later block that is still open restores the values of this one
        saved = saved.copy()
        for _, later in entered[i + 1 :]:
            for variable in saved.keys() & later if type(later) is dict else ():
                later[variable] = saved.pop(variable)
    _change(saved)
    del entered[i]


class Changes(contextlib.ContextDecorator):
    """Context manager: variables have other values in this thread.

    It keeps no state: threads may share it, a thread may enter it again while it is active, and it may be used as a
    decorator.
    """

    __slots__ = ("values",)

    def __init__(self, values: dict[Variable, Any]) -> None:
        self.values: dict[Variable, Any] = values

    def __enter__(self) -> None:
        enter(self, self.values)

    __exit__ = leave


_users_contexts = itertools.count()


def make_user_context(default_value: Hashable = None) -> Any:
    """Return a new value that functions may depend on. A change of it makes them traced again.

    Returns:
      an object with `value`, and ``context(value)``, a context manager that sets it in this thread.

    Examples:

      >>> scale = jax.make_user_context(default_value=1)
      >>> with scale(3):
      ...     print(scale.value)
      ...
      3
      >>> scale.value
      1
    """
    return Variable(f"user_context_{next(_users_contexts)}", default_value)
