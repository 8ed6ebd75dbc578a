"""The door's table: the parts of jaxlib that this project uses, and the versions of jaxlib that have them.

    python tools/door.py            prints the differences between the table and the installed jaxlib
    python tools/door.py write PYTHON ...    writes tests/door.json; each PYTHON has one of the versions of jaxlib

The parts are read from the sources; no list is kept by hand. Names that are reached from a module of jaxlib are exact.
The type of an object in the middle of an expression is unknown. So for each attribute, method and keyword that the
sources use, the table has every class and function of jaxlib with an attribute or keyword of that name: it may list too
much, and leaves nothing out. A row is

    kind name: [in 0.10.2, in 0.11.2, in 0.12.0.1]

where each entry is true, false, or the row of `versions.CAPABILITIES` that replaces the missing part. Kinds: `module`,
`name` (reached from a module), `attribute` (of a class), `keyword` (of a function or method), `operation` and `dialect`
(of MLIR), `pass`, `call` (a custom call on the CPU; the session `accelerators` tries those of GPUs).
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "door.json"
VERSIONS = ("0.10.2", "0.11.2", "0.12.0.1")
DOOR = ROOT / "packages/xla_backend/src/bedrax/xla_backend/door"
ENGINE = [ROOT / "packages/pytree/src/bedrax/pytree" / f for f in ("engine.py", "engine_native.py")]
# Packages whose objects may come from jaxlib.
HANDLES = ("xla_backend", "extend", "processes", "call_tf", "jax2tf", "jax")
DIALECTS = ("stablehlo", "chlo", "sdy", "mhlo", "func", "builtin", "arith", "tensor", "shape", "vhlo", "mpmd")
# Calls that take the name of an attribute as a string.
BY_NAME = {"getattr", "setattr", "hasattr", "attrgetter", "methodcaller", "set_build_option", "partial", "_has"}
CLASSES_IN = (
    "_jax",
    "_hlo",
    "_profiler",
    "_profile_data",
    "_ifrt_proxy",
    "xla_client",
    "mlir.ir",
    "mlir.passmanager",
    "mlir._mlir_libs._stablehlo",
    "mlir._mlir_libs._chlo",
    "mlir._mlir_libs._sdy",
    "mlir._mlir_libs._mlirHlo",
)


# ---- the parts that the sources use ----


def sources(*packages):
    """The files of the packages, in order."""
    return [f for p in packages for f in sorted((ROOT / "packages" / p / "src").rglob("*.py"))]


def gather() -> dict[str, list[str]]:
    """The names that the sources use, by kind."""
    found = {k: set() for k in ("modules", "names", "attributes", "keywords", "exact", "texts", "words", "passes")}
    for file in [*sorted(DOOR.glob("*.py")), *ENGINE]:
        _Roots(found).visit(ast.parse(file.read_text(encoding="utf-8")))
    for file in sorted({*sources(*HANDLES), *ENGINE}):
        _uses(ast.parse(file.read_text(encoding="utf-8")), found)
    # The kernels in a table of this project, by the module that registers them.
    kernels = ast.parse((DOOR.parent / "platforms.py").read_text(encoding="utf-8"))
    for node in ast.walk(kernels):
        if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
            found["modules"].update(f"jaxlib.{v.value}" for v in node.values if isinstance(v, ast.Constant))
    return {kind: sorted(some) for kind, some in found.items()}


class _Roots(ast.NodeVisitor):
    """Names that a module reaches from the modules of jaxlib that it imports."""

    def __init__(self, found):
        self.found, self.known = found, {}

    def visit_Import(self, node):
        for name in node.names:
            if name.name.partition(".")[0] == "jaxlib":
                self.found["modules"].add(name.name)
                self.known[name.asname or "jaxlib"] = name.name if name.asname else "jaxlib"

    def visit_ImportFrom(self, node):
        if (node.module or "").partition(".")[0] == "jaxlib":
            self.found["modules"].add(node.module)
            for name in node.names:
                self.known[name.asname or name.name] = f"{node.module}.{name.name}"
                self.found["names"].add(f"{node.module}.{name.name}")

    def visit_Assign(self, node):
        self.generic_visit(node)
        targets, values = node.targets[0], node.value
        pairs = (
            zip(targets.elts, values.elts)
            if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple)
            else ([(targets, values)])
        )
        for target, value in pairs:
            self.know(target, value)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        self.know(node.target, node.value)

    def know(self, target, value):
        path = self.path(value)
        if path and isinstance(target, ast.Name):
            self.known[target.id] = path

    def visit_Attribute(self, node):
        path = self.path(node)
        if path:
            self.found["names"].add(path)
        self.generic_visit(node)

    def visit_Call(self, node):
        path = self.path(node.func)
        if path:
            self.found["exact"].update(f"{path}({k.arg}=)" for k in node.keywords if k.arg)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and re.fullmatch(r"jaxlib(\.\w+)+", node.value):
            self.found["modules"].add(node.value)

    def path(self, node):
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            above = self.path(node.value)
            return above and f"{above}.{node.attr}"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_whole" and len(node.args) == 1:
            (name,) = node.args
            return name.value if isinstance(name, ast.Constant) else None
        return None


def _uses(tree, found):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found["attributes"].add(node.attr)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
            found["keywords"].update(f"{name}({k.arg})" for k in node.keywords if k.arg)
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if name in BY_NAME:
                found["attributes"].update(part for t in texts for part in t.split(".") if part.isidentifier())
            elif name == "mirror":
                found["modules"].update(f"jaxlib.mlir.{t}" for t in texts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            text = node.value
            if re.fullmatch(rf"({'|'.join(DIALECTS)})\.\w*", text):
                found["texts"].add(text)
            found["words"].update(w for w in re.findall(r"\w+", text) if len(text) < 60)
            found["passes"].update(re.findall(r"^builtin\.module\(.*\)$", text))


# ---- the parts that a jaxlib has ----


def probe(used: dict[str, list[str]]) -> list[str]:
    """The rows for those names in `used` that the installed jaxlib has."""
    found = []
    for name in used["modules"]:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found.append(f"module {name}")
    found += [f"name {n}" for n in used["names"] if _reach(n) is not None]
    members, signatures = _members()
    attributes = set(used["attributes"])
    found += sorted({f"attribute {owner}.{name}" for owner, name in members if name in attributes})
    for row in used["keywords"]:
        name, _, key = row[:-1].partition("(")
        found += [
            f"keyword {owner}({key}=)"
            for owner, text in signatures.get(name, ())
            if re.search(rf"\b{key}\s*[:=]", text)
        ]
    for row in used["exact"]:
        path, _, key = row.removesuffix("=)").rpartition("(")
        value = _reach(path)
        if value is not None and any(re.search(rf"\b{key}\s*[:=]", t) for t in _signatures(value)):
            found.append(f"keyword {row}")
    return sorted({*found, *_mlir(used), *_calls(used)})


def _reach(path: str):
    """The object at a path from a module, or None."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            value = getattr(value, part, None)
        return value
    return None


def _signatures(value) -> list[str]:
    """The known parameters of a function, a method or a class, as texts."""
    value = value.__init__ if inspect.isclass(value) else value
    texts = [value.__doc__ or ""] if callable(value) else []
    try:
        texts.append(str(inspect.signature(value)))
    except (TypeError, ValueError):
        pass
    return texts + [str(s[0]) for s in getattr(value, "__nb_signature__", ())]


def _members():
    """``(class, attribute)`` pairs; and the functions and methods by name, with the texts of their signatures."""
    classes, signatures, pairs = {}, {}, set()

    def signature(name, owner, value):
        texts = _signatures(value)
        if any(texts):
            signatures.setdefault(name, []).append((owner, "\n".join(texts)))

    def module(value, path):
        for name, member in sorted(vars(value).items()):
            if inspect.isclass(member):
                if (member.__module__ or "").startswith("jaxlib"):
                    classes.setdefault(member, f"{member.__module__}.{member.__qualname__}")
            elif inspect.ismodule(member):
                if member.__name__.startswith(f"{path}."):
                    module(member, member.__name__)
            elif callable(member):
                signature(name, f"{path}.{name}", member)

    for name in CLASSES_IN:
        module(importlib.import_module(f"jaxlib.{name}"), f"jaxlib.{name}")
    waiting = list(classes)
    while waiting:
        cls = waiting.pop()
        for member in vars(cls).values():
            if inspect.isclass(member) and member not in classes and member.__module__.startswith("jaxlib"):
                classes[member] = f"{member.__module__}.{member.__qualname__}"
                waiting.append(member)
    for cls, path in classes.items():
        signature(cls.__name__, path, cls)
        for name, member in vars(cls).items():
            if not (name.startswith("__") and name.endswith("__")):  # every class has them
                pairs.add((path, name))
            if callable(member):
                signature(name, f"{path}.{name}", member)
    return pairs, signatures


def _mlir(used):
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

    context, registry = ir.Context(), ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context, load=True)
    _mlirHlo.register_mhlo_dialect(context, load=True)
    # A text that ends with a dot is the beginning of a name; the program appends the rest.
    open_ones = {t for t in used["texts"] if t.endswith(".")}
    names = {t for t in used["texts"] if not t.endswith(".")} | {p + w for p in open_ones for w in used["words"]}
    found = [f"operation {n}" for n in names if context.is_registered_operation(n)]
    for name in {n.partition(".")[0] for n in names}:
        try:
            context.get_dialect_descriptor(name)
        except ValueError:
            continue
        found.append(f"dialect {name}")
    _stablehlo.register_stablehlo_passes()
    for pipeline in used["passes"]:
        try:
            passmanager.PassManager.parse(pipeline, context)
        except ValueError:
            continue
        found.append(f"pass {pipeline}")
    return found


def _calls(used):
    from jaxlib import _jax, lapack, xla_client

    lapack._lapack.initialize()
    cpu_sparse = importlib.import_module("jaxlib.cpu_sparse")
    for module in (lapack, cpu_sparse):
        for platform, entries in module.registrations().items():
            for name, value, version in entries:
                xla_client.register_custom_call_target(name, value, platform=platform, api_version=version)
    xla_client.make_cpu_client()
    words = set(used["words"])
    for name in _jax.custom_call_targets("Host"):
        lapack_name = re.fullmatch(r"lapack_[sdcz](\w+)_ffi", name)
        if name in words or (lapack_name and lapack_name[1] in words):
            yield f"call {name}"


# ---- the table ----


def probed(python: str, used) -> tuple[str, list[str]]:
    """The version of an interpreter's jaxlib, and its rows. Runs in a process without any module of this project."""
    ask = [python, "-P", __file__, "probe"]
    done = subprocess.run(ask, input=json.dumps(used), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{python} tools/door.py probe failed:\n{done.stderr[-3000:]}")
    version, rows = json.loads(done.stdout.splitlines()[-1])
    return version, rows


def replaced() -> dict[str, str]:
    """The rows that capabilities replace, each with the name of its capability."""
    from bedrax.xla_backend.door import versions

    return {row: name for name, c in versions.CAPABILITIES.items() for row in c.replaces}


def column(rows, names, stands_in) -> dict[str, bool | str]:
    """The entries of one version, for the rows of all versions."""
    rows = set(rows)
    return {n: True if n in rows else stands_in.get(n, False) for n in names}


# Attributes of one class of jaxlib that some versions lack. The sources use the same names of classes of this project.
NOT_TAKEN = {
    "attribute jaxlib._jax.DeviceTopology.deserialize": "of exported programs",
    "attribute jaxlib.mlir._mlir_libs._mlir.ir.MemoryEffectInstance.parameters": "of signatures",
    "attribute jaxlib.mlir._mlir_libs._mlir.ir.MemoryEffectInstance.resource": "an attribute of Python's module of that name",
    "attribute jaxlib.mlir._mlir_libs._mlir.ir.Remark.args": "an attribute of exceptions and calls",
}


def absent(table, exact=frozenset()) -> list[str]:
    """Rows that some version lacks and that no capability replaces.

    Two kinds count: names that the sources reach from a module of jaxlib, and attributes that no class of that version
    has. An attribute of one class may be used as another class's attribute of the same name.
    """
    left = []
    for name, row in table.items():
        if False not in row or name in NOT_TAKEN:
            continue
        kind, path = name.split(" ", 1)
        last = path.rpartition(".")[2]
        alike = [r for n, r in table.items() if n.startswith(f"{kind} ") and n.rpartition(".")[2] == last]
        if (
            kind not in ("attribute", "keyword")
            or path in exact
            or any(all(r[i] is False for r in alike) for i in range(len(row)))
        ):
            left.append(name)
    return left


def write(pythons) -> None:
    """Write the table, from the jaxlibs of the interpreters `pythons`."""
    used, stands_in = gather(), replaced()
    seen = dict(probed(python, used) for python in pythons)
    if set(seen) != set(VERSIONS):
        raise SystemExit(f"one Python for each of jaxlib {VERSIONS} is needed, got those of {sorted(seen)}")
    names = sorted({row for rows in seen.values() for row in rows})
    columns = [column(seen[v], names, stands_in) for v in VERSIONS]
    lines = [f"{json.dumps(n)}: {json.dumps([c[n] for c in columns])}" for n in names]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(names)} rows; not in every version: {sum(not all(c[n] is True for c in columns) for n in names)}")
    for name in absent(json.loads(TABLE.read_text(encoding="utf-8")), set(used["exact"])):
        print("no capability replaces", name)


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        rows = probe(json.load(sys.stdin))
        print(json.dumps([importlib.import_module("jaxlib.version").__version__, rows]))
    elif sys.argv[1:2] == ["write"]:
        write(sys.argv[2:])
    else:
        version, rows = probed(sys.executable, gather())
        known = json.loads(TABLE.read_text(encoding="utf-8"))
        here = (
            {n for n, row in known.items() if row[VERSIONS.index(version)] is True}
            if version in VERSIONS
            else set(known)
        )
        print(
            "\n".join(
                [*(f"new: {r}" for r in sorted(set(rows) - here)), *(f"gone: {r}" for r in sorted(here - set(rows)))]
            )
        )
