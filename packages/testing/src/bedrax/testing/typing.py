"""Checks without an evaluation: types of programs, completeness of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import config, dtypes
from bedrax.core.avals import aval_of
from bedrax.core.staging import program_of
from bedrax.core.typecheck import check_jaxpr
from bedrax.testing.records import ArgSpec, OpCase, all_primitives

if TYPE_CHECKING:
    from bedrax.core.columns import Column


def as_list(out: Any) -> list[Any]:
    """The results of a function, one or several, as a list."""
    return list(out) if isinstance(out, tuple | list) else [out]


def x64_if_needed(case: OpCase) -> Any:
    """A context in which the record's own dtypes exist."""
    kinds = {dtypes.as_dtype(a.dtype) if isinstance(a, ArgSpec) else np.asarray(a).dtype for a in case.args}
    wide = any(dtypes.canonicalize_dtype(d) != d for d in kinds)
    return config.enable_x64(True) if wide else config.enable_x64(config.enable_x64.value)


def check_program(fun: Callable[..., Any], args: list[Any], what: str) -> None:
    """The program of `fun` for arguments like `args` is well typed."""
    program = program_of(lambda *xs: as_list(fun(*xs)), [aval_of(a) for a in args])
    try:
        check_jaxpr(program)
    except Exception as e:
        raise AssertionError(f"{what}: {e}") from e


def check_types(case: OpCase) -> None:
    """The program is well typed."""
    with x64_if_needed(case):
        check_program(case.fun, case.make_args(), case.id)


def check_complete(table: Column, excused: dict[Any, Any] | None = None) -> None:
    """Every primitive of core has a rule in `table`, or a written reason why not."""
    missing = []
    for prim in all_primitives():
        if table.find(prim) is None and prim not in table.absences and prim not in (excused or {}):
            missing.append(f"{prim.family}.{prim}")
    assert not missing, f"{table.name}: neither rule nor reason for {', '.join(missing)}"
