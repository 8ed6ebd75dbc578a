"""NumPy evaluation of the reductions.

Sums and products of half precision and narrow floats accumulate in a wider type. Those of integers wrap
around. XLA does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax.core import dtypes
from bedrax.core.quiet import quietly
from bedrax.lax.primitives import reductions
from bedrax.numpy_backend.numbers import narrow
from bedrax.numpy_backend.program_source import evaluate
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules, source_rules

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


rule: Final = numpy_rules.rule
_native = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64")))


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums and products of `dtype` accumulate."""
    if dtype.kind == "V" or dtype.itemsize < 4:
        if dtypes.issubdtype(dtype, np.floating):
            return np.dtype(np.float32)
        if dtypes.issubdtype(dtype, np.integer):
            return np.dtype(np.int32)
    return dtype


def _arithmetic(ufunc):
    def evaluate(x, *, axes):
        if not axes:
            return x
        dtype = x.dtype
        wide = accumulator(dtype)
        if wide is dtype:
            return np.asarray(quietly(ufunc.reduce, x, axes, dtype))
        return narrow(quietly(ufunc.reduce, x.astype(wide, copy=False), axes, wide), dtype)

    return evaluate


for _prim, _ufunc in (
    (reductions.reduce_sum_p, np.add),
    (reductions.reduce_prod_p, np.multiply),
    (reductions.reduce_and_p, np.bitwise_and),
    (reductions.reduce_or_p, np.bitwise_or),
    (reductions.reduce_xor_p, np.bitwise_xor),
):
    rule(_prim)(_arithmetic(_ufunc))


def _reduction_source(ufunc):
    def source(write, eqn, x):
        aval, axes = eqn.invars[0].aval, eqn.params["axes"]
        if not axes:
            return x
        if aval.dtype not in _native or not aval.size:
            return None
        return f"np.{ufunc}.reduce({x}, {axes}, np.{aval.dtype.name})"

    return source


for _prim, _ufunc in (("sum", "add"), ("prod", "multiply"), ("max", "maximum"), ("min", "minimum")):
    source_rules.add(getattr(reductions, f"reduce_{_prim}_p"), _reduction_source(_ufunc))


def _extreme(prim, ufunc):
    def evaluate(x, *, axes):
        if not axes:
            return x
        out_dtype = x.dtype
        if out_dtype in _native and x.size:
            return np.asarray(quietly(ufunc.reduce, x, axes))
        if x.dtype in dtypes.narrow_int_dtypes or x.dtype in dtypes.narrow_float_dtypes:
            x = x.astype(accumulator(x.dtype))
        identity = np.asarray(reductions.identities[prim](out_dtype)).astype(x.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(ufunc.reduce(x, axis=axes, initial=None if x.size else identity[()])).astype(out_dtype)

    rule(prim)(evaluate)


_extreme(reductions.reduce_max_p, np.maximum)
_extreme(reductions.reduce_min_p, np.minimum)


def comparable(x: np.ndarray) -> np.ndarray:
    """Convert `x` to a dtype that NumPy can sort; the order is kept."""
    if not dtypes.is_native(x.dtype):  # NumPy's kind of float8_e5m2 is that of its own floats
        return x.astype(np.int32 if dtypes.issubdtype(x.dtype, np.integer) else np.float32)
    return x


def _position(find):
    return lambda x, *, axes, index_dtype: np.asarray(find(comparable(x), axes[0]), index_dtype)


rule(reductions.argmax_p)(_position(np.argmax))
rule(reductions.argmin_p)(_position(np.argmin))


def elementwise_program(jaxpr: Jaxpr) -> Callable[..., Any]:
    """Return a jaxpr of scalars as a function of equally shaped arrays.

    Programs of elementwise primitives run on whole arrays; others, once per element.
    """
    if all(eqn.primitive.family in ("elementwise", "special") for eqn in jaxpr.eqns):

        def whole(*arrays):
            out = evaluate(jaxpr, *arrays)
            return [np.broadcast_to(v, arrays[0].shape) for v in out]

        return whole

    def one_by_one(*arrays):
        shape = arrays[0].shape
        out = [np.empty(shape, a.dtype) for a in jaxpr.out_avals]
        for i in np.ndindex(*shape):
            for target, value in zip(out, evaluate(jaxpr, *(np.asarray(a[i]) for a in arrays))):
                target[i] = value
        return out

    return one_by_one


@rule(reductions.reduce_p)
def _reduce(*args, dimensions, jaxpr):
    half = len(args) // 2
    operands, inits = args[:half], args[half:]
    combine = elementwise_program(jaxpr)
    ndim = operands[0].ndim
    kept = [i for i in range(ndim) if i not in dimensions]
    shape = [operands[0].shape[i] for i in kept]
    flat = [x.transpose(*kept, *dimensions).reshape(*shape, -1) if x.size else x.reshape(*shape, 0) for x in operands]
    out = [np.broadcast_to(init, shape) for init in inits]
    for i in range(flat[0].shape[-1]):
        out = combine(*out, *(x[..., i] for x in flat))
    return out


@exact_rules.rule(
    reductions.reduce_sum_p,
    reductions.reduce_prod_p,
    reductions.reduce_max_p,
    reductions.reduce_min_p,
    reductions.reduce_and_p,
    reductions.reduce_or_p,
    reductions.reduce_xor_p,
)
def _reduction_is_exact(types, **_):
    return Exactness.BITS if types[0].dtype.kind in "iub" else None


@exact_rules.rule(reductions.argmax_p, reductions.argmin_p)
def _position_is_exact(types, **_):
    if types[0].dtype.kind in "iub":
        return Exactness.BITS
    return Exactness.NORMAL if types[0].dtype.kind == "f" else None
