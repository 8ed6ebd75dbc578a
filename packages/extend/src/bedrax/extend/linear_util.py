"""Functions with transformations of their arguments and results.

A `WrappedFun` is a function with a stack of transformations. Each is a function
``transformation(inner, *static, *args) -> result``. If it has a second result
(such as a treedef), it puts that into a `Store`.

Flax, dm-haiku and NumPyro need `wrap_init`, and dm-haiku needs `transformation`, a generator. The
other names complete the interface for such libraries. Bedrax itself does not use it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from bedrax.pytree import PyTreeDef


class StoreException(Exception):
    """A `Store` was read before it was filled, or filled twice.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> def counted(inner, store, *args):
      ...     store.store(len(args))
      ...     return inner(*args)
      ...
      >>> fun, count = lu.transformation_with_aux2(counted, lu.wrap_init(max))
      >>> try:
      ...     count()
      ... except lu.StoreException as error:
      ...     print(error)
      nothing is stored: the function has not been called yet
      >>> fun.call_wrapped(3, 1, 2), count()
      (3, 3)
    """


class Store:
    """Holds the second result of a transformation."""

    __slots__ = ("_value",)
    _EMPTY = object()

    def __init__(self) -> None:
        self._value = self._EMPTY

    def store(self, value: Any) -> None:
        if self._value is not self._EMPTY and self._value != value:
            raise StoreException("another value is stored already")
        self._value = value

    def reset(self) -> None:
        self._value = self._EMPTY

    @property
    def val(self) -> Any:
        if self._value is self._EMPTY:
            raise StoreException("nothing is stored: the function has not been called yet")
        return self._value

    def __bool__(self) -> bool:
        return self._value is not self._EMPTY


class WrappedFun:
    """A function with transformations. `wrap_init` makes one.

    Attributes:
      f: the user's function.
      transforms: pairs (transformation, its static arguments), outermost first.
      stores: the stores of the transformations, or None for a transformation without one.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> def scaled(inner, factor, x):
      ...     return factor * inner(x)
      ...
      >>> fun = lu.transformation2(scaled, lu.wrap_init(abs), 10)
      >>> type(fun) is lu.WrappedFun, fun.call_wrapped(-3)
      (True, 30)
      >>> fun.f, fun.transforms == ((scaled, (10,)),)
      (<built-in function abs>, True)
      >>> fun == lu.transformation2(scaled, lu.wrap_init(abs), 10)
      True
    """

    __slots__ = ("debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: Callable[..., Any],
        f_transformed: Callable[..., Any],
        transforms: tuple[tuple[Any, ...], ...],
        stores: tuple[Store | None, ...],
        params: dict[str, Any],
        in_type: Any,
        debug_info: Any,
    ) -> None:
        self.f: Callable[..., Any] = f
        self.f_transformed: Callable[..., Any] = f_transformed
        self.transforms: tuple[tuple[Any, ...], ...] = transforms
        self.stores: tuple[Store | None, ...] = stores
        self.params: dict[str, Any] = params
        self.in_type: Any = in_type
        self.debug_info: Any = debug_info

    @property
    def __name__(self) -> Any:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, transformation: Callable[..., Any], static: tuple[Any, ...], store: Store | None) -> WrappedFun:
        """The function with one more transformation."""
        inner = self.f_transformed
        given = static if store is None else (store, *static)
        return WrappedFun(
            self.f,
            functools.partial(transformation, inner, *given),
            ((transformation, static), *self.transforms),
            (store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.f_transformed(*args, **kwargs)

    def with_unknown_names(self) -> WrappedFun:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and (
            (self.f, self.transforms, self.params) == (other.f, other.transforms, other.params)
        )

    def __hash__(self) -> int:
        return hash((self.f, self.transforms, self.params))

    def __repr__(self) -> str:
        names = " under ".join([*(t.__name__ for t, _ in self.transforms), str(self.f)])
        return f"WrappedFun({names})"


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """Return a function as a `WrappedFun` without transformations.

    Args:
      f: a function.
      params: keyword arguments for each call of `f`, or None.
      debug_info: a `DebugInfo` with the names of arguments and results, or None.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> fun = lu.wrap_init(round, {"ndigits": 1})
      >>> fun.call_wrapped(2.345)
      2.3
    """
    params = params or {}
    called = functools.partial(f, **params) if params else f
    return WrappedFun(f, called, (), (), tuple(sorted(params.items())), None, debug_info)


def transformation2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: int) -> WrappedFun:
    """Add the transformation ``gen(inner, *static, *args, **kwargs) -> result`` to a function.

    Args:
      gen: a function of the function inside, of the static arguments, and of the arguments of the transformed function.
      fun: the `WrappedFun` to transform.
      gen_static_args: the static arguments; hashable.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> def in_degrees(inner, digits, angle):
      ...     return round(float(inner(np.radians(angle))), digits)
      ...
      >>> lu.transformation2(in_degrees, lu.wrap_init(np.sin), 3).call_wrapped(30)
      0.5
    """
    return fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(
    gen: Callable[..., Any],
    fun: WrappedFun,
    *gen_static_args: PyTreeDef,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Add the transformation ``gen(inner, store, *static, *args, **kwargs) -> result`` to a function.

    Args:
      gen: a function of the function inside, of a `Store`, of the static arguments, and of the arguments of the
        transformed function. It fills the store.
      fun: the `WrappedFun` to transform.
      gen_static_args: the static arguments; hashable.
      use_eq_store, unk_names: no effect. A store accepts an equal value again, and names of results are not kept.

    Returns:
      (the transformed `WrappedFun`, a function without arguments that returns the value of the store after a call).

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> def flat(inner, store, x):
      ...     leaves, structure = jax.tree.flatten(inner(x))
      ...     store.store(structure)
      ...     return leaves
      ...
      >>> fun, structure = lu.transformation_with_aux2(flat, lu.wrap_init(lambda x: {"double": 2 * x, "half": x / 2}))
      >>> fun.call_wrapped(4), structure()
      ([8, 2.0], PyTreeDef({'double': *, 'half': *}))
    """
    store = Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _run_generator(generator: Callable, inner: Callable, static: tuple, args: tuple, kwargs: dict) -> Any:
    """Run a transformation written as a generator: it yields the inner call's arguments, then the result."""
    running = generator(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(running)
    return running.send(inner(*inner_args, **inner_kwargs))


def transformation(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_static_args: int) -> Any:
    """Add a transformation that is written as a generator: ``(args, kwargs) = yield``, then ``yield result``.

    Args:
      gen: a generator function. Its arguments are the static arguments, then those of the transformed function. It
        yields ``(args, kwargs)`` for the function inside, receives the result of that function, and yields its own
        result.
      fun: the `WrappedFun` to transform; None: return a function ``(fun, *static arguments) -> WrappedFun``.
      gen_static_args: the first arguments of `gen`; hashable.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> @lu.transformation
      ... def in_degrees(digits, angle):
      ...     out = yield (np.radians(angle),), {}
      ...     yield round(float(out), digits)
      ...
      >>> in_degrees(lu.wrap_init(np.sin), 3).call_wrapped(30)
      0.5
    """
    if fun is None:
        return functools.partial(transformation, gen)

    def apply(inner, *rest, **kwargs):
        count = len(gen_static_args)
        return _run_generator(gen, inner, rest[:count], rest[count:], kwargs)

    return fun.wrap(apply, gen_static_args, None)


def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_static_args: Any) -> Any:
    """Like `transformation`; the generator yields ``(result, second result)`` at its end.

    Args:
      gen, fun, gen_static_args: as in `transformation`.

    Returns:
      (the transformed `WrappedFun`, a function without arguments that returns the second result after a call).

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> @lu.transformation_with_aux
      ... def flat(tree):
      ...     out = yield (tree,), {}
      ...     yield jax.tree.flatten(out)  # the leaves are the result, the structure is stored
      ...
      >>> fun, structure = flat(lu.wrap_init(lambda x: {"double": 2 * x, "half": x / 2}))
      >>> fun.call_wrapped(4), structure()
      ([8, 2.0], PyTreeDef({'double': *, 'half': *}))
    """
    if fun is None:
        return functools.partial(transformation_with_aux, gen)
    store = Store()

    def apply(inner, filled, *rest, **kwargs):
        count = len(gen_static_args)
        result, aux = _run_generator(gen, inner, rest[:count], rest[count:], kwargs)
        filled.store(aux)
        return result

    return fun.wrap(apply, gen_static_args, store), lambda: store.val


def merge_linear_aux(aux1: Callable[..., Any], aux2: Callable[..., Any]) -> tuple[bool, Any]:
    """Return the value of the one of two stores that is filled.

    Args:
      aux1, aux2: functions that read a store, as `transformation_with_aux2` returns them.

    Returns:
      (whether it is the store of `aux1`, its value).

    Raises:
      StoreException: both stores are filled, or both are empty.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> def counted(inner, store, *args):
      ...     store.store(len(args))
      ...     return inner(*args)
      ...
      >>> first, first_count = lu.transformation_with_aux2(counted, lu.wrap_init(max))
      >>> second, second_count = lu.transformation_with_aux2(counted, lu.wrap_init(min))
      >>> second.call_wrapped(3, 1, 2)
      1
      >>> lu.merge_linear_aux(first_count, second_count)  # was it the first, and what was stored
      (False, 3)
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both functions were called, so the value is ambiguous")


def cache(call: Callable[..., Any], *, explain: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Memoize ``call(wrapped_fun, *args)`` by the function's identity, its transformations and the arguments.

    A call whose result is known also fills the stores of its function.

    Args:
      call: a function of a `WrappedFun` and of hashable arguments. The table keeps no function alive.
      explain: no effect.

    Returns:
      The memoized function. Its method ``cache_clear()`` empties the table.

    Examples:

      >>> from jax.extend import linear_util as lu

      >>> @lu.cache
      ... def program(fun, n):
      ...     print("tracing", n)
      ...     return fun.call_wrapped(n)
      ...
      >>> program(lu.wrap_init(abs), -3), program(lu.wrap_init(abs), -3)
      tracing -3
      (3, 3)
      >>> program.cache_clear()
      >>> program(lu.wrap_init(abs), -3)
      tracing -3
      3
    """
    known: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def memoized(fun: WrappedFun, *args):
        per_function = known.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args)
        if key in per_function:
            result, stores = per_function[key]
            for mine, theirs in zip(fun.stores, stores, strict=True):
                if mine is not None and theirs:
                    mine.store(theirs.val)
            return result
        result = call(fun, *args)
        per_function[key] = (result, fun.stores)
        return result

    memoized.cache_clear = known.clear
    return memoized
