"""The reasons for which functions are traced again, and warnings about programs that are compiled too often.

`note` is called when `jit` traces a function, never when a known program runs. So nothing here costs time in a program that
is compiled once.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bedrax.core import config, source
from bedrax.core.signatures import leaf_names
from bedrax.core.tracing import current, eval_trace

_logger = logging.getLogger("jax.jit")
_doctor = logging.getLogger("jax.doctor")


class Retrace(NamedTuple):
    """A trace of a function, or another compilation of its program.

    Attributes:
      function: its name, and the place of its definition.
      line: the user's line of the call.
      changes: the differences from the most similar earlier trace; a text for each. Empty for the first trace.
    """

    function: str
    line: str
    changes: tuple[str, ...]

    def __str__(self) -> str:
        again = self.changes and self.changes[0].startswith("new placement")
        what = f"jit {'compiles' if again else 'traces'} {self.function}, called at {self.line}"
        if not self.changes:
            return f"{what}: it has not been traced before, or its traces were dropped with an earlier function object"
        return f"{what}: {'; '.join(self.changes)}"


_recent: Final[deque[tuple[Any, ...]]] = deque(maxlen=500)  # (name, code, place, changes): described when read
_lock: Final = threading.Lock()


def of(fun: Callable[..., Any]) -> list[Retrace]:
    """Return the last traces of a function (any function object with its code), the oldest first."""
    code = source.definition(fun)[1]
    text = source.describe_function(fun)
    return [_described(*raw) for raw in list(_recent) if (raw[1] is code and code is not None) or raw[0] == text]


def _described(name: str, code: Any, place: Any, changes: Sequence[str]) -> Retrace:
    return Retrace(source.describe_definition(name, code), source.describe(place), tuple(changes))


def note(
    name: str, fun: Callable[..., Any], key: tuple[Any, ...], known: Sequence[tuple[Any, ...]], static: Any
) -> None:
    """Record that a function is traced for a signature; log the reason if that is wanted, and warn about known traps.

    Args:
      name: of the function, as programs have it.
      key: (structure of the arguments, types, static arguments, context).
      known: the keys of its earlier traces.
      static: the positions of its static arguments.
    """
    code = source.definition(fun)[1]
    place = source.user_frame(2)
    if code is not None and source.is_ours(code):  # a function of this project, such as jnp.concatenate
        if place is not None and current.trace is eval_trace:
            _eager(place, name)
        return
    near = min(known[::-1], key=lambda k: _distance(k, key), default=None)
    changes = () if near is None else tuple(differences(fun, key, near, static))
    raw = (name, code, place, changes)
    _keep(raw)
    if near is None:
        _made_anew(key, raw)
    else:
        _growing(fun, key, known, raw, static)


def compiled_again(function: str, changes: Sequence[str]) -> None:
    """Record that a known program is compiled again.

    Args:
      function: its function, and the place of its definition: ``"f at file.py:12"``.
      changes: the differences from the last time.
    """
    if not source.is_excluded(function.rpartition(" at ")[2].rpartition(":")[0]):
        _keep((function, None, source.user_frame(2), changes))


def _keep(raw: tuple[Any, ...]) -> None:
    _recent.append(raw)
    level = logging.WARNING if config.explain_cache_misses.value else logging.DEBUG
    if _logger.isEnabledFor(level):
        _logger.log(level, "%s", _described(*raw))


# ---- differences between two signatures


def _distance(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[int, int]:
    """The number of parts that differ, and that of the types with other shapes."""
    shapes = [getattr(x, "shape", None) != getattr(y, "shape", None) for x, y in zip(a[1], b[1], strict=False)]
    return sum([x != y for x, y in zip(a, b, strict=True)]), sum(shapes)


def differences(fun: Callable[..., Any], new: tuple[Any, ...], old: tuple[Any, ...], static: Any) -> list[str]:
    """Return the differences between the signatures of two calls: a text with the name of the argument for each."""
    found = []
    if new[0] != old[0]:
        found.append(f"new structure of the arguments: {new[0]}, was {old[0]}")
    elif new[1] != old[1]:
        for name, a, b in zip(leaf_names(fun, new[0], sorted(static)), new[1], old[1], strict=True):
            if a != b:
                found.append(f"new types: {name} is {_typed(a)}, was {_typed(b)} ({_aspects(a, b)})")
    if new[2] != old[2]:
        before = dict(old[2])
        for name, value in new[2]:
            if name not in before or before[name] != value:
                which = f"argument {name}" if type(name) is int else str(name)
                was = repr(before[name].value) if name in before else "not given"
                found.append(f"new static arguments: {which} is {value.value!r}, was {was}")
        found += [f"new static arguments: {name} is not given" for name in before.keys() - dict(new[2]).keys()]
    if new[3] != old[3]:
        (now, *axes), (then, *other_axes) = new[3], old[3]
        a, b = dict(now), dict(then)
        for name in dict.fromkeys((*a, *b)):
            if a.get(name) != b.get(name):
                values = [repr(values[name]) if name in values else "at its default" for values in (a, b)]
                found.append(f"new options and context managers: {name} is {values[0]}, was {values[1]}")
        if axes != other_axes:
            found.append(f"new options and context managers: named axes are {axes[0]}, were {other_axes[0]}")
    return found or ["a new signature"]


def _typed(aval: Any) -> str:
    return (
        f"{aval.str_short()}{' (weak)' if getattr(aval, 'weak_type', False) else ''}"
        if hasattr(aval, "str_short")
        else str(aval)
    )


_ASPECTS = {"shape": "shape", "dtype": "dtype", "weak_type": "weak type", "split": "placement", "vma": "varying axes"}


def _aspects(a: Any, b: Any) -> str:
    changed = [text for name, text in _ASPECTS.items() if getattr(a, name, None) != getattr(b, name, None)]
    return ", ".join(changed) or "kind"


# ---- known traps: each warns once per function or line

_SAME, _LENGTHS, _COMPILED = 10, 8, 25
_made: Final[Counter[Any]] = Counter()
_warned: Final[set[Any]] = set()


def _warn_once(option: config.Flag, trap: str, where: Any, text: str) -> None:
    with _lock:
        if (trap, where) in _warned:
            return
        _warned.add((trap, where))
    _doctor.warning("%s Switch this warning off with %s=False.", text, option.name)


def _made_anew(key: tuple[Any, ...], raw: tuple[Any, ...]) -> None:
    _, code, place, _ = raw
    if code is None or place is None or _is_installed(place) or not config.warn_jit_in_loop.value:
        return
    # Not the code objects: to hash one takes as long as to look at the whole code.
    where = (code.co_filename, code.co_firstlineno, place[0].co_filename, place[0].co_firstlineno, place[1], *key[:2])
    _made[where] += 1
    if _made[where] == _SAME:
        retrace = _described(*raw)
        _warn_once(
            config.warn_jit_in_loop,
            "loop",
            code,
            f"{retrace.function} was compiled {_SAME} times for the same types at {retrace.line}: each time, jit got a new"
            " function object. Call jit once, outside of the loop or function, and pass what changes as an argument.",
        )
    if len(_made) > 10_000:
        _made.clear()


def _growing(
    fun: Callable[..., Any], key: tuple[Any, ...], known: Sequence[tuple[Any, ...]], raw: tuple[Any, ...], static: Any
) -> None:
    if len(known) < _LENGTHS - 1 or not config.warn_growing_shapes.value:
        return
    for i, aval in enumerate(key[1]):
        shape = getattr(aval, "shape", ())
        for axis in range(len(shape)):
            lengths = {
                other[1][i].shape[axis]
                for other in (*known, key)
                if other[0] == key[0] and _differ_in(other[1][i], aval, axis)
            }
            if len(lengths) >= _LENGTHS:
                retrace = _described(*raw)
                name = leaf_names(fun, key[0], sorted(static))[i]
                listed = ", ".join(map(str, sorted(lengths, key=str)[:5]))
                _warn_once(
                    config.warn_growing_shapes,
                    "shapes",
                    source.definition(fun)[1] or retrace.function,
                    f"{retrace.function} was compiled for {len(lengths)} lengths of axis {axis} of {name} ({listed}, ...),"
                    f" last at {retrace.line}. Pad the axis to a few fixed lengths.",
                )
                return


def _differ_in(a: Any, b: Any, axis: int) -> bool:
    """Whether two types are equal except for the length of an axis."""
    one, two = getattr(a, "shape", None), getattr(b, "shape", None)
    if one is None or two is None or len(one) != len(two) or a.dtype != b.dtype:
        return False
    return one[:axis] == two[:axis] and one[axis + 1 :] == two[axis + 1 :]


def _is_installed(place: Any) -> bool:
    """Whether a line is of an installed library, whose user cannot change it."""
    return "site-packages" in place[0].co_filename or "dist-packages" in place[0].co_filename


def eagerly_compiled(name: str) -> None:
    """Note that an operation outside of `jit` is compiled."""
    if (place := source.user_frame(2)) is not None and not _is_installed(place):
        _eager(place, name)


def _eager(place: Any, name: str) -> None:
    if not config.warn_eager_loop.value:
        return
    where = (name, place[0].co_filename, place[0].co_firstlineno, place[1])
    _made[where] += 1
    if _made[where] == _COMPILED:
        _warn_once(
            config.warn_eager_loop,
            "eager",
            where,
            f"the operation {name} at {source.describe(place)} was compiled {_COMPILED} times: it runs outside of jit, with"
            " other shapes or constants each time. Put the loop into a function under jit (with lax.fori_loop or lax.scan),"
            " or give its arrays one shape.",
        )
