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
    """A `Store` was read before it was filled, or filled twice."""


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
    """A function without transformations; `params` are passed to it by keyword."""
    params = params or {}
    called = functools.partial(f, **params) if params else f
    return WrappedFun(f, called, (), (), tuple(sorted(params.items())), None, debug_info)


def transformation2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: int) -> WrappedFun:
    """Add ``gen(inner, *static, *args, **kwargs) -> result`` to `fun`."""
    return fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(
    gen: Callable[..., Any],
    fun: WrappedFun,
    *gen_static_args: PyTreeDef,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Add ``gen(inner, store, *static, *args, **kwargs) -> result``. Also returns a function that reads the store.

    `use_eq_store` and `unk_names` change nothing: a store always accepts an equal value again, and names of
    results are never kept.
    """
    store = Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _run_generator(generator: Callable, inner: Callable, static: tuple, args: tuple, kwargs: dict) -> Any:
    """Run a transformation written as a generator: it yields the inner call's arguments, then the result."""
    running = generator(*static, *args, **kwargs)
    inner_args, inner_kwargs = next(running)
    return running.send(inner(*inner_args, **inner_kwargs))


def transformation(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_static_args: int) -> Any:
    """Add a transformation written as a generator, ``(args, kwargs) = yield``, then ``yield result``.

    Without `fun`, returns a decorator.
    """
    if fun is None:
        return functools.partial(transformation, gen)

    def apply(inner, *rest, **kwargs):
        count = len(gen_static_args)
        return _run_generator(gen, inner, rest[:count], rest[count:], kwargs)

    return fun.wrap(apply, gen_static_args, None)


def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_static_args: Any) -> Any:
    """Like `transformation`; the generator yields ``(result, second result)`` last."""
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
    """The value of the filled one of two stores: (whether it is the first, value)."""
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
    """Memoize ``call(wrapped_fun, *args)`` by the function's identity, its transformations and the arguments."""
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
