"""The standard printed form of jaxprs.

    { lambda a:f32[3]; b:f32[3]. let
        c:f32[3] = sin b
        d:f32[3] = jit[
          name=f
          jaxpr={ lambda ; b:f32[3]. let c:f32[3] = sin b in (c,) }
        ] c
      in (d,) }

Built from documents of text, line breaks and groups: a group is laid out on one line if it
fits, else every break in it becomes a new line (after Oppen, 1980, and Wadler, "A prettier
printer", 2003).
"""

from __future__ import annotations

import enum
import os
import sys
from typing import Any

import numpy as np

from bedrax.core import config, dtypes, source
from bedrax.core.ir import DropVar, Eqn, Jaxpr, Literal, Var
from bedrax.core.passes import called_program
from bedrax.core.tables import line_rules, print_rules

WIDTH = 80


class _Break:
    """A break: `flat` on one line, else a new line."""

    __slots__ = ("flat",)

    def __init__(self, flat: str) -> None:
        self.flat: str = flat


class Styled(str):
    """A text that terminals show in a colour."""

    __slots__ = ()
    code = ""

    def shown(self) -> str:
        return f"\x1b[{self.code}m{self}\x1b[0m"


class Operation(Styled):
    """The name of an operation."""

    code = "1"


class Word(Styled):
    """A word of the language of programs."""

    code = "35"


class Parameter(Styled):
    """The name of a parameter."""

    code = "36"


class Comment(Styled):
    """The user's line."""

    code = "2"


def colors_wanted() -> bool:
    """Return whether the standard output shows colours: a terminal, without the variable NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not config.pprint_use_color.value:
        return False
    return hasattr(sys.stdout, "isatty") and sys.stdout.isatty()


SPACE = _Break(" ")
EMPTY = _Break("")
SEMICOLON = _Break("; ")


class Group(tuple):
    """Parts (text, breaks, groups) laid out together; `indent` applies to the lines inside."""

    indent: int

    def __new__(cls, parts: list[Any], indent: int = 0) -> Group | Nest:
        self = super().__new__(cls, parts)
        self.indent = indent
        return self


class Nest(Group):
    """Parts indented together that break where the group around them breaks."""


def _flat_width(doc: Any, limit: int) -> int:
    """Return the width on one line; any number above `limit` if it is exceeded."""
    total = 0
    stack = [doc]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            total += len(part)
        elif type(part) is _Break:
            total += len(part.flat)
        else:
            stack.extend(reversed(part))
        if total > limit:
            return total
    return total


def render(doc: Any, width: int = WIDTH, color: bool = False) -> str:
    """Lay a document out; with the codes of colours for terminals if `color`."""
    out: list[str] = []
    column = 0
    stack: list[tuple[int, bool, Any]] = [(0, False, doc)]
    while stack:
        indent, flat, part = stack.pop()
        if isinstance(part, str):
            out.append(part.shown() if color and isinstance(part, Styled) else part)
            column += len(part)
        elif type(part) is _Break:
            if flat:
                out.append(part.flat)
                column += len(part.flat)
            else:
                out.append("\n" + " " * indent)
                column = indent
        else:
            inner = indent + part.indent
            fits = flat or (type(part) is Group and _flat_width(part, width - column) <= width - column)
            stack.extend((inner, fits, p) for p in reversed(part))
    return "".join(out)


class Names:
    """Letters for variables, in order of appearance: a ... z, ba, bb, ...

    A program inside an equation has its own names, from the same sequence.
    """

    def __init__(self, count: list[Any] | None = None) -> None:
        self.names: dict[Any, str] = {}
        self.count: list[Any] = [0] if count is None else count

    def inner(self) -> Names:
        return Names(self.count)

    def __call__(self, v: Any, typed: bool = False) -> str:
        if type(v) is Literal:
            return f"{_scalar(v.val)}:{v.aval.short()}"
        if type(v) is DropVar:
            return f"_:{v.aval.short()}" if typed else "_"
        name = self.names.get(v)
        if name is None:
            n, name = self.count[0], ""
            self.count[0] += 1
            while True:
                name = chr(97 + n % 26) + name
                n //= 26
                if not n:
                    break
            self.names[v] = name
        return f"{name}:{v.aval.short()}" if typed else name


def _scalar(x: Any) -> str:
    return str(x.item() if isinstance(x, np.generic) and not dtypes.is_extended(x.dtype) else x)


def _param_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, enum.Enum):
        return str(value) if type(value).__str__ is not enum.Enum.__str__ else f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


def _param(name: str, value: Any, eqn: Eqn, names: Names, options: dict) -> Any:
    if type(value) is Jaxpr:
        inner = names.inner()
        if called_program(eqn.primitive, eqn.params) is value:  # operands and results keep their names
            for v, u in (*zip(value.invars, eqn.invars, strict=False), *zip(value.outvars, eqn.outvars, strict=False)):
                if type(v) is Var and type(u) is Var and v not in inner.names and u in names.names:
                    inner.names[v] = names.names[u]
        return Group([Parameter(name), "=", jaxpr_doc(value, options, inner)])
    if type(value) in (tuple, list) and value and all(type(v) is Jaxpr for v in value):
        parts: list[Any] = []
        for v in value:
            parts += [SPACE if parts else EMPTY, jaxpr_doc(v, options, names.inner())]
        return Group([Parameter(name), "=(", Nest(parts, 2), EMPTY, ")"])
    return Group([Parameter(name), f"={_param_text(value)}"])


def eqn_doc(eqn: Eqn, names: Names, options: dict[str, Any]) -> Any:
    """Return the document of one equation."""
    typed = options.get("print_shapes", True)
    line = line_rules.find(eqn.primitive)
    if line is not None:
        return Group([line(eqn, lambda v: names(v, typed and v in eqn.outvars))])
    left = " ".join(names(v, typed) for v in eqn.outvars)
    rule = print_rules.find(eqn.primitive)
    params = eqn.params if rule is None else rule(eqn.params)
    right: list[Any] = [Operation(eqn.primitive.name)]
    shown = sorted(params) if rule is None else list(params)
    if shown:
        inside: list[Any] = []
        for name in shown:
            inside += [SPACE if inside else EMPTY, _param(name, params[name], eqn, names, options)]
        right.append(Group(["[", Nest(inside, 2), EMPTY, "]"]))
    operands = " ".join(names(v) for v in eqn.invars)
    parts: list[Any] = [f"{left} = " if eqn.outvars else "", *right, f" {operands}" if operands else ""]
    if options.get("source_info") and eqn.source_info:
        parts.append(Comment(f"  # {source.describe(eqn.source_info)}"))
    return Group(parts)


def jaxpr_doc(jaxpr: Jaxpr, options: dict[str, Any] | None = None, names: Names | None = None) -> Any:
    """Return the document of a program."""
    options = options or {}
    names = names or Names()
    used = {v for e in jaxpr.eqns for v in e.invars if type(v) is not Literal}
    used.update(v for v in jaxpr.outvars if type(v) is not Literal)
    shapes = options.get("print_shapes", True)
    constvars = " ".join(names(v, shapes) for v in jaxpr.constvars)
    invars = " ".join(names(v, shapes) for v in jaxpr.invars)
    head = Group(["{ ", Word("lambda"), f" {constvars}; {invars}. ", Word("let")])
    body: list[Any] = []
    for eqn in jaxpr.eqns:
        shown = eqn.replace(outvars=[v if v in used else DropVar(v.aval) for v in eqn.outvars])
        body += [SEMICOLON if body else SPACE, eqn_doc(shown, names, options)]
    results = ", ".join(names(v) for v in jaxpr.outvars)
    results = f"({results},)" if len(jaxpr.outvars) == 1 else f"({results})"
    return Group([head, Nest(body, 4), Nest([SPACE, Word("in"), f" {results} }}"], 2)])


def jaxpr_text(
    jaxpr: Jaxpr, *, source_info: bool = False, print_shapes: bool = True, use_color: bool | None = None, **options: Any
) -> str:
    """Return the program as text.

    Args:
      source_info: add the user's line to each equation.
      print_shapes: print the types of variables.
      use_color: add the codes of colours for terminals. None: if the standard output is a terminal, unless the option
        `jax_pprint_use_color` is off or the variable NO_COLOR is set.
    """
    color = colors_wanted() if use_color is None else use_color
    return render(jaxpr_doc(jaxpr, {"source_info": source_info, "print_shapes": print_shapes, **options}), color=color)


def eqn_text(eqn: Eqn) -> str:
    """Return one equation as text."""
    return render(eqn_doc(eqn, Names(), {}))
