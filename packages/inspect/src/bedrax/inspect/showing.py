"""Values in notebooks: what `_repr_html_` of arrays, programs, meshes, shardings and the stages of `jit` returns."""

from __future__ import annotations

import html
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import dtypes
from bedrax.inspect import programs
from bedrax.inspect.costs import bytes_of
from bedrax.inspect.paging import amount

SMALL = 1000
"""An array of at most this many elements is shown as text, with its elements."""

LARGEST = 1 << 28
"""The elements of an array of more bytes are not looked at."""

_STYLE = "font:12px/1.5 ui-monospace,monospace"
_CELL = "border:1px solid #8886;padding:.2em .6em;text-align:left;font-weight:400"


def html_of(kind: str, x: Any) -> str | None:
    """Return the HTML of a value; None if the text of the value shows all of it.

    Args:
      kind: ``"array"``, ``"program"``, ``"mesh"``, ``"sharding"`` or ``"stage"``.

    Examples:

      >>> from bedrax.inspect import showing
      >>> showing.html_of("array", jnp.ones(3)) is None  # small: the text has all elements
      True
      >>> "float32[5000]" in showing.html_of("array", jnp.ones(5000))
      True
    """
    return _KINDS[kind](x)


def _text(x: Any) -> str:
    return html.escape(str(x))


def _table(rows: Iterable[Sequence[Any]], head: Sequence[Any] = ()) -> str:
    def row(cells, tag):
        return "<tr>" + "".join([f'<{tag} style="{_CELL}">{_text(c)}</{tag}>' for c in cells]) + "</tr>"

    body = "".join([row(cells, "td") for cells in rows])
    return f'<table style="border-collapse:collapse;margin:.3em 0;{_STYLE}">{row(head, "th") if head else ""}{body}</table>'


def _titled(title: str, body: str) -> str:
    return f'<div style="margin:.3em 0"><div style="{_STYLE};font-weight:600">{_text(title)}</div>{body}</div>'


# ---- arrays


def _array(x: Any) -> str | None:
    if _deleted(x) or x.size <= SMALL or dtypes.is_extended(x.dtype):
        return None
    facts = {"size": amount(bytes_of(x)), "devices": _devices_of(x)}
    return _titled(x.aval.str_short(), _table([*facts.items(), *statistics(x).items()]))


def _deleted(x: Any) -> bool:
    return bool(getattr(x, "is_deleted", bool)())


def _devices_of(x: Any) -> str:
    place = getattr(x, "sharding", None)
    spec = getattr(place, "spec", None)
    devices = sorted(map(str, getattr(place, "device_set", ())))
    named = ", ".join(devices) if len(devices) <= 4 else f"{len(devices)} devices"
    return f"{named or 'host'}{'' if spec is None else f', {spec}'}"


def statistics(x: Any) -> dict[str, str]:
    """Return statistics of the elements of an array: least, mean, greatest, and the numbers of NaN and infinities.

    They are computed where the array is, and only numbers are moved. An array of more than 256 MB, or with parts in other
    processes, is not looked at.
    """
    if bytes_of(x) > LARGEST:
        return {"elements": f"not looked at: more than {amount(LARGEST)}"}
    if not getattr(x, "is_fully_addressable", True):
        return {"elements": "not looked at: parts are in other processes"}
    if dtypes.is_bool(x.dtype):
        return {"true": str(int(x.sum()))}
    if dtypes.is_complex(x.dtype):
        return {"mean": f"{complex(x.mean()):.4g}"}
    if dtypes.is_integer(x.dtype):
        return {
            "least": str(int(x.min())),
            "mean": f"{float(x.astype(np.float32).mean()):.4g}",
            "greatest": str(int(x.max())),
        }
    bad = x != x
    infinite = abs(x) == np.inf
    odd = int((bad | infinite).sum())
    found = {}
    if odd < x.size:
        good = ~(bad | infinite)
        values = x.astype(np.float32)
        found = {
            "least": f"{float(values.min(where=good, initial=np.inf)):.4g}",
            "mean": f"{float(values.mean(where=good)):.4g}",
            "greatest": f"{float(values.max(where=good, initial=-np.inf)):.4g}",
        }
    return {**found, "NaN": str(int(bad.sum())), "infinite": str(int(infinite.sum()))}


# ---- programs and stages


def _program(program: Any) -> str:
    rows = programs.rows_of(program)
    lines = []
    for row in rows[:500]:
        place = "" if row.place is None else f"{os.path.basename(row.place[0])}:{row.place[1]}"
        full = "" if row.place is None else f"{row.place[0]}:{row.place[1]}"
        lines.append(
            f'<tr title="{_text(full)}"><td style="text-align:left;white-space:pre-wrap;padding:0 1em 0 0">'
            f'{"  " * row.depth}{_text(row.text)}</td><td style="text-align:left;opacity:.6;padding:0">{_text(place)}</td></tr>'
        )
    more = f'<tr><td style="text-align:left">{len(rows) - 500} more lines</td></tr>' if len(rows) > 500 else ""
    count = f"{len(program.eqns)} equation{'' if len(program.eqns) == 1 else 's'}"
    return _titled(f"program: {count}", f'<table style="{_STYLE}">{"".join(lines)}{more}</table>')


def _stage(stage: Any) -> str:
    name = type(stage).__name__
    parts = []
    if name == "Traced":
        return _program(stage.jaxpr)
    if name == "Compiled":
        memory, costs = stage.memory_analysis(), stage.cost_analysis() or {}
        facts = {}
        if memory is not None:
            facts["arguments"] = amount(memory.argument_size_in_bytes)
            facts["results"] = amount(memory.output_size_in_bytes)
            facts["temporaries"] = amount(memory.temp_size_in_bytes)
        if "flops" in costs:
            facts["work"] = amount(costs["flops"], "flop")
        if "bytes accessed" in costs:
            facts["traffic"] = amount(costs["bytes accessed"])
        parts.append(_table(facts.items()))
    text = stage.as_text() or ""
    lines = text.splitlines()
    shown = "\n".join(lines[:2000]) + (f"\n{len(lines) - 2000} more lines" if len(lines) > 2000 else "")
    parts.append(
        f'<details><summary style="{_STYLE}">{len(lines)} lines of {"HLO" if name == "Compiled" else "StableHLO"}</summary>'
        f'<pre style="{_STYLE};max-height:30em;overflow:auto">{_text(shown)}</pre></details>'
    )
    return _titled(name.lower(), "".join(parts))


# ---- meshes and shardings

_COLORS = ("#8ecae6", "#ffb703", "#a3d9a5", "#e5989b", "#cdb4db", "#f4d58d", "#9bc1bc", "#f28482")
_SHOWN = 64  # cells of a picture at most


def _mesh(mesh: Any) -> str:
    axes = ", ".join([f"{name}={size}" for name, size in mesh.shape_tuple])
    kinds = ", ".join([str(t) for t in mesh.axis_types])
    rows = [("axes", axes or "none"), ("axis types", kinds or "none"), ("devices", mesh.size)]
    try:
        devices = mesh.devices
    except ValueError:  # an abstract mesh has none
        devices = None
    picture = ""
    if devices is not None and 0 < devices.size <= _SHOWN:
        grid = devices.reshape(-1, devices.shape[-1]) if devices.ndim > 1 else devices.reshape(1, -1)
        picture = _table([[str(d) for d in row] for row in grid])
    return _titled(type(mesh).__name__, _table(rows) + picture)


def _sharding(place: Any) -> str:
    rows = [("devices", _devices_of_sharding(place))]
    mesh, spec = getattr(place, "mesh", None), getattr(place, "spec", None)
    picture = ""
    if mesh is not None and spec is not None:
        rows = [("spec", spec), ("mesh", ", ".join([f"{n}={s}" for n, s in mesh.shape_tuple])), *rows]
        picture = _picture(place)
    if getattr(place, "memory_kind", None):
        rows.append(("memory", place.memory_kind))
    return _titled(type(place).__name__, _table(rows) + picture)


def _devices_of_sharding(place: Any) -> str:
    try:
        devices = sorted(map(str, place.device_set))
    except (AttributeError, ValueError):  # over an abstract mesh
        return "not chosen"
    return ", ".join(devices) if len(devices) <= 8 else f"{len(devices)}"


def _picture(place: Any) -> str:
    """A table with a cell for each block of an array: the devices that hold it. The first two axes that are split."""
    sizes = dict(place.mesh.shape_tuple)
    parts = []
    for entry in place.spec:
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        if any(name not in sizes for name in names):
            return ""
        parts.append(int(np.prod([sizes[name] for name in names], dtype=int)))
    split = [d for d, n in enumerate(parts) if n > 1]
    if not split or len(split) > 2 or np.prod(parts) > _SHOWN:
        return ""
    try:
        blocks = place.devices_indices_map(tuple(parts))
    except ValueError:  # over an abstract mesh
        return ""
    holders: dict[tuple[int, ...], list[str]] = {}
    for device, index in blocks.items():
        holders.setdefault(tuple([index[d].start or 0 for d in split]), []).append(str(device.id))
    shape = [parts[d] for d in split]
    rows, colors = [], itertools.cycle(_COLORS)
    for i in range(shape[0] if len(shape) > 1 else 1):
        cells = []
        for j in range(shape[-1]):
            held = ", ".join(holders.get((i, j) if len(shape) > 1 else (j,), []))
            cells.append(f'<td style="{_CELL};background:{next(colors)};color:#111">{_text(held)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    named = " and ".join([str(d) for d in split])
    return (
        f'<div style="{_STYLE}">blocks along axis {named}, with the numbers of their devices</div>'
        f'<table style="border-collapse:collapse;{_STYLE}">{"".join(rows)}</table>'
    )


_KINDS: Final[dict[str, Callable[[Any], str | None]]] = {
    "array": _array,
    "program": _program,
    "stage": _stage,
    "mesh": _mesh,
    "sharding": _sharding,
}
