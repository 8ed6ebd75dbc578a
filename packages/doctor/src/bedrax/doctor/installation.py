"""The installed distributions: their versions, conflicts between them, files of other origin, requirements, extras.

All of it is read from metadata and files. Nothing that may be broken is imported.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from bedrax.doctor.findings import Finding, Result, error, note, one_line

# Libraries whose versions are reported if they are installed: distribution -> import package.
LIBRARIES: Final = {
    "jaxlib": "jaxlib",
    "numpy": "numpy",
    "scipy": "scipy",
    "ml-dtypes": "ml_dtypes",
    "opt-einsum": "opt_einsum",
    "tensorflow": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "flax": "flax",
    "optax": "optax",
    "orbax-checkpoint": "orbax",
    "equinox": "equinox",
    "jax-cuda12-plugin": "jax_plugins",
    "jax-cuda13-plugin": "jax_plugins",
    "jax-rocm7-plugin": "jax_plugins",
    "libtpu": "libtpu",
}
# Import packages whose place is checked: a file or folder of that name elsewhere would be imported instead.
PLACED: Final = ("jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "tensorflow")
LOCAL: Final = "+bedrax."  # in the version of this project's distribution of `jax`
INSTALL_PAGE: Final = "https://github.com/bedrax/bedrax/blob/main/docs/install.md"
_SHOWN = 3  # files that a message names


def normal(name: str) -> str:
    """Return the normal form of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions() -> dict[str, list[Distribution]]:
    """Return the installed distributions by name. The first one of a name is the one that programs see."""
    found: dict[str, dict[tuple[str, str], Distribution]] = {}
    for dist in importlib.metadata.distributions():
        name = dist.metadata["Name"] if dist.metadata else None
        if name:
            place = os.path.realpath(str(dist.locate_file("")))
            found.setdefault(normal(name), {}).setdefault((place, str(dist.version)), dist)
    return {name: [*some.values()] for name, some in found.items()}


def ours(name: str) -> bool:
    """Return whether a distribution of this name is one of this project's, or stands for the interface `jax`."""
    return name in ("bedrax", "jax") or name.startswith("bedrax-")


def shown(dist: Distribution) -> str:
    return f"{dist.version} in {os.path.realpath(str(dist.locate_file('')))}"


def is_editable(dist: Distribution) -> bool:
    """Return whether a distribution is a link to its sources."""
    text = dist.read_text("direct_url.json")
    return bool(text and json.loads(text).get("dir_info", {}).get("editable"))


def versions() -> Result:
    """The versions of Python, the system, this project's packages, and the libraries around it."""
    found = distributions()
    named = {n: d[0].version for n, d in sorted(found.items()) if ours(n) or n in LIBRARIES}
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "environment": sys.prefix,
        "system": platform.platform(),
        "machine": platform.machine(),
        "distributions": named,
    }
    return Result(facts, [*_processor()])


def _processor(file: str = "/proc/cpuinfo") -> Iterator[Finding]:
    """The instructions that jaxlib's wheels for x86 need. Systems without the file are not checked."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if (line := re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)) is None:
        return
    missing = [each for each in ("avx2", "f16c") if each not in line[1].split()]
    if missing:
        yield error(
            "processor",
            f"jaxlib needs a processor with AVX2 and F16C; this one lacks {' and '.join(missing)}",
            "Use another machine, or packages that need no jaxlib, such as bedrax-autodiff.",
        )


def installation() -> Result:
    """Conflicts: distributions of one name, files of other origin, modules that hide others, unmet requirements."""
    found = distributions()
    findings = [
        *_doubles(found),
        *_altered(found),
        *_hidden(found),
        *_unmet(found),
        *_plugins(found),
        *_tensorflow(found),
    ]
    if "jax" not in found:
        findings.append(note("no-face", "The distribution jax is not installed: programs cannot `import jax`."))
    elif LOCAL not in found["jax"][0].version:
        findings.append(
            note("upstream", f"The distribution jax is upstream's, {shown(found['jax'][0])}.", _reinstall("jax"))
        )
    facts: dict[str, Any] = {}
    if (spec := _spec("jax")) is not None:
        facts["jax is imported from"] = spec
    return Result(facts, findings)


def _reinstall(name: str) -> str:
    return (
        f"Run `pip uninstall -y {name}` until it finds nothing, and remove what is left of the folder."
        f" {_install('bedrax' if name == 'jax' else name)}"
    )


def _install(requirement: str) -> str:
    """The remedy that installs a distribution: one of this project's comes from its own index."""
    if not ours(re.split(r"[^\w.-]", requirement)[0]):
        return f'Run `pip install "{requirement}"`.'
    return (
        f'Run `pip install --extra-index-url INDEX "{requirement}"`. INDEX is the address of the index of Bedrax:'
        f" {INSTALL_PAGE} has the way to find it."
    )


def _doubles(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    for name, some in found.items():
        if len(some) > 1 and (ours(name) or name in LIBRARIES):
            yield error(
                "two-distributions",
                f"{len(some)} distributions are named {name}: {'; '.join(shown(dist) for dist in some)}. "
                "Files of one may lie over those of another.",
                _reinstall(name),
            )


def _altered(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """Files of this project that are missing or changed, and files of others in its folders."""
    for name, some in found.items():
        for dist in some:
            if not ours(name) or (name == "jax" and LOCAL not in dist.version) or is_editable(dist):
                continue
            recorded = _recorded(dist)
            if recorded is None:
                yield error("no-record", f"{name} {shown(dist)} has no list of its files.", _reinstall(name))
                continue
            wrong = [path for path, digest in recorded.items() if _state(Path(str(dist.locate_file(path))), digest)]
            if wrong:
                yield error(
                    "changed-files",
                    f"{_some(wrong)} of the distribution {name} {shown(dist)} are not as they were installed.",
                    _reinstall(name),
                )
            foreign = [*_foreign(dist, recorded)]
            if foreign:
                yield error(
                    "foreign-files",
                    f"{_some(foreign)} in {dist.locate_file('')} were not installed by the distribution {name}.",
                    _reinstall(name),
                )


def _recorded(dist: Distribution) -> dict[str, str] | None:
    """The Python files in a distribution's list, with their hashes; None without a list.

    `Distribution.files` leaves out files that are missing.
    """
    text = dist.read_text("RECORD")
    if text is None:
        return None
    return {row[0]: row[1] for row in csv.reader(text.splitlines()) if row and row[0].endswith((".py", ".pyi"))}


def _state(path: Path, recorded: str) -> str:
    """Return "missing", "changed", or "" for a file and the hash in its distribution's list."""
    try:
        data = path.read_bytes()
    except OSError:
        return "missing"
    mode, _, expected = recorded.partition("=")
    if mode not in hashlib.algorithms_guaranteed:
        return ""
    digest = base64.urlsafe_b64encode(hashlib.new(mode, data).digest()).decode().rstrip("=")
    return "" if digest == expected else "changed"


def _foreign(dist: Distribution, recorded: dict[str, str]) -> Iterator[str]:
    """The Python files in a distribution's packages that its list does not name."""
    packages = {Path(path).parent for path in recorded if Path(path).name == "__init__.py"}
    tops = {p for p in packages if p.parent not in packages}
    root = Path(str(dist.locate_file("")))
    for top in sorted(tops):
        for path in sorted((root / top).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if name not in recorded:
                yield name


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} file{'s' * (len(names) > 1)} ({', '.join(names[:_SHOWN])}{more})"


def _spec(name: str) -> str | None:
    """The file that `import name` takes."""
    if (module := sys.modules.get(name)) is not None:
        return getattr(module, "__file__", None)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


def _homes(name: str, found: dict[str, list[Distribution]]) -> list[str]:
    """The folders, with links resolved, in which the distributions of an import package install it."""
    names = [dist for dist, module in {**LIBRARIES, "jax": "jax"}.items() if module == name]
    if not any(dist in found for dist in names):  # a build with another name, for example a nightly one
        names = [normal(dist) for dist in importlib.metadata.packages_distributions().get(name, ())]
    homes = []
    for dist in (d for n in names for d in found.get(n, ())):
        folder = dist.locate_file("")
        if is_editable(dist):
            url = json.loads(dist.read_text("direct_url.json") or "{}").get("url", "")
            folder = url2pathname(urlsplit(url).path)
        homes.append(os.path.realpath(str(folder)))
    return homes


def _hidden(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """Modules and folders that are imported in place of an installed package."""
    here = os.getcwd()
    for name in PLACED:
        homes, origin = _homes(name, found), _spec(name)
        if origin is None:
            continue
        if not any(os.path.realpath(origin).startswith(home + os.sep) for home in homes):
            of = f"the installed distribution in {homes[0]}" if homes else "an installed distribution"
            yield error(
                "hidden",
                f"`import {name}` takes {origin}, which does not belong to {of}.",
                f"Rename or remove {origin}, or take its folder out of PYTHONPATH.",
            )
            continue
        if (near := _in_folder(here, name)) and os.path.realpath(near) != os.path.realpath(origin):
            yield error(
                "hidden",
                f"The current folder has {near}: Python programs that start there import it in place of {origin}.",
                f"Rename or remove {near}.",
            )
    if near := _in_folder(here, "bedrax"):
        yield error(
            "hidden",
            f"The current folder has {near}: Python programs that start there find none of the packages bedrax.*.",
            f"Rename or remove {near}.",
        )


def _in_folder(folder: str, name: str) -> str | None:
    """The module of a name in a folder, or None. A folder without an `__init__.py` hides no package."""
    spec = importlib.machinery.PathFinder.find_spec(name, [folder])
    return spec.origin if spec else None


@functools.cache
def _requirement(text: str) -> Any:
    from packaging.requirements import Requirement

    return Requirement(text)


def _unmet(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """Requirements of this project's distributions that are absent or have another version."""
    wrong: dict[tuple[str, str], list[str]] = {}
    try:
        for name, some in found.items():
            for text in some[0].requires or () if ours(name) else ():
                requirement = _requirement(text)
                if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                    continue
                there = found.get(normal(requirement.name))
                if there is None or not requirement.specifier.contains(there[0].version, prereleases=True):
                    key = requirement.name, str(requirement.specifier)
                    wrong.setdefault(key, []).append(f"{name} {some[0].version}")
    except Exception as problem:
        yield error("no-packaging", f"Requirements were not checked: {one_line(problem)}.", _install("packaging"))
        return
    for (required, bounds), by in wrong.items():
        there = found.get(normal(required))
        what = f"{required} {there[0].version}" if there else f"no {required}"
        many = f" and {len(by) - 1} more package{'s' * (len(by) > 2)}" if len(by) > 1 else ""
        yield error(
            "requirement",
            f"{what} is installed, but {by[0]}{many} need{'s' * (not many)} {required}{bounds}.",
            _install(f"{required}{bounds}"),
        )


def _plugins(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """Plugins of a CUDA or ROCm device whose version is not that of jaxlib."""
    jaxlib = found["jaxlib"][0].version if "jaxlib" in found else None
    for name, some in found.items():
        if re.fullmatch(r"jax-(cuda|rocm)\d+-(plugin|pjrt)", name) and some[0].version != jaxlib:
            yield error(
                "plugin-version",
                f"{name} {some[0].version} is installed with {'jaxlib ' + jaxlib if jaxlib else 'no jaxlib'}: a plugin"
                " works with the jaxlib of its version only.",
                _install(f"{name}=={jaxlib}" if jaxlib else "jaxlib"),
            )


def _tensorflow(found: dict[str, list[Distribution]]) -> Iterator[Finding]:
    """Find both distributions of TensorFlow, whose files overwrite each other, or none for a bridge."""
    there = {name: found[name][0].version for name in ("tensorflow-cpu", "tensorflow") if name in found}
    bridges = [name for name in ("bedrax-jax2tf", "bedrax-call-tf") if name in found]
    if len(there) == 2:
        both = " and ".join(f"{name} {version}" for name, version in there.items())
        remedy = "Uninstall both, and install the one that you need."
        yield error("two-distributions", f"{both} are installed. Files of one lie over those of the other.", remedy)
    elif bridges and not there and _spec("tensorflow") is None:
        message = f"Neither tensorflow-cpu nor tensorflow is installed. {' and '.join(bridges)} cannot be imported."
        more = '"bedrax[tensorflow]" has tensorflow in place of tensorflow-cpu.'
        yield note("no-tensorflow", message, f"{_install('bedrax[tf]')} {more}")


def extras() -> Result:
    """The extras of this project's distributions, and what they lack here."""
    found = distributions()
    facts: dict[str, Any] = {}
    for name, some in sorted(found.items()):
        if not ours(name) or (name == "jax" and LOCAL not in some[0].version):
            continue
        for extra in some[0].metadata.get_all("Provides-Extra") or ():
            missing = _missing(found, some[0], extra)
            facts[f"{name}[{extra}]"] = {"missing": missing} if missing else "installed"
    return Result(facts, [])


def _missing(found: Mapping[str, Sequence[Distribution]], dist: Distribution, extra: str) -> list[str]:
    """The requirements of an extra that are not installed, and those of the extras that it requires."""
    missing: dict[str, None] = {}
    for requirement in _of_extra(dist, extra):
        some = found.get(normal(requirement.name))
        if not some:
            missing[str(requirement)] = None
        for inner in requirement.extras if some else ():
            missing.update(dict.fromkeys(_missing(found, some[0], inner)))
    return list(missing)


def _of_extra(dist: Distribution, extra: str) -> Iterator[Any]:
    """The requirements that an extra adds in this environment."""
    for text in dist.requires or ():
        requirement = _requirement(text)
        marker = requirement.marker
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            requirement = _requirement(text.partition(";")[0])
            yield requirement
