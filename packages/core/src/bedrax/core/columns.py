"""Columns: one table `Primitive -> rule` for each kind of rule.

A column imports a family's file at the first lookup of one of its primitives, so
that the time to import Bedrax does not grow with the number of rules. Absence is
data: `absent(prim, why)` takes the place of a rule, and the printed matrix shows it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from bedrax.core import context
from bedrax.core.codes import coded
from bedrax.core.public import has_interface

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive

F = TypeVar("F")


class Column(dict[Any, Any]):
    """A column of the matrix.

    Args:
      name: the name in messages and in the coverage table, e.g. ``"batching"``.
      package: the package whose module ``<package>.<family>`` holds a family's rules; empty where
        owners register every rule themselves.
      signature: the call of a rule, for messages, e.g. ``"rule(*arrays, **params) -> array"``.
      purpose: what needs the rules, for messages, e.g. ``"vmap"``; by default the name.
      interface: where users of `jax` add a rule: a module (``""`` if the line needs no import, also without `jax`), the
        line to write for ``primitive`` and ``rule``, and the call of the rule there.
      otherwise: ``prim -> rule or None``, called for a primitive that has no rule of its own (and is not
        absent); the only fall-back. Its result is kept.
      otherwise_kind: the name in the coverage table of a rule that `otherwise` made.
    """

    def __init__(
        self,
        name: str,
        package: str = "",
        *,
        signature: str = "",
        purpose: str = "",
        interface: tuple[str, str, str] | None = None,
        otherwise: Callable[[Any], Callable[..., Any] | None] | None = None,
        otherwise_kind: str = "composed",
    ) -> None:
        super().__init__()
        self.name = name
        self.package = package
        self.signature = signature
        self.purpose: str = purpose or name
        self.interface: tuple[str, str, str] | None = interface
        self.module: str = sys._getframe(1).f_globals["__name__"]  # where it is defined
        self.otherwise = otherwise
        self.otherwise_kind = otherwise_kind
        self.kinds: dict[Any, str] = {}
        self.absences: dict[Any, str] = {}
        self._loaded: set[str] = set()

    def add(self, prim: Primitive, rule: F, kind: str = "rule") -> F:
        """Register `rule` for `prim`; a second registration is an error."""
        if self.states(prim):
            raise ValueError(f"{self.name}: a rule for primitive '{prim}' is registered already")
        dict.__setitem__(self, prim, rule)
        self.kinds[prim] = kind
        return rule

    def rule(self, *prims: Any, kind: str = "rule") -> Callable[[F], F]:
        """Decorator form of `add`, for one or more primitives that share a rule."""

        def register(rule):
            for prim in prims:
                self.add(prim, rule, kind)
            return rule

        return register

    def absent(self, *prims: Primitive, why: str) -> None:
        """Register that these primitives have no rule here, and the reason."""
        for prim in prims:
            if self.states(prim):
                raise ValueError(f"{self.name}: a rule for primitive '{prim}' is registered already")
            dict.pop(self, prim, None)
            self.absences[prim] = why

    def replace(self, prim: Primitive, rule: Callable[..., Any]) -> None:
        """Set a library's rule for `prim`, in place of the rule of its family."""
        self.load(prim.family)
        self.absences.pop(prim, None)
        dict.__setitem__(self, prim, rule)
        self.kinds[prim] = "library"
        context.globals_changed()  # programs that were derived from other rules are not used again

    def states(self, prim: Primitive) -> bool:
        """Return whether a rule or a reason for its absence is registered (a fall-back is not)."""
        return prim in self.kinds or prim in self.absences

    def load(self, family: str) -> None:
        """Import this column's file of `family`, if there is one.

        A thread that comes while another one is importing the file waits for it (the import system's own
        lock): a family counts as loaded only when all its rules stand.
        """
        if family and self.package and family not in self._loaded:
            name = f"{self.package}.{family}"
            try:
                stands = importlib.util.find_spec(name) is not None
            except ModuleNotFoundError:  # not even the package
                stands = False
            if stands:
                importlib.import_module(name)
            self._loaded.add(family)

    def find(self, prim: Primitive) -> Any | None:
        """The rule of `prim`, or None."""
        rule = dict.get(self, prim)
        if rule is None and prim not in self.absences:
            self.load(prim.family)
            rule = dict.get(self, prim)
            if rule is None and self.otherwise is not None and prim not in self.absences:
                rule = self.otherwise(prim)
                if rule is not None:
                    rule = self.setdefault(prim, rule)
        return rule

    def kind(self, prim: Primitive) -> str | None:
        """Return the cell of the coverage table: the kind of the rule, ``"absent"``, or None if it is empty."""
        if self.find(prim) is not None:
            return self.kinds.get(prim, self.otherwise_kind)
        return "absent" if prim in self.absences else None

    def registered(self) -> Iterator[tuple[Any, Any]]:
        """Return the pairs (primitive, rule) registered so far, without those that `otherwise` made."""
        return ((prim, dict.__getitem__(self, prim)) for prim in list(self.kinds))

    def get(self, prim: Primitive, default: Any = None) -> Callable[..., Any]:
        rule = self.find(prim)
        return default if rule is None else rule

    def __contains__(self, prim: object) -> bool:
        return self.find(prim) is not None

    def __missing__(self, prim: Primitive) -> Callable[..., Any]:
        rule = self.find(prim)
        if rule is not None:
            return rule
        if prim in self.absences:
            text = f"{self.name} of primitive '{prim}' is not defined: {self.absences[prim]}"
        else:
            text = f"primitive '{prim}' has no rule for {self.purpose}. To add one:\n{self._lines()}"
            if prim.family and self.package:
                text += f"\nThe rules of Bedrax itself are in {self.package}.{prim.family}."
        raise NotImplementedError(coded("BX-RULE-ABSENT", text))

    def _lines(self) -> str:
        """Return the lines of a program that add a rule: those of `jax` if it is installed and has the table."""
        if self.interface is not None:
            module, line, signature = self.interface
            package, _, name = module.rpartition(".")
            if not module:
                return f"  {line}  # {signature}"
            if has_interface():
                return f"  from {package} import {name}\n  {line}  # {signature}"
        module = sys.modules[self.module]
        name = next((name for name, value in vars(module).items() if value is self), "column")
        signature = self.signature or "rule"
        return f"  from {self.module} import {name}\n  {name}.add(primitive, rule)  # {signature}"
