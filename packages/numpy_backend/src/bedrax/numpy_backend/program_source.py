"""A program as Python source: a function with a line for each equation, written once and kept with the program.

    def f(a, b):  # f32[3], f32[3]
        c = np.sin(a)  # f32[3]
        d = c + b  # f32[3]
        return [d]

An equation becomes the expression that its primitive's row in `source_rules` gives, or a call of its
NumPy rule. Large values are deleted after their last use. An operation that NumPy rounds exactly writes its result into
the memory of a very large operand that is not used again: `np.add(c, b, c)`. Inner programs become functions of their own.
`source_of` returns the source.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import os
import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bedrax.core import dead_code, source
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.staging import make_jaxpr, program_of
from bedrax.core.tables import calls, programs
from bedrax.lax import element_types
from bedrax.numpy_backend.host_array import owned, to_numpy
from bedrax.numpy_backend.tables import numpy_rules, source_rules

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


_FOLDER = os.path.dirname(__file__)  # tracebacks leave out frames of this folder
_KEPT = 128  # elements; smaller values are kept until the function returns
_OVERWRITTEN = 2048  # elements; the memory of larger values is used again


class Program(NamedTuple):
    """A program in Python.

    Attributes:
      function: from NumPy arrays to a list of NumPy arrays. The caller turns off the warnings of NumPy.
      text: its source.
      places: line -> the equation on that line.
      inner: the programs that its equations hold.
    """

    function: Callable[..., list[Any]]
    text: str
    places: dict[int, Eqn]
    inner: list[Jaxpr]


class Writer:
    """Names for values in the source of one function; `source_rules` write with it."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"np": np, "asarray": np.asarray}
        self.taken: set[str] = {*keyword.kwlist, *self.namespace}
        self.names: dict[Any, str] = {}  # by variable, or by id of an object in the namespace
        self.scalars: set[str] = set()  # names of values that may be NumPy scalars; rules expect arrays
        self.new: set[str] = set()  # names of arrays whose memory no other name has
        self.ending: list[str] = []  # those of the result's type that are operands of this equation for the last time
        self.is_new: bool = False  # whether the expression of this equation makes an array, or overwrites one that ends
        self.count: int = 0

    def bind(self, value: Any, hint: str) -> str:
        """Return a name for `value` in the source, like `hint`."""
        name = self.names.get(id(value))
        if name is None:
            stem = re.sub(r"\W", "_", f"_{hint}" if hint[0].isdigit() else hint)
            tries = itertools.chain([stem], (f"{stem}_{n}" for n in itertools.count(1)))
            name = next(t for t in tries if t not in self.taken)
            self.taken.add(name)
            self.names[id(value)] = name
            self.namespace[name] = value
        return name

    def function(self, program: Jaxpr) -> str:
        """Return a name for a program, as a function that returns a list."""
        return self.bind(compiled(program).function, _name_of(program))

    def arrays(self, operands: Sequence[str]) -> str:
        """Return the operands of a call, with NumPy scalars converted to arrays."""
        return ", ".join(f"asarray({x})" if x in self.scalars else x for x in operands)

    def name(self, var: Var) -> str:
        """Return a name for a variable: one letter or more."""
        while True:
            n, name = self.count, ""
            self.count += 1
            while True:
                name = chr(97 + n % 26) + name
                n //= 26
                if not n:
                    break
            if name not in self.taken:
                self.taken.add(name)
                self.names[var] = name
                return name

    def read(self, atom: Var | Literal) -> str:
        """Return the name of an operand."""
        if type(atom) is not Literal:
            return self.names[atom]
        value = np.asarray(atom.val, atom.aval.dtype)[()]
        key = (str(value), value.dtype)
        name = self.names.get(key)
        if name is None:
            text = str(value).replace("-", "m").replace("+", "").replace(".0", "").replace(".", "_")
            name = self.names[key] = self.bind(value, f"_{text}")
            self.scalars.add(name)
        return name


def _name_of(program: Jaxpr) -> str:
    name = program.debug_info.func_name if program.debug_info is not None else ""
    name = re.sub(r"\W", "_", name).strip("_")
    return name if name and not name[0].isdigit() and not keyword.iskeyword(name) else "program"


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return value is None or kind in (bool, int, str) or (kind is tuple and all(map(_is_plain, value)))


def _expression(write: Writer, eqn: Eqn, operands: list[str], moves_elements: bool) -> tuple[str, bool]:
    """Return the expression of an equation, and whether it may give a NumPy scalar for an array of rank 0."""
    prim, params = eqn.primitive, eqn.params
    if moves_elements:
        rule = functools.partial(on_bases, prim, [v.aval for v in eqn.invars], params)
        return f"{write.bind(rule, f'{prim}_of_elements')}({write.arrays(operands)})", False
    rule = numpy_rules[prim]
    written = None if numpy_rules.kind(prim) == "library" else source_rules.find(prim)
    text = None if written is None else written(write, eqn, *operands)
    if text is not None:
        return text, True
    if numpy_rules.kind(prim) == "program":
        uses = programs[prim](params)
        if len(uses) == 1 and uses[0] == calls(uses[0].program):
            return f"{write.function(uses[0].program)}({write.arrays(operands)})", False
    given = [write.arrays(operands)] if operands else []
    for key, value in params.items():
        given.append(f"{key}={value!r}" if _is_plain(value) else f"{key}={write.bind(value, key)}")
    return f"{write.bind(rule, str(prim))}({', '.join(given)})", False


def _is_large(var: Var, limit: int = _KEPT) -> bool:
    aval = var.aval
    if not aval.is_array:
        return False
    size = element_types.base_aval(aval).size
    return type(size) is not int or size > limit


def _holds(var: Var, results: Sequence[Var]) -> bool:
    """Return whether the memory of an array is that of one with the type of the only result."""
    (result,) = results if len(results) == 1 else (None,)
    return result is not None and var.aval.shape == result.aval.shape and var.aval.dtype == result.aval.dtype


@cached
def compiled(program: Jaxpr) -> Program:
    """Return the program, without its unused operations, as a Python function."""
    program = dead_code.dce(program)
    write = Writer()
    name = _name_of(program)
    write.taken.add(name)
    last = {v: eqn for eqn in program.eqns for v in (*eqn.outvars, *eqn.invars)}
    kept = {*program.invars, *program.constvars, *program.outvars}
    args = [write.name(v) for v in program.invars]
    for v, value in zip(program.constvars, program.consts, strict=True):
        value = to_numpy(value)[0]
        if isinstance(value, np.ndarray):
            value = owned(value)  # later writes to a constant have no effect
        write.names[v] = write.bind(value, f"{write.name(v)}_constant")
    moving = element_types.eqns_that_move_elements(program)
    types = ", ".join(v.aval.short() for v in program.invars)
    lines = [f"def {name}({', '.join(args)}):" + (f"  # {types}" if types else "")]
    places = {}
    for eqn in program.eqns:
        operands = [write.read(v) for v in eqn.invars]
        here = dict.fromkeys(v for v in (*eqn.invars, *eqn.outvars) if type(v) is not Literal)
        gone = [v for v in here if last[v] is eqn and v not in kept and _is_large(v)]
        write.is_new = False
        write.ending = [
            write.names[v]
            for v in gone
            if v in eqn.invars and write.names[v] in write.new and _is_large(v, _OVERWRITTEN) and _holds(v, eqn.outvars)
        ]
        text, maybe_scalar = _expression(write, eqn, operands, eqn in moving)
        targets = [write.name(v) for v in eqn.outvars]
        if write.is_new:
            write.new.update(targets)
        else:  # a result may be a view of an operand
            write.new.difference_update(operands)
        if maybe_scalar:
            write.scalars.update(
                t for t, v in zip(targets, eqn.outvars, strict=True) if not getattr(v.aval, "shape", 0)
            )
        left = f"[{', '.join(targets)}] = " if eqn.primitive.multiple_results else f"{targets[0]} = "
        shapes = ", ".join(v.aval.short() for v in eqn.outvars)
        lines.append(f"    {left if targets else ''}{text}" + (f"  # {shapes}" if shapes else ""))
        places[len(lines)] = eqn
        if gone:
            lines.append(f"    del {', '.join([write.names[v] for v in gone])}")
    lines.append(f"    return [{write.arrays([write.read(v) for v in program.outvars])}]")
    text = "\n".join(lines) + "\n"
    namespace = write.namespace
    exec(compile(text, os.path.join(_FOLDER, f"<{name}>"), "exec"), namespace)
    function = namespace.pop(name)  # its globals do not hold it: it is freed with the program
    return Program(
        function,
        text,
        places,
        [use.program for e in program.eqns for use in programs[e.primitive](e.params) if not use.axes],
    )


def evaluate(program: Jaxpr, *args: np.ndarray) -> list[Any]:
    """Run a program on NumPy arrays with the NumPy rules alone; nothing is traced or wrapped.

    An error names the operation and the line of the user's code.
    """
    function = compiled(program).function
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except Exception as error:
        _add_place(error, program)
        raise


def _add_place(error: Exception, program: Jaxpr) -> None:
    """Add a note about the innermost equation that was being evaluated, unless an inner call has added one."""
    if any(note.startswith("(While computing ") for note in getattr(error, "__notes__", ())):
        return
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code is compiled(program).function.__code__:
            eqn = compiled(program).places.get(tb.tb_lineno)
            if eqn is not None and eqn.source_info:
                error.add_note(f"(While computing '{eqn.primitive}' of {source.describe(eqn.source_info)}.)")
                return
        tb = tb.tb_next


def on_bases(prim: Primitive, types: Sequence[Any], params: dict[str, Any], *bases: np.ndarray) -> Any:
    """Return the results of an operation that only moves elements, on their base arrays."""
    fun = element_types.function_on_bases(prim, types, params)
    flat = fun if prim.multiple_results else lambda *args: [fun(*args)]
    out = evaluate(program_of(flat, [element_types.base_aval(a) for a in types]), *bases)
    return out if prim.multiple_results else out[0]


def source_of(fun: Callable[..., Any]) -> Callable[..., str]:
    """Return a function of the arguments of `fun` that returns the Python source of its program.

    Inner programs come first. Rules and other objects have the names of their primitives and
    parameters.

        print(source_of(f)(x, y))
    """

    def text(*args: Any, **kwargs: Any) -> str:
        found: dict[Jaxpr, str] = {}

        def visit(program: Jaxpr) -> None:
            if program not in found:
                for inner in compiled(program).inner:
                    visit(inner)
                found[program] = compiled(program).text

        visit(make_jaxpr(fun)(*args, **kwargs))
        return "\n".join(found.values())

    return text
