"""NumPy as the executor: operations by the NumPy rules, programs by a loop over their equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import avals, dtypes, element_types, errors, executors, tracing
from bedrax.core.executors import Executor
from bedrax.core.facts import cached
from bedrax.core.staging import program_of
from bedrax.numpy_backend.host_array import HostArray, apart, owned
from bedrax.numpy_backend.tables import numpy_rules


class NumpyExecutor(Executor):
    """Evaluates operations with the NumPy rules, and programs by a loop over them."""

    array_types = (HostArray,)
    name = "numpy"

    def apply(self, prim, args: tuple, params: dict) -> Any:
        """One eager operation: values in, `HostArray` (or a list of them) out."""
        rule = numpy_rules[prim]
        types = []
        values = []
        for x in args:
            kind = type(x)
            if kind is HostArray:
                types.append(x.aval)
                values.append(x._value)
            else:
                aval = avals.aval_of(x)
                if element_types.is_extended(aval):
                    return self._apply_to_elements(prim, args, params)
                types.append(aval)
                values.append(np.asarray(x, aval.dtype) if kind in _numbers else to_numpy(x)[0])
        out_types = prim.result_types(types, params)  # first: it is what rejects wrong operands
        out = rule(*values, **params)
        return wrap_all(out, out_types, args) if prim.multiple_results else wrap(out, out_types, args)

    def _apply_to_elements(self, prim, args, params):
        types = [avals.aval_of(x) for x in args]
        out_types = prim.abstract_eval(*types, **params)
        rule = numpy_rules[prim]
        if element_types.moves_elements(prim, types, out_types if prim.multiple_results else [out_types]):
            out = _on_bases(prim, types, params, [to_numpy(x)[0] for x in args])
        else:
            out = rule(*(to_numpy(x)[0] for x in args), **params)
        return wrap_all(out, out_types, args) if prim.multiple_results else wrap(out, out_types, args)

    def run_program(self, jaxpr, args: tuple) -> list:
        """A whole program."""
        return wrap_all(evaluate(jaxpr, *(to_numpy(x)[0] for x in args)), jaxpr.out_avals, args)

    def asarray(self, x: Any):
        """A concrete value as this executor's array; a NumPy array that somebody could write to is copied."""
        if type(x) is HostArray:
            return x
        value, weak = to_numpy(x)
        return HostArray(owned(value) if value is x or value.base is not None else value, weak)


_numbers = frozenset({bool, int, float, complex, np.float32, np.float64, np.int32, np.int64, np.bool_})


def wrap(value: Any, aval, operands: Sequence) -> Any:
    """A NumPy result as the value that users see.

    Args:
      operands: what the user gave; of the memory of those that are NumPy arrays, the result has no part.
    """
    if not aval.is_array:
        return value
    dtype = aval.dtype
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    elif value.base is not None or any(value is x for x in operands):
        value = apart(value, operands)
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.from_physical(HostArray(value), aval)
    return HostArray(value, aval.weak_type, aval)


def wrap_all(values: Sequence, types: Sequence, operands: Sequence) -> list:
    """`wrap` for each result."""
    return [wrap(v, t, operands) for v, t in zip(values, types, strict=True)]


def _on_bases(prim, types, params, bases):
    """The results of an operation that moves elements about, on their bases."""
    fun = element_types.function_on_bases(prim, types, params)
    flat = fun if prim.multiple_results else lambda *args: [fun(*args)]
    out = evaluate(program_of(flat, [element_types.base_aval(a) for a in types]), *bases)
    return out if prim.multiple_results else out[0]


def to_numpy(x: Any) -> tuple[np.ndarray, bool]:
    """A concrete value as (ndarray of canonical dtype, whether it is weakly typed).

    Raises:
      UnexpectedTracerError: `x` is a tracer, met after its transformation ended.
    """
    if type(x) is HostArray:
        return x._value, x._weak
    if type(x) is np.ndarray:
        dtype = dtypes.canonicalize_dtype(x.dtype)
        return (x if dtype == x.dtype else x.astype(dtype)), False
    if isinstance(x, tracing.Tracer):
        raise errors.escaped_tracer_error(x)
    aval = avals.aval_of(x)
    if not aval.is_array:
        return x, False
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return to_numpy(aval.dtype.physical_value(x))
    return np.asarray(x, dtype=aval.dtype), aval.weak_type


def evaluate(jaxpr, *args: np.ndarray) -> list:
    """Run a jaxpr on NumPy arrays with the NumPy rules alone; nothing is traced or wrapped."""
    rules = numpy_rules
    env: dict = {}
    env.update(zip(jaxpr.constvars, _constants(jaxpr), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    elements = element_types.eqns_that_move_elements(jaxpr)
    for eqn in jaxpr.eqns:
        values = [env[v] if v in env else _literal(v) for v in eqn.invars]
        if eqn in elements:
            out = _on_bases(eqn.primitive, [v.aval for v in eqn.invars], eqn.params, values)
        else:
            out = rules[eqn.primitive](*values, **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [env[v] if v in env else _literal(v) for v in jaxpr.outvars]


@cached
def _constants(jaxpr) -> list:
    """The values that a program closes over, as they were when it was first run."""
    return [owned(to_numpy(c)[0]) if isinstance(c, np.ndarray) else to_numpy(c)[0] for c in jaxpr.consts]


def _literal(atom) -> np.ndarray:
    return np.asarray(atom.val, dtype=atom.aval.dtype)


executors.provide(NumpyExecutor())
