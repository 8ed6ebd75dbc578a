"""`page`: one HTML page that shows a function's program in all its forms, side by side."""

from __future__ import annotations

import contextlib
import html
import importlib.resources
import inspect
import json
import linecache
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from bedrax import pytree
from bedrax.core import retracing, source
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit
from bedrax.core.signatures import leaf_names
from bedrax.inspect import costs, programs
from bedrax.inspect.programs import Row

ROWS: Final = 5000
"""The lines of a column at most."""


class Page:
    """A page about the program of a function. A notebook shows it; `save` writes it.

    Attributes:
      title: the name of the function, and the place of its definition.
      data: what the page shows, as JSON can hold it: `columns` (each with a name, rows and an error), `files`, `facts`,
        `memory`, `placement`, `retraces`.
    """

    def __init__(self, title: str, data: dict[str, Any]) -> None:
        self.title: str = title
        self.data: dict[str, Any] = data

    def html(self) -> str:
        """Return the page: one document that needs no network and no other file."""
        template = (importlib.resources.files(__package__) / "page.html").read_text(encoding="utf-8")
        data = json.dumps(self.data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
        return template.replace("{{title}}", html.escape(self.title)).replace("{{data}}", data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file. Returns its path."""
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        document = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{document}" style="width:100%;height:46em;border:0" title="{html.escape(self.title)}"></iframe>'

    def __repr__(self) -> str:
        return f"Page({self.title!r})"


def page(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Page:
    """Return a page about the program that a function becomes for some arguments. Nothing is run.

    Its columns are the jaxpr, the program of the gradient, StableHLO, the optimised HLO of the device, and the graph of
    TensorFlow if that is installed. A line of the source and the lines that it became are highlighted together. Equations
    have estimates of their work; the page also has the memory along the program, the placement of arguments and results,
    and the reasons of earlier traces of the function.

    Args:
      fun: a function, jitted or not.
      args, kwargs: its arguments: arrays, or `ShapeDtypeStruct`s.

    Examples:

      >>> from bedrax import inspect
      >>> def loss(w, x):
      ...     return jnp.sum(jnp.tanh(x @ w) ** 2)
      ...
      >>> page = inspect.page(loss, jnp.ones((3, 2)), jnp.ones((4, 3)))
      >>> [column["name"] for column in page.data["columns"]]
      ['jaxpr', 'gradient', 'StableHLO', 'optimised HLO', 'TensorFlow']
      >>> page.data["facts"]["results"]
      '4 B'
    """
    return make(fun, args, kwargs)


def make(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    step: Callable[[str], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
) -> Page:
    """See `page`. Each column is made inside ``step(text)``."""
    call = programs.place_of(source.user_frame())
    plain = inspect.unwrap(fun)
    retraces = [r._asdict() for r in retracing.of(plain)]  # those before this function
    jitted = fun if hasattr(fun, "lower") else jit(fun)
    if not hasattr(jitted, "lower"):
        raise NotImplementedError("a page shows compiled programs: install bedrax-xla-backend (or jax)")
    with step("compiling"):
        traced = jitted.trace(*args, **kwargs)
        lowered = traced.lower()
        compiled = lowered.compile()
    program = traced.jaxpr
    rows = programs.rows_of(program)
    files = list(dict.fromkeys(row.place[0] for row in rows if row.place))
    forms: dict[str, tuple[str, Callable[[], list[Row]]]] = {
        "jaxpr": ("recorded operations, flop · bytes", lambda: rows),
        "gradient": (
            "by all float arguments, flop · bytes",
            lambda: programs.rows_of(programs.gradient_of(fun, args, kwargs)),
        ),
        "StableHLO": ("for the compiler", lambda: programs.stablehlo_rows(lowered.as_text(debug_info=True))),
        "optimised HLO": ("for the device", lambda: programs.hlo_rows(compiled.as_text())),
        "TensorFlow": (
            "as ordinary operations",
            lambda: programs.graph_rows(programs.tensorflow_operations(fun, args, kwargs), files),
        ),
    }
    columns = []
    for name, (about, made) in forms.items():
        with step(name):
            columns.append(_column(name, about, call, made))
    name = getattr(plain, "__name__", None) or type(plain).__name__
    data = dict(
        title=name,
        where=source.describe_function(fun).partition(" at ")[2],
        columns=columns,
        files=_excerpts(columns, plain),
        facts=_facts(program, compiled),
        memory=[dict(live=s.live, inside=s.inside) for s in costs.memory_along(program)],
        placement=_placement(plain, args, kwargs, traced, compiled),
        retraces=retraces,
    )
    return Page(source.describe_function(fun), data)


def _column(name: str, about: str, call: Any, rows: Callable[[], list[Row]]) -> dict[str, Any]:
    """A column, or the reason for which it does not exist. `call` is the place of the call of `page`, which is not a link."""

    def key(place):
        return None if place is None or place == call else f"{place[0]}:{place[1]}"

    try:
        found = [[r.text, key(r.place), r.depth, r.flops, r.moved, r.step] for r in rows()]
    except Exception as error:
        return dict(name=name, about=about, rows=[], error=f"{type(error).__name__}: {error}")
    if len(found) > ROWS:
        found = [*found[:ROWS], [f"{len(found) - ROWS} more lines", None, 0, None, None, None]]
    return dict(name=name, about=about, rows=found, error=None)


def _excerpts(columns: Sequence[dict[str, Any]], fun: Any) -> list[dict[str, Any]]:
    """The lines of each file that the columns refer to, with three around them, and the definition of the function."""
    used: dict[str, set[int]] = {}
    for column in columns:
        for row in column["rows"]:
            if row[1]:
                file, _, line = row[1].rpartition(":")
                used.setdefault(file, set()).add(int(line))
    code = getattr(fun, "__code__", None)
    if code is not None:
        used.setdefault(code.co_filename, set()).add(code.co_firstlineno)
    found = []
    for file, lines in used.items():
        shown = sorted({n for line in lines for n in range(line - 3, line + 4) if n > 0})
        texts = [(n, linecache.getline(file, n).rstrip("\n")) for n in shown]
        end = len(linecache.getlines(file))
        found.append(dict(file=file, name=os.path.basename(file), lines=[t for t in texts if t[0] <= end]))
    return found


def amount(n: float, unit: str = "B") -> str:
    """Return a number with a unit, in the decimal steps that people use: ``1.5 MB``."""
    prefixes = ["", "k", "M", "G", "T", "P"]
    while abs(n) >= 1000 and len(prefixes) > 1:
        n /= 1000
        prefixes.pop(0)
    return f"{n:.3g} {prefixes[0]}{unit}"


def _facts(program: Any, compiled: Any) -> dict[str, str]:
    estimate = costs.cost_of_program(program)
    facts = {
        "equations": str(len(program.eqns)),
        "estimated work": "not known" if estimate.flops is None else amount(estimate.flops, "flop"),
        "estimated traffic": amount(estimate.moved),
    }
    if estimate.open:
        facts["loops of unknown length"] = "counted as one round"
    measured = compiled.cost_analysis() or {}
    if "flops" in measured:
        facts["compiled work"] = amount(measured["flops"], "flop")
    if "bytes accessed" in measured:
        facts["compiled traffic"] = amount(measured["bytes accessed"])
    memory = compiled.memory_analysis()
    if memory is not None:
        facts["arguments"] = amount(memory.argument_size_in_bytes)
        facts["results"] = amount(memory.output_size_in_bytes)
        facts["temporaries"] = amount(memory.temp_size_in_bytes)
    return facts


# ---- placement


def _placement(
    fun: Any, args: Sequence[Any], kwargs: dict[str, Any], traced: Any, compiled: Any
) -> list[dict[str, Any]]:
    """A row for each argument and result: its type, and for each dimension the mesh axes over which it is split."""
    tree = pytree.tree_structure((tuple(args), kwargs))
    try:
        names: Iterable[str] = leaf_names(fun, tree)
    except (TypeError, ValueError):
        names = [f"argument {i}" for i in range(tree.num_leaves)]
    types = [aval_of(x) if not hasattr(x, "update") else x for x in pytree.tree_leaves((tuple(args), kwargs))]
    given = pytree.tree_leaves(compiled.input_shardings)
    rows = [_placed(*row, what="argument") for row in zip(names, types, given, strict=False)]
    results = pytree.tree_flatten_with_path(traced.out_info)[0]
    places = pytree.tree_leaves(compiled.output_shardings)
    named = [f"result{pytree.keystr(path)}" for path, _ in results]
    rows += [_placed(*row, what="result") for row in zip(named, [t for _, t in results], places, strict=False)]
    return rows


def _placed(name: str, aval: Any, place: Any, what: str) -> dict[str, Any]:
    shape = tuple(getattr(aval, "shape", ()))
    spec = getattr(place, "spec", None)
    entries: list[str] = []
    for i in range(len(shape)):
        entry = None if spec is None or i >= len(spec) else spec[i]
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        entries.append(" × ".join(map(str, axes)))
    devices = sorted(map(str, getattr(place, "device_set", ())))
    return dict(
        name=name,
        what=what,
        dtype=str(getattr(aval, "dtype", aval)),
        shape=[str(n) for n in shape],
        axes=entries,
        bytes=amount(costs.bytes_of(aval)),
        devices=", ".join(devices) if len(devices) <= 4 else f"{len(devices)} devices",
    )
