"""Functions of several operations that run as one compiled program when nothing is being traced."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from bedrax.core.tracing import current, eval_trace

_F = TypeVar("_F", bound=Callable)

# Types of first arguments whose presence says that a backend that compiles evaluates; the backend adds them.
compiled_types: set[type] = set()

# Parameters of this name are no arrays, whatever the function.
_STATIC = frozenset(
    "approximate assume_sorted axes axis axisa axisb axisc bias copy correction ddof decimals deg descending dtype"
    " endpoint equal_nan hermitian indices_are_sorted is_causal k keepdims left_side lower method mode"
    " num num_classes offset ord order out out_sharding overwrite_input period precision preferred_element_type"
    " promote_integers retstep return_sign returned rowvar side size stable unique_indices upper".split()
)


def one_program(fun: _F) -> _F:
    """Decorator: an eager call on arrays of a backend that compiles is one program, dispatched once.

    Everywhere else (under a transformation, where NumPy evaluates) it is a plain call. The parameters named in
    `_STATIC` are compile-time constants.
    """
    compiled: Callable | None = None

    def compile_it() -> Callable:
        from bedrax.core.jitting import jit

        names = [n for n in inspect.signature(fun).parameters if n in _STATIC]
        return jit(fun, static_argnames=names)

    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        nonlocal compiled
        if current.trace is not eval_trace or not args or type(args[0]) not in compiled_types:
            return fun(*args, **kwargs)
        if compiled is None:
            compiled = compile_it()
        try:
            return compiled(*args, **kwargs)
        except (TypeError, ValueError):  # an error to be raised again, or an axis given as a list, say
            pass
        return fun(*args, **kwargs)

    return function  # type: ignore[return-value]
