"""Linearization: one pass computes primals and records the linear tangent program.

A `LinearizeTrace` runs the same jvp rules as forward mode, with tangents that are nodes of
a *tape*. While a rule runs, the tape is the current trace: an operation with a node among
its arguments is recorded, every other operation is passed to the parent. So the recorded
operations are linear in the nodes, and their other arguments are the residuals.

The transposition of a program works by the same means (`backward_pass`): run it with nodes
for the arguments it is linear in, then read the tape backwards.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bedrax.autodiff import steps
from bedrax.autodiff.dependence import dependents
from bedrax.autodiff.forward import Differentiating, DualTracer
from bedrax.autodiff.steps import SCALARS
from bedrax.autodiff.tables import UndefinedPrimal, Zero, add_tangents, jvp_rules, linearize_rules, transpose_rules
from bedrax.autodiff.tables import instantiate as materialize
from bedrax.core import avals, context, executors, source, staging
from bedrax.core.array import Array
from bedrax.core.avals import AbstractValue, aval_functions, aval_of
from bedrax.core.columns import Column
from bedrax.core.dead_code import dce, dead_code_rules, kept
from bedrax.core.exact import exact_items
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var, eval_jaxpr, run
from bedrax.core.jitting import jit_p
from bedrax.core.names import JVP, TRANSPOSE, scopes
from bedrax.core.passes import all_equations, inline, programs_in
from bedrax.core.quiet import quiet, quietly
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import (
    Primitive,
    Trace,
    Tracer,
    checks_leaks,
    current,
    entered,
    eval_trace,
    inputs_of,
    mutable_among,
    set_trace,
)
from bedrax.core.typed_values import is_typed, typed
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.calls import closed_call_p, core_call_p, remat_p
from bedrax.lax.primitives.custom_rules import collecting_logs, logging
from bedrax.lax.primitives.placement import cotangent_type, moved
from bedrax.lax.primitives.shaping import broadcast_in_dim_p


class Node(Tracer):
    """A value of the linear program.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> def f(x, y):
      ...     print([isinstance(value, pe.JaxprTracer) for value in (x, y)])
      ...     return [x * y]
      ...
      >>> unknown = pe.PartialVal.unknown(jax.typeof(1.))
      >>> _ = pe.trace_to_jaxpr_nounits(f, [pe.PartialVal.known(3.), unknown])
      [False, True]
    """

    __slots__ = ("aval", "entry")

    def __init__(self, trace: Tape, aval: AbstractValue, entry: Any = None) -> None:
        self._trace = trace
        self.aval: AbstractValue = aval
        self.entry: Any = entry  # (step, operands that it keeps, its other residuals, nodes) if the node is an entry

    def __repr__(self) -> str:
        return f"LinearTracer({self.aval.short()})"


aval_functions[Node] = operator.attrgetter("aval")
ValueNode: Final = typed(Node)


class Entry:
    """One recorded operation."""

    __slots__ = ("args", "names", "outs", "params", "prim", "source_info")

    def __init__(
        self, prim: Primitive, args: list[Any] | tuple[Any, ...], params: dict[str, Any], outs: list[Node]
    ) -> None:
        self.names: tuple[str, ...] = current.names  # in force again in the backward pass
        self.prim: Primitive = prim
        self.args: list[Any] | tuple[Any, ...] = args
        self.params: dict[str, Any] = params
        self.outs: list[Node] = outs
        self.source_info: Any = None  # the line of the operation whose derivative it is


def _as_cotangent_of(ct: Any, aval: Any) -> Any:
    """Return a cotangent with the sharding that cotangents of its primal's type have."""
    split, have = getattr(cotangent_type(aval), "split", None), getattr(aval_of(ct), "split", None)
    if split == have:
        return ct
    return moved(ct, have.update(spec=type(have.spec)()) if split is None else split)


def _must_move(ct: Any, aval: Any) -> bool:
    """Whether a cotangent must be moved to the placement of its primal.

    That is so on another mesh, for partial sums and sums, and for a whole cotangent of a split value: a cut exchanges
    nothing, and operations that give partial sums expect equal blocks.
    """
    split, have = getattr(aval, "split", None), getattr(aval_of(ct), "split", None)
    if have is None:
        return split is not None
    if split is None:
        return have.partial
    return split.partial or have.partial or split.mesh != have.mesh


def _recording(trace: Any) -> Any:
    """The innermost trace that records a program, at or around a trace; None if operations are evaluated."""
    while trace is not None and not isinstance(trace, staging.StagingTrace):
        trace = trace.parent
    return trace


def _array(host: Any, value: Any, aval: Any) -> Any:
    """A cotangent as an array, where steps are recorded: the value of a step (of type `aval`), or one of a user's rule."""
    if host is None or type(value) is not np.ndarray:
        return value
    return executors.get().asarray(value) if aval is None else host(value, aval.weak_type)


def _step_back(entry: Any, host: Any, ct: Any, cotangents: dict[int, Any]) -> None:
    """Add what a step, whose cotangent is `ct`, contributes to the cotangents, as NumPy arrays."""
    step, kept, rest, nodes = entry
    values = []
    for x, dtype in zip(kept, step.dtypes):
        values.append(x._value if type(x) is host else np.asarray(x, dtype))
    if type(ct) is not np.ndarray:
        ct = steps.value_of(ct)
    try:
        parts = quiet.run(step.backward, *values, *rest, ct)
    except RuntimeError:
        parts = quietly(step.backward, *values, *rest, ct)
    for i, part in zip(step.places, parts):
        key = id(nodes[i])
        known = cotangents.get(key)
        cotangents[key] = part if known is None else steps.sum_of(known, part)


class Tape(Trace):
    """Records operations on its nodes; everything else runs in the parent."""

    __slots__ = ("entries", "follows", "host", "outside", "replays")
    sees_constants = False
    splits_loops = True

    def __init__(self, parent: Trace) -> None:
        self.parent: Trace = parent
        self.alive = True
        self.entries: list[Entry | Node] = []  # a node is the entry of a step
        self.host: Any = None  # the type of arrays whose operations may be steps
        self.follows: bool = False  # whether each operation is recorded just after the one whose derivative it is
        self.outside: int | None = None  # the number of names in force around the function that is differentiated
        self.replays: bool = (
            False  # whether the operations are equations of a program, and their transposes are recorded
        )

    def process(self, prim: Primitive, args: tuple[Any, ...] | list[Any], params: dict[str, Any]) -> Any:
        """Record an operation on nodes, split if it has a split rule; pass any other to the parent."""
        for x in args:
            if (type(x) is Node or type(x) is ValueNode) and x._trace is self:
                break
        else:
            saved = current.trace
            current.trace = self.parent
            try:
                return self.parent.process(prim, args, params)
            finally:
                current.trace = saved
        return split_rules[prim](self, prim, args, params)

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Run a function of nodes, which is linear; pass any other to the parent."""
        if any(map(self.owns, args)):
            return rule.primal(*args)
        with set_trace(self.parent):
            return self.parent.call(prim, rule, args)

    def record(self, prim: Primitive, args: list[Any] | tuple[Any, ...], params: dict[str, Any]) -> Node | list[Node]:
        """Append an operation, linear in its nodes."""
        types = prim.result_types([x.aval if type(x) is Node else aval_of(x) for x in args], params)
        if prim.multiple_results:
            outs = [self.node(a) for a in types]
            self.add(Entry(prim, args, params, outs))
            return list(outs)
        node = self.node(types)
        self.add(Entry(prim, args, params, [node]))
        return node

    def node(self, aval: AbstractValue) -> Node:
        """A value of the linear program."""
        return (Node if aval.is_array or aval.mutable else ValueNode)(self, aval)

    def add(self, entry: Entry) -> None:
        """Append an entry, with the line of its equation, or of the last one of the program that is recorded."""
        if self.follows and isinstance(self.parent, staging.StagingTrace) and (eqns := self.parent.eqns):
            where = eqns[-1].place
            entry.source_info = where and (where if self.outside is None else where[:2])  # the names are the entry's
        elif self.replays and not current.shared:
            entry.source_info = source.user_frame(3)
        self.entries.append(entry)

    def owns(self, x: Any) -> bool:
        return (type(x) is Node or type(x) is ValueNode) and x._trace is self

    def end(self) -> Record:
        """Return the operations so far, and remove them from the tape: they hold nodes, which refer to the tape."""
        entries, self.entries = self.entries, []
        return Record(self, entries)


class Record:
    """The operations of a tape that has ended.

    It holds the nodes, and they hold the tape, which no longer holds operations. So residuals are freed as soon as the
    last reference to the record is, without the garbage collector.
    """

    __slots__ = ("entries", "tape")

    def __init__(self, tape: Tape, entries: list[Any]) -> None:
        self.tape: Tape = tape
        self.entries: list[Any] = entries

    def backward(
        self,
        outs: Sequence[Any],
        cts: Sequence[Any],
        inputs: Sequence[Node],
        wanted: Sequence[bool] | None = None,
        once: bool = False,
    ) -> list[Any]:
        """Cotangents of `inputs`, given those of `outs`; runs in the current trace.

        Args:
          outs: nodes, or values and `Zero` that depend on no input.
          cts: one cotangent (or `Zero`) per result.
          wanted: the inputs whose cotangents are needed (None: all); operations for others alone are left out.
          once: whether the tape is not read again. Then it drops each operation, with its residuals, once it is read.

        Returns:
          One cotangent per input, `Zero` where none arrives.
        """
        tape = self.tape
        cotangents: dict[int, Any] = {}  # by id of the node; the record keeps nodes alive
        splits = avals.any_split
        needed = None if wanted is None else self._reached([n for n, w in zip(inputs, wanted, strict=True) if w])
        # The transpose of a broadcast sums its cotangent, wherever that is: parts of the whole array are never made.
        repeated = (
            {id(e.outs[0]) for e in self.entries if type(e) is not Node and e.prim is broadcast_in_dim_p}
            if splits
            else ()
        )

        host = tape.host
        eagerly = host is not None and current.trace is eval_trace and executors.get().host_type is host

        plain = host is None and not splits

        def add(nodes, arriving):
            for x, ct in zip(nodes, arriving, strict=True):
                if ct is None or type(ct) is Zero:
                    continue
                if (type(x) is Node or type(x) is ValueNode) and x._trace is tape:
                    key = id(x)
                    known = cotangents.get(key)
                    if plain:
                        cotangents[key] = ct if known is None else add_tangents(known, ct)
                        continue
                    if host is not None:
                        known, ct = _array(host, known, x.aval), _array(host, ct, None)
                    if splits and key in repeated:
                        if known is not None and aval_of(known) != aval_of(ct):
                            known, ct = _as_cotangent_of(known, x.aval), _as_cotangent_of(ct, x.aval)
                    elif splits and _must_move(ct, x.aval):
                        ct = _as_cotangent_of(ct, x.aval)  # operations expect sums, or equal parts
                    cotangents[key] = ct if known is None else add_tangents(known, ct)

        add(outs, cts)
        recording = _recording(current.trace)
        line = recording and recording.line
        here, outside, last = current.names, tape.outside, None
        around = (*here, TRANSPOSE)
        try:
            entries = self.entries
            for n in range(len(entries) - 1, -1, -1):
                entry = entries.pop() if once else entries[n]
                if needed is not None and id(entry) not in needed:
                    continue
                if type(entry) is Node:
                    ct = cotangents.pop(id(entry), None)
                    taken = entry.entry
                    if once:
                        entry.entry = None  # later nodes hold this node
                    if ct is not None:
                        if eagerly:
                            _step_back(taken, host, ct, cotangents)
                        else:
                            step, kept, rest, nodes = taken
                            types = step.transposed.in_avals
                            values = [_array(host, x, a) for x, a in zip((*kept, *rest, ct), types, strict=True)]
                            add([nodes[i] for i in step.places], run(step.transposed, *values))
                    continue
                prim = entry.prim
                if recording is not None:  # a user's rule has lines of its own
                    recording.line = line if prim.family == "custom_rules" else entry.source_info or line
                    if entry.names is not last:
                        last = entry.names
                        current.names = (last or here) if outside is None else (*around, *last[outside:])
                if prim.multiple_results:
                    arriving = [cotangents.pop(id(n), None) for n in entry.outs]
                    if all(ct is None for ct in arriving):
                        continue
                    ct: Any = [
                        Zero(cotangent_type(n.aval)) if c is None else c
                        for n, c in zip(entry.outs, arriving, strict=True)
                    ]
                else:
                    ct = cotangents.pop(id(entry.outs[0]), None)
                    if ct is None:
                        continue
                args = entry.args
                marked = [UndefinedPrimal(x.aval) if tape.owns(x) else x for x in args]
                rule = transpose_rules[prim]
                add(args, rule(ct, *marked, **entry.params))
        finally:
            if recording is not None:
                recording.line, current.names = line, here
        return [
            Zero(cotangent_type(n.aval))
            if (ct := _array(host, cotangents.get(id(n)), n.aval)) is None
            else (_as_cotangent_of(ct, n.aval) if splits else ct)
            for n in inputs
        ]

    def _reached(self, nodes: Sequence[Node]) -> set[int]:
        """The ids of the entries that depend on `nodes`."""
        reached, entries = set(map(id, nodes)), set()
        for entry in self.entries:
            step = type(entry) is Node
            if not reached.isdisjoint(map(id, entry.entry[3] if step else entry.args)):
                reached.update((id(entry),) if step else map(id, entry.outs))
                entries.add(id(entry))
        return entries

    def to_jaxpr(self, inputs: Sequence[Node], outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The recorded program, without operations that no result needs.

        Returns:
          (program whose arguments are the residuals, then `inputs`; the residuals' values).
        """
        tape = self.tape
        needed = {id(n) for n in outs}
        kept: list[Entry | Node] = []
        for entry in reversed(self.entries):
            if type(entry) is Node:
                if id(entry) in needed:
                    kept.append(entry)
                    needed.update(map(id, entry.entry[3]))
            elif any(id(n) in needed for n in entry.outs):
                kept.append(entry)
                needed.update(id(x) for x in entry.args if tape.owns(x))
        kept.reverse()
        variables: dict[int, Var] = {id(n): Var(n.aval) for n in inputs}
        residual_vars: dict[int, Var] = {}
        residuals: list[Any] = []

        def atom(x):
            if tape.owns(x):
                return variables[id(x)]
            if type(x) in (bool, int, float, complex):
                return Literal(x, aval_of(x))
            var = residual_vars.get(id(x))
            if var is None:
                var = residual_vars[id(x)] = Var(aval_of(x))
                residuals.append(x)
            return var

        eqns: list[Eqn] = []
        arrays: dict[int, Any] = {}  # the arrays of the values that steps keep, by the values' ids
        for entry in kept:
            if type(entry) is Node:
                step, operands, rest, nodes = entry.entry
                inner = step.linear.invars
                saved = [
                    arrays.setdefault(id(x), _array(tape.host, x, v.aval)) for x, v in zip((*operands, *rest), inner)
                ]
                env = dict(zip(inner, map(atom, (*saved, *nodes)), strict=True))
                for eqn in step.linear.eqns:
                    outvars = [env.setdefault(v, Var(v.aval)) for v in eqn.outvars]
                    invars = [v if type(v) is Literal else env[v] for v in eqn.invars]
                    eqns.append(Eqn(eqn.primitive, invars, outvars, eqn.params, eqn.effects))
                variables[id(entry)] = env[step.linear.outvars[0]]
                continue
            invars = [atom(x) for x in entry.args]
            outvars = []
            for n in entry.outs:
                var = variables[id(n)] = Var(n.aval)
                outvars.append(var)
            effects = frozenset(effect_rules[entry.prim](*(v.aval for v in invars), **entry.params))
            where = entry.source_info
            if where and tape.outside is not None and entry.names:
                where = (*where, *scopes(entry.names))
            eqns.append(Eqn(entry.prim, invars, outvars, entry.params, effects, where))
        outvars = [atom(n) for n in outs]
        jaxpr = Jaxpr(list(residual_vars.values()) + [variables[id(n)] for n in inputs], outvars, eqns)
        return jaxpr, residuals


# Split rules. An operation with linear operands is recorded as it is, unless it mixes linear and other computations.
split_rules: Final = Column(
    "split",
    "bedrax.autodiff.rules",
    signature="rule(tape, prim, args, params) -> results",
    otherwise=lambda prim: Tape.record,
    otherwise_kind="recorded",
)


class LinearizeTracer(DualTracer):
    """A primal value and the tape node of its tangent (or a tangent that is constant in the inputs' tangents)."""

    __slots__ = ("aval", "value")

    def __init__(self, trace: Trace, primal: Any, tangent: Any, aval: Any = None, value: Any = None) -> None:
        self._trace = trace
        if value is None:
            self.primal = primal
        self.tangent: Any = tangent
        self.aval: Any = aval_of(primal) if aval is None else aval
        self.value: Any = value  # the result of a step: an array is made of it when it is read

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "primal":
                return super().__getattr__(name)
            found = self.primal = self._trace.tape.host(self.value, self.aval.weak_type, self.aval)
            return found

    def __repr__(self) -> str:
        return f"LinearizeTracer(primal={self.primal!r})"


aval_functions[LinearizeTracer] = operator.attrgetter("aval")
LinearizeValue: Final = typed(LinearizeTracer)


# A family's file fills both columns: if only the second one has a rule, the primitive has no linearize rule. Rules are
# looked up at every call: a library may replace one.
_linearize_rule = functools.partial(dict.get, linearize_rules)
_jvp_rule = functools.partial(dict.get, jvp_rules)


def _choose_rule(prim: Primitive) -> Callable:
    linearize_rules.load(prim.family)
    return _linearize_rule(prim) or jvp_rules[prim]


_NO_STEP: Final = object()


class LinearizeTrace(Differentiating):
    """Runs jvp rules with the tape current; prefers rules that split a primitive's programs."""

    __slots__ = ("context", "epoch", "known", "tape")
    splits_loops = True

    @property
    def home(self) -> Any:
        return self.tape

    def __init__(self, parent: Trace) -> None:
        self.parent: Trace = parent
        self.alive = True
        self.tape: Tape = Tape(parent)
        self.tape.follows = True
        self.context: Any = None  # the thread's record, for which `known` has the steps
        self.epoch: int = -1
        self.known: dict[Any, Any] = {}
        if parent is eval_trace:
            self.tape.host = (executors.active or executors.get()).host_type

    def process(self, prim: Primitive, args: list[ArrayLike] | tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Take the step of an operation if there is one. Else run its linearize or jvp rule, with the tape current.

        An operation without operands that have tangents is passed on.
        """
        # The rules are run here, and not by a method: deeply nested programs need few frames each.
        if self.tape.host is not None and not executors.observers:
            found = self._step(prim, args, params)
            if found is not _NO_STEP:
                return found
        primals = []
        tangents = []
        active = False
        for x in args:
            if (type(x) is LinearizeTracer or type(x) is LinearizeValue) and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(Zero(None, x))
        saved = current.trace
        try:
            if not active:
                current.trace = self.parent
                return self.parent.process(prim, args, params)
            current.trace = self.tape
            rule = _linearize_rule(prim) or _jvp_rule(prim) or _choose_rule(prim)
            out, tangent = rule(primals, tangents, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [self.pair(x, t) for x, t in zip(out, tangent, strict=True)]
        return out if type(tangent) is Zero else self.pair(out, tangent)

    def _step(self, prim, args, params):
        """Return the result of the step of an operation, or `_NO_STEP`: the rules are needed."""
        host = self.tape.host
        may = steps.may_have.get(prim)
        if not (steps.decide(prim) if may is None else may):
            return _NO_STEP
        if context.thread.context is not self.context or context.epoch != self.epoch:
            self.context, self.epoch = context.thread.context, context.epoch
            self.known = steps.known()
        key = [prim]
        primals, values, nodes, foreign = [], [], [], []
        for x in args:
            kind = type(x)
            if kind is LinearizeTracer and x._trace is self:
                node = x.tangent
                if type(node) is not Node:  # a constant
                    return _NO_STEP
                nodes.append(node)
                key.append(True)
                value = x.value
                if value is not None:
                    key.append(x.aval.token)
                    values.append(value)
                    primals.append(value)
                    continue
                x = x.primal
                kind = type(x)
            if kind is host:
                token = x.aval.token or steps.token_of(x)
                if token is None:
                    return _NO_STEP
                key.append(token)
                values.append(x._value)
            elif kind in SCALARS:
                key.append(kind)
                values.append(x)
            elif kind is np.ndarray:
                aval = aval_of(x)
                key.append(aval.token)
                if x.dtype is aval.dtype:
                    foreign.append(x)
                    values.append(x)
                else:
                    values.append(quietly(x.astype, aval.dtype))
            else:
                return _NO_STEP
            primals.append(x)
        if not nodes:
            return _NO_STEP
        if params:
            key.append(exact_items(params) if prim in steps.special else steps.key_of(prim, params))
        key = tuple(key)
        try:
            step = self.known.get(key, 0)
        except TypeError:  # a parameter that is not hashable
            return _NO_STEP
        if type(step) is int:
            step = self._counted(key, prim, args, params)
        if step is None:
            return _NO_STEP
        if step.scalars:
            for i, dtype in step.scalars:
                values[i] = np.asarray(values[i], dtype)
        try:
            found = quiet.run(step.forward, *values)
        except RuntimeError:
            found = quietly(step.forward, *values)
        if foreign:
            found = steps.apart(found, foreign)
        aval = step.aval
        if step.backward is None:
            if step.through is None:
                return host(found[0], aval.weak_type, aval)
            return LinearizeTracer(self, None, nodes[step.through], aval, found[0])
        out = found.pop(0)
        kept = []
        for i in step.kept:
            x = primals[i]
            if type(x) is np.ndarray and x is args[i]:  # a later write of the user has no effect
                value = values[i]
                x = host(value.copy() if value is x and (x.base is not None or x.flags.writeable) else value)
            kept.append(x)
        node = Node(self.tape, step.tangent, (step, kept, found, nodes))
        self.tape.entries.append(node)
        return LinearizeTracer(self, None, node, aval, out)

    def _counted(self, key, prim, args, params):
        active = tuple(type(x) is LinearizeTracer and x._trace is self for x in args)
        with set_trace(self.parent):
            return steps.count(self.known, key, prim, args, active, params, (linearize_jaxpr, transpose_jaxpr))

    def pair(self, primal: Any, tangent: Node | Zero) -> Array:
        """A tracer for a result. (A tangent that is not a node is constant in the inputs' tangents.)"""
        if type(tangent) is Zero:
            return primal
        return (LinearizeValue if is_typed(primal) else LinearizeTracer)(self, primal, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent node (or `Zero`) of any value."""
        if (type(x) is LinearizeTracer or type(x) is LinearizeValue) and x._trace is self:
            return x.primal, x.tangent
        return x, Zero.of(x)


class Recorded(NamedTuple):
    """The outcome of `linearize_flat`: results, and the operations from `inputs` to `tangents`."""

    outs: list[Any]
    tangents: list[Any]  # a node or Zero per result
    record: Record
    inputs: list[Node]
    aux: Any = None

    def first(self, n: int) -> Recorded:
        """The same, for the first n results."""
        return Recorded(self.outs[:n], self.tangents[:n], self.record, self.inputs, self.aux)

    def backward(self, cts: Sequence[Any], wanted: Sequence[bool] | None = None, once: bool = False) -> list[Any]:
        """A cotangent or `Zero` per input, for one per result. See `Record.backward`."""
        return self.record.backward(self.tangents, cts, self.inputs, wanted, once)

    def program(self) -> tuple[Jaxpr, tuple[bool, ...], list[Any]]:
        """The tape as a program ``residuals, tangents of the inputs -> tangents that are not zero``.

        Returns:
          (program, which results have a tangent, the residuals' values).
        """
        jaxpr, residuals = self.record.to_jaxpr(self.inputs, [t for t in self.tangents if type(t) is not Zero])
        return jaxpr, tuple(type(t) is not Zero for t in self.tangents), residuals


def linearize_flat(fun: Callable[..., Any] | Jaxpr, primals: Sequence[Any], active: Sequence[bool]) -> Recorded:
    """Run a function at a point, recording its linear program.

    Args:
      fun: takes values, returns (list of values, anything else); or a program.
      active: which arguments are differentiated. `inputs` has a node for each.
    """
    parent = current.trace
    trace = LinearizeTrace(parent)
    tape = trace.tape
    names = None  # an operation on programs has no name of its own
    if type(fun) is not Jaxpr:
        names = (*current.names, JVP)
        tape.outside = len(names) - 1
    inputs = []

    def variable(i, x):
        if type(x) is np.ndarray and parent is eval_trace:
            x = executors.get().asarray(x)  # computed once, not at every use
        aval = aval_of(x)
        node = tape.node(aval.to_tangent_aval())
        inputs.append(node)
        return (LinearizeValue if is_typed(x) else LinearizeTracer)(trace, x, node, aval)

    # Written twice: deeply nested programs need few frames each.
    if mutable_among(primals) is None:
        args = [variable(i, x) if a else x for i, (x, a) in enumerate(zip(primals, active, strict=True))]
        with entered(trace, names):
            outs, aux = (eval_jaxpr(fun, fun.consts, *args), None) if type(fun) is Jaxpr else fun(*args)
    else:
        with inputs_of(trace, primals, active, variable, lambda i, x: trace.split(x)[0]) as args, entered(trace, names):
            outs, aux = (eval_jaxpr(fun, fun.consts, *args), None) if type(fun) is Jaxpr else fun(*args)
    pairs = [trace.split(x) for x in outs]
    return Recorded([p for p, _ in pairs], [t for _, t in pairs], tape.end(), inputs, aux)


linearize_checked: Final = checks_leaks(linearize_flat)


class LinearizedJaxpr(NamedTuple):
    """A program split in two.

    Attributes:
      primal: ``args -> results, new residuals``.
      linear: ``residuals, tangents of the active args -> tangents of the active results``.
      active_out: which results have a tangent.
      sources: where each residual comes from: ("in", i), ("out", i) or ("new", i).
      num_out: number of results of the original program.
    """

    primal: Jaxpr
    linear: Jaxpr
    active_out: tuple[bool, ...]
    sources: tuple[tuple[str, int], ...]
    num_out: int

    def residuals(self, args: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals' values, from the arguments and all results of `primal`."""
        places = {"in": args, "out": results, "new": results[self.num_out :]}
        return [places[kind][i] for kind, i in self.sources]

    def residual_atoms(self) -> list[Any]:
        """The residuals in terms of `primal`: variables and literals."""
        return self.residuals(self.primal.invars, self.primal.outvars)


@cached
def linearize_jaxpr(
    jaxpr: Jaxpr, active: tuple[bool, ...], instantiate: tuple[bool, ...] | bool = False
) -> LinearizedJaxpr:
    """Split a program into the primal one and the linear one.

    Args:
      active: which arguments are differentiated.
      instantiate: which results get a tangent even if it is zero.

    Returns:
      A `LinearizedJaxpr`.
    """

    def split(*args):
        lin = linearize_flat(jaxpr, args, active)  # deeply nested programs need few frames each
        if instantiate is not False:
            wanted = (instantiate,) * len(lin.outs) if instantiate is True else instantiate
            tangents = [materialize(t) if w else t for t, w in zip(lin.tangents, wanted, strict=True)]
            lin = lin._replace(tangents=tangents)
        linear, active_out, residuals = lin.program()
        places = {id(x): ("out", i) for i, x in enumerate(lin.outs)}
        places.update((id(x), ("in", i)) for i, x in enumerate(args))
        new = [x for x in residuals if id(x) not in places]
        places.update((id(x), ("new", i)) for i, x in enumerate(new))
        return [*lin.outs, *new], (linear, active_out, tuple(places[id(x)] for x in residuals))

    primal, (linear, active_out, sources) = staging.trace_to_jaxpr(split, jaxpr.in_avals)
    return LinearizedJaxpr(staging.without_references(dce(primal)), linear, active_out, sources, len(jaxpr.outvars))


def backward_pass(
    jaxpr: Jaxpr, args: Sequence[Any], cts: Sequence[Any], wanted: Sequence[bool] | None = None
) -> list[Any]:
    """Transpose a program that is linear in some of its arguments.

    Args:
      args: values, and `UndefinedPrimal` for the arguments it is linear in.
      cts: a cotangent or `Zero` per result.
      wanted: which `UndefinedPrimal` need a cotangent; None: all.

    Returns:
      A cotangent or `Zero` per `UndefinedPrimal`, in order.
    """
    recording = _recording(current.trace)
    tape = Tape(current.trace)
    tape.replays = recording is not None
    inputs = []
    values = []
    for x in args:
        if type(x) is UndefinedPrimal:
            x = tape.node(x.aval)
            inputs.append(x)
        values.append(x)
    line = recording and recording.line
    try:
        if recording is not None:
            recording.line = None  # recomputed operations have their own lines and names
        with entered(tape):
            outs = run(jaxpr, *values)
    finally:
        if recording is not None:
            recording.line = line
    return tape.end().backward(outs, cts, inputs, wanted)


_INLINED = frozenset({jit_p, closed_call_p, core_call_p, remat_p})


def backward_pass_with_logs(jaxpr: Jaxpr, args: Sequence[Any], cts: Sequence[Any]) -> tuple[list[Any], dict[Any, Any]]:
    """`backward_pass`, and the dict of the logs of backward rules.

    Raises:
      NotImplementedError: a rule that logs is called in a loop or a branch.
    """
    jaxpr = inline(jaxpr, _INLINED)
    for eqn in jaxpr.eqns:
        for inner in (e for program in programs_in(eqn) for e in all_equations(program)):
            if inner.primitive in logging and logging[inner.primitive](inner.params):
                raise NotImplementedError(
                    f"a backward rule that logs is called inside {eqn.primitive}: logs are collected from calls (jit, vmap,"
                    " checkpoint), not from loops and branches. Call the function outside, or leave with_logs out."
                )
    with collecting_logs() as logs:
        return backward_pass(jaxpr, args, cts), logs


@cached
def transpose_jaxpr(
    jaxpr: Jaxpr, linear: tuple[bool, ...], arriving: tuple[bool, ...]
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The transposed program.

    Args:
      linear: which arguments the program is linear in.
      arriving: which results have a cotangent (the others' are zero).

    Returns:
      (program: other args, arriving cotangents -> leaving cotangents;
       which of the linear arguments get a cotangent).
    """
    others = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
    ct_types = [
        cotangent_type(a.to_tangent_aval().strip_weak_type())
        for a, here in zip(jaxpr.out_avals, arriving, strict=True)
        if here
    ]

    def transposed(*values):
        rest, cts = iter(values[: len(others)]), iter(values[len(others) :])
        args = [UndefinedPrimal(a) if lin else next(rest) for a, lin in zip(jaxpr.in_avals, linear, strict=True)]
        all_cts = [
            next(cts) if here else Zero(cotangent_type(a)) for a, here in zip(jaxpr.out_avals, arriving, strict=True)
        ]
        out = backward_pass(jaxpr, args, all_cts)
        return [ct for ct in out if type(ct) is not Zero], tuple(type(ct) is not Zero for ct in out)

    program, given = staging.trace_to_jaxpr(transposed, [*others, *ct_types])
    return staging.without_references(program), given


def _split_equations(eqns, depends, marked) -> tuple[list, list]:
    """The equations that do not depend on the marked variables, and those that do. Some are split into both."""
    known, rest = [], []
    for eqn, touched in zip(eqns, depends, strict=True):
        late = [v in marked for v in eqn.outvars]
        if all(late) or not touched:
            (rest if touched else known).append(eqn)
            continue
        shrink = dead_code_rules[eqn.primitive]
        known.append(shrink(eqn, [not m for m in late])[1])
        if any(late):
            again = shrink(eqn, late)[1]  # its other carries are known already, under the same names
            rest.append(again.replace(outvars=[v if v in marked else Var(v.aval) for v in again.outvars]))
    return known, rest


@cached
def split_jaxpr(
    jaxpr: Jaxpr, linear_in: tuple[bool, ...], force_out: tuple[bool, ...] | None = None
) -> tuple[Jaxpr, Jaxpr, tuple[Any, ...], int] | None:
    """Split a program by dependence on some arguments.

    Args:
      linear_in: the marked arguments.
      force_out: results that count as dependent even where they are not (a loop's carry whose initial
        value is).

    Returns:
      (known: other args -> other results, residuals; rest: residuals, marked args -> dependent
      results; which results depend on the marked arguments; number of residuals), or None
      where nothing would be left in `known`.
    """
    depends, depends_out, marked = dependents(jaxpr, linear_in)
    if force_out is not None:
        depends_out = tuple(d or f for d, f in zip(depends_out, force_out, strict=True))
    if all(depends) and all(depends_out):
        return None
    independent_out = [not d for d in depends_out]
    known_eqns, rest_eqns = _split_equations(jaxpr.eqns, depends, marked)
    known_in = kept(jaxpr.invars, [not m for m in linear_in])
    rest_out = kept(jaxpr.outvars, depends_out)
    available = {*known_in, *jaxpr.constvars, *(v for e in known_eqns for v in e.outvars)}
    read = [v for e in rest_eqns for v in e.invars] + rest_out
    residuals = list(dict.fromkeys(v for v in read if type(v) is Var and v in available))
    known_out = [*kept(jaxpr.outvars, independent_out), *residuals]
    known = Jaxpr(known_in, known_out, known_eqns, jaxpr.constvars, jaxpr.consts)
    rest = Jaxpr([*residuals, *kept(jaxpr.invars, linear_in)], rest_out, rest_eqns)
    return known, rest, depends_out, len(residuals)
