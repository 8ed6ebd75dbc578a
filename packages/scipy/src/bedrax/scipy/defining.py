"""The makers of this package's functions: they check and promote arguments and add derivatives by formula."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bedrax import lax
from bedrax.autodiff import SymbolicZero, custom_jvp
from bedrax.core import dtypes
from bedrax.core.one_program import one_program
from bedrax.core.signatures import signature_of
from bedrax.core.typing import ArrayLike
from bedrax.lax import promotion


def floats(name: str, *xs: ArrayLike) -> list[Any]:
    """The arguments as arrays of one shape and one real dtype; integers become floats.

    Raises:
      TypeError: an argument is complex.
    """
    out = [lax.asarray(x) for x in promotion.promote(name, xs, True)]
    if dtypes.is_complex(out[0].dtype):
        raise TypeError(f"{name} does not accept dtype {out[0].dtype}: it takes real numbers.")
    if len(out) > 1:
        shape = lax.broadcast_shapes(*(x.shape for x in out))
        out = [x if x.shape == shape else lax.broadcast_in_dim(x, shape, ()) for x in out]
    return out


def widened(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` of arrays of one dtype, with floats narrower than float32 computed in float32."""

    @functools.wraps(fun)
    def program(*args):
        dtype = args[0].dtype
        if dtypes.finfo(dtype).bits >= 32:
            return fun(*args)
        out = fun(*(lax.convert_element_type(x, "float32") for x in args))
        if isinstance(out, tuple):
            return tuple(lax.convert_element_type(x, dtype) for x in out)
        return lax.convert_element_type(out, dtype)

    return program


def derivatives(*partials: Callable[..., Any] | None) -> Callable[..., Any]:
    """Decorator: give a function of arrays of one shape its partial derivatives, ``partial(result, *arguments)``.

    None stands for a derivative that is not known: asking for it raises `ValueError`.
    """

    def decorate(fun: Callable) -> Callable:
        rule = custom_jvp(fun)

        def pushforward(primals, tangents):
            out = rule(*primals)
            total = None
            for i, (partial, t) in enumerate(zip(partials, tangents, strict=True)):
                if isinstance(t, SymbolicZero):
                    continue
                if partial is None:
                    raise ValueError(
                        f"{fun.__name__.strip('_')}: the derivative by argument {i} is not known. Differentiate by another argument, "
                        "or wrap this one in stop_gradient."
                    )
                term = lax.mul(t, partial(out, *primals))
                total = term if total is None else lax.add(total, term)
            return out, lax.full_like(out, 0) if total is None else total

        rule.defjvp(pushforward, symbolic_zeros=True)
        return rule

    return decorate


def special(*partials: Callable[..., Any] | None, read: Callable[..., Any] = floats) -> Callable[..., Any]:
    """Decorator: the public function, one program, of a formula of arrays of one shape and one dtype.

    The formula, with its derivatives, is the attribute `formula` of the function.

    Args:
      *partials: the derivatives, as for `derivatives`.
      read: ``(name, *arguments) -> arrays``, makes the arrays for the formula from the arguments of the function.
    """

    def decorate(formula: Callable) -> Callable:
        rule = derivatives(*partials)(formula)
        signature = signature_of(formula)

        @functools.wraps(formula)
        def function(*args, **kwargs):
            return rule(*read(formula.__name__, *signature.bind(*args, **kwargs).args))

        made = one_program(function, everywhere=True)
        made.formula = rule  # type: ignore[attr-defined]
        return made

    return decorate
