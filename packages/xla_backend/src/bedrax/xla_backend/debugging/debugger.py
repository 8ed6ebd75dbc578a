"""A debugger for traced programs (`jax.debug.breakpoint`): it stops a running program and shows its values.

Tracing records the frames around the call, and their local variables. Traced values among these are operands of a
debugging callback, so their values are those of the run.
"""

from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
import sys
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import source
from bedrax.core.array import Array
from bedrax.core.tracing import Tracer
from bedrax.lax.primitives.callbacks import debug_callback

__all__ = ["breakpoint"]


@dataclass(frozen=True)
class Frame:
    """A call of a function, at the time of its trace.

    Attributes:
      variables: the values of its variables by name; a `_Variable` for one with arrays.
    """

    name: str
    filename: str
    line: int
    first_line: int
    variables: dict[str, Any]


def _frames(filtered: bool, limit: int | None) -> list[FrameType]:
    """The frames of the caller, innermost first."""
    frame: FrameType | None = sys._getframe(2)
    found: list[FrameType] = []
    while frame is not None and (limit is None or len(found) < limit):
        if not filtered or source.is_user_frame(frame):
            found.append(frame)
        frame = frame.f_back
    return found


class _Variable(NamedTuple):
    """A variable with arrays: a pytree, with None for each leaf that is traced. The run has the values of these."""

    leaves: list[Any]
    tree: pytree.PyTreeDef

    def value(self, traced: list[Any]) -> Any:
        """The variable, with these values of its traced leaves."""
        rest = iter(traced)
        found = [_plain(next(rest)) if leaf is None else leaf for leaf in self.leaves]
        return pytree.tree_unflatten(self.tree, found)


def _plain(x: Any) -> Any:
    """An array as a NumPy array: an operation on it starts no program. A scalar, keys and a deleted array stay."""
    try:
        return np.asarray(x) if np.ndim(x) else x
    except Exception:
        return x


def _split(x: Any) -> tuple[Any, list[Any]]:
    """A variable without its traced leaves, and these. All other values are known in the trace."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # for iterators, which are leaves
            leaves, tree = pytree.tree_flatten(x)
    except Exception:  # it is no pytree: a list that holds itself, keys that do not compare
        return x, []
    arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
    if not arrays:
        return x, []
    traced = [leaf for leaf in arrays if isinstance(leaf, Tracer)]
    # Other arrays are copied now: a stopped program that took the memory of one would wait for itself.
    kept = [(None if isinstance(x, Tracer) else _plain(x)) if isinstance(x, Array) else x for x in leaves]
    return _Variable(kept, tree), traced


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Stop the program here when it runs, and read commands. The command ``help`` lists them.

    Under `vmap` it stops for each element, under `grad` with the values of the function.

    Args:
      backend: the source of the commands: only ``"cli"`` (or None), the terminal.
      filter_frames: show only frames of the user.
      num_frames: the number of frames to keep, the innermost ones, at least 1; None: all.
      ordered: keep the order of such stops, and of other ordered callbacks.
      token: only None; use `ordered`.
      kwargs: `stdin` and `stdout`: files instead of the terminal.

    Examples:

      >>> def f(x, stop=False):
      ...     if stop:
      ...         jax.debug.breakpoint()
      ...     return 2 * x
      ...
      >>> f(3)
      6
    """
    unknown = sorted(set(kwargs) - {"stdin", "stdout"})
    if backend not in (None, "cli") or token is not None or unknown:
        raise NotImplementedError(
            f"breakpoint reads commands from the terminal (backend='cli'), or from stdin and stdout; got {backend=},"
            f" {token=}, {unknown}"
        )
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"breakpoint shows at least one frame, got {num_frames=}")
    frames, values = [], []
    for frame in _frames(filter_frames, num_frames):
        code = frame.f_code
        split = {name: _split(value) for name, value in frame.f_locals.items()}
        variables = {name: known for name, (known, _) in split.items()}
        frames.append(Frame(code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno, variables))
        values.append({name: traced for name, (known, traced) in split.items() if isinstance(known, _Variable)})

    def stop(values):
        _Session(frames, values, kwargs.get("stdin"), kwargs.get("stdout")).cmdloop()

    debug_callback(stop, values, ordered=ordered)


class _Session(cmd.Cmd):
    """Commands about the frames of a stopped program."""

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame], values: list[dict[Any, Any]], stdin: Any, stdout: Any) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0
        self.variables = [
            {**frame.variables, **{name: frame.variables[name].value(xs) for name, xs in traced.items()}}
            for frame, traced in zip(frames, values, strict=True)
        ]

    def preloop(self) -> None:
        self._write("Entering jdb:")
        self._show()

    def _write(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _show(self, at: int | None = None) -> None:
        f = self.frames[self.at if at is None else at]
        self._write(f"{'> ' if at in (None, self.at) else '  '}{f.filename}({f.line}) in {f.name}()")

    def _evaluate(self, text: str) -> Any:
        return eval(text, {"np": np, **self.variables[self.at]})  # as globals: the bodies of comprehensions see them

    def _print(self, text: str, form) -> None:
        try:
            self._write(form(self._evaluate(text)))
        except Exception as error:  # from the user's input
            self._write(f"*** {type(error).__name__}: {error}")

    def do_p(self, arg: str) -> None:
        """p expression: print the value of an expression of the variables of the frame."""
        self._print(arg, repr)

    def do_pp(self, arg: Any) -> None:
        """pp expression: like p, over several lines."""
        self._print(arg, pprint.pformat)

    def do_up(self, arg: str) -> None:
        """up: go to the caller of this frame."""
        self._go(1, "the outermost frame")

    def do_down(self, arg: str) -> None:
        """down: go to the frame that this one called."""
        self._go(-1, "the innermost frame")

    def _go(self, step: int, end: str) -> None:
        if not 0 <= self.at + step < len(self.frames):
            self._write(f"this is {end}")
        else:
            self.at += step
            self._show()

    def do_where(self, arg: str) -> None:
        """where: show all frames, outermost first."""
        for at in reversed(range(len(self.frames))):
            self._show(at)

    def do_list(self, arg: str) -> None:
        """list: show the lines around this one."""
        f = self.frames[self.at]
        for n in range(max(f.first_line, f.line - 5), f.line + 6):
            line = linecache.getline(f.filename, n).rstrip()
            if line:
                self._write(f"{'->' if n == f.line else '  '} {n:4} {line}")

    def do_continue(self, arg: str) -> bool:
        """continue: continue the program."""
        return True

    def do_quit(self, arg: str) -> None:
        """quit: end the program with an error."""
        raise bdb.BdbQuit("the program was ended by the debugger's command quit")

    def default(self, line: str) -> None:
        """Other input is an expression to print."""
        self._print(line, repr)

    def emptyline(self) -> None:
        """Ignore an empty line."""

    do_u, do_d, do_l, do_c, do_q = do_up, do_down, do_list, do_continue, do_quit
    do_w = do_bt = do_where
    do_ll, do_exit, do_EOF, do_cont = do_list, do_quit, do_continue, do_continue
