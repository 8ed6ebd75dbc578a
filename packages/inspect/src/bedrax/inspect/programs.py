"""The forms of a function's program, as rows of text: each with the user's line, and its work where that is estimated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bedrax import pytree
from bedrax.autodiff import vjp
from bedrax.core import offers, printing, source
from bedrax.core.avals import aval_of
from bedrax.core.dtypes import is_inexact
from bedrax.core.ir import Eqn, Jaxpr
from bedrax.core.staging import make_jaxpr
from bedrax.core.tables import print_rules, programs
from bedrax.inspect import costs


class Row(NamedTuple):
    """One line of a program.

    Attributes:
      text: the line.
      place: (file, line) of the user; None where it is not known.
      depth: the number of programs around it.
      flops, moved: the estimated work; None where there is no estimate, or where the line is not an equation.
      step: the number of the equation among those of the outermost program; None for others.
    """

    text: str
    place: tuple[str, int] | None = None
    depth: int = 0
    flops: int | None = None
    moved: int | None = None
    step: int | None = None


def place_of(info: Any) -> tuple[str, int] | None:
    """Return (file, line) of what an equation records; None if it records nothing."""
    if not info or info[0] is None:
        return None
    return info[0].co_filename, source.line_of(info[:2])


# ---- jaxprs


def rows_of(program: Jaxpr) -> list[Row]:
    """Return the rows of a program, with those of the programs inside of it."""
    return list(_program_rows(program, printing.Names(), 0, None, None))


def _program_rows(
    program: Jaxpr, names: printing.Names, depth: int, outer: int | None, around: tuple[str, int] | None
) -> Iterator[Row]:
    """The rows of a program. `around` is the place of its equation, for equations that have none."""
    given = " ".join([names(v, True) for v in (*program.constvars, *program.invars)])
    yield Row(f"takes {given or 'nothing'}", depth=depth, step=outer)
    for i, eqn in enumerate(program.eqns):
        step = i if outer is None else outer
        work = costs.cost_of(eqn)
        place = place_of(eqn.source_info) or around
        known = dict(place=place, depth=depth, step=step)
        inner = [use.program for use in programs[eqn.primitive](eqn.params)]
        if not inner or costs.combines(eqn):
            text = " ".join(printing.render(printing.eqn_doc(eqn, names, {}), 10**6).split())
            yield Row(text, flops=work.flops, moved=work.moved, **known)
            continue
        yield Row(_head(eqn, names), flops=work.flops, moved=work.moved, **known)
        for one in inner:
            yield from _program_rows(one, names.inner(), depth + 1, step, place)
    results = " ".join([names(v) for v in program.outvars])
    yield Row(f"returns {results or 'nothing'}", depth=depth, step=outer)


def _head(eqn: Eqn, names: printing.Names) -> str:
    """The line of an equation that holds programs, without these."""
    rule = print_rules.find(eqn.primitive)
    params = eqn.params if rule is None else rule(eqn.params)
    plain = {k: v for k, v in params.items() if not _holds_program(v)}
    listed = " ".join([f"{k}={v}" for k, v in plain.items()])
    left = " ".join([names(v, True) for v in eqn.outvars])
    right = f"{eqn.primitive.name}[{listed}] {' '.join([names(v) for v in eqn.invars])}"
    return f"{left} = {right}" if left else right


def _holds_program(x: Any) -> bool:
    return isinstance(x, Jaxpr) or (isinstance(x, tuple | list) and any(map(_holds_program, x)))


# ---- the gradient


def gradient_of(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Jaxpr:
    """Return the program of a function's vector-Jacobian product, by all its arguments of float dtypes.

    It takes the arguments, and a cotangent for each result of a float dtype.
    """
    leaves, tree = pytree.tree_flatten((tuple(args), kwargs))
    chosen = [i for i, x in enumerate(leaves) if is_inexact(aval_of(x).dtype)]

    def floats(*values):
        full = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            full[i] = value
        given, named = pytree.tree_unflatten(tree, full)
        return [x for x in pytree.tree_leaves(fun(*given, **named)) if is_inexact(aval_of(x).dtype)]

    def pulled(values, cotangents):
        return vjp(floats, *values)[1](cotangents)

    values = [leaves[i] for i in chosen]
    results = make_jaxpr(floats)(*values).out_avals
    return make_jaxpr(pulled)(values, list(results))


# ---- texts of compilers

_DEFINITION = re.compile(r'^(#loc\d*) = loc\((?:"(?P<file>[^"]*)":(?P<line>\d+)|"[^"]*"\((?P<of>#loc\d*)\))')
_USE = re.compile(r" ?loc\((#loc\d*)\)|\s?loc\(unknown\)|\s?loc\(\"[^\"]*\"\)")


def stablehlo_rows(text: str) -> list[Row]:
    """Return the rows of a module of StableHLO that was printed with its locations."""
    direct: dict[str, Any] = {}
    for line in text.splitlines():
        if found := _DEFINITION.match(line):
            direct[found[1]] = (found["file"], int(found["line"])) if found["file"] else found["of"]
    rows = []
    for line in text.splitlines():
        if line.startswith("#loc") or not line.strip():
            continue
        names = [name for name in _USE.findall(line) if name]
        place: Any = names[-1] if names else None
        while isinstance(place, str):
            place = direct.get(place)
        indent = len(line) - len(line.lstrip())
        rows.append(Row(_USE.sub("", line).strip(), place, indent // 2))
    return rows


_FRAME = re.compile(r"stack_frame_id=(\d+)")
_FILE = re.compile(r'source_file="([^"]*)"(?:.*?)source_line=(\d+)')
_METADATA = re.compile(r", metadata=\{[^}]*\}")
_ENTRY = re.compile(r"(\w+)=(\d+)")


def hlo_rows(text: str) -> list[Row]:
    """Return the rows of a compiled module. Its lines refer to tables of places at its top, or have places themselves."""
    files: dict[int, str] = {}
    locations: dict[int, dict[str, int]] = {}
    frames: dict[int, int] = {}
    rows, table = [], None
    for line in text.splitlines():
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = line
        elif table is not None and line[:1].isdigit():
            number, _, rest = line.partition(" ")
            if table == "FileNames":
                files[int(number)] = rest.strip('"')
            elif table == "FileLocations":
                locations[int(number)] = {k: int(v) for k, v in _ENTRY.findall(rest)}
            elif table == "StackFrames":
                frames[int(number)] = dict(_ENTRY.findall(rest)).get("file_location_id", 0)
        elif line.strip():
            table = None
            place = None
            if found := _FRAME.search(line):
                at = locations.get(int(frames.get(int(found[1]), 0)), {})
                place = (files[at["file_name_id"]], at["line"]) if at.get("file_name_id") in files else None
            elif found := _FILE.search(line):
                place = found[1], int(found[2])
            indent = len(line) - len(line.lstrip())
            rows.append(Row(_METADATA.sub("", line).strip(), place, indent // 2))
    return rows


_SCOPE = re.compile(r"\.([\w-]+)\.(\d+)(?:_\d+)?(?=/|$)")


def graph_rows(operations: Sequence[tuple[str, str, Sequence[str], int]], files: Sequence[str]) -> list[Row]:
    """Return the rows of a TensorFlow graph. The names of its operations hold the name of the file and the line.

    Args:
      operations: (name, kind, names of inputs, depth) of each.
      files: the files of the function's program.
    """
    stems = {file.rpartition("/")[2].rpartition("\\")[2].rpartition(".")[0]: file for file in files}
    rows = []
    for name, kind, inputs, depth in operations:
        found = [(stems[stem], int(line)) for stem, line in _SCOPE.findall(name) if stem in stems]
        rows.append(Row(f"{name} = {kind}({', '.join(inputs)})", found[-1] if found else None, depth))
    return rows


def tensorflow_operations(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the operations of a function's TensorFlow graph; see `bedrax.jax2tf.inspection.operations_of`.

    Raises:
      ImportError: the bridge to TensorFlow, or TensorFlow, is not installed.
    """
    try:
        operations = offers.offered("operations of a TensorFlow graph")
    except ImportError as error:
        raise ImportError(f"this column needs bedrax-jax2tf and TensorFlow: {error}") from None
    if operations is None:
        raise ImportError("this column needs bedrax-jax2tf and TensorFlow")
    return operations(fun, args, kwargs)
