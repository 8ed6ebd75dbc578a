"""`explain`: the exchanges of a compiled program between devices, its memory on a device, and lower bounds of their
times."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, NamedTuple

import numpy as np

from bedrax.core import executors
from bedrax.core.jitting import jit

__all__ = ["Collective", "Explanation", "explain"]

# The bytes that each device of a group of n sends for its operand of b bytes (of a gather: its result), and the steps,
# on a ring.
_RING: dict[str, tuple[Callable[[float, int], float], Callable[[int], int]]] = {
    "all-reduce": (lambda b, n: 2 * b * (n - 1) / n, lambda n: 2 * (n - 1)),
    "all-gather": (lambda b, n: b * (n - 1) / n, lambda n: n - 1),
    "reduce-scatter": (lambda b, n: b * (n - 1) / n, lambda n: n - 1),
    "all-to-all": (lambda b, n: b * (n - 1) / n, lambda n: n - 1),
    "collective-permute": (lambda b, n: b, lambda n: 1),
    "collective-broadcast": (lambda b, n: b, lambda n: n - 1),
    "ragged-all-to-all": (lambda b, n: b * (n - 1) / n, lambda n: n - 1),
}


class Collective(NamedTuple):
    """Collectives of one kind, along the same axes, of the same size.

    Attributes:
      kind: XLA's name.
      axes: the axes of the mesh; None if its groups follow no axes.
      group: the number of devices in a group.
      bytes: the size of a device's operand (of a gather: its result).
      count: the number of executions per device.
      sent: the bytes that a device sends for all of them, on a ring.
      seconds: the time of this.
    """

    kind: str
    axes: tuple[str, ...] | None
    group: int
    bytes: int
    count: int
    sent: float
    seconds: float


class Explanation(NamedTuple):
    """The work of a program on each device. As text: a table.

    Attributes:
      collectives: the exchanges, the longest first.
      memory: bytes on a device: ``arguments``, ``results``, ``temporaries``, and ``shared``, which are counted twice.
      moved: bytes that operations read and write in a device's memory.
      memory_seconds: the time of this.
      open_loops: loops of unknown length; their bodies count once.
      devices: the number of devices.
    """

    collectives: list[Collective]
    memory: dict[str, int]
    moved: int
    memory_seconds: float
    open_loops: int
    devices: int

    @property
    def seconds(self) -> float:
        """The time of the exchanges only."""
        return sum(c.seconds for c in self.collectives)

    @property
    def sent(self) -> float:
        """Bytes that a device sends."""
        return sum(c.sent for c in self.collectives)

    def __str__(self) -> str:
        rows = [("collective", "axes", "group", "bytes", "count", "sent", "time")]
        for c in self.collectives:
            axes = "?" if c.axes is None else ",".join(map(str, c.axes))
            rows.append(
                (c.kind, axes, str(c.group), _amount(c.bytes), str(c.count), _amount(c.sent), _duration(c.seconds))
            )
        rows.append(
            (
                "all",
                "",
                "",
                "",
                str(sum(c.count for c in self.collectives)),
                _amount(self.sent),
                _duration(self.seconds),
            )
        )
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            "  ".join(x.ljust(w) if i < 2 else x.rjust(w) for i, (x, w) in enumerate(zip(r, widths))) for r in rows
        ]
        lines.insert(1, "  ".join("-" * w for w in widths))
        kept = ", ".join(f"{what} {_amount(n)}" for what, n in self.memory.items())
        lines.append(f"memory of a device: {kept}")
        lines.append(f"read and written there: {_amount(self.moved)}, {_duration(self.memory_seconds)}")
        if self.open_loops:
            lines.append(f"loops of an unknown number of rounds, counted as one: {self.open_loops}")
        return "\n".join(lines)

    def svg(self, width: int = 640) -> str:
        """A picture: a bar per row of the table, with its time as its length, and one for the memory."""
        bars = [
            (f"{c.kind} {','.join(map(str, c.axes or ('?',)))} ({c.count}x)", c.seconds, "#4269d0")
            for c in self.collectives
        ]
        bars.append(("memory", self.memory_seconds, "#9c6b4e"))
        longest = max([t for _, t, _ in bars] or [0]) or 1
        parts = []
        for i, (label, seconds, color) in enumerate(bars):
            y, length = 8 + 22 * i, max(1, round((width - 330) * seconds / longest))
            parts.append(f'<text x="8" y="{y + 12}">{escape(label)}</text>')
            parts.append(f'<rect x="240" y="{y}" width="{length}" height="16" fill="{color}"/>')
            parts.append(f'<text x="{246 + length}" y="{y + 12}">{_duration(seconds)}</text>')
        height = 14 + 22 * len(bars)
        style = 'font-family="sans-serif" font-size="12"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {style}>{"".join(parts)}</svg>\n'


def explain(
    fn: Callable[..., Any],
    *args: Any,
    mesh: Any,
    link: float = 50e9,
    latency: float = 1e-6,
    memory: float = 1e12,
    **kwargs: Any,
) -> Explanation:
    """Compile a function for its arguments, and analyse the exchanges and memory of the program. Nothing is run.

    Args:
      fn: a function, jitted or not.
      args, kwargs: its arguments: arrays, or `ShapeDtypeStruct`s with a sharding.
      mesh: the devices; exchanges are described by its axes.
      link: bytes that a device sends in a second.
      latency: seconds of one step of an exchange.
      memory: bytes that a device reads or writes in a second.

    Returns:
      An `Explanation`. Times are lower bounds: without overlap or waiting, and with rings for all exchanges.

    Raises:
      NotImplementedError: the executor does not compile.
    """
    jitted = fn if hasattr(fn, "lower") else jit(fn)
    if not hasattr(jitted, "lower"):
        raise NotImplementedError(
            f"explain reads compiled programs, and the {executors.get().name} executor compiles none; install"
            " bedrax-xla-backend (or jax)"
        )
    compiled = jitted.lower(*args, **kwargs).compile()
    program = _Program(compiled.as_text())
    found: Counter[Any] = Counter()
    for op, times in program.executed():
        kind = op.kind.removesuffix("-start")
        if kind in _RING:
            groups = _groups(op.text, mesh.size)
            found[kind, _axes(groups, mesh, kind), max(map(len, groups)), op.exchanged(kind)] += times
    collectives = []
    for (kind, axes, n, size), count in found.items():
        volume, steps = _RING[kind]
        sent = count * volume(size, n)
        seconds = sent / link + count * steps(n) * latency
        collectives.append(Collective(kind, axes, n, size, count, sent, seconds))
    moved = sum(op.moved * times for op, times in program.executed())
    stats = compiled.memory_analysis()
    kept = dict(
        arguments=stats.argument_size_in_bytes,
        results=stats.output_size_in_bytes,
        temporaries=stats.temp_size_in_bytes,
        shared=stats.alias_size_in_bytes,
    )
    collectives.sort(key=lambda c: (-c.seconds, c.kind))
    return Explanation(collectives, kept, moved, moved / memory, program.open_loops, mesh.size)


# ---- the text of a compiled program

_WIDTHS = {"pred": 1, "token": 0}
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][a-z0-9\-]*)\((.*)$")
_SHAPE = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")
_NO_TRAFFIC = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call"}


def _bytes(types: str) -> int:
    """Size of the arrays of a type in XLA's text form."""
    total = 0
    for kind, bits, shape in _SHAPE.findall(types):
        width = _WIDTHS[kind] if kind in _WIDTHS else int(bits or 8) / 8
        total += math.ceil(width * math.prod(int(n) for n in shape.split(",") if n))
    return total


class _Operation(NamedTuple):
    kind: str
    result: int  # bytes
    operands: int
    text: str

    @property
    def moved(self) -> int:
        return 0 if self.kind in _NO_TRAFFIC or self.kind.endswith("-done") else self.result + self.operands

    def exchanged(self, kind: str) -> int:
        # The start of an asynchronous exchange has operand and result in its type.
        result = self.result - self.operands if self.kind.endswith("-start") and kind == "all-gather" else self.result
        return result if kind == "all-gather" else self.operands


class _Program:
    """A program: its computations, each a list of operations."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[_Operation]] = {}
        self.entry = ""
        self.open_loops = 0
        sizes: dict[str, int] = {}
        current: list[_Operation] = []
        for line in text.splitlines():
            operation = _OPERATION.match(line)
            if operation:
                name, types, kind, rest = operation.groups()
                sizes[name] = _bytes(types)
                names = re.findall(r"%([\w.\-]+)", rest.split("), ")[0])
                current.append(_Operation(kind, sizes[name], sum(sizes.get(n, 0) for n in names), rest))
                continue
            header = _HEADER.match(line)
            if header and not line.startswith("HloModule"):
                current = self.computations.setdefault(header[2], [])
                if header[1]:
                    self.entry = header[2]

    def executed(self) -> Iterator[tuple[_Operation, int]]:
        """The operations that a device runs, and their number of executions."""
        self.open_loops = 0
        yield from self._run(self.entry, 1)

    def _run(self, name: str, times: int) -> Iterator[tuple[_Operation, int]]:
        for op in self.computations.get(name, ()):
            yield op, times
            rounds = 1
            if op.kind == "while":
                known = re.search(r'"known_trip_count":\{"n":"(\d+)"', op.text)
                self.open_loops += known is None
                rounds = int(known[1]) if known else 1
            if op.kind in ("while", "call", "conditional", "async-start"):
                for inner in re.findall(
                    r"(?:body|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)", op.text
                ):
                    yield from self._run(inner, times * rounds)
                for branches in re.findall(r"branch_computations=\{([^}]*)\}", op.text):
                    for inner in branches.split(", "):
                        yield from self._run(inner.lstrip("%"), times)


def _groups(text: str, count: int) -> list[list[int]]:
    """The groups of devices that exchange values, as rows; for a permutation, pairs of source and target."""
    listed = re.search(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,{}]*\})\}", text)
    if listed:
        return [[int(i) for i in row.split(",")] for row in re.findall(r"\{([\d,]+)\}", listed[1])]
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if iota:
        ids = np.arange(count).reshape([int(n) for n in iota[3].split(",")])
        if iota[4]:
            ids = ids.transpose([int(n) for n in iota[4].split(",")])
        return ids.reshape(int(iota[1]), int(iota[2])).tolist()
    return [list(range(count))]


def _axes(groups: list[list[int]], mesh: Any, kind: str) -> tuple[str, ...] | None:
    """The fewest axes of a mesh along which exactly the members of a group differ."""
    ids = np.arange(mesh.size).reshape(mesh.axis_sizes)
    for count in range(1, len(mesh.axis_names) + 1):
        for places in itertools.combinations(range(len(mesh.axis_names)), count):
            rows = np.moveaxis(ids, places, range(-count, 0)).reshape(-1, math.prod(ids.shape[i] for i in places))
            whole = [frozenset(row) for row in rows.tolist()]
            if kind == "collective-permute":
                fits = all(any({s, t} <= row for row in whole) for s, t in groups)
            else:
                fits = {frozenset(row) for row in groups} == set(whole)
            if fits:
                return tuple(mesh.axis_names[i] for i in places)
    return None


def _amount(count: float) -> str:
    """Bytes as text, in a suitable unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _duration(seconds: float) -> str:
    """Seconds as text, in a suitable unit."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
