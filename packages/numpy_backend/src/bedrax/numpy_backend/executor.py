"""The executor of NumPy: NumPy rules evaluate operations, Python source evaluates programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax.core import avals, dtypes, executors, objects
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray
from bedrax.core.executors import Executor
from bedrax.lax import element_types
from bedrax.numpy_backend.host_array import HostArray, apart, owned, to_numpy
from bedrax.numpy_backend.program_source import compiled, evaluate, on_bases
from bedrax.numpy_backend.tables import numpy_rules

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr
    from bedrax.core.tracing import Primitive


class NumpyExecutor(Executor):
    """Evaluates operations with the NumPy rules, and programs as functions of Python."""

    array_types: tuple[type, ...] = (HostArray,)
    name = "numpy"
    host_type = HostArray

    def apply(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Evaluate one operation eagerly; returns a `HostArray` or a list of them."""
        if objects.kinds:
            from bedrax.core import represented  # only programs with values of libraries' types need it

            if represented.takes_values(prim, args, params):
                return represented.bind_on_arrays(prim, args, params)
        rule = numpy_rules[prim]
        types = []
        values = []
        foreign = False  # whether other code may write to the memory of an operand
        for x in args:
            kind = type(x)
            if kind is HostArray:
                types.append(x.aval)
                values.append(x._value)
            else:
                aval = avals.aval_of(x)
                types.append(aval)
                if kind in _numbers:
                    values.append(np.asarray(x, aval.dtype))
                elif element_types.is_extended(aval):
                    return self._apply_to_elements(prim, args, params)
                else:
                    foreign = True
                    values.append(to_numpy(x)[0])
        out_types = prim.result_types(types, params)  # first: it rejects wrong operands
        out = rule(*values, **params)
        if not foreign and not prim.multiple_results:
            if type(out) is not np.ndarray:
                out = np.asarray(out)
            if out.dtype is out_types.dtype:  # most operations
                return HostArray(out, out_types.weak_type, out_types)
        return wrap_all(out, out_types, args) if prim.multiple_results else wrap(out, out_types, args)

    def _apply_to_elements(self, prim, args, params):
        types = [avals.aval_of(x) for x in args]
        out_types = prim.abstract_eval(*types, **params)
        rule = numpy_rules[prim]
        if element_types.moves_elements(prim, types, out_types if prim.multiple_results else [out_types]):
            out = on_bases(prim, types, params, *(to_numpy(x)[0] for x in args))
        else:
            out = rule(*(to_numpy(x)[0] for x in args), **params)
        return wrap_all(out, out_types, args) if prim.multiple_results else wrap(out, out_types, args)

    def run_program(self, jaxpr: Jaxpr, args: tuple[Any, ...]) -> list[Any]:
        """Evaluate a whole program."""
        if objects.kinds:
            from bedrax.core import represented

            if represented.holds(jaxpr):
                return represented.run_on_arrays(jaxpr, args, self.run_program)
        return wrap_all(evaluate(jaxpr, *(to_numpy(x)[0] for x in args)), jaxpr.out_avals, args)

    def function_of(self, jaxpr: Jaxpr) -> Callable[..., list[Any]]:
        """Return a program as a function of NumPy arrays. The caller turns off the warnings of NumPy."""
        return compiled(jaxpr).function

    def asarray(self, x: Any) -> Array:
        """Return a concrete value as this executor's array. A writable NumPy array is copied."""
        if type(x) is HostArray:
            return x
        value, weak = to_numpy(x)
        return HostArray(owned(value) if value is x or value.base is not None else value, weak)


_numbers = frozenset({bool, int, float, complex, np.float32, np.float64, np.int32, np.int64, np.bool_})


def wrap(value: Any, aval: ShapedArray, operands: Sequence[Any]) -> Any:
    """Return a NumPy result as the value for the user.

    Args:
      operands: the operands of the user. The result shares no memory with the NumPy arrays among them.
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


def wrap_all(values: Sequence[Any], types: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Apply `wrap` to each result."""
    return [wrap(v, t, operands) for v, t in zip(values, types, strict=True)]


executor: Final = NumpyExecutor()
executors.provide(executor)
