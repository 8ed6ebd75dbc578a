"""The options that are set, from where, and environment variables whose names are probably misspelt."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bedrax.doctor.findings import Finding, Result, error, note, one_line

# The variables that are read besides those of the options.
VARIABLES: Final = frozenset(
    {
        "BEDRAX_PYTREE_ENGINE",
        "JAX_COORDINATOR_ADDRESS",
        "JAX_KUBERNETES_SUBDOMAIN",
        "JAX_LOCAL_DEVICE_IDS",
        "JAX_NUM_PROCESSES",
        "JAX_PROCESS_ID",
    }
)
_PREFIXES = ("JAX", "BEDRAX")
_NEAR = 0.9  # the similarity from which a name without such a prefix counts as misspelt


def may_be_set() -> bool:
    """Return whether code of this process may have set options. Otherwise, a new process has the same ones."""
    return loaded("bedrax.core.config")


def loaded(module: str) -> bool:
    """Return whether a module is imported."""
    return module in sys.modules


def options(environ: Mapping[str, str] = os.environ) -> Result:
    """The options with another value than their default, or with an environment variable."""
    try:
        from bedrax.core.config import all_flags

        flags = all_flags()
    except Exception as problem:  # a bad value in an environment variable, a broken installation
        return Result({}, [error("options", f"The options cannot be read: {one_line(problem)}.", _advice(problem))])
    facts: dict[str, Any] = {}
    findings: list[Finding] = []
    for flag in flags:
        origin = flag.origin
        if origin == "default":
            continue
        facts[flag.name] = {
            "value": _plain(flag.value),
            "default": _plain(flag.default),
            "from": f"environment variable {flag.env}" if origin == "environment" else origin,
        }
        if flag.value != flag.default and flag.inert is not None:
            findings.append(note("inert-option", f"The option {flag.name} has no effect: {flag.inert}."))
    return Result(facts, [*findings, *misspelt(environ, {flag.env for flag in flags})])


def _advice(problem: BaseException) -> str:
    return "Correct or unset the variable." if isinstance(problem, ValueError) else "Install the packages again."


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def misspelt(environ: Mapping[str, str], of_options: Iterable[str]) -> Iterator[Finding]:
    """Return a finding for each variable whose name resembles one that is read."""
    known = {*of_options, *VARIABLES}
    for name in sorted(environ):
        if name in known:
            continue
        prefixed = name.upper().startswith(_PREFIXES)
        near = difflib.get_close_matches(name.upper(), known, 1, 0.75 if prefixed else _NEAR)
        if near:
            yield error(
                "misspelt-variable", f"Nothing reads the environment variable {name}.", f"Did you mean {near[0]}?"
            )
        elif prefixed:
            yield note("unknown-variable", f"Nothing of this project reads the environment variable {name}.")


def for_a_child() -> dict[str, str]:
    """Return the environment variables that give a new process the options that code has set in this one."""
    if not may_be_set():
        return {}
    try:
        from bedrax.core.config import all_flags

        flags = all_flags()
    except Exception:  # `options` reports it
        return {}
    return {
        flag.env: "" if flag.value is None else str(flag.value)
        for flag in flags
        if flag.origin == "code" and (isinstance(flag.value, bool | int | float | str) or flag.optional)
    }
