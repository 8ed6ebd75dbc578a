"""Run the code of the mission documents, block by block, with the rows of `mission.toml`.

    python tools/run_mission.py FOLDER [NAME...]

FOLDER holds the documents; NAMES are beginnings of their names (default: all). The blocks of a document share one
namespace. Errors are: a block that fails, a row without a block. The documents are only read.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
import tomllib
import traceback
import warnings
from pathlib import Path

FENCED = re.compile(r"^[ ]*```\S*\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
TABLE = Path(__file__).with_name("mission.toml")
KEYS = {"indent", "before", "edits", "prints", "raises", "warns", "options", "code", "skip"}


def blocks_of(text, rows):
    """The blocks of a document by their keys: all blocks between fences, or the lines that the rows name."""
    if fenced := {str(n): m[1] for n, m in enumerate(FENCED.finditer(text))}:
        return fenced
    lines, found = text.splitlines(), {}
    for key in rows:
        first, last = map(int, key.split("-"))
        found[key] = "\n".join(lines[first - 1 : last]) + "\n"
    return {key: block for key, block in found.items() if block.strip()}


def code_of(block, row):
    """The block as Python code: indented again, without prompts, output, and commands of notebooks."""
    if re.search(r"^\s*>>>", block, re.MULTILINE):
        lines = [re.sub(r"^\s*(>>>|\.\.\.) ?", "", x) for x in block.splitlines() if re.match(r"\s*(>>>|\.\.\.)", x)]
    else:
        lines = textwrap.dedent(block).splitlines()
    if levels := row.get("indent"):
        lines = [x for x in lines if x.strip()]
        if len(levels) != len(lines):
            raise ValueError(f"{len(levels)} levels of indentation for {len(lines)} lines")
        lines = ["  " * int(level) + x.strip() for level, x in zip(levels, lines, strict=True)]
    lines = [re.sub(r"^(\s*)%\w+( -\S+)* ", r"\1", x) for x in lines]
    text = "\n".join(lines) + "\n"
    for pattern, replacement in row.get("edits", ()):
        changed = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        if changed == text:
            raise ValueError(f"{pattern!r} occurs nowhere in the block")
        text = changed
    return text


def run(row, code, namespace):
    """Run a block. Returns a description of the problem, or None."""
    import jax

    printed, error = io.StringIO(), None
    saved = {name: getattr(jax.config, name) for name in row.get("options", ())}
    for name, value in row.get("options", {}).items():
        jax.config.update(name, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(printed):
                exec(row.get("before", ""), namespace)
                exec(compile(code, "<block>", "exec", dont_inherit=True), namespace)
        except Exception as e:
            error = e
        finally:
            for name, value in saved.items():
                jax.config.update(name, value)
    squeezed, raises, warns = " ".join(printed.getvalue().split()), row.get("raises"), row.get("warns", "")
    if error is not None and not raises:
        return "".join(traceback.format_exception(error)[-3:])
    if raises and (error is None or raises.lower() not in f"{type(error).__name__}: {error}".lower()):
        return f"an error with {raises!r} is expected, got {error!r}"
    if warns and not any(warns in str(w.message) for w in caught):
        return f"a warning with {warns!r} is expected, got {[str(w.message) for w in caught]}"
    if row.get("prints", "") not in squeezed:
        return f"{row['prints']!r} should be printed, got {squeezed!r}"
    return None


def run_document(text, rows):
    """Run all blocks of a document in one namespace. Returns (number of blocks that ran, problems)."""
    blocks, ran = blocks_of(text, rows), 0
    wrong = [f"row {key} has no block" for key in rows if key not in blocks]
    wrong += [f"row {key}: unknown {sorted(row.keys() - KEYS)}" for key, row in rows.items() if row.keys() - KEYS]
    with tempfile.TemporaryDirectory() as folder:
        namespace = {"__name__": "__main__", "FOLDER": folder}
        for key, block in blocks.items():
            row = rows.get(key, {})
            if "skip" in row:
                continue
            ran += 1
            try:
                problem = run(row, code_of(blocks[str(row["code"])] if "code" in row else block, row), namespace)
            except ValueError as error:
                problem = str(error)
            if problem:
                wrong.append(f"block {key}: {problem}")
    return ran, wrong


def main(folder, *names):
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    failed = 0
    for name, rows in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        if not names or any(name.startswith(n) for n in names):
            (path,) = Path(folder).glob(f"{name}*")
            ran, wrong = run_document(path.read_text(encoding="utf-8"), rows)
            print(f"{name}: {ran} blocks run, {len(wrong)} problems", flush=True)
            print("".join(f"  {w}\n" for w in wrong), end="", flush=True)
            failed += len(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
