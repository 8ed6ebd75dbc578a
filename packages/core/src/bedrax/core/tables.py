"""Rule tables: one dictionary `Primitive -> rule` per column of the matrix.

A table imports a family's file the first time one of its primitives is looked up, so
that the price of importing Bedrax does not grow with the number of rules. Absence is
data: `absent(prim, why)` stands where a rule would, and the printed matrix shows it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class RuleTable(dict):
    """A column of the matrix.

    Args:
      column: how messages and the coverage table call this column, e.g. ``"batching"``.
      package: the package whose module ``<package>.<family>`` holds a family's rules.
    """

    def __init__(self, column: str, package: str):
        super().__init__()
        self.column = column
        self.package = package
        self.kinds: dict[Any, str] = {}
        self.absences: dict[Any, str] = {}
        self._loaded: set[str] = set()

    def add(self, prim, rule: Callable, kind: str = "rule") -> Callable:
        """Register `rule` for `prim`; a second registration is an error."""
        if dict.__contains__(self, prim) or prim in self.absences:
            raise ValueError(f"{self.column}: a rule for primitive '{prim}' is registered already")
        dict.__setitem__(self, prim, rule)
        self.kinds[prim] = kind
        return rule

    def replace(self, prim, rule: Callable) -> None:
        """Set a library's rule for `prim`, in place of what its family says."""
        self.load(prim.family)
        self.absences.pop(prim, None)
        dict.__setitem__(self, prim, rule)
        self.kinds[prim] = "library"

    def rule(self, *prims, kind: str = "rule") -> Callable[[Callable], Callable]:
        """Decorator form of `add`, for one or more primitives that share a rule."""

        def register(rule):
            for prim in prims:
                self.add(prim, rule, kind)
            return rule

        return register

    def absent(self, *prims, why: str) -> None:
        """Write down that these primitives have no rule here, and why."""
        for prim in prims:
            if dict.__contains__(self, prim) or prim in self.absences:
                raise ValueError(f"{self.column}: a rule for primitive '{prim}' is registered already")
            self.absences[prim] = why

    def load(self, family: str) -> None:
        """Import this column's file of `family`, once, if there is one."""
        if family and family not in self._loaded:
            self._loaded.add(family)
            name = f"{self.package}.{family}"
            if importlib.util.find_spec(name) is not None:
                try:
                    importlib.import_module(name)
                except BaseException:
                    self._loaded.discard(family)
                    raise

    def find(self, prim) -> Callable | None:
        """The rule of `prim`, or None."""
        rule = dict.get(self, prim)
        if rule is None and prim not in self.absences:
            self.load(prim.family)
            rule = dict.get(self, prim)
        return rule

    def get(self, prim, default=None):
        rule = self.find(prim)
        return default if rule is None else rule

    def __contains__(self, prim) -> bool:
        return self.find(prim) is not None

    def __missing__(self, prim):
        rule = self.find(prim)
        if rule is not None:
            return rule
        if prim in self.absences:
            raise NotImplementedError(
                f"{self.column} of primitive '{prim}' is not defined: {self.absences[prim]}"
            )
        place = (
            f"{self.package}.{prim.family}" if prim.family else f"a call of the table's `add` beside '{prim}'"
        )
        raise NotImplementedError(
            f"primitive '{prim}' has no rule in the table '{self.column}'; it would be registered in {place}"
        )


numpy_rules = RuleTable("NumPy evaluation", "bedrax.core.numpy_eval")

# primitive -> function of lax operations that computes it, for columns that have no rule of their own for it. Arrays of
# an extended dtype are given, and returned, as their bases (see `bedrax.core.extended`).
decompositions: dict[Any, Callable] = {}

# What the packages that know TensorFlow share. Primitives that are TensorFlow functions: primitive ->
# ``fun(*tensors, **params) -> list of tensors``; and, while a program is made that TensorFlow will run, the list of the
# concrete functions that it calls by index (None otherwise).
tf_calls: dict[Any, Callable] = {}
tf_functions: ContextVar[list | None] = ContextVar("tf_functions", default=None)
