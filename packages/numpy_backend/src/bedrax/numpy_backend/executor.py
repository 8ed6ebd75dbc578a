"""NumPy as the executor: operations by the NumPy rules, programs by a loop over their equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import avals, dtypes, element_types, errors, executors, tracing
from bedrax.core.executors import Executor
from bedrax.core.staging import program_of
from bedrax.numpy_backend.host_array import HostArray
from bedrax.numpy_backend.tables import numpy_rules


class NumpyExecutor(Executor):
    """Evaluates operations with the NumPy rules, and programs by a loop over them."""

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
        if not prim.multiple_results:
            return wrap(out, out_types)
        return [wrap(v, t) for v, t in zip(out, out_types, strict=True)]

    def _apply_to_elements(self, prim, args, params):
        types = [avals.aval_of(x) for x in args]
        out_types = prim.abstract_eval(*types, **params)
        rule = numpy_rules[prim]
        if element_types.moves_elements(prim, types, out_types if prim.multiple_results else [out_types]):
            out = _on_bases(prim, types, params, [to_numpy(x)[0] for x in args])
        else:
            out = rule(*(to_numpy(x)[0] for x in args), **params)
        if not prim.multiple_results:
            return wrap(out, out_types)
        return [wrap(v, t) for v, t in zip(out, out_types, strict=True)]

    def run_program(self, jaxpr, args: tuple) -> list:
        """A whole program."""
        out = evaluate(jaxpr, *(to_numpy(x)[0] for x in args))
        return [wrap(v, a) for v, a in zip(out, jaxpr.out_avals, strict=True)]

    def run_jit(self, args: tuple, params: dict) -> list:
        """The `jit` primitive, met outside any trace."""
        return self.run_program(params["jaxpr"], args)

    def make_jitted(self, jitted):
        """What `jit` returns: NumPy has nothing to add to it."""
        return jitted

    def to_memory(self, x: Any, kind: str):
        """`x` in another memory of its device: NumPy knows of one only."""
        return x

    def asarray(self, x: Any):
        """A concrete value as this executor's array."""
        if type(x) is HostArray:
            return x
        value, weak = to_numpy(x)
        return HostArray(value, weak)


_numbers = frozenset({bool, int, float, complex, np.float32, np.float64, np.int32, np.int64, np.bool_})


def wrap(value: Any, aval) -> Any:
    """A NumPy result as the value that users see."""
    if not aval.is_array:
        return value
    dtype = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        return dtype.from_physical(HostArray(np.asarray(value)), aval)
    return HostArray(value if type(value) is np.ndarray else np.asarray(value), aval.weak_type, aval)


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
    for var, value in zip(jaxpr.constvars, jaxpr.consts, strict=True):
        env[var] = to_numpy(value)[0]
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


def _literal(atom) -> np.ndarray:
    return np.asarray(atom.val, dtype=atom.aval.dtype)


executors.provide(NumpyExecutor())
