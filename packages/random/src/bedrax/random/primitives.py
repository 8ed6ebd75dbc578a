"""The primitives on keys, with all their rules.

Each is a function of keys' bases, written with lax functions (`decompositions`); NumPy and XLA evaluate that function.
Each acts on every key of an array separately, so batching brings the mapped axis to the front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import bedrax.batching  # noqa: F401  # the effect of operations on keys on their bases
from bedrax import lax
from bedrax.autodiff.tables import zero
from bedrax.batching import vmap
from bedrax.batching.tables import batch_rules, to_front
from bedrax.core import dtypes, errors, executors
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.tables import print_rules
from bedrax.core.tracing import Primitive, Tracer
from bedrax.lax.axes import rank_of
from bedrax.lax.element_types import base_aval
from bedrax.lax.tables import decompositions
from bedrax.random.key_array import FAMILY, KeyArray, KeyDType, random_wrap_p

if TYPE_CHECKING:
    from bedrax.random.implementations import KeyImplementation


_U32 = np.dtype(np.uint32)
__all__ = [
    "random_bits_p",
    "random_clone_p",
    "random_fold_in_p",
    "random_seed_p",
    "random_split_p",
    "random_unwrap_p",
    "random_wrap_p",
]

random_seed_p: Final = Primitive("random_seed", FAMILY)
random_split_p: Final = Primitive("random_split", FAMILY)
random_fold_in_p: Final = Primitive("random_fold_in", FAMILY)
random_bits_p: Final = Primitive("random_bits", FAMILY)
random_unwrap_p: Final = Primitive("random_unwrap", FAMILY)
random_clone_p: Final = Primitive("random_clone", FAMILY)


# ---- types ----


def _key_dtype(prim, aval) -> KeyDType:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(f"{prim} needs an array of keys, got {aval.str_short()}")
    return aval.dtype


@random_seed_p.abstract
def _seed_type(seeds, *, impl):
    if not dtypes.is_integer(seeds.dtype):
        raise TypeError(coded("BX-SEED", f"a seed is an integer, got {seeds.str_short()}"))
    return ShapedArray(seeds.shape, KeyDType(impl))


@random_split_p.abstract
def _split_type(keys, *, impl, shape):
    return ShapedArray((*keys.shape, *shape), _key_dtype("random_split", keys))


@random_fold_in_p.abstract
def _fold_in_type(keys, data, *, impl):
    _key_dtype("random_fold_in", keys)
    if data.dtype != _U32:
        raise TypeError(f"random_fold_in folds uint32 into keys, got {data.str_short()}")
    if data.shape and keys.shape and data.shape != keys.shape:
        raise TypeError(f"random_fold_in: keys of shape {keys.shape} and data of shape {data.shape} differ")
    return ShapedArray(keys.shape or data.shape, keys.dtype)


@random_bits_p.abstract
def _bits_type(keys, *, impl, bit_width, shape):
    _key_dtype("random_bits", keys)
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"bits have width 8, 16, 32 or 64, got {bit_width}")
    return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))


def check_key_data(shape: tuple[int, ...], dtype: np.dtype[Any], impl: KeyImplementation) -> None:
    """TypeError unless an array of this shape and dtype can be the base of keys of `impl`."""
    expected = impl.key_shape
    if tuple(shape[max(len(shape) - len(expected), 0) :]) != expected or dtype != _U32:
        raise TypeError(
            coded(
                "BX-KEY",
                f"keys of {impl.name} are made of uint32 numbers of shape (..., {', '.join(map(str, expected))}), got"
                f" {getattr(dtype, 'name', dtype)} of shape {tuple(shape)}",
            )
        )


@random_wrap_p.abstract
def _wrap_type(base, *, impl):
    check_key_data(base.shape, base.dtype, impl)
    return ShapedArray(base.shape[: len(base.shape) - len(impl.key_shape)], KeyDType(impl))


@random_unwrap_p.abstract
def _unwrap_type(keys):
    _key_dtype("random_unwrap", keys)
    return base_aval(keys)


@random_clone_p.abstract
def _clone_type(keys):
    _key_dtype("random_clone", keys)
    return keys


def without_implementation(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that printed programs show: all except `impl`, which the types of keys show."""
    return {name: value for name, value in params.items() if name != "impl"}


for _prim in (random_split_p, random_fold_in_p, random_bits_p):
    print_rules.add(_prim, without_implementation)


# ---- their functions of bases; the parameter `impl` holds the implementation, which bases do not show ----


def _over_keys(fun, base, rank: int, *others):
    """`fun` of one key's base, mapped over all keys."""
    leading = len(aval_of(base).shape) - rank
    for _ in range(leading):
        fun = vmap(fun)
    return fun(base, *others)


def _split_on_base(base, *, impl, shape):
    return _over_keys(lambda key: impl.split(key, shape), base, len(impl.key_shape))


def _bits_on_base(base, *, impl, bit_width, shape):
    return _over_keys(lambda key: impl.random_bits(key, bit_width, shape), base, len(impl.key_shape))


def _fold_in_on_base(base, data, *, impl):
    keys_rank, data_rank = len(aval_of(base).shape) - len(impl.key_shape), len(aval_of(data).shape)
    fun = impl.fold_in
    for _ in range(max(keys_rank, data_rank)):
        fun = vmap(fun, in_axes=(0 if keys_rank else None, 0 if data_rank else None))
    return fun(base, data)


def _seed_on_base(seeds, *, impl):
    fun = impl.seed
    for _ in aval_of(seeds).shape:
        fun = vmap(fun)
    return fun(seeds)


_DECOMPOSITIONS = {
    random_seed_p: _seed_on_base,
    random_split_p: _split_on_base,
    random_fold_in_p: _fold_in_on_base,
    random_bits_p: _bits_on_base,
    random_wrap_p: lambda base, *, impl: base,
    random_unwrap_p: lambda keys: keys,
    random_clone_p: lambda keys: keys,
}
for _prim, _function in _DECOMPOSITIONS.items():
    decompositions.add(_prim, _function)


# ---- eager evaluation: one compiled function of bases, so no executor has rules for keys ----


def eager(prim: Primitive, fun: Callable[..., Any], static: tuple[str, ...], keys: bool = True) -> None:
    """Evaluate `prim` by compiling `fun`, its decomposition on bases. `keys`: whether the results are keys."""
    program = one_program(fun, static=static, everywhere=True)

    def impl(*args, **params):
        bases = [x.base if type(x) is KeyArray else x for x in args]
        for x in bases:
            if isinstance(x, Tracer):
                raise errors.escaped_tracer_error(x)
        out = program.of(*[params[name] for name in static])(*bases)
        return KeyArray(KeyDType(params["impl"]), out) if keys else out

    prim.def_impl(impl)


for _prim, _static in (
    (random_seed_p, ("impl",)),
    (random_split_p, ("impl", "shape")),
    (random_fold_in_p, ("impl",)),
    (random_bits_p, ("impl", "bit_width", "shape")),
):
    eager(_prim, _DECOMPOSITIONS[_prim], _static, keys=_prim is not random_bits_p)


@random_wrap_p.def_impl
def _wrap_now(base, *, impl):
    aval = aval_of(base)
    check_key_data(aval.shape, aval.dtype, impl)
    return KeyArray(KeyDType(impl), executors.get().asarray(base))


@random_unwrap_p.def_impl
def _unwrap_now(keys):
    return keys.base


@random_clone_p.def_impl
def _clone_now(keys):
    return KeyArray(keys.aval.dtype, keys.base)


# ---- batching and derivatives ----


def _batch_at_front(prim):
    def rule(axis, args, dims, **params):
        (x,), (dim,) = args, dims
        return prim.bind(to_front(x, dim, axis.size), **params), 0

    return rule


for _prim in (random_seed_p, random_split_p, random_bits_p, random_wrap_p, random_unwrap_p, random_clone_p):
    batch_rules.add(_prim, _batch_at_front(_prim))


@batch_rules.rule(random_fold_in_p)
def _batch_fold_in(axis, args, dims, **params):
    keys, data = args
    ranks = [rank_of(x) - (d is not None) for x, d in zip(args, dims, strict=True)]
    if ranks[0] == ranks[1]:  # an operand that is not mapped may stay a scalar
        moved = [
            to_front(x, d, axis.size) if d is not None or r else x for x, d, r in zip(args, dims, ranks, strict=True)
        ]
        return random_fold_in_p.bind(*moved, **params), 0
    keys, data = (to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True))
    shape = aval_of(keys if ranks[0] else data).shape
    keys, data = (x if r else lax.broadcast_in_dim(x, shape, (0,)) for x, r in zip((keys, data), ranks, strict=True))
    return random_fold_in_p.bind(keys, data, **params), 0


zero(*_DECOMPOSITIONS)
