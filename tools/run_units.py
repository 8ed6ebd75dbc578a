"""Run public documentation of other projects, unit by unit, on this `jax` and on upstream's, and compare.

A unit is one docstring with prompts (>>>), one cell, or one block of a page. The units of a page run in order, in one
namespace and in their own process, on eight CPU devices. A unit counts if it succeeds on upstream's `jax`. The program
prints how many of those succeed here, and which fail. The texts are read from installed or downloaded files and belong
to their authors: this repository keeps none of them.

    python tools/run_units.py --peer PYTHON [--docs FOLDER]... [--only TEXT] [--keep FILE.json]

PYTHON is an interpreter with upstream's `jax`. A FOLDER holds pages (.md, .ipynb, .rst), such as those in flax's sdist.
"""

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIMIT = 120  # seconds for a unit
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_SIGN = "the sign of a zero, which differs if the same formula is written in another way"
_ULP = "the last places of float32"
# Units that succeed upstream and are not counted, with the reason: (page, label) of a docstring.
EXCLUDED = {
    **{("jax.numpy", n): _SIGN for n in ("cosh", "poly", "sinc")},
    **{("jax.numpy.fft", n): _SIGN for n in ("hfft", "ihfft")},
    **{("jax.scipy.linalg", n): _SIGN for n in ("dft", "invpascal", "sqrtm")},
    **{("jax.numpy", n): "the order within the two parts is unspecified" for n in ("partition", "argpartition")},
    ("jax.numpy", "i0"): _ULP,
    ("jax.experimental.jet", "jet"): _ULP,
    ("jax.scipy.linalg", "eigh_tridiagonal"): _ULP,
    ("jax.scipy.signal", "detrend"): _ULP,  # printed as zeros, with the sign of the rounding error
    ("jax.scipy.spatial.transform", "Slerp"): _ULP,
    ("jax.scipy.stats.poisson", "entropy"): "the last places here are the right ones",
    ("jax.numpy", "percentile"): "of two values that are equally near, the even one is taken, as in NumPy",
    (
        "jax.errors",
        "UnexpectedTracerError",
    ): "a leak raises LeakedTracerError, which is an Exception, not Exception itself",
    ("jax", "disable_jit"): "how a tracer prints: Traced<ShapedArray(...)>, as most documentation shows it",
    ("jax.tree_util", "Partial"): "how a tracer prints: Traced<ShapedArray(...)>, as most documentation shows it",
}

CELL = re.compile(
    r"^( *)```\s*(?:\{code-cell\}[^\n]*|python|py)[ \t]*\n(.*?)^\1```[ \t]*$", re.MULTILINE | re.DOTALL
)  # in a list they are indented
DIRECTIVE = re.compile(r"^([ ]*)\.\. (code-block:: python|testcode::|testsetup::|codediff::|jupyter-execute::).*$")


def indented(lines, start, margin):
    """The lines after `start` that are indented deeper than `margin`, without the directive's options; and their
    end."""
    end = start
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > margin):
        end += 1
    body = lines[start:end]
    while body and (not body[0].strip() or re.match(r"\s*:[\w-]+:", body[0])):
        body = body[1:]
    depth = min((len(x) - len(x.lstrip()) for x in body if x.strip()), default=0)
    return [x[depth:] for x in body], end


def of_rst(text):
    """The blocks of a page in reStructuredText: directives with code, and the prompts between them."""
    lines, at, prompts = text.expandtabs().splitlines(), 0, []
    while at < len(lines):
        found = DIRECTIVE.match(lines[at])
        if found is None:
            margin = len(lines[at]) - len(lines[at].lstrip())
            if lines[at].lstrip().startswith(">>> "):
                while at < len(lines) and lines[at].strip():
                    prompts.append(lines[at][margin:])
                    at += 1
                yield "\n".join(prompts) + "\n"
                prompts = []
            at += 1
            continue
        body, at = indented(lines, at + 1, len(found[1]))
        if "codediff" not in found[2]:
            yield "\n".join(body) + "\n"
            continue
        sides = "\n".join(body).replace("#!", "").split("\n---\n")
        yield from (side + "\n" for side in sides[-2:])


def of_markdown(text):
    for found in CELL.finditer(text):
        yield re.sub(f"^ {{1,{len(found[1])}}}", "", found[2], flags=re.MULTILINE) if found[1] else found[2]


def of_notebook(text):
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


READERS = {".rst": of_rst, ".ipynb": of_notebook, ".md": of_markdown}


def code_of(block):
    """A block as Python code: without the options of a cell, and without commands of the shell and of notebooks."""
    lines = (
        [x for x in block.splitlines() if not re.match(r"\s*:[\w-]+:\s", x)]
        if block.startswith(":")
        else block.splitlines()
    )
    if lines and lines[0].startswith("---"):
        lines = lines[lines.index("---", 1) + 1 :] if "---" in lines[1:] else lines
    if lines and lines[0].lstrip().startswith("%%"):
        return ""
    kept = []
    for line in lines:
        if re.match(r"\s*(!|%)", line):
            timed = re.match(r"\s*%(?:timeit|time)\s+(?:-\w+\s*\d*\s+)*(.*)$", line)
            line = (line[: len(line) - len(line.lstrip())] + timed[1]) if timed else ""
        kept.append(line)
    return "\n".join(kept).strip("\n") + "\n"


def pages(folder):
    """(name, units) of every page. A notebook that also exists as text is read as text."""
    for file in sorted(Path(folder).rglob("*")):
        if file.suffix in READERS and not (file.suffix == ".ipynb" and file.with_suffix(".md").exists()):
            units = [u for u in map(code_of, READERS[file.suffix](file.read_text(encoding="utf-8"))) if u.strip()]
            if units:
                yield {"name": str(file.relative_to(Path(folder).parent)), "units": units}


# The functions below run in the environments that are compared.


def docstrings(root):
    """A page per public module of the package `root`: the docstrings with prompts of its public names."""
    package, seen = importlib.import_module(root), set()
    found = [root, *(m.name for m in pkgutil.walk_packages(package.__path__, f"{root}.", onerror=lambda name: None))]
    for name in found:
        if "._" in name or ".pallas" in name or "mosaic" in name:
            continue
        try:
            module = importlib.import_module(name)
        except Exception:
            continue
        units = []
        for n in [n for n in dir(module) if not n.startswith("_")]:
            value = getattr(module, n, None)
            if inspect.ismodule(value) or not str(getattr(value, "__module__", root)).startswith(root):
                continue
            members = [(n, value)]
            if inspect.isclass(value):
                members += [(f"{n}.{m}", v) for m, v in vars(value).items() if not m.startswith("_")]
            for path, member in members:
                text = inspect.getdoc(member) or ""
                if ">>> " in text and text not in seen:
                    seen.add(text)
                    units.append([path, text])
        for start in range(0, len(units), 64):  # a large module is several pages, which run in parallel
            yield {"name": name, "units": units[start : start + 64], "module": name}


def names_for(page):
    namespace = {"__name__": "__main__"}
    if "module" in page:
        with contextlib.suppress(ImportError):  # the names may have other home modules here
            module = importlib.import_module(page["module"])
            namespace.update({n: getattr(module, n) for n in dir(module) if not n.startswith("_")})
        exec("import jax, jax.numpy as jnp, numpy as np\nfrom jax import lax", namespace)
    return namespace


def run_prompts(text, namespace, name):
    output = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    test = doctest.DocTestParser().get_doctest(text, namespace, name, name, 0)
    runner.run(test, out=output.append, clear_globs=False)
    namespace.update(test.globs)
    if runner.failures:
        raise AssertionError("".join(output)[-3000:])


def too_long(*_):
    raise TimeoutError(f"more than {LIMIT} s")


def run_page(page, report):
    """Run the units of a page here, one after the other, and write a line of JSON for each."""
    signal.signal(signal.SIGALRM, too_long)
    shared = names_for(page)
    for number, unit in enumerate(page["units"]):
        label, text = unit if isinstance(unit, list) else (number, unit)
        namespace = dict(shared) if "module" in page else shared
        outcome, printed = "ok", io.StringIO()
        signal.alarm(LIMIT)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                if re.search(r"^\s*>>> ", text, re.MULTILINE):
                    run_prompts(text, namespace, str(label))
                else:
                    exec(compile(text, f"{page['name']}#{label}", "exec", dont_inherit=True), namespace)
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
        report.write(json.dumps([label, outcome]) + "\n")
        report.flush()


def work(arguments):
    """`--work docstrings ROOT FILE` writes pages; `--work page FILE REPORT` runs one."""
    what, source, target = arguments
    if what == "docstrings":
        Path(target).write_text(json.dumps(list(docstrings(source))), encoding="utf-8")
        return
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
    with open(target, "w", encoding="utf-8") as report:
        run_page(json.loads(Path(source).read_text(encoding="utf-8")), report)
    os._exit(0)  # threads that a page started may not end


def run(python, arguments, folder, limit=1200):
    # A page may look for its neighbours, and writes to the current folder: give it a folder of its own.
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env |= {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "JAX_PLATFORMS": "cpu",
    }
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [python, "-W", "ignore", str(Path(__file__).resolve()), "--work", *arguments],
            cwd=folder,
            env=env,
            timeout=limit,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def outcomes(python, page):
    """The outcome of each unit of a page with an interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        source, report = Path(folder, "page.json"), Path(folder, "report.jsonl")
        source.write_text(json.dumps(page), encoding="utf-8")
        run(python, ["page", str(source), str(report)], folder)
        outcomes = [json.loads(x) for x in report.read_text(encoding="utf-8").splitlines()] if report.exists() else []
    return outcomes + [[n, "the process ended"] for n in range(len(outcomes), len(page["units"]))]


def compare(page, python, peer):
    """The outcomes of each unit of a page, with both interpreters."""
    theirs = outcomes(peer, page)
    ours = outcomes(python, page)
    rows = []
    for (label, here), (_, there) in zip(ours, theirs, strict=True):
        rows.append({"label": label, "here": here, "there": there})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True)
    parser.add_argument("--docstrings", nargs="*", default=["jax", "flax"])
    parser.add_argument("--docs", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    groups = {}
    for root in options.docstrings:
        with tempfile.TemporaryDirectory() as folder:
            run(options.peer, ["docstrings", root, f"{folder}/pages.json"], folder)
            groups[f"docstrings of {root}"] = json.loads(Path(folder, "pages.json").read_text(encoding="utf-8"))
    for folder in options.docs:
        groups[f"pages in {Path(folder).name}"] = list(pages(folder))
    kept, lost = {}, 0
    for group, found in groups.items():
        found = [p for p in found if options.only in p["name"]]
        expected = passed = 0
        with ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda page: (page, compare(page, sys.executable, options.peer)), found)
            for page, rows in results:
                kept.setdefault(f"{group}: {page['name']}", []).extend(rows)
                for row in rows:
                    if row["there"] != "ok" or (page["name"], row["label"]) in EXCLUDED:
                        continue
                    expected += 1
                    passed += row["here"] == "ok"
                    if row["here"] != "ok":
                        print(f"  {page['name']} {row['label']}: {row['here'][-400:]!r}", flush=True)
                if options.keep:
                    Path(options.keep).write_text(json.dumps(kept, indent=1), encoding="utf-8")
        print(f"{group}: {passed} of {expected}", flush=True)
        lost += expected - passed
    return f"{lost} units succeed upstream and not here" if lost else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2:])
    else:
        sys.exit(main())
