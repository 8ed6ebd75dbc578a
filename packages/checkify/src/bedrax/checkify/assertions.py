"""Checks that users write: the primitive `check`, its functions, and its rows in the columns below."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree
from bedrax.autodiff.tables import jvp_rules, transpose_rules
from bedrax.batching.tables import batch_rules, conditional_effects, to_front
from bedrax.checkify.errors import CODE, Error, FailedCheckError, Failure, Spec, one_failure, types_of
from bedrax.checkify.trace import Written, check_rules, checked
from bedrax.core import dims, effects, positions, source
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, run
from bedrax.core.public import public
from bedrax.core.staging import program_of
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax.tables import decompositions

__all__ = ["check", "check_error", "debug_check"]

# Arguments: the leaves of an error. params: spec, debug
check_p: Final = Primitive("check", multiple_results=True)


class CheckEffect(effects.Effect):
    """A check whose error must be collected."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Check"


for _set in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.remat_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.partial_eval_kept_effects,
):
    _set.add_type(CheckEffect)

check_p.abstract_eval = lambda *leaves, **_: []
effect_rules.add(check_p, lambda *leaves, **_: {CheckEffect()})


@check_p.def_impl
def _raise(*leaves, spec, debug):
    if not debug:
        Error(spec, leaves).throw()
    return []


@decompositions.rule(check_p)
def _refuse(*leaves, spec, debug):
    """Outside `checkify`, a `check` cannot be compiled; `debug_check` is dropped."""
    if not debug:
        failure = spec.failures[0]
        raise ValueError(
            f"the program to be compiled calls checkify.check({failure.text!r}) at {source.describe(failure.where)}, and"
            " nothing collects its error. Compile checkify.checkify(f) instead of f, and look at the error that it"
            " returns; or write checkify.debug_check, which does nothing where errors are not collected."
        )
    return []


jvp_rules.add(check_p, lambda primals, tangents, **params: (check_p.bind(*primals, **params), []), kind="zero")
transpose_rules.add(check_p, lambda cts, *args, **params: [None] * len(args), kind="zero")


@batch_rules.rule(check_p)
def _batch(axis, args, dims, *, spec, debug):
    """The error of the first failing element, with its index."""
    if any(d is not None for d in dims):
        spec, args = of_first_lane(
            spec, [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)], (axis.size,)
        )
    return check_p.bind(*args, spec=spec, debug=debug), []


def of_first_lane(spec: Spec, leaves: list[Any], shape: tuple[Any, ...]) -> tuple[Spec, list[Any]]:
    """The error of the first failing element, from the errors of an array of elements of this shape (the leaves' first
    axes).

    Raises:
      OverflowError: the dtype of positions cannot count the elements.
    """
    if any(dims.definitely_equal(n, 0) for n in shape):  # nothing fails, as in one element without an error
        shape = (1,) * len(shape)
        leaves = [lax.reshape(x, (*shape, *aval_of(x).shape)) for x in spec.no_error()]
    count = math.prod(shape)
    leaves = [lax.reshape(x, (count, *aval_of(x).shape[len(shape) :])) for x in leaves]
    dtype = CODE.dtype
    if positions.are_wide(count):
        dtype = np.dtype(positions.result_dtype("checkify of a mapped function", count))
    at = lax.argmax(lax.ne(leaves[0], CODE.dtype.type(0)), 0, dtype)
    take = lambda x: lax.dynamic_index_in_dim(x, at, 0, keepdims=False)
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    number = lambda n: lax.convert_element_type(n, dtype) if dims.is_symbolic(n) else dtype.type(n)
    lane = [lax.rem(lax.div(at, number(step)), number(n)) for step, n in zip(steps, shape)]
    here = lax.concatenate([lax.reshape(i, (1,)) for i in lane], 0)
    taken = spec.split([take(x) for x in leaves])
    slots, values = {}, [take(leaves[0])]
    for failure in spec.failures:
        # The last array of a failure with mapped axes is a vector of lanes. One without them may have the same types.
        key = failure.types, failure.lanes > 0
        if key not in slots:
            *payload, lane = taken[failure.types] if failure.lanes else [*taken[failure.types], None]
            slots[key] = [*payload, here if lane is None else _of_one_dtype(here, lane)]
    found = tuple(
        Failure(f.kind, f.text, f.tree, types_of(slots[f.types, f.lanes > 0]), f.where, f.lanes + len(shape))
        for f in spec.failures
    )
    new = {types_of(payload): payload for payload in slots.values()}
    return Spec(found, tuple(new)), values + [x for payload in new.values() for x in payload]


def _of_one_dtype(*lanes: Any) -> Any:
    """Vectors of lanes as one vector."""
    dtype = np.result_type(*(aval_of(x).dtype for x in lanes))
    return lax.concatenate([lax.convert_element_type(x, dtype) for x in lanes], 0)


@check_rules.rule(check_p)
def _collect(trace, *leaves, spec, debug):
    kinds = trace.kinds
    if isinstance(kinds, Written):
        if kinds.debug is not debug:
            return check_p.bind(*leaves, spec=spec, debug=debug)
        trace.collector.add(Error(spec, leaves))
    elif any(f.kind in kinds for f in spec.failures):
        trace.collector.add(Error(spec, leaves))
    return []


@cached
def _conditional(program: Jaxpr) -> Jaxpr:
    """The program of a boolean and the arguments of `program`. Its checks fail only if the boolean is true.

    The checks are collected, also inside calls and control flow, and their error is checked after the results.
    """
    parts = []
    for debug in (False, True):
        program, spec = checked(program, Written(debug))
        parts.insert(0, (spec, debug))

    def flat(holds, *args):
        outs = run(program, *args)
        for spec, debug in parts:
            if count := len(spec.types()):
                (code, *payload), outs = outs[:count], outs[count:]
                code = lax.select_n(holds, CODE.dtype.type(0), code)
                check_p.bind(code, *payload, spec=spec, debug=debug)
        return outs

    return program_of(flat, [ShapedArray((), np.dtype(np.bool_)), *program.in_avals])


conditional_effects[CheckEffect] = _conditional


def check(pred: ArrayLike, msg: str, *fmt_args: Array | str, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that a predicate holds, in a function that `checkify` transforms.

    Args:
      pred: a boolean scalar.
      msg: the error message: a format string.
      fmt_args, fmt_kwargs: pytrees of arrays for the message; their values at run time are kept for it.
      debug: do nothing without `checkify`; see `debug_check`.

    Raises:
      JaxRuntimeError: the predicate is false, and there is no transformation.
      ValueError: a function with the check is compiled without `checkify`.

    Examples:

      >>> from jax.experimental import checkify

      >>> def f(x):
      ...     checkify.check(x > 0, "x is to be positive, got {x}", x=x)
      ...     return jnp.log(x)
      ...
      >>> error, value = checkify.checkify(f)(jnp.array(1.))
      >>> error.get() is None
      True
    """
    aval = aval_of(pred)
    if aval.shape or aval.dtype != np.bool_:
        raise TypeError(
            public(f"check takes a boolean scalar as predicate, got {aval.str_short()}; jnp.all(...) makes one")
        )
    leaves, tree = pytree.tree_flatten((fmt_args, fmt_kwargs))
    payload = []
    for leaf in leaves:
        try:
            payload.append(lax.asarray(leaf))
        except (TypeError, ValueError):
            raise TypeError(
                f"the arguments of a check's message are arrays, got {leaf!r} of type {type(leaf)}; write other things"
                " into the message itself"
            ) from None
    failure = Failure(FailedCheckError, f"{msg} (`check` failed)", tree, types_of(payload), source.user_frame(2))
    error = one_failure(failure, lax.bitwise_not(lax.asarray(pred)), payload)
    check_p.bind(*error.leaves, spec=error.spec, debug=debug)


def debug_check(pred: ArrayLike, msg: str, *fmt_args: Array, **fmt_kwargs: Any) -> None:
    """A `check` that does nothing without `checkify`, compiled or not.

    Args: see `check`.

    Examples:

      >>> from jax.experimental import checkify

      >>> @jax.jit
      ... def f(x):
      ...     checkify.debug_check(x > 0, "x is to be positive")
      ...     return 2 * x
      ...
      >>> f(-1.)
      Array(-2., dtype=float32, weak_type=True)
      >>> error, _ = checkify.checkify(f)(-1.)
      >>> error.get() is not None
      True
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error, or pass it to the surrounding `checkify`: the inverse of `checkify`.

    Args:
      error: the error of one call, or of mapped calls; then the first one is taken.

    Raises:
      JaxRuntimeError: there is an error, and no transformation.

    Examples:

      >>> from jax.experimental import checkify

      >>> def f(x):
      ...     checkify.check(x > 0, "x is to be positive")
      ...     return x
      ...
      >>> error, _ = checkify.checkify(f)(-1.)
      >>> try:
      ...     checkify.check_error(error)
      ... except checkify.JaxRuntimeError:
      ...     print("refused")
      ...
      refused
    """
    if not isinstance(error, Error):
        raise ValueError(f"check_error takes an error that a checkified function returned, got {error!r}")
    spec, leaves = error.spec, error.leaves
    if spec.failures:
        if shape := aval_of(leaves[0]).shape:
            spec, leaves = of_first_lane(spec, leaves, shape)
        check_p.bind(*leaves, spec=spec, debug=False)
