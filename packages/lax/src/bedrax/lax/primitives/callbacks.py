"""Callbacks: Python functions that running programs call."""

from __future__ import annotations

import logging
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bedrax import pytree
from bedrax.core import dims, dtypes, effects, executors
from bedrax.core.avals import ShapedArray, abstractify, aval_of
from bedrax.core.codes import coded
from bedrax.core.public import public
from bedrax.core.tables import effect_rules, families_on_bases
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike

families_on_bases.add("callbacks")

_FAMILY = "callbacks"


class _CallbackEffect(effects.Effect):
    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name: str = name or type(self).__name__.removesuffix("Effect")

    def __repr__(self) -> str:
        return self.name


class DebugEffect(_CallbackEffect):
    """A debugging callback, in any order.

    Examples:

      >>> program = jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1.)
      >>> [type(effect) is jax.debug.DebugEffect for effect in program.effects]
      [True]
    """


class OrderedDebugEffect(_CallbackEffect):
    """Debugging callbacks, in program order.

    Examples:

      >>> program = jax.make_jaxpr(lambda x: jax.debug.print("{}", x, ordered=True))(1.)
      >>> [type(effect) is jax.debug.OrderedDebugEffect for effect in program.effects]
      [True]
    """


class IOEffect(_CallbackEffect):
    """A callback with side effects, in any order."""


class OrderedIOEffect(_CallbackEffect):
    """Callbacks with effects, in program order."""


debug_effect: Final = DebugEffect()
ordered_debug_effect: Final = OrderedDebugEffect()
io_effect: Final = IOEffect()
ordered_io_effect: Final = OrderedIOEffect()
for _type in (DebugEffect, OrderedDebugEffect, IOEffect, OrderedIOEffect):
    effects.lowerable_effects.add_type(_type)
    effects.control_flow_allowed_effects.add_type(_type)
for _type in (DebugEffect, OrderedDebugEffect):
    effects.remat_allowed_effects.add_type(_type)
    effects.custom_derivatives_allowed_effects.add_type(_type)
    effects.partial_eval_kept_effects.add_type(_type)
for _type in (OrderedDebugEffect, OrderedIOEffect):
    effects.ordered_effects.add_type(_type)

# params: callback (flat: arrays -> list of arrays), result_avals, vmap_method, device (a place of one device, or None)
pure_callback_p: Final = Primitive("pure_callback", _FAMILY, multiple_results=True)
# params: callback, result_avals, ordered, device
io_callback_p: Final = Primitive("io_callback", _FAMILY, multiple_results=True)
# params: callback, effect, partitioned
debug_callback_p: Final = Primitive("debug_callback", _FAMILY, multiple_results=True)

pure_callback_p.abstract_eval = lambda *avals, result_avals, **_: list(result_avals)
io_callback_p.abstract_eval = lambda *avals, result_avals, **_: list(result_avals)
effect_rules.add(io_callback_p, lambda *avals, ordered, **_: {ordered_io_effect if ordered else io_effect})
debug_callback_p.abstract_eval = lambda *avals, **_: []
effect_rules.add(debug_callback_p, lambda *avals, effect, **_: {effect})


class _Static:
    """A value that a program only passes on: strings compare by value, others by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _key(self) -> Any:
        return self.value if isinstance(self.value, (str, bytes)) else id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Static and type(other.value) is type(self.value) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True)
class FlatCallback:
    """The user's callback on flat lists of arrays; compares by the function and the structure."""

    function: Callable[..., Any]
    in_tree: Any
    result_tree: Any = None
    result_avals: tuple[Any, ...] = ()
    static: tuple[tuple[int, _Static], ...] = ()  # leaves of the arguments that are not arrays, with their positions

    def __str__(self) -> str:
        return f"the callback {getattr(self.function, '__name__', self.function)}"

    def __call__(self, *arrays: ArrayLike) -> list[Any]:
        leaves = [_given(x) for x in arrays]
        for position, leaf in self.static:
            leaves.insert(position, leaf.value)
        args, kwargs = pytree.tree_unflatten(self.in_tree, leaves)
        out = self.function(*args, **kwargs)
        if self.result_tree is None:
            return []
        leaves, tree = pytree.tree_flatten(out)
        if tree != self.result_tree:
            text = f"{self} returned {tree}; its result_shape_dtypes have structure {self.result_tree}"
            raise ValueError(coded("BX-CALLBACK", text))
        results = []
        for i, (x, aval) in enumerate(zip(leaves, self.result_avals, strict=True)):
            x = np.asarray(x)
            batch = x.ndim - len(aval.shape)
            if batch < 0 or (dims.is_constant_shape(aval.shape) and x.shape[batch:] != aval.shape):
                text = f"result {i} of {self} has shape {x.shape}; result_shape_dtypes has {aval.shape}"
                raise ValueError(coded("BX-CALLBACK", text))
            results.append(x if x.dtype == aval.dtype else x.astype(aval.dtype))
        return results

    def __repr__(self) -> str:
        return f"callback({getattr(self.function, '__name__', self.function)})"


def _is_array(x: Any) -> bool:
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


def _given(x):
    return executors.get().asarray(x)


def _result_types(result_shape_dtypes) -> tuple[list, Any]:
    leaves, tree = pytree.tree_flatten(result_shape_dtypes)
    types = []
    for leaf in leaves:
        aval = abstractify(leaf)
        types.append(ShapedArray(aval.shape, dtypes.canonicalize_dtype(aval.dtype)))
    return types, tree


_VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: ArrayLike,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without effects while a program runs.

    Args:
      callback: gets arrays in the structure of the arguments, returns arrays.
      result_shape_dtypes: pytree of objects with ``shape`` and ``dtype``, like the result.
      args, kwargs: its arguments, pytrees of arrays.
      vmap_method: the behavior of `vmap`: "sequential" (one element at a time, in a loop),
        "sequential_unrolled", "expand_dims" (mapped arguments get the batch axis in front, others
        an axis of size 1) or "broadcast_all" (all arguments get the batch axis in front).
      sharding: a sharding over the one device that makes the call; None: the first device of the program.

    Returns:
      A pytree like `result_shape_dtypes`. The call may be omitted or repeated.

    Examples:

      >>> def on_host(x):
      ...     return np.sinh(x)
      ...
      >>> @jax.jit
      ... def f(x):
      ...     return jax.pure_callback(on_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
      ...
      >>> f(jnp.array([0., 1.]))
      Array([0.       , 1.1752012], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in _VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {_VMAP_METHODS}, got {vmap_method!r}")
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    types, tree = _result_types(result_shape_dtypes)
    out = pure_callback_p.bind(
        *leaves,
        callback=FlatCallback(callback, in_tree, tree, tuple(types)),
        result_avals=tuple(types),
        vmap_method=vmap_method,
        device=sharding,
    )
    return pytree.tree_unflatten(tree, out)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: np.ndarray[Any, Any],
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with effects while a program runs. It is called exactly once.

    Args:
      callback, result_shape_dtypes, args, kwargs, sharding: as in `pure_callback`.
      ordered: whether all such callbacks keep the order of the program.

    Examples:

      >>> from jax.experimental import io_callback
      >>> seen = []
      >>> def on_host(x):
      ...     seen.append(int(x))
      ...     return np.int32(len(seen))
      ...
      >>> @jax.jit
      ... def f(x):
      ...     return io_callback(on_host, jax.ShapeDtypeStruct((), jnp.int32), x, ordered=True)
      ...
      >>> f(7)
      Array(1, dtype=int32)
      >>> seen
      [7]
    """
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    types, tree = _result_types(result_shape_dtypes)
    out = io_callback_p.bind(
        *leaves,
        callback=FlatCallback(callback, in_tree, tree, tuple(types)),
        result_avals=tuple(types),
        ordered=ordered,
        device=sharding,
    )
    return pytree.tree_unflatten(tree, out)


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for debugging; its result is ignored.

    Under `vmap` it is called for each element, under `grad` with primal values only.

    Args:
      callback: a function. None: the result is a function ``(callback, *args, **kwargs)`` with the options of this call.
      *args, **kwargs: its arguments, pytrees of arrays and of other values, which it gets unchanged; none of them without
        a `callback`.
      ordered: keep the program order of ordered callbacks.
      partitioned: call it on each device with its part of the arguments.

    Returns:
      None, or a function if `callback` is None.

    Raises:
      TypeError: if `callback` is not a function, or is None and there are arguments.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     jax.debug.callback(lambda x: print("on the host:", x), x)
      ...     return 2 * x
      ...
      >>> _ = f(3)
      on the host: 3
      >>> jax.effects_barrier()
      >>> jax.debug.callback(ordered=True)(lambda x: print("in order:", x), 3)
      in order: 3
      >>> jax.effects_barrier()
    """
    if callback is None:
        _only_options("callback", args, kwargs)
        return lambda callback, /, *args, **kwargs: _call_back(callback, args, kwargs, ordered, partitioned)
    return _call_back(callback, args, kwargs, ordered, partitioned)


def _call_back(callback: Callable, args: tuple, kwargs: dict, ordered: bool, partitioned: bool) -> None:
    if not callable(callback):
        raise TypeError(public(f"jax.debug.callback calls a function; its first argument is {callback!r}"))
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    static = tuple((i, _Static(x)) for i, x in enumerate(leaves) if not _is_array(x))
    known = {i for i, _ in static}
    debug_callback_p.bind(
        *(x for i, x in enumerate(leaves) if i not in known),
        callback=FlatCallback(callback, in_tree, static=static),
        effect=ordered_debug_effect if ordered else debug_effect,
        partitioned=partitioned,
    )


def _only_options(name: str, args: tuple, kwargs: dict) -> None:
    if args or kwargs:
        raise TypeError(
            public(
                f"jax.debug.{name} without its first argument takes options only, and returns a function for the"
                f" arguments; got {args} and {sorted(kwargs)}"
            )
        )


class _Formatter(string.Formatter):
    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [a.value for i, a in enumerate(args) if i not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"debug.print: the format string uses no {unused}; remove them or add fields")


@dataclass(frozen=True)
class Printer:
    """Prints (or logs) a format; compares by its text, so that equal prints share compiled code."""

    text: str
    log: bool

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        message = self.text.format(*args, **kwargs)
        if self.log:
            logging.getLogger("jax").info(message)
        else:
            print(message)


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values while a program runs.

    Args:
      fmt: a format string, e.g. ``"x = {x}"``. (F-strings would be formatted while tracing.) None: the result is a function
        ``(fmt, *args, **kwargs)`` with the options of this call; then values may have the names of options.
      *args, **kwargs: the values that it refers to; pytrees of arrays, or anything static. None of them without `fmt`.
      ordered: keep the program order of ordered prints.
      partitioned: print on each device its part of the values.
      skip_format_check: do not check the format while tracing.

    Returns:
      None, or a function if `fmt` is None.

    Raises:
      TypeError: if `fmt` is not a string, or is None and there are values.
      ValueError: if `fmt` has no field for a value.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     jax.debug.print("x is {x:.2f}", x=x)
      ...     return 2 * x
      ...
      >>> _ = f(0.125)
      x is 0.12
      >>> jax.effects_barrier()
      >>> jax.debug.print(ordered=True)("{ordered} in order", ordered=3)  # options first, then values of any names
      3 in order
      >>> jax.effects_barrier()
    """
    options = dict(ordered=ordered, partitioned=partitioned, check=not skip_format_check, log=_use_logging)
    if fmt is None:
        _only_options("log" if _use_logging else "print", args, kwargs)
        return lambda fmt, /, *args, **kwargs: _print(fmt, args, kwargs, **options)
    return _print(fmt, args, kwargs, **options)


def _print(fmt: str, args: tuple, kwargs: dict, *, ordered: bool, partitioned: bool, check: bool, log: bool) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"the first argument of debug.print is a format string, got {fmt!r} of type {type(fmt)}")
    if check:
        _Formatter().format(fmt, *map(_Placeholder, args), **{k: _Placeholder(v) for k, v in kwargs.items()})
    _call_back(Printer(fmt, log), args, kwargs, ordered, partitioned)


class _Placeholder:
    """Accepts any format while a format string is checked."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return self

    def __getitem__(self, key: Any) -> Any:
        return self


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Any:
    """Like `debug_print`, to the logger ``jax`` at level INFO; arguments as in `debug_print`.

    Examples:

      >>> jax.debug.log("x is {}", 3)
      >>> jax.effects_barrier()
    """
    return debug_print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=_use_logging,
        **kwargs,
    )
