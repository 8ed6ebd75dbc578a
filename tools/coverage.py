"""Print the matrix of primitives (rows) and rule tables (columns) from the live tables.

        python tools/coverage.py            writes build/evidence/coverage.md, a page of the manual

A cell holds the kind of its rule. `-` with a number is an absence, with its reason below the table. An
empty cell is a lookup that raises NotImplementedError.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

import bedrax
from bedrax.core.columns import Column
from bedrax.core.tracing import Primitive
from bedrax.extend import flags, refused, unsupported
from bedrax.xla_backend import platforms
from bedrax.xla_backend.tables import on_platform

PAGE = Path(__file__).parents[1] / "build" / "evidence" / "coverage.md"
HEAD = """# Which primitive has which rule

This page is made from the live tables. A cell holds the kind of its rule.
`composed`: the operation is evaluated as a composition of other operations. `TF ops` are plain TensorFlow
operations, with and without `enable_xla`: no rule uses TensorFlow's XLA operations. A number is an absence; its
reason stands below the table. An empty cell is a lookup that raises `NotImplementedError`. Most cells of the
columns of transposition and linearization are empty: only linear primitives are transposed, and only primitives
that hold programs have a rule of their own for linearization.
"""


def import_everything():
    """Import every module of every installed package of the namespace."""
    skipped = ("bedrax.testing",)

    def fail(name):
        raise ImportError(f"cannot import {name}")

    for module in pkgutil.walk_packages(bedrax.__path__, "bedrax.", onerror=fail):
        if not module.name.endswith("__main__") and not module.name.startswith(skipped):
            importlib.import_module(module.name)


def instances(kind):
    """The named instances of `kind` in the modules of bedrax, each once, in the order of import."""
    modules = [m for name, m in list(sys.modules.items()) if name.split(".")[0] == "bedrax"]
    return list({id(v): v for m in modules for v in vars(m).values() if isinstance(v, kind)}.values())


def cell(table, prim, reasons):
    kind = table.kind(prim)
    if kind == "absent":
        why = f"{table.name}: {table.absences[prim]}"
        return str(reasons.setdefault(why, len(reasons) + 1))
    return kind or ""


def page():
    columns = [*instances(Column), *map(on_platform, platforms.PLATFORMS)]
    tables = [column for column in columns if column.package]
    columns_in_primitives = [column for column in columns if not column.package]  # the primitive's module has the rule
    primitives = sorted(instances(Primitive), key=lambda prim: prim.name)
    families = sorted({prim.family for prim in primitives}, key=lambda family: (not family, family))
    for table in tables:
        for family in families:
            table.load(family)
    lines = [HEAD]
    filled = {table.name: 0 for table in tables}
    for family in families:
        reasons = {}
        lines += [f"\n## {family or 'Primitives whose owner registers every rule'}\n"]
        lines += [f"| primitive | {' | '.join(table.name for table in tables)} | rules with the primitive |"]
        lines += ["|---" * (len(tables) + 2) + "|"]
        for prim in primitives:
            if prim.family == family:
                cells = [cell(table, prim, reasons) for table in tables]
                for table, text in zip(tables, cells, strict=True):
                    filled[table.name] += bool(text)
                stated = ", ".join(column.name for column in columns_in_primitives if column.states(prim))
                lines += [f"| `{prim.name}` | {' | '.join(cells)} | {stated} |"]
        lines += [""] * bool(reasons) + [f"{number}. {why}" for why, number in reasons.items()]
    lines += ["\n## Names that raise\n", "They can be imported; their use raises `NotImplementedError`.\n"]
    lines += ["| names | why |", "|---|---|"]
    for why in dict.fromkeys(unsupported.reasons.values()):
        names = ", ".join(f"`{name}`" for name, reason in unsupported.reasons.items() if reason == why)
        lines += [f"| {names} | {why} |"]
    for module, groups in refused.refused.items():
        lines += [
            f"| `{module}`: {', '.join(f'`{name}`' for name in names.split())} | {why} |" for why, names in groups
        ]
    lines += ["\n## Names that are absent\n", "| name | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in unsupported.missing.items()]
    lines += ["\n## Options that change nothing\n", "| options | why |", "|---|---|"]
    for why, rows in flags.INERT.items():
        lines += [f"| {', '.join(f'`{row[0]}`' for row in rows)} | {why} |"]
    lines += ["\n## In numbers\n", "| column | rules and explained absences | of |", "|---|---|---|"]
    lines += [f"| {column} | {count} | {len(primitives)} |" for column, count in filled.items()]
    for column in columns_in_primitives:
        count = sum(column.states(prim) for prim in primitives)
        lines += [f"| {column.name} (rules with the primitives) | {count} | {len(primitives)} |"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import_everything()
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
