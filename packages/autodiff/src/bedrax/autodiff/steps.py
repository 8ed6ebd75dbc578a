"""Steps: the derivative of one eager operation as two compiled functions, made once per operation and types.

Where a backend evaluates eager operations in Python (`Executor.host_type`), most of the time of a derivative is that of
the rules, not of the arithmetic. So the programs of an operation that is linearized often are derived from its rules
once, by the functions that split and transpose programs, and compiled by the backend:

    forward:   operands -> result, residuals
    backward:  residuals, cotangent of the result -> contributions to the cotangents of the operands

Both work on the values that arrays hold: no array, tracer or type is made for a value inside of a step. The operations,
and the order in which contributions are added, are those of the rules, so the results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from marshal import dumps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bedrax.core import avals, context, dtypes, executors
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.dead_code import dce
from bedrax.core.exact import exact_items
from bedrax.core.ir import Eqn, Jaxpr, Var
from bedrax.core.quiet import quietly
from bedrax.core.tables import eval_rules, programs, pure_shapes
from bedrax.lax.primitives.elementwise import add_jaxvals_p

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive

SCALARS: Final = frozenset(
    (bool, int, float, complex, np.bool_, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64)
)
"""The types of scalars that are operands of steps. The type of such a scalar follows from its class."""

# The number of linearizations of an operation after which its programs are made: these take about as long as so many.
_OFTEN: Final = 32
_MOST: Final = 4096  # operations that are known


class Step(NamedTuple):
    """The derivative of one operation on operands of certain types.

    Attributes:
      forward: the values of the operands -> [value of the result, values of the residuals that are not operands].
      scalars: (position, dtype) of each operand that is converted to an array first.
      aval: the type of the result.
      tangent: the type of its tangent; None if it has none.
      through: the number among the tangents of the operands of the one that is the tangent of the result, or None.
      kept, dtypes: the positions of the operands that are residuals, and their dtypes.
      backward: values of the kept operands, values of the other residuals, cotangent -> contributions.
      places: the number among the tangents of the operands for each contribution, in the order in which they are added.
      linear: the program residuals, tangents -> tangent.
      transposed: the program residuals, cotangent -> contributions.
    """

    forward: Callable[..., list[Any]]
    scalars: tuple[tuple[int, Any], ...]
    aval: ShapedArray
    tangent: ShapedArray | None
    through: int | None = None
    kept: tuple[int, ...] = ()
    dtypes: tuple[Any, ...] = ()
    backward: Callable[..., list[Any]] | None = None
    places: tuple[int, ...] = ()
    linear: Jaxpr | None = None
    transposed: Jaxpr | None = None


def known() -> dict[Any, Step | int | None]:
    """Return the steps for the options, the rules and the executor in force in this thread.

    Returns:
      (primitive, types, params) -> its step, None if it has none, or how often it was linearized by its rules.
    """
    derived, executor = context.thread.context.derived, executors.get()
    found = derived.get(__name__)
    if found is None or found[0] != context.epoch or found[1] is not executor:
        found = derived[__name__] = context.epoch, executor, {}
    return found[2]


def token_of(x: Any) -> int | None:
    """Return the token of the type of an array, which becomes the object that all equal ones are; None if it is not plain."""
    aval = x.aval
    if aval.split is not None or aval.vma or aval.memory_space is not None or not isinstance(aval.dtype, np.dtype):
        return None
    x.aval = avals.plain_aval(aval.shape, aval.dtype, aval.weak_type)
    return x.aval.token


may_have: dict[Primitive, bool] = {}
"""Primitives of the vocabulary -> whether their operations may have steps."""


def decide(prim: Primitive) -> bool:
    """Return whether operations of a primitive may have steps: it is of the vocabulary, and holds no programs."""
    if prim.home not in pure_shapes:
        return False
    found = may_have[prim] = not prim.multiple_results and not programs.states(prim)
    return found


special: set[Primitive] = set()
"""The primitives, of those that may have steps, with params that `marshal` does not support."""


def key_of(prim: Primitive, params: dict[str, Any]) -> Any:
    """Return the key of the params of an operation."""
    try:
        return dumps(params, 2)
    except ValueError:
        special.add(prim)
        return exact_items(params)


def count(
    known: dict[Any, Step | int | None],
    key: Any,
    prim: Primitive,
    args: Sequence[Any],
    active: tuple[bool, ...],
    params: dict[str, Any],
    derive: Any,
) -> Step | None:
    """Count one use of an operation; return its step once it is used often.

    Args:
      known: see `known`.
      args: the operands.
      active: which operands have a tangent.
      derive: the functions that linearize and transpose a program.
    """
    if len(known) > _MOST:
        known.clear()
    uses, step = known.get(key, 0), None
    if type(uses) is int:
        known[key] = uses + 1
        if uses + 1 < _OFTEN:
            return None
        try:
            step = _derived(prim, list(map(aval_of, args)), active, params, derive)
        except Exception:  # the rules raise it again, for the user's values
            step = None
        if step is not None:
            primals = [getattr(x, "primal", x) for x in args]
            scalars = [(i, aval_of(x).dtype) for i, x in enumerate(primals) if type(x) in SCALARS]
            step = step._replace(scalars=tuple(scalars))
        known[key] = step
    return step


def _derived(
    prim: Primitive, types: list[Any], active: tuple[bool, ...], params: dict[str, Any], derive: Any
) -> Step | None:
    """Derive the programs of an operation; None if it has an evaluation of its own, or its result another kind of type."""
    if dict.get(eval_rules, prim) is not None:
        return None
    linearize, transpose = derive
    function_of = executors.get().function_of
    out = prim.result_types(types, params)
    if type(out) is not ShapedArray or out.token is None:
        return None
    operands, result = [Var(a) for a in types], Var(out)
    split = linearize(Jaxpr(operands, [result], [Eqn(prim, operands, [result], params)]), active)
    primal = split.primal
    if not split.active_out[0]:
        return Step(function_of(primal), (), out, None)
    count = len(split.sources)
    (tangent,) = split.linear.outvars
    tangents = split.linear.invars[count:]
    if tangent in tangents:
        forward = primal.replace(outvars=primal.outvars[:1])
        return Step(function_of(dce(forward)), (), out, tangent.aval, tangents.index(tangent))
    # The operands among the residuals come first: their arrays are kept, the others are values.
    order = sorted(range(count), key=lambda n: split.sources[n][0] != "in")
    kept = tuple(i for kind, i in (split.sources[n] for n in order) if kind == "in")
    atoms = split.residual_atoms()
    forward = primal.replace(outvars=[primal.outvars[0], *[atoms[n] for n in order[len(kept) :]]])
    linear = split.linear.replace(invars=[*[split.linear.invars[n] for n in order], *tangents])
    apart, places = _each_use_apart(linear, count)
    transposed, given = transpose(apart, (False,) * count + (True,) * len(places), (True,))
    return Step(
        function_of(dce(forward)),
        (),
        out,
        tangent.aval,
        None,
        kept,
        tuple(types[i].dtype for i in kept),
        function_of(dce(transposed)),
        tuple(p for p, g in zip(places, given, strict=True) if g),
        linear,
        dce(transposed),
    )


def _each_use_apart(linear: Jaxpr, count: int) -> tuple[Jaxpr, list[int]]:
    """Return a linear program with an argument for each use of a tangent, in the order of backward passes.

    Returns:
      (program, the number of the tangent for each argument after the residuals).
    """
    which = {v: i for i, v in enumerate(linear.invars[count:])}
    uses: list[list[tuple[Var, int]]] = []
    eqns = []
    for eqn in linear.eqns:
        here, invars = [], []
        for v in eqn.invars:
            place = which.get(v) if type(v) is Var else None
            if place is not None:
                v = Var(v.aval)
                here.append((v, place))
            invars.append(v)
        uses.append(here)
        eqns.append(eqn.replace(invars=invars))
    found = [use for here in reversed(uses) for use in here]
    program = Jaxpr([*linear.invars[:count], *[v for v, _ in found]], linear.outvars, eqns)
    return program, [place for _, place in found]


def value_of(x: Any) -> np.ndarray:
    """Return an array, a scalar, or a value of a step, as a NumPy array of the dtype that it has here."""
    kind = type(x)
    if kind is np.ndarray:
        dtype = dtypes.canonicalize_dtype(x.dtype)
    elif kind is executors.get().host_type:
        return x._value
    else:
        dtype = aval_of(x).dtype
    value = np.asarray(x)
    if value.dtype is dtype:
        return value
    return quietly(value.astype, dtype)  # float64 beyond float32 becomes infinite


def apart(results: list[np.ndarray], operands: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a step. A result that shares memory with an operand that users may write to is copied."""
    return [x.copy() if any(np.may_share_memory(x, operand) for operand in operands) else x for x in results]


_sums: dict[Any, Callable[..., list[Any]]] = {}


def sum_of(x: Any, y: np.ndarray) -> np.ndarray:
    """Return the sum of two cotangents."""
    key = executors.get(), y.dtype
    add = _sums.get(key)
    if add is None:
        kind = avals.scalar_aval(y.dtype)
        a, b, c = Var(kind), Var(kind), Var(kind)
        program = Jaxpr([a, b], [c], [Eqn(add_jaxvals_p, [a, b], [c], {})])
        add = _sums[key] = key[0].function_of(program)  # the same for all shapes
    return quietly(add, x if type(x) is np.ndarray else value_of(x), y)[0]
