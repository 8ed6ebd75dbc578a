"""Run the code of the mission documents, block by block, according to `mission_blocks`.

    python tools/run_mission.py FOLDER [NAME...]

FOLDER holds the documents; NAMES are beginnings of their names (default: all). Errors are: a block that should run and
fails, a block without a row, a row without a block. The documents are only read.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
import traceback
import warnings
from pathlib import Path

from mission_blocks import DOCUMENTS

FENCED = re.compile(r"^[ ]*```\S*\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
# The pattern of a line of code in a document without fences.
CODE = re.compile(
    r"^\s*(def |class |import |from \w+ import |for .*:$|with .*:$|return |print\(|assert |[\w, ]+ = |[\w.]+\(.*\)\s*(#.*)?$"
    r"|[\w.]+\([^ ]*lambda)"
)


def plain(line):
    return re.sub(r"\s+", "", line)


def blocks_of(text, rows, fenced, known=()):
    """The block of each row by its `at`, and complaints about blocks without a row and rows without a block."""
    if fenced:
        found = dict(enumerate(m[1] for m in FENCED.finditer(text)))
        named = {row.at for row in rows}
        wrong = [f"block {n} has no row" for n in found if n not in named]
        return found, wrong + [f"row {n} has no block" for n in named if n not in found]
    lines = text.splitlines()
    found, covered = {}, set()
    for row in rows:
        first, last = row.at
        found[row.at] = "\n".join(lines[first - 1 : last]) + "\n"
        covered.update(range(first, last + 1))
    wrong = [f"rows {row.at} hold nothing" for row in rows if not found[row.at].strip()]
    for n, line in enumerate(lines, 1):
        if n not in covered and len(line) < 160 and CODE.match(line) and plain(line) not in known:
            wrong.append(f"line {n} looks like code, and has no row: {line.strip()}")
    return found, wrong


def code_of(block, row):
    """The block as Python code: indented again, without prompts, output, and commands of notebooks."""
    if re.search(r"^\s*>>>", block, re.MULTILINE):
        lines = [re.sub(r"^\s*(>>>|\.\.\.) ?", "", x) for x in block.splitlines() if re.match(r"\s*(>>>|\.\.\.)", x)]
    else:
        lines = textwrap.dedent(block).splitlines()
    lines = [x for x in lines if x.strip()] if row.indent else lines
    if row.indent:
        levels = row.indent.replace("-", "")
        if len(levels) != len(lines):
            raise ValueError(f"{len(levels)} levels of indentation for {len(lines)} lines")
        lines = ["  " * int(level) + x.strip() for level, x in zip(levels, lines, strict=True)]
    lines = [re.sub(r"^(\s*)%\w+( -\S+)* ", r"\1", x) for x in lines]
    text = "\n".join(lines) + "\n"
    for pattern, replacement in row.edits:
        changed = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        if changed == text:
            raise ValueError(f"{pattern!r} occurs nowhere in the block")
        text = changed
    return text


def same(found, wanted):
    import numpy as np

    np.testing.assert_array_equal(found, np.float32(wanted))


def run(row, code, namespace):
    """Run a block. Returns a description of the problem, or None."""
    import jax

    printed, error = io.StringIO(), None
    saved = {name: getattr(jax.config, name) for name in row.options}
    for name, value in row.options.items():
        jax.config.update(name, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(printed):
                exec(row.before, namespace)
                exec(compile(code, f"<block {row.at}>", "exec", dont_inherit=True), namespace)
        except Exception as e:
            error = e
        finally:
            for name, value in saved.items():
                jax.config.update(name, value)
    squeezed = " ".join(printed.getvalue().split())
    if error is not None and not row.raises:
        return "".join(traceback.format_exception(error)[-3:])
    if row.raises and (error is None or row.raises.lower() not in f"{type(error).__name__}: {error}".lower()):
        return f"an error with {row.raises!r} is expected, got {error!r}"
    if row.warns and not any(row.warns in str(w.message) for w in caught):
        return f"a warning with {row.warns!r} is expected, got {[str(w.message) for w in caught]}"
    if row.prints is not None and row.prints not in squeezed:
        return f"{row.prints!r} should be printed, got {squeezed!r}"
    return None


def run_document(text, rows, fenced, known=()):
    """Run all blocks of a document in one namespace. Returns (number that ran, number that is not to run, problems)."""
    found, wrong = blocks_of(text, rows, fenced, known)
    ran = left = 0
    with tempfile.TemporaryDirectory() as folder:
        namespace = {"__name__": "__main__", "same": same, "FOLDER": folder}
        for row in rows:
            if row.why:
                left += 1
                continue
            if row.at not in found:
                continue
            ran += 1
            try:
                problem = run(row, code_of(found[row.at if row.code is None else row.code], row), namespace)
            except ValueError as error:
                problem = str(error)
            if problem:
                wrong.append(f"block {row.at}: {problem}")
    return ran, left, wrong


def main(folder, *names):
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    failed = 0
    known = set()
    for name, (rows, fenced) in DOCUMENTS.items():
        (path,) = Path(folder).glob(f"{name}*")
        text = path.read_text()
        if not names or any(name.startswith(n) for n in names):
            ran, left, wrong = run_document(text, rows, fenced, known)
            print(f"{name}: {ran} blocks run, {left} are not to, {len(wrong)} problems", flush=True)
            print("".join(f"  {w}\n" for w in wrong), end="", flush=True)
            failed += len(wrong)
        if fenced:
            known |= {plain(line) for m in FENCED.finditer(text) for line in m[1].splitlines()}
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
