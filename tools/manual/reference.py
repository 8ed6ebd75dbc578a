"""Pages of the reference: one for each module of the interface, from the definitions.

A page has a table of the names with their first sentences, and a section for each name: its signature with types, and
its docstring with the example that `nox -s documents` tests. An object with several public names has its section at the
first of them, in the order of `GROUPS`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from stage import escaped

from bedrax.core.signatures import signature_of

# Caption -> the modules in it, most used first. A module without an entry stands in the group of its parent.
GROUPS = {
    "Every day": "jax jax.numpy jax.numpy.fft jax.numpy.linalg jax.lax jax.lax.linalg jax.random jax.nn"
    " jax.nn.initializers jax.tree jax.typing jax.errors jax.debug jax.explain",
    "Devices, compiling, export": "jax.sharding jax.stages jax.export jax.distributed jax.profiler jax.monitoring"
    " jax.dlpack jax.ffi jax.ref jax.dtypes",
    "SciPy, images, segments": "jax.scipy jax.image jax.ops",
    "TensorFlow": "jax.experimental.jax2tf",
    "More about transformations": "jax.custom_batching jax.custom_derivatives jax.checkpoint_policies jax.ad_checkpoint"
    " jax.ad jax.flatten_util jax.tree_util jax.api_util jax.test_util",
    "Experimental": "jax.experimental jax.example_libraries",
    "For libraries that extend the system": "jax.extend jax.core jax.interpreters jax.lib jax.cloud_tpu_init jax.version",
}
# Modules of jaxlib's own objects, thousands of classes that MLIR's tools generate.
FOREIGN = "jax.extend.mlir"


class Entry(NamedTuple):
    """A public name."""

    name: str
    value: Any
    doc: str

    @property
    def summary(self) -> str:
        """The first sentence, as Markdown."""
        first = " ".join(self.doc.strip().partition("\n\n")[0].split())
        return escaped(re.split(r"(?<=[^.]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!et al\.)\s", first)[0])


def modules() -> dict[str, ModuleType]:
    """The modules of the interface, in the order of `GROUPS`."""
    import run_documents

    rest = [name for name in run_documents.faces() if not name.startswith(FOREIGN)]
    found: dict[str, ModuleType] = {}
    for name in [n for names in GROUPS.values() for n in names.split()]:
        below = [name, *(n for n in rest if n.startswith(f"{name}."))] if name != "jax" else [name]
        found.update({n: importlib.import_module(n) for n in below if n not in found})
    left = set(rest) - set(found)
    if left:
        raise ValueError(f"reference.GROUPS has no group for {', '.join(sorted(left))}")
    return found


def pages() -> dict[str, str]:
    """Path without suffix -> Markdown of each page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names have sections, too
        return dict(_pages())


def _pages() -> Iterator[tuple[str, str]]:
    found, homes, full, types = modules(), {}, {}, {}
    for name, module in found.items():
        full[name] = list(_entries(name, module))
        for entry in full[name]:
            if _has_section(entry.value):
                homes.setdefault(id(entry.value), f"{name}.{entry.name}")
            if inspect.isclass(entry.value):
                types.setdefault(entry.name, f"{name}.{entry.name}")
    shown = [name for name in found if full[name]]
    lines = ["# The interface, name by name\n"]
    lines += [
        "Each page lists the names of one module. Each name has its signature, its arguments and a tested example."
    ]
    lines += ["The search at the top of the page finds names, too."]
    lines += [
        "Objects of other libraries have their first lines only; the classes of jaxlib in `jax.extend.mlir` have none.\n"
    ]
    for caption in GROUPS:
        below = [n for n in shown if _group(n) == caption]
        lines += ["```{toctree}", ":hidden:", f":caption: {caption}", ":maxdepth: 1", "", *below, "```\n"]
        lines += [f"## {caption}\n", "| module | names | contents |", "|---|---|---|"]
        lines += [f"| [{n}]({n}.md) | {len(full[n])} | {_contents(full[n])} |" for n in below]
        lines += [""]
    yield "reference/index", "\n".join(lines)
    for name in shown:
        own = {e.name: f"{name}.{e.name}" for e in full[name] if homes.get(id(e.value)) == f"{name}.{e.name}"}
        yield f"reference/{name}", _page(name, found[name], full[name], homes, types | own)


def _group(module: str) -> str:
    best = max(
        (n for names in GROUPS.values() for n in names.split() if module == n or module.startswith(f"{n}.")), key=len
    )
    return next(caption for caption, names in GROUPS.items() if best in names.split())


def _contents(entries: list[Entry]) -> str:
    names = [f"`{e.name}`" for e in entries]
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def _has_section(value: Any) -> bool:
    return inspect.isclass(value) or callable(value)


def _entries(name: str, module: ModuleType) -> Iterator[Entry]:
    for n in sorted(getattr(module, "__all__", ()), key=lambda n: (n.lower(), n)):
        try:
            value = getattr(module, n)
        except (AttributeError, ImportError):  # needs a library that is not here
            continue
        if not inspect.ismodule(value):
            yield Entry(n, value, _doc(value))


def _doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    home = str(getattr(value, "__module__", "") or "").partition(".")[0]
    if not _has_section(value) and text == (inspect.getdoc(type(value)) or ""):
        return ""
    if home not in ("bedrax", "jax", "") and callable(value):
        return f"From the library {home}. " + " ".join(text.partition("\n\n")[0].split())
    return text


def _page(name: str, module: ModuleType, entries: list[Entry], homes: dict[int, str], types: dict[str, str]) -> str:
    """One page. `homes`: the identity of an object -> the name with its section; `types`: the same, by class name."""
    about = inspect.getdoc(module) or ""
    about = "" if "the public names, from the layers" in about else about
    declared = "currentmodule" if name in homes.values() else "module"  # a function may have the name of a module
    lines = [f"# {name}\n", f"```{{py:{declared}}} {name}\n```\n", markdown(about), ""]
    lines += ["| name | contents |", "|---|---|"]
    for entry in entries:
        home = homes.get(id(entry.value), "")
        own = f"{name}.{entry.name}"
        target = home if _has_section(entry.value) else own
        lines += [f"| {{py:obj}}`{entry.name} <{target}>` | {entry.summary or '`' + _text(entry.value) + '`'} |"]
    for entry in entries:
        own = f"{name}.{entry.name}"
        if not _has_section(entry.value) or homes[id(entry.value)] == own:
            lines += ["", *_section(entry, types)]
    return "\n".join(lines) + "\n"


def _section(entry: Entry, types: dict[str, str]) -> Iterator[str]:
    value = entry.value
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    sig = "" if kind == "data" else _linked(signature(value, entry.name), types)
    yield f"``````{{py:{kind}}} {entry.name}{sig}"
    if kind == "data":
        yield f":value: {_text(value)}"
    yield ""
    yield markdown(entry.doc)
    if kind == "class":
        for member, function in _members(value):
            text = inspect.getdoc(function) or ""
            role = "attribute" if isinstance(function, property) else "method"
            bare = getattr(function, "__func__", function)
            sig = "" if role == "attribute" else _linked(signature(bare, member, bound=True), types)
            yield f"\n`````{{py:{role}}} {member}{sig}\n\n{markdown(text)}\n`````"
    yield "``````"


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(kind).items()):
        if name.startswith("_") or not getattr(kind, "__module__", "").startswith(("bedrax", "jax")):
            continue
        inner = getattr(value, "__func__", value)
        if (inspect.isfunction(inner) or isinstance(value, property)) and inspect.getdoc(inner):
            yield name, value


def _text(value: Any) -> str:
    text = " ".join(repr(value).split()).replace("`", "'").replace("|", "\\|")
    return text if len(text) <= 60 and " at 0x" not in text else type(value).__name__


@functools.cache
def _typed(home: str) -> dict[str, ast.FunctionDef]:
    """The functions of the stub of a module."""
    try:
        file = getattr(importlib.import_module(home), "__file__", None)
    except (ImportError, ValueError):
        return {}
    if file is None or not (stub := Path(file).with_suffix(".pyi")).is_file():
        return {}
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def signature(value: Any, name: str, bound: bool = False) -> str:
    """The signature with types, of public parameters: that of the stub, or else that at run time."""
    node = _typed(str(getattr(value, "__module__", ""))).get(getattr(value, "__name__", name))
    if node is not None and not bound:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"({ast.unparse(node.args)}){returns}"
    try:
        found = signature_of(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())[bound and not hasattr(value, "__self__") :]
    parameters = [_plain(p) for p in parameters if not p.name.startswith("_")]
    returns = inspect.Signature.empty if inspect.isclass(value) else _annotation(found.return_annotation)
    text = str(found.replace(parameters=parameters, return_annotation=returns))
    return re.sub(r"<[^<>]*>", "...", text)


def _linked(text: str, types: dict[str, str]) -> str:
    """A signature whose annotations name classes in full: their short names may have several homes."""
    return re.sub(r"(?<=[ \[(|,])([A-Z]\w*)(?=[ \]|,)=]|$)", lambda match: types.get(match[1], match[1]), text)


class _Bare(str):
    """A text that is its own representation."""

    def __repr__(self) -> str:
        return str(self)


def _annotation(given: Any) -> Any:
    if given is inspect.Signature.empty:
        return given
    text = getattr(given, "__forward_arg__", given)
    return _Bare(text if isinstance(text, str) else inspect.formatannotation(given))


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if default is not inspect.Parameter.empty and not isinstance(default, (bool, int, float, str, bytes, tuple)):
        text = " ".join(repr(default).split())
        default = _Bare("..." if " at 0x" in text or len(text) > 40 else text)
    return parameter.replace(annotation=_annotation(parameter.annotation), default=default)


# ---- docstrings as Markdown ----

HEADER = re.compile(
    r"(Args|Arguments|Attributes|Parameters|Returns|Yields|Raises|Warns|Examples?|Notes?|See also)\b([^:]*):\s*(.*)$"
)
ITEM = re.compile(r"([*\w][^:`]*?(?:`[^`]*`[^:`]*?)*):\s(.*)$")


def markdown(text: str) -> str:
    """A docstring of this project's form as Markdown."""
    return "\n".join(_blocks(text.splitlines(), listed=False))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_entry(lines: list[str], at: int) -> int:
    return next((i for i in range(at + 1, len(lines)) if not _indent(lines[i])), len(lines))


def _entry(lines: list[str], at: int) -> str:
    """An entry of a list as one line: the line at `at`, and those below it that are indented. It may end with a space."""
    return " ".join(x.strip() for x in lines[at : _end_of_entry(lines, at)]) + " "


def _blocks(lines: list[str], listed: bool) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            yield ""
            at += 1
        elif line.lstrip().startswith("```"):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == "```"), len(lines) - 1)
            yield from ["", *(x[_indent(line) :] for x in lines[at : end + 1]), ""]
            at = end + 1
        elif line.lstrip().startswith(">>>"):
            end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
            yield from ["", "```pycon", *(x[_indent(line) :] for x in lines[at:end]), "```", ""]
            at = end
        elif _indent(line) == 0 and (header := HEADER.match(line)):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() and not _indent(lines[i])), len(lines))
            body = lines[at + 1 : end]
            least = min((_indent(x) for x in body if x.strip()), default=0)
            yield f"\n**{header[1].replace('Args', 'Arguments')}**{escaped(header[2])}\n"
            body = [header[3]] * bool(header[3]) + [x[least:] for x in body]
            yield from _blocks(body, listed=header[1] in ("Args", "Arguments", "Attributes", "Parameters", "Raises"))
            at = end
        elif listed and (item := ITEM.match(_entry(lines, at))):
            yield f"- **{escaped(item[1])}**: {escaped(item[2].strip())}"
            at = _end_of_entry(lines, at)
        elif _indent(line) >= 2:
            end = next((i for i in range(at, len(lines)) if lines[i].strip() and _indent(lines[i]) < 2), len(lines))
            yield from ["", "```text", *(x[_indent(line) :] for x in lines[at:end]), "```", ""]
            at = end
        else:
            yield escaped(line)
            at += 1
