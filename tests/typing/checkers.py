"""Runs type checkers on this folder and on the packages. Run by `nox -s types`.

python tests/typing/checkers.py uses          # right.py is accepted, each marked line of wrong.py is refused
python tests/typing/checkers.py complete      # verifytypes of each package is not below its floor
python tests/typing/checkers.py complete -w   # write the floors
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLOORS = HERE / "complete.json"  # per package: the share of public names whose type is known, in percent
MARK = "  # wrong"


def tool(name: str, *arguments: str, **variables: str) -> str:
    """The output of a tool of this environment, run as a process."""
    environment = Path(sys.executable).parent
    search = {
        "PATH": f"{environment}:/usr/bin:/bin",
        "HOME": str(ROOT),
        **variables,
    }  # pyright takes the first Python of PATH
    command = [str(environment / name), *arguments]
    if name == "basedpyright":  # else it takes a folder .venv of the checkout, which may hold less
        command.append(f"--pythonpath={sys.executable}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=search)
    if done.returncode > 1 or (done.returncode and not done.stdout):
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def mypy_lines(path: Path) -> dict[int, str]:
    """The lines that mypy refuses, with the first message of each."""
    found = re.findall(r"^\S*?:(\d+): error: (.*)$", tool("mypy", "--strict", str(path)), re.MULTILINE)
    return {int(line): message for line, message in reversed(found)}


def pyright_lines(path: Path) -> dict[int, str]:
    """The lines that pyright refuses, with the first message of each."""
    report = json.loads(tool("basedpyright", "--level", "error", "--outputjson", str(path)))
    errors = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    return {d["range"]["start"]["line"] + 1: d["message"] for d in reversed(errors)}


CHECKERS = {"mypy": mypy_lines, "pyright": pyright_lines}


def wrong_lines() -> dict[int, str]:
    """The lines of `wrong.py` that a checker must refuse."""
    lines = (HERE / "wrong.py").read_text(encoding="utf-8").splitlines()
    return {n: line for n, line in enumerate(lines, 1) if line.endswith(MARK)}


def faults_of_uses() -> list[str]:
    """One line for each right use that is refused and for each wrong use that is accepted."""
    wrong, faults = wrong_lines(), []
    for name, lines_of in CHECKERS.items():
        faults += [f"{name} refuses right.py:{n}: {text}" for n, text in sorted(lines_of(HERE / "right.py").items())]
        refused = lines_of(HERE / "wrong.py")
        faults += [f"{name} accepts wrong.py:{n}: {line}" for n, line in wrong.items() if n not in refused]
        faults += [f"{name} refuses wrong.py:{n}, which is right: {refused[n]}" for n in sorted(refused.keys() - wrong)]
    return faults


def packages() -> list[str]:
    """The packages of the workspace, as they are imported."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "packages").glob("*/pyproject.toml")]
    return sorted(table["tool"]["uv"]["build-backend"]["module-name"] for table in tables)


def completeness(package: str) -> float:
    """The share of the public names of a package whose types are known, in percent."""
    report = json.loads(tool("basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"))
    counts = report["typeCompleteness"]["exportedSymbolCounts"]
    total = sum(counts.values())
    if not total:
        raise RuntimeError(f"pyright found no public names in {package}: {report['generalDiagnostics']}")
    return round(100 * counts["withKnownType"] / total, 1)


def faults_of_completeness(write: bool) -> list[str]:
    """One line for each package that is below its floor; a floor that is passed is raised if `write`."""
    floors, found = json.loads(FLOORS.read_text(encoding="utf-8")) if FLOORS.exists() else {}, {}
    for package in packages():
        found[package] = completeness(package)
        print(f"{package:24} {found[package]:5.1f}", flush=True)
    if write:
        kept = {package: max(share, floors.get(package, 0.0)) for package, share in found.items()}
        FLOORS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        floors = kept
    return [
        f"{package}: the types of {share} % of the public names are known, the floor is {floors.get(package)} %"
        for package, share in found.items()
        if share < floors.get(package, 100.0)
    ]


def faults_of_stubs() -> list[str]:
    """The errors that `stubtest` finds in the face and in the stubs that `tools/stubs.py` writes."""
    sources = sorted(str(path) for path in (ROOT / "packages").glob("*/src"))
    made = [path for path in (ROOT / "packages").glob("*/src/bedrax/**/*.pyi") if path.name != "__init__.pyi"]
    modules = [
        ".".join(path.relative_to(path.parents[i]).with_suffix("").parts) for path in made for i in [_depth(path)]
    ]
    options = ["--concise", "--ignore-unused-allowlist", "--allowlist", str(HERE / "stubs_allowed.txt")]
    options += ["--mypy-config-file", str(HERE / "stubtest.ini")]
    return tool("stubtest", *options, "jax", *sorted(modules), MYPYPATH=":".join(sources)).splitlines()


# (text before the cursor, a name that completion offers or "", a text that hovering over the last name shows or "")
POSITIONS = [
    ("jnp.zer", "zeros", ""),
    ("jnp.zeros", "", "ShapeLike"),
    ("jnp.sin", "", "ArrayLike"),
    ("jnp.arctan2", "", ">>> jnp.rad2deg(jnp.arctan2"),  # made by a factory
    ("jax.lax.sin", "", ">>> lax.sin"),
    ("jax.scipy.stats.norm.cdf", "", ">>> jax.scipy.stats.norm.cdf"),
    ("jnp.linalg.ei", "eigh", ""),
    ("jnp.quantile", "", "method: str"),
    ("x.resh", "reshape", ""),
    ("x.sum", "", "keepdims: bool"),
    ("x.at[0].se", "set", ""),
    ("x.at[0].add", "", "unique_indices"),
    ("x.T.sha", "shape", ""),
    ("jnp.sum(x).asty", "astype", ""),
    ("jax.random.norm", "normal", ""),
    ("jax.random.normal", "", "dtype: DTypeLike"),
    ("jax.nn.softmax", "", "axis"),
    ("jax.scipy.stats.norm.logp", "logpdf", ""),
    ("jax.lax.scan", "", "init"),
    ("jax.jit(loss).lo", "lower", ""),
    ("jax.grad", "", "argnums"),
    ("jax.value_and_gr", "value_and_grad", ""),
    ("jax.tree.ma", "map", ""),
]
_PROGRAM = """import jax
import jax.numpy as jnp


def loss(w: jax.Array) -> jax.Array:
    return w


x = jnp.ones(3)
"""


class _Server:
    """A language server that reads one file."""

    def __init__(self) -> None:
        program = Path(sys.executable).parent / "basedpyright-langserver"
        environment = {**os.environ, "PATH": f"{program.parent}:/usr/bin:/bin"}
        self.process = subprocess.Popen(
            [str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment
        )
        self.count = 0
        options = {"processId": None, "rootUri": ROOT.as_uri(), "capabilities": {}}
        self.ask("initialize", **options)
        self.tell("initialized")

    def tell(self, method: str, **params: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request. Requests of the server are answered with nothing."""
        self.count += 1
        self._write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self.count and "method" not in message:
                return message.get("result")
            if "id" in message:
                items = message.get("params", {}).get("items", ())
                empty: Any = [{} for _ in items] if message["method"] == "workspace/configuration" else None
                self._write({"jsonrpc": "2.0", "id": message["id"], "result": empty})

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            raise RuntimeError("the language server has ended")
        return json.loads(self.process.stdout.read(length))


def faults_of_editor() -> list[str]:
    """One line for each of `POSITIONS` where the answer of the server differs from the entry."""
    server, faults = _Server(), []
    uri = (HERE / "in_the_editor.py").as_uri()
    server.tell(
        "textDocument/didOpen", textDocument={"uri": uri, "languageId": "python", "version": 1, "text": _PROGRAM}
    )
    for version, (text, offered, shown) in enumerate(POSITIONS, 2):
        document = {"uri": uri, "version": version}
        server.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": _PROGRAM + text}])
        line = _PROGRAM.count("\n")
        if offered:
            where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": len(text)}}
            found = server.ask("textDocument/completion", **where) or []
            labels = {item["label"] for item in (found["items"] if isinstance(found, dict) else found)}
            if offered not in labels:
                faults.append(f"{text}: completion does not offer {offered}, but {sorted(labels)[:5]}")
        if shown:
            where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": len(text) - 1}}
            found = server.ask("textDocument/hover", **where)
            if shown not in json.dumps(found):
                faults.append(f"{text}: hovering does not show {shown}, but {found}")
    server.process.terminate()
    return faults


def _depth(path: Path) -> int:
    """The number of folders between a module and the folder `src`, less one."""
    return [parent.name for parent in path.parents].index("src")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("uses", "complete", "stubs", "editor"))
    parser.add_argument("-w", "--write", action="store_true", help="raise the floors that are passed")
    given = parser.parse_args()
    if given.what == "complete":
        faults = faults_of_completeness(given.write)
    else:
        faults = {"uses": faults_of_uses, "stubs": faults_of_stubs, "editor": faults_of_editor}[given.what]()
    print(*faults, sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
