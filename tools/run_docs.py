"""Run the Python code of the documentation: every ```python block, file by file.

The blocks of one file run in order, in one new process and one namespace, with warnings as errors. A
failure names the file and line. A block that logs a warning fails, too, unless it shows how to read the log: then it
calls `logging.basicConfig`, which holds for the blocks after it. A block with prompts (>>>) is a doctest: its printed output must be
the shown one. A fence with more than `python` (```python excerpt) is not run: use it for a fragment
that cannot stand alone.

    python tools/run_docs.py [FILE...]      default: every README.md and docs/**/*.md
"""

import doctest
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(text):
    """Each block as source code in which every line has its line number in the file."""
    for match in FENCE.finditer(text):
        yield "\n" * text.count("\n", 0, match.start(1)) + match[1]


def collected_warnings():
    """Return a list to which every record of the log from WARNING upward is added, until `logging.basicConfig` is called."""
    found, shown = [], []
    make, configure = logging.getLogRecordFactory(), logging.basicConfig

    def collect(*args, **kwargs):
        record = make(*args, **kwargs)
        if record.levelno >= logging.WARNING and not shown:
            found.append(f"{record.name}: {record.getMessage()}")
        return record

    def basic_config(**options):
        shown.append(True)
        configure(**options)

    logging.setLogRecordFactory(collect)
    logging.basicConfig = basic_config
    return found


def run_here(path):
    """Run the blocks of one file in this process. Returns the number of failed doctest examples and logged warnings."""
    logged = collected_warnings()
    # From Python 3.13 on, TensorFlow's AutoGraph meets this warning in gast, for TensorFlow's own functions.
    warnings.filterwarnings(
        "ignore", r"\w+.__init__ got an unexpected keyword argument '___pyct_anno'", DeprecationWarning
    )
    namespace = {"__name__": "__main__", "__file__": path}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for source in blocks(Path(path).read_text(encoding="utf-8")):
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, namespace, Path(path).name, path, 0)
            runner.run(test, clear_globs=False)
            namespace.update(test.globs)  # the parser made a copy
        else:
            exec(compile(source, path, "exec", dont_inherit=True), namespace)
    for text in logged:
        print(f"{path} logs a warning: {text}")
    return runner.failures + len(logged)


def main(arguments):
    if arguments[:1] == ["--here"]:
        return run_here(arguments[1])
    paths = [Path(a) for a in arguments] or [
        ROOT / "README.md",
        *sorted(ROOT.glob("packages/*/README.md")),
        ROOT / "benchmarks/README.md",
        *sorted(ROOT.glob("examples/*/README.md")),
        *sorted(ROOT.glob("tests/*/README.md")),
        ROOT / "examples/digits/web/README.md",
        *sorted(ROOT.glob("docs/**/*.md")),
    ]
    failed = []
    for path in paths:
        count = len(list(blocks(path.read_text(encoding="utf-8"))))
        if not count:
            continue
        command = [sys.executable, "-W", "error", __file__, "--here", str(path)]
        status = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"{'ok    ' if status.returncode == 0 else 'FAILED'} {path} ({count} blocks)", flush=True)
        if status.returncode:
            failed.append(path)
            print(status.stdout, flush=True)
    return f"{len(failed)} of {len(paths)} files failed" if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
