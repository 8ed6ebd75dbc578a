"""Write the pages on the surface: the public functions with a record, their modes, and the known gaps.

python tools/surface.py            writes build/evidence/surface.md and ignored.md, pages of the manual
"""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
EVIDENCE = ROOT / "build" / "evidence"
sys.path.insert(0, str(ROOT / "tests" / "surface"))
HEAD = """# The public functions, and what can be done to them

This page is made from the tables under `tests/surface`. Each function is
called with the arguments of its record (`records.py`) in each mode (`modes.py`), where the mode applies; a public
function without a record fails. `uv run nox -s surface` runs all of it, the default tests a sample.
"""
IGNORED_HEAD = """# What is accepted and changes nothing

This page is made from `tests/surface/ignored.py` and `bedrax/extend/flags.py`. Every other
parameter of a public function is read, and every other option acts; a test looks. Setting one of these options to
another value than its default warns with its reason.
"""


def page() -> str:
    """Return the text of the page."""
    import known_gaps
    import modes
    import records

    functions = dict(records.public_functions())
    lines = [HEAD, "| mode | condition | known gaps |", "|---|---|---|"]
    home = lambda name: "Array.at[...]" if name.startswith("Array.at[") else name.rpartition(".")[0]
    missing = Counter(mode for _, mode in known_gaps.KNOWN_GAPS)
    for name, mode in modes.MODES.items():
        lines.append(f"| {name} | {' '.join((mode.__doc__ or '').split())} | {missing[name] or ''} |")
    lines += ["", "| module | functions | tried here | tested elsewhere | known gaps |", "|---|---|---|---|---|"]
    for module in ("Array", "Array.at[...]", *records.MODULES):
        own = [n for n in functions if home(n) == module]
        away = sum(n in records.ELSEWHERE for n in own)
        bad = sum(home(name) == module for name, _ in known_gaps.KNOWN_GAPS)
        lines.append(f"| `jax.{module}` | {len(own)} | {len(own) - away} | {away or ''} | {bad or ''} |")
    lines += ["", "## Holes", ""]
    reasons: dict[str, list] = {}
    for (name, mode), why in sorted(known_gaps.KNOWN_GAPS.items()):
        reasons.setdefault(why, []).append(f"`{name}` ({mode})")
    lines += [f"- {why}: {', '.join(where)}" for why, where in reasons.items()] or ["None."]
    return "\n".join(lines) + "\n"


def ignored_page() -> str:
    """The table of exceptions: arguments and options that are accepted and change nothing."""
    from ignored import IGNORED

    from bedrax.extend.flags import INERT

    lines = [IGNORED_HEAD, "## Arguments", ""]
    lines += [f"- {why}: {', '.join(f'`{name}`' for name in sorted(names))}" for why, names in IGNORED.items()]
    lines += ["", "## Options", ""]
    lines += [f"- {why}: {', '.join(f'`{row[0]}`' for row in rows)}" for why, rows in INERT.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    for name, text in (("surface", page()), ("ignored", ignored_page())):
        (EVIDENCE / f"{name}.md").write_text(text, encoding="utf-8")
