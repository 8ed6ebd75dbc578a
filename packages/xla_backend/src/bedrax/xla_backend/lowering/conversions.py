"""StableHLO of conversions between dtypes."""

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import conversions as p
from bedrax.lax.primitives.elementwise import REAL_OF
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(p.convert_element_type_p)
def _convert(ctx, x, *, new_dtype, weak_type):
    old = ctx.avals_in[0]
    if old.dtype == new_dtype:
        return x
    if dtypes.is_complex(old.dtype) and not dtypes.is_complex(new_dtype):
        if new_dtype == np.bool_:  # nonzero in either part
            return ctx.compare(x, ctx.full(old.shape, 0, old.dtype), "NE")
        part = REAL_OF[old.dtype]
        x = ctx.emit("stablehlo.real", (x,), ctx.tensor_type(old.shape, part))
        return ctx.convert(x, new_dtype)
    if new_dtype == np.bool_:
        return ctx.compare(x, ctx.full(old.shape, 0, old.dtype), "NE")
    return ctx.emit("stablehlo.convert", (x,))


@lowering_rules.rule(p.bitcast_convert_type_p)
def _bitcast(ctx, x, *, new_dtype):
    if ctx.avals_in[0].dtype == new_dtype:
        return x
    return ctx.emit("stablehlo.bitcast_convert", (x,))


@lowering_rules.rule(p.reduce_precision_p)
def _reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):
    return ctx.emit(
        "stablehlo.reduce_precision", (x,), exponent_bits=ctx.i32(exponent_bits), mantissa_bits=ctx.i32(mantissa_bits)
    )
