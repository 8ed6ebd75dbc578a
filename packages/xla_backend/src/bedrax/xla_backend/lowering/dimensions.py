"""Symbolic dimensions as values: arithmetic on dimension variables, as `i32` operations.

A symbolic dimension evaluates itself in an environment from variable names to objects with Python's
arithmetic. Here these are `DimValue`s, whose arithmetic appends operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core.typing import ArrayLike
from bedrax.shape_poly import dim_as_value_p
from bedrax.xla_backend.tables import lowering_rules

_I32 = np.dtype(np.int32)


class DimValue:
    """A rank-0 i32 value with arithmetic."""

    __slots__ = ("ctx", "value")

    def __init__(self, ctx: Any, value: Any) -> None:
        self.ctx: Any = ctx
        self.value: Any = value

    def _other(self, y: Any):
        return y.value if isinstance(y, DimValue) else self.ctx.constant(int(y), _I32)

    def _do(self, name, x, y) -> DimValue:
        return DimValue(self.ctx, self.ctx.binary(name, x, y))

    def __add__(self, y: ArrayLike) -> Any:
        return self._do("stablehlo.add", self.value, self._other(y))

    __radd__ = __add__

    def __sub__(self, y: ArrayLike) -> Any:
        return self._do("stablehlo.subtract", self.value, self._other(y))

    def __rsub__(self, y: ArrayLike) -> Any:
        return self._do("stablehlo.subtract", self._other(y), self.value)

    def __mul__(self, y: ArrayLike) -> Any:
        return self._do("stablehlo.multiply", self.value, self._other(y))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return 0 - self

    def _divmod(self, y):
        """Floor division, from StableHLO's division, which rounds towards zero."""
        ctx, x, y = self.ctx, self.value, self._other(y)
        quotient = ctx.binary("stablehlo.divide", x, y)
        rest = ctx.binary("stablehlo.remainder", x, y)
        zero = ctx.constant(0, _I32)
        one = ctx.constant(1, _I32)
        signs_differ = ctx.compare(ctx.unary("stablehlo.sign", rest), ctx.unary("stablehlo.sign", y), "NE")
        down = ctx.binary("stablehlo.and", ctx.compare(rest, zero, "NE"), signs_differ)
        return (
            DimValue(ctx, ctx.select(down, ctx.binary("stablehlo.subtract", quotient, one), quotient)),
            DimValue(ctx, ctx.select(down, ctx.binary("stablehlo.add", rest, y), rest)),
        )

    def __floordiv__(self, y: ArrayLike) -> Any:
        return self._divmod(y)[0]

    def __mod__(self, y: ArrayLike) -> Any:
        return self._divmod(y)[1]

    def max(self, y: ArrayLike) -> Any:
        """The larger of two values."""
        return self._do("stablehlo.maximum", self.value, self._other(y))

    def min(self, y: ArrayLike) -> Any:
        """The smaller of two values."""
        return self._do("stablehlo.minimum", self.value, self._other(y))


def value(ctx: Any, d: Any) -> Any:
    """A symbolic dimension as a rank-0 i32 value.

    Raises:
      KeyError: the shapes of the program's arguments do not determine some of its variables (`shape_poly`).
    """
    found = ctx.program.dim_values
    env = {name: DimValue(ctx, v) for name, v in found.items()}
    out = d.evaluate(env)
    return out.value if isinstance(out, DimValue) else ctx.constant(int(out), _I32)


lowering_rules.add(dim_as_value_p, lambda ctx, *, dim: ctx.convert(ctx.dim_value(dim), ctx.avals_out[0].dtype))
