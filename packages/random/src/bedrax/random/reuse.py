"""Finds keys that are used twice (`jax_debug_key_reuse`): reads programs with a mark for each key in place of the key.

A `Mark` is the identity of one key; an array of keys has an array of marks of its shape. Operations that move elements
move marks; those that make random numbers or new keys of a key use its mark up; all others make new marks. The column
`key_rules` holds the rule of each primitive. Programs that an operation holds are read as they are applied
(`tables.programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import source, tables
from bedrax.core.avals import aval_of
from bedrax.core.columns import Column
from bedrax.core.errors import JAXTypeError, public_error
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, Literal
from bedrax.core.public import public
from bedrax.core.tracing import Tracer
from bedrax.lax.primitives.shaping import broadcast_in_dim_p
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.random.gamma_family import random_gamma_p
from bedrax.random.key_array import KeyArray, KeyDType
from bedrax.random.primitives import random_bits_p, random_split_p

_MOVING = frozenset(("shaping", "indexing", "conversions", "markers", "placement"))
_LARGEST = 1 << 20  # an array of more keys is not checked


@public_error
class KeyReuseError(JAXTypeError):
    """The same random key was used twice, with ``jax_debug_key_reuse`` on.

    A program that fails::

      key = jax.random.key(0)
      a = jax.random.uniform(key)
      b = jax.random.uniform(key)         # raises KeyReuseError: b would equal a

    Repaired by splitting::

      key_a, key_b = jax.random.split(jax.random.key(0))
      a, b = jax.random.uniform(key_a), jax.random.uniform(key_b)

    Examples:

      >>> with jax.debug_key_reuse(True):
      ...     key = jax.random.key(0)
      ...     _ = jax.random.bits(key)
      ...     try:
      ...         jax.random.bits(key)
      ...     except jax.errors.KeyReuseError:
      ...         print("split it first")
      ...
      split it first
    """

    code = "BX-KEY-REUSED"


class Mark:
    """The identity of one key, and where it was used up (None: nowhere yet)."""

    __slots__ = ("used",)

    def __init__(self, used: str | None = None) -> None:
        self.used: str | None = used


def is_keys(aval: Any) -> bool:
    """Whether a type is that of an array of keys that is checked."""
    return isinstance(getattr(aval, "dtype", None), KeyDType) and all(type(n) is int for n in aval.shape)


def new_marks(aval: Any) -> np.ndarray | None:
    """Marks of new keys; None for other types and for very large arrays of keys."""
    if not is_keys(aval) or aval.size > _LARGEST:
        return None
    marks = np.empty(aval.shape, object)
    for i in range(aval.size):
        marks.flat[i] = Mark()
    return marks


def marks_of(x: Any) -> np.ndarray | None:
    """The marks of a value; None for a value that is not an array of keys."""
    if type(x) is not KeyArray:
        return None
    if x.marks is None:
        x.marks = new_marks(x.aval)
    return x.marks


class Operation(NamedTuple):
    """The operation to check.

    Attributes:
      avals: the types of its results.
      marks: for each operand, its marks or None.
      values: ``index -> the operand's value``, None where it is not known.
      where: its name and place, for messages.
    """

    prim: Any
    params: dict[str, Any]
    avals: Sequence[Any]
    marks: Sequence[Any]
    values: Callable[..., Any]
    where: str


class Reading:
    """One reading of an operation or a program: the marks that it uses up, and the places."""

    def __init__(self) -> None:
        self.used: dict[Mark, str] = {}

    def where_used(self, mark: Mark) -> str | None:
        """The place where a mark has been used up."""
        return self.used.get(mark) or mark.used

    def use(self, marks: np.ndarray | None, where: str) -> None:
        """Use keys up; KeyReuseError if one of them has been used, or occurs twice."""
        for mark in () if marks is None else marks.flat:
            before = self.where_used(mark)
            if before is not None:
                raise KeyReuseError(
                    public(
                        f"a random key is used again by {where}; it was used by {before} before, and random numbers"
                        " made from it would repeat. Use every key once: jax.random.split makes several of one,"
                        " jax.random.fold_in numbers them, and jax.random.clone marks an intended repetition."
                    )
                )
            self.used[mark] = where

    def apply(self, op: Operation) -> list[Any]:
        """The marks of the results of one operation."""
        uses = [u for u in programs_of(op.prim, op.params) if u.operands is not None]
        if not uses:
            return key_rules[op.prim](self, op)
        if any(u.carries or u.slices or u.stacks for u in uses):
            return self._loop(uses, op)
        before, after, results = self.used, {}, [None] * len(op.avals)
        for use in uses:  # exactly one of the branches runs
            self.used = dict(before)
            self._one(use, [None if i is None else op.marks[i] for i in use.operands], results, op.where)
            after |= self.used
        self.used = after
        return _sound(results, op.avals)

    def read(self, program: Any, args: Sequence[Any], where: str = "") -> list[Any]:
        """The marks of a program's results, given those of its arguments; `where` names its place in messages."""
        env: dict[Any, Any] = dict(zip(program.invars, args, strict=True))
        known = dict(zip(program.constvars, program.consts))
        env |= {v: marks_of(c) for v, c in known.items()}
        marks = lambda v: None if isinstance(v, Literal) else env.get(v)
        for eqn in equations_with_keys(program):
            values = lambda i, eqn=eqn: v.value if isinstance(v := eqn.invars[i], Literal) else known.get(v)
            place = where or _place(eqn.primitive, eqn.params, eqn.source_info)
            operands, avals = [marks(v) for v in eqn.invars], [v.aval for v in eqn.outvars]
            outs = self.apply(Operation(eqn.primitive, eqn.params, avals, operands, values, place))
            env.update(zip(eqn.outvars, outs, strict=True))
        return [marks(v) for v in program.outvars]

    def _one(self, use: tables.Use, args: list, results: list, where: str) -> None:
        outs = self.read(use.program, args, where)
        for place, found in zip(use.results or (), outs):
            if place is not None:
                known = results[place]
                both = known is None or found is None or all(a is b for a, b in zip(known.flat, found.flat))
                results[place] = found if both else self._renewed([known, found])

    def _loop(self, uses: Sequence, op: Operation) -> list:
        """Two rounds stand for any number of them: the second finds the marks that the first has used up."""
        marks, avals = list(op.marks), op.avals
        before = set(self.used)
        rounds = next((u.rounds for u in uses if u.rounds is not None), None)
        results: list[Any] = [None] * len(avals)
        for n in range(min(2, rounds) if type(rounds) is int else 2):
            for use in uses:
                args = [None if i is None else marks[i] for i in use.operands]
                edge = len(args) - use.slices
                args[edge:] = [None if m is None else m[n, ...] for m in args[edge:]]
                outs: list[Any] = [None] * len(avals)
                self._one(use, args, outs, op.where)
                for operand, result in use.carries:
                    marks[operand] = outs[result]
                results = [new if new is not None else old for old, new in zip(results, outs, strict=True)]
        for use in uses:
            for i in use.operands[len(use.operands) - use.slices :]:
                if marks[i] is not None and len(marks[i]) > 2:
                    spent = np.frompyfunc(lambda m: m in self.used and m not in before, 1, 1)(marks[i][1, ...])
                    # Each round uses the same part of its slice.
                    self.use(marks[i][2:][np.broadcast_to(np.asarray(spent, bool), marks[i][2:].shape)], op.where)
            for i in range(len(avals) - use.stacks, len(avals)):
                one, results[i] = results[i], new_marks(avals[i])
                if one is not None and results[i] is not None:
                    results[i][...] = self._renewed([one])
        return _sound(results, avals)

    def _renewed(self, alternatives: Sequence) -> np.ndarray:
        """New marks, used up where one of the alternatives is used up."""
        out = np.empty(alternatives[0].shape, object)
        for i in range(out.size):
            out.flat[i] = Mark(next(filter(None, (self.where_used(a.flat[i]) for a in alternatives)), None))
        return out

    def keep(self) -> None:
        """Records that the operation has run."""
        for mark, where in self.used.items():
            mark.used = where


def _sound(results: list, avals: Sequence) -> list:
    return [r if r is not None and r.shape == a.shape else new_marks(a) for r, a in zip(results, avals, strict=True)]


def _place(prim: Any, params: dict, where: Any) -> str:
    return f"{(params.get('name') or str(prim)).lstrip('_')} at {source.describe(where)}"


def _new_keys(reading: Reading, op: Operation) -> list:
    return [new_marks(a) for a in op.avals]


def _moved(reading: Reading, op: Operation) -> list:
    """Elements are moved: NumPy moves the marks in the same way."""
    every: list[Any] = [None]  # the index 0 stands for elements that are filled in
    args = []
    for i, m in enumerate(op.marks):
        if m is None:
            args.append(op.values(i))
        else:
            args.append(np.arange(len(every), len(every) + m.size, dtype=np.int32).reshape(m.shape))
            every += m.flat
    if any(x is None or isinstance(x, Tracer) for x in args):
        return _new_keys(reading, op)
    found = numpy_rules[op.prim](*map(np.asarray, args), **op.params)
    results = []
    for places, aval in zip(found if op.prim.multiple_results else [found], op.avals, strict=True):
        out = new_marks(aval)
        for i, place in enumerate(np.asarray(places).flat if out is not None else ()):
            if 0 < place < len(every):
                out.flat[i] = every[place]
        results.append(out)
    return results


key_rules: Final = Column(
    "key reuse",
    signature="rule(reading, operation) -> marks of the results",
    otherwise=lambda prim: _moved if prim.family in _MOVING else _new_keys,
)
key_rules.add(broadcast_in_dim_p, _new_keys)  # each row may use a key that is broadcast


@key_rules.rule(random_bits_p, random_split_p, random_gamma_p)
def _uses_up(reading: Reading, op: Operation) -> list:
    reading.use(op.marks[0], op.where)
    return _new_keys(reading, op)


def programs_of(prim: Any, params: dict[str, Any]) -> Sequence[tables.Use]:
    """The way in which an operation applies the programs that it holds."""
    return tables.programs[prim](params) if tables.programs.states(prim) else ()


@cached
def equations_with_keys(program: Any) -> tuple[Any, ...]:
    """The equations that have keys among their operands or results, or in programs that they hold."""
    return tuple(
        eqn
        for eqn in program.eqns
        if any(is_keys(v.aval) for v in (*eqn.invars, *eqn.outvars))
        or any(has_keys(u.program) for u in programs_of(eqn.primitive, eqn.params))
    )


def has_keys(program: Any) -> bool:
    """Whether there are keys in a program."""
    return bool(equations_with_keys(program)) or any(is_keys(v.aval) for v in (*program.constvars, *program.outvars))


def check_program(program: Jaxpr) -> None:
    """Check a program that was recorded.

    Raises:
      KeyReuseError: a key would be used twice.
    """
    if has_keys(program):
        Reading().read(program, [new_marks(a) for a in program.in_avals])


def check_operation(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Callable[..., Any] | None:
    """Check an operation that is about to run.

    Returns:
      A function to call with the results, which it returns; None where there are no keys.

    Raises:
      KeyReuseError: a key would be used twice.
    """
    uses = programs_of(prim, params)
    if not uses and tables.programs.states(prim):  # it calls a function now, whose operations are checked one by one
        return None
    if not any(type(x) is KeyArray for x in args) and not any(has_keys(u.program) for u in uses):
        return None
    out = prim.result_types([aval_of(x) for x in args], params)
    avals = out if prim.multiple_results else [out]
    where = _place(prim, params, source.user_frame())
    reading = Reading()
    results = reading.apply(Operation(prim, params, avals, [marks_of(x) for x in args], args.__getitem__, where))

    def ran(outs: Any) -> Any:
        reading.keep()
        for x, marks in zip(pytree.tree_leaves(outs), results):
            if type(x) is KeyArray and marks is not None:
                x.marks = marks
        return outs

    return ran


def check(checked: Any, *operation: Any) -> Callable[..., Any] | None:
    """Check a recorded program; with further arguments, the operation ``check_operation(checked, *operation)``."""
    return check_operation(checked, *operation) if operation else check_program(checked)
