"""Numbers of operations by line of the user's program, as a profile for pprof."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from bedrax.core import source
from bedrax.core.ir import Jaxpr
from bedrax.core.passes import programs_in
from bedrax.xla_backend.door import runtime

Stack = tuple[source.Source, ...]  # the innermost place first


def counted(jaxpr: Jaxpr) -> Counter[tuple[Stack, str]]:
    """The number of operations by place and name.

    A place is followed by those of the operations around it: `jit`, loops and branches. A program that several of
    them share counts once, at the first, as it is compiled once.
    """
    found: Counter[tuple[Stack, str]] = Counter()
    seen, waiting = {jaxpr}, [(jaxpr, ())]
    while waiting:
        program, around = waiting.pop()
        for eqn in program.eqns:
            place = eqn.source_info[:2] if eqn.source_info and eqn.source_info[0] is not None else None
            stack = around if place is None else (place, *around)
            found[stack, eqn.primitive.name] += 1
            inner = [p for p in programs_in(eqn) if p not in seen]
            seen.update(inner)
            waiting += [(p, stack) for p in inner]
    return found


def as_pprof(counts: Counter[tuple[Stack, str]]) -> bytes:
    """A profile with one sample for each place and name; see pprof's ``profile.proto`` for its fields."""
    texts: dict[str, int] = {"": 0}
    functions: dict[Any, dict[str, int]] = {}
    locations: dict[source.Source, dict[str, Any]] = {}

    def text(x: str) -> int:
        return texts.setdefault(x, len(texts))

    def location(place: source.Source) -> int:
        if place not in locations:
            code = place[0]
            function = functions.setdefault(
                code,
                {
                    "id": len(functions) + 1,
                    "name": text(code.co_qualname),
                    "filename": text(code.co_filename),
                    "start_line": code.co_firstlineno,
                },
            )
            line = {"function_id": function["id"], "line": source.line_of(place)}
            locations[place] = {"id": len(locations) + 1, "line": [line]}
        return locations[place]["id"]

    samples = [
        {
            "location_id": [location(place) for place in stack],
            "value": [count],
            "label": [{"key": text("primitive"), "str": text(name)}],
        }
        for (stack, name), count in counts.items()
    ]
    profile = {
        "sample_type": [{"type": text("equations"), "unit": text("count")}],
        "sample": samples,
        "location": [*locations.values()],
        "function": [*functions.values()],
        "string_table": [*texts],
    }
    return runtime.json_to_pprof_profile(json.dumps(profile))
