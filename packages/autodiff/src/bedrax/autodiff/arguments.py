"""Checks and choice of the arguments of the differentiating functions: positions, allowed types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.autodiff.tables import Zero, differentiable, has_tangent, instantiate
from bedrax.core import codes, dtypes, source
from bedrax.core.array import Array
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.codes import coded
from bedrax.core.public import public
from bedrax.core.signatures import is_position, leaf_names, normalized, positions_of
from bedrax.core.staging import function_name
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.conversions import convert_to


class Chosen:
    """The differentiated positional arguments of a call, as leaves of `tree`, and a way to call with others."""

    __slots__ = ("_args", "_fun", "_kwargs", "_positions", "_single", "_types", "leaves", "tree")

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        argnums: int | tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._fun, self._args, self._kwargs = fun, args, kwargs
        self._positions = _chosen_positions(name, fun, argnums, len(args))
        self._single = isinstance(argnums, int)
        chosen = args[self._positions[0]] if self._single else tuple([args[n] for n in self._positions])
        self._types: list[Any] | None = None
        self.leaves: list[Any]
        self.tree: Any
        self.leaves, self.tree = pytree.tree_flatten(chosen)

    @property
    def types(self) -> list[Any]:
        """The types of the leaves."""
        if self._types is None:
            self._types = list(map(aval_of, self.leaves))
        return self._types

    def call(self, *leaves: Array) -> Any:
        """Call the function with other leaves of the chosen arguments. Returns its result."""
        values = pytree.tree_unflatten(self.tree, leaves)
        full = list(self._args)
        for n, value in zip(self._positions, (values,) if self._single else values, strict=True):
            full[n] = value
        return self._fun(*full, **self._kwargs)

    def name_of(self, i: int) -> str:
        """Return the name of a leaf: the parameter and the path in it."""
        names = leaf_names(self._fun, pytree.tree_structure((self._args, {})))
        counts = [pytree.tree_structure(x).num_leaves for x in self._args]
        leaves = [sum(counts[:n]) + k for n in self._positions for k in range(counts[n])]
        return f"the argument {names[leaves[i]]} of {source.describe_function(self._fun)}"

    def active(self) -> tuple[bool, ...]:
        """One boolean per leaf: whether its type has tangents."""
        return tuple([has_tangent(a.dtype) if a.is_array else differentiable(a) for a in self.types])


def _chosen_positions(name: str, fun: Callable, argnums: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    try:
        return normalized(argnums, count, f"{name}: argnums", distinct=True)
    except ValueError as e:
        if max(positions_of(argnums, name)) >= count:  # The call has too few arguments; argnums is correct.
            text = f"{codes.plain(e)}: {function_name(fun)} was called with too few arguments; positions count from 0"
            raise TypeError(coded("BX-ARGUMENT-POSITION", text)) from None
        raise


def all_arguments(name: str, fun: Callable[..., Any], args: tuple[Any, ...]) -> Chosen:
    """A `Chosen` of every positional argument."""
    return Chosen(name, fun, tuple(range(len(args))), args, {})


def check_function(fun: Any) -> None:
    """Raises TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(
            coded(
                "BX-NOT-CALLABLE",
                f"a callable is differentiated, got {fun!r} of type {type(fun)}; pass the function itself, without a"
                " call",
            )
        )


def check_argnums(name: str, argnums: Any) -> int | tuple[int, ...]:
    """`argnums` as an int or a tuple of ints."""
    positions = positions_of(argnums, f"{name}: argnums")
    if not positions:
        raise ValueError(f"{name}: argnums must not be empty, got {argnums!r}; name one position at least")
    return positions[0] if is_position(argnums) else positions


def check_no_references(name: str, leaves: list[ArrayLike]) -> None:
    """Raises TypeError if a differentiated argument is mutable (a reference)."""
    for x in leaves:
        aval = aval_of(x)
        if aval.mutable:
            raise TypeError(
                public(
                    f"{name} is for arguments that are arrays, got a reference of type {aval.short()}: its gradient is"
                    " kept in a reference, too. Use jax.vjp, and pass the reference with vjp_fun.with_refs(ref)."
                )
            )


def check_no_reduce_axes(name: str, reduce_axes: Sequence[Any]) -> None:
    """Raises NotImplementedError if `reduce_axes` is not empty."""
    if reduce_axes:
        raise NotImplementedError(f"{name}: reduce_axes is not supported; sum over the named axis in the function")


def check_inputs(
    name: str, chosen: Chosen, *, holomorphic: bool, allow_int: bool = False, forward: bool = False
) -> None:
    """Raises if an argument has no derivative of the requested kind."""
    types: list[Any] = []
    try:
        for x in chosen.leaves:
            aval = aval_of(x)
            _check_input(name, x, aval, holomorphic, allow_int, forward)
            types.append(aval)
    except TypeError as error:
        codes.with_facts(error, [f"It is {chosen.name_of(len(types))}."])
        raise
    chosen._types = types


def _check_input(
    name: str, x: ArrayLike, aval: AbstractValue, holomorphic: bool, allow_int: bool, forward: bool
) -> None:
    if not aval.is_array:
        check_no_references(name, (x,))
        return
    dtype = aval.dtype
    if holomorphic:
        _check_complex(name, "inputs", dtype)
    elif not dtypes.is_inexact(dtype):
        if not allow_int or not (dtypes.is_integer(dtype) or dtype == np.bool_):
            wanted = "float" if forward else "float or complex"
            instead = "jvp" if forward else "vjp, or pass allow_int=True"
            raise TypeError(
                coded(
                    "BX-GRAD-INPUT",
                    f"{name} differentiates by arguments of {wanted} dtypes, got {dtype.name}; convert the argument,"
                    f" or use {instead}",
                )
            )
    elif forward and dtypes.is_complex(dtype):
        raise _complex_error(name, "input", "jvp", dtype)


def check_outputs(name: str, leaves: list[ArrayLike], *, holomorphic: bool, reverse: bool = True) -> None:
    """Raises if a result has no derivative of the requested kind."""
    direct = "vjp" if reverse else "jvp"
    for x in leaves:
        dtype = aval_of(x).dtype
        if holomorphic:
            _check_complex(name, "outputs", dtype)
        elif dtypes.is_complex(dtype):
            if reverse:
                raise _complex_error(name, "output", direct, dtype)
        elif not dtypes.is_inexact(dtype):
            raise TypeError(
                coded(
                    "BX-GRAD-OUTPUT",
                    f"{name} differentiates results of float dtypes, got {dtype.name}; convert the result, or use"
                    f" jax.{direct}",
                )
            )


def _check_complex(name: str, what: str, dtype) -> None:
    if not dtypes.is_complex(dtype):
        raise TypeError(f"{name} with holomorphic=True is for complex {what}, got {dtype.name}")


def _complex_error(name: str, what: str, direct: str, dtype) -> TypeError:
    return TypeError(
        coded(
            "BX-GRAD-OUTPUT",
            f"{name} is for real {what}s, got {dtype.name}. Pass holomorphic=True if the function is holomorphic; use"
            f" jax.{direct} if it is not.",
        )
    )


def is_float0(x: Any) -> bool:
    """Whether a value has dtype `float0`, the dtype of tangents of integers."""
    return getattr(x, "dtype", None) == dtypes.float0


def _types_in(result: Any) -> str:
    """The types of a result that is shown in a message: `float32[3]`, or the structure of several values."""
    leaves = pytree.tree_leaves(result)
    if len(leaves) != 1 or leaves[0] is not result:
        return f"the structure {pytree.tree_structure(result)}"
    try:
        return aval_of(result).str_short()
    except TypeError:
        return f"{result!r} of type {type(result)}"


def with_aux(name: str, result: Any) -> tuple[Any, Any]:
    """The result of a function with `has_aux`; raises TypeError if it is not a pair."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            coded(
                "BX-AUX-PAIR",
                f"{name} with has_aux=True: the function returns a pair (result, aux), got {_types_in(result)}; without"
                " other values to return, leave has_aux out",
            )
        )
    return result


def flattened(call: Callable[..., Any], name: str, has_aux: bool) -> Callable[..., Any]:
    """``call`` as a function that returns leaves, and (treedef of the result, treedef of aux, number of its leaves).

    Auxiliary results must leave the trace, too: their leaves follow those of the result.
    """

    def flat(*values):
        if not has_aux:
            leaves, out_tree = pytree.tree_flatten(call(*values))
            return leaves, (out_tree, _no_aux, len(leaves))
        out, aux = with_aux(name, call(*values))
        leaves, out_tree = pytree.tree_flatten(out)
        aux_leaves, aux_tree = pytree.tree_flatten(aux)
        return [*leaves, *aux_leaves], (out_tree, aux_tree, len(leaves))

    return flat


_no_aux = pytree.tree_structure(None)


def as_typed(t: Any, aval: AbstractValue) -> Any:
    """A tangent or cotangent, converted to the dtype and weak type of `aval`. Rules may return others.

    A Python number that has them is returned unchanged.
    """
    if dtypes.is_python_scalar(t):
        own = aval_of(t)
        same = aval.is_array and own.dtype is aval.dtype and own.weak_type is aval.weak_type
        return t if same else as_array(t, aval)
    return as_array(t, aval)


def as_array(t: Any, aval: AbstractValue) -> Any:
    """`as_typed`, but Python numbers become arrays."""
    own = None if type(t) is Zero else getattr(t, "aval", None)
    if (
        own is not None
        and own.is_array
        and aval.is_array
        and own.dtype is aval.dtype
        and own.weak_type is aval.weak_type
    ):
        return t
    value = instantiate(t)
    if not aval.is_array or not isinstance(aval.dtype, np.dtype) or aval.dtype == dtypes.float0:
        return value
    return convert_to(value, aval.dtype, aval.weak_type)
