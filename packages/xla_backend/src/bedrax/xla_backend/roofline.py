"""The data of estimates by the roofline model (`jax.experimental.roofline`): operations and bytes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core.avals import ShapedArray

__all__ = ["RooflineResult", "RooflineRuleContext", "RooflineShape"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """Shape and dtype of an array.

    Attributes:
      shape: a tuple of integers.
      dtype: a dtype.

    Examples:

      >>> from jax.experimental import roofline

      >>> roofline.RooflineShape.from_aval(jax.typeof(jnp.ones((2, 3)))).bytes
      24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """The shape and dtype of a type.

        Raises:
          TypeError: it is not the type of an array.
        """
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"RooflineShape is made of the type of an array (jax.typeof), got {type(aval)}")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return self.size * np.dtype(self.dtype).itemsize

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The number of bytes of arrays of several types."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """The argument of a rule besides its operands: the operation, and its position.

    Examples:

      >>> from jax.experimental import roofline

      >>> context = roofline.RooflineRuleContext(
      ...     name_stack=None, primitive=jax.lax.sin_p, avals_in=[jax.typeof(1.)], avals_out=[jax.typeof(1.)],
      ...     jaxpr_eqn_ctx=None, mesh=None, pin_lhs_in_vmem=False, pin_rhs_in_vmem=False)
      >>> context.primitive
      sin
    """

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """An estimate. The sum of two is the estimate of one program after the other; a multiple, of parallel
    programs.

    Attributes:
      flops, unfused_flops: operations: those that are not hidden behind others, and all.
      ici_bytes, ici_latency: bytes sent between devices, and hops, by mesh axis.
      hbm_bytes, unfused_hbm_bytes: bytes from and to the memory of the device, likewise.
      peak_hbm_bytes: the largest number of bytes in use.

    Examples:

      >>> from jax.experimental import roofline

      >>> one = roofline.RooflineResult(flops=3, peak_hbm_bytes=8)
      >>> two = one + roofline.RooflineResult(flops=1, peak_hbm_bytes=4)
      >>> two.flops, two.peak_hbm_bytes, (2 * one).flops
      (4, 8, 6)
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """The estimate of an empty program."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        if not isinstance(other, RooflineResult):
            return NotImplemented
        return RooflineResult(**{f.name: self._joined(f.name, other) for f in dataclasses.fields(self)})

    def _joined(self, name: str, other: RooflineResult) -> Any:
        mine, others = getattr(self, name), getattr(other, name)
        if name == "peak_hbm_bytes":
            return max(mine, others)
        if isinstance(mine, dict):
            return {axis: mine.get(axis, 0) + others.get(axis, 0) for axis in (*mine, *(others.keys() - mine.keys()))}
        return mine + others

    def __mul__(self, count: int) -> RooflineResult:
        times = lambda x: {axis: n * count for axis, n in x.items()} if isinstance(x, dict) else x * count
        return RooflineResult(**{f.name: times(getattr(self, f.name)) for f in dataclasses.fields(self)})

    __rmul__ = __mul__
