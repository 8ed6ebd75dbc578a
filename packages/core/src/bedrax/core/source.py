"""Places in the user's program.

Three services: the frame of the user that made an operation (one cheap walk per equation, formatted at first use),
the description of such a place, and tracebacks without frames of Bedrax.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, TypeVar

from bedrax.core import config

_F = TypeVar("_F", bound=Callable)

Source = tuple[CodeType, int]
"""A place: a code object and the offset of an instruction in it. Lines are computed when it is described."""

replays: CodeType | None = None  # the code that runs programs again: each operation keeps the line of its equation
_is_ours: dict[str, bool] = {}  # by file name: strings cache their hash, code objects do not


class _Paths(list[str]):
    """A list whose changes clear the cache of file names: libraries (Flax) append and remove."""


def _forgetting(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    @functools.wraps(method)
    def changed(self: _Paths, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        _is_ours.clear()
        return result

    return changed


for _name in ("append", "clear", "extend", "insert", "pop", "remove", "__delitem__", "__iadd__", "__setitem__"):
    setattr(_Paths, _name, _forgetting(_name))

exclude_paths: Final[list[str]] = _Paths()
"""Files and folders whose frames are not the user's."""


def register_exclusion(path: str) -> None:
    """Treat the file `path`, or all files under the folder `path`, as files of Bedrax, not of the user.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> here = {"util": util}
      >>> exec(compile("def where(): return util.summarize(util.current())", "library_of_mine.py", "exec"), here)
      >>> here["where"]()
      'library_of_mine.py:1 (where)'
      >>> util.register_exclusion("library_of_mine.py")
      >>> def user():
      ...     return here["where"]()
      ...
      >>> user().endswith("(user)")  # the frame that called the library
      True
    """
    path = os.path.abspath(path)
    if path not in exclude_paths:
        exclude_paths.append(path)


def is_excluded(filename: str) -> bool:
    """Return whether the file `filename` is one of Bedrax."""
    if filename.startswith("<frozen"):
        return True
    if filename.startswith("<"):  # typed in, or generated
        return False
    filename = os.path.abspath(filename)
    layers = map(os.path.abspath, sys.modules["bedrax"].__path__)  # a namespace package, spread over folders
    return any(filename == p or filename.startswith(p + os.sep) for p in (*exclude_paths, *layers))


def _is_ours_file(filename: str) -> bool:
    found = _is_ours.get(filename)
    if found is None:
        found = _is_ours[filename] = is_excluded(filename)
    return found


# Frames of functools and contextlib can lie between those of Bedrax and those of the user.
for _module in (functools, contextlib):
    register_exclusion(_module.__file__)


def user_frame(depth: int = 1) -> Source | None:
    """Return the innermost frame of the user among the callers, or None.

    Args:
      depth: how many frames to skip first; 1 is the caller.
    """
    frame: FrameType | None = sys._getframe(depth)
    ours = _is_ours
    while frame is not None:
        code = frame.f_code
        hidden = ours.get(code.co_filename)
        if hidden is None:
            hidden = _is_ours_file(code.co_filename)
        if not hidden:
            return code, frame.f_lasti
        if code is replays and (recorded := frame.f_locals["eqn"].source_info):
            return recorded
        frame = frame.f_back
    return None


def is_ours(code: CodeType) -> bool:
    """Return whether code is in a file of Bedrax; the answer is kept per file."""
    return _is_ours_file(code.co_filename)


def is_user_frame(frame: FrameType) -> bool:
    """Return whether a frame is shown in tracebacks."""
    return not _is_ours_file(frame.f_code.co_filename)


def stacklevel() -> int:
    """Return the `stacklevel` with which the caller's `warnings.warn` points at the user's line."""
    frame = sys._getframe(1)
    level = 1
    while frame is not None and _is_ours_file(frame.f_code.co_filename):
        if frame.f_back is None:
            return 1
        frame = frame.f_back
        level += 1
    return level


def line_of(source: Source) -> int:
    """Return the line number of a place."""
    code, lasti = source[:2]
    return _position(code, lasti)[0] or code.co_firstlineno


def _position(code: CodeType, lasti: int) -> tuple:
    for i, position in enumerate(code.co_positions()):
        if i == lasti // 2:
            return position
    return (code.co_firstlineno, None, None, None)


def position_of(source: Source) -> tuple[str, int, int, int, int, str]:
    """Return (file, line, end line, column, end column, function); lines and columns count from 1, 0: unknown."""
    code, lasti = source[:2]
    line, end_line, column, end_column = _position(code, lasti)
    line = line or code.co_firstlineno
    return (
        code.co_filename,
        line,
        end_line or line,
        0 if column is None else column + 1,
        0 if end_column is None else end_column + 1,
        code.co_qualname,
    )


def describe(source: Source | None) -> str:
    """Return `file.py:12 (function)`, or 'unknown place' for None and an empty `Place`."""
    where = source[0] if source else None
    return "unknown place" if where is None else f"{where.co_filename}:{line_of(source)} ({where.co_name})"


def definition(function: Callable[..., Any]) -> tuple[str, CodeType | None]:
    """Return the name of a function and its code, if it has Python code. They do not keep it alive."""
    name = getattr(function, "__name__", None) or type(function).__name__
    inner = function
    while isinstance(inner, functools.partial) or hasattr(inner, "__wrapped__"):
        inner = inner.func if isinstance(inner, functools.partial) else inner.__wrapped__
    if inner is not function and not hasattr(function, "__name__"):
        name = getattr(inner, "__name__", name)
    code = getattr(inner, "__code__", None)
    if code is None:  # an object with a `__call__`
        code = getattr(vars(type(inner)).get("__call__"), "__code__", None)
    return name, code


def describe_definition(name: str, code: CodeType | None) -> str:
    """Return `name at file.py:12`; only the name if there is no Python code."""
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def describe_function(function: Callable[..., Any]) -> str:
    """Return `name at file.py:12`, the definition of a function; only the name if it has no Python code."""
    return describe_definition(*definition(function))


# ---- Tracebacks ----------------------------------------------------------------------------------------------------


class SimplifiedTraceback(Exception):
    """Cause attached to an error whose traceback was shortened; its own traceback is the whole one."""

    def __str__(self) -> str:
        return "Above are your program's frames, here are all. JAX_TRACEBACK_FILTERING=off shows only this."


class _Inside(threading.local):
    entered = False

    def __reduce__(self) -> str:
        return "inside_entry"


# a function of Bedrax that is pickled by value refers to the state by name


inside_entry: Final = _Inside()


def _mode() -> str:
    mode = config.traceback_filtering.value
    ipython = sys.modules.get("IPython") if mode == "auto" else None  # only if it is loaded: not a dependency
    hides = ipython is not None and ipython.get_ipython() is not None
    return mode if mode != "auto" else "tracebackhide" if hides else "quiet_remove_frames"


def _drop_our_frames(tb: TracebackType | None) -> TracebackType | None:
    kept = []
    while tb is not None:
        if not _is_ours_file(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        tb = tb.tb_next
    return functools.reduce(lambda rest, t: TracebackType(rest, t.tb_frame, t.tb_lasti, t.tb_lineno), kept[::-1], None)


def shorten(error: BaseException) -> None:
    """Remove frames of Bedrax from an error's traceback, as it leaves the outermost entry."""
    if inside_entry.entered:
        return
    mode = _mode()
    if mode == "off":
        return
    tb = error.__traceback__
    if mode == "tracebackhide":
        while tb is not None:
            if _is_ours_file(tb.tb_frame.f_code.co_filename):
                tb.tb_frame.f_locals["__tracebackhide__"] = True
            tb = tb.tb_next
        return
    filtered = _drop_our_frames(tb)
    if mode == "remove_frames" and error.__cause__ is None:
        whole = SimplifiedTraceback().with_traceback(tb)
        whole.__context__, whole.__suppress_context__ = error.__context__, error.__suppress_context__
        error.__context__, error.__cause__, error.__suppress_context__ = None, whole, True
    elif mode == "quiet_remove_frames" and not getattr(error, "__notes__", None):
        error.add_note("(Frames of the library are left out; JAX_TRACEBACK_FILTERING=off shows them.)")
    error.__traceback__ = filtered


def api_boundary(function: _F) -> _F:
    """Decorate a public entry: errors that leave it have tracebacks without frames of Bedrax.

    Only the outermost entry shortens tracebacks. Without an error the decorator costs one try block and one flag.
    """

    @functools.wraps(function)
    def entry(*args: Any, **kwargs: Any) -> Any:
        if inside_entry.entered:
            return function(*args, **kwargs)
        inside_entry.entered = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            inside_entry.entered = False
            shorten(error)
            raise
        finally:
            inside_entry.entered = False

    return entry  # type: ignore[return-value]
