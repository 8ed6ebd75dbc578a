"""`jax.experimental.random`: a generator that counts its draws in a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedrax import lax, pytree
from bedrax.core import dtypes
from bedrax.core.tracing import trace_state_clean
from bedrax.random.continuous import normal
from bedrax.random.discrete import randint
from bedrax.random.keys import fold_in, key, split
from bedrax.random.uniforms import uniform
from bedrax.state import Ref, new_ref

__all__ = ["StatefulPRNG", "stateful_rng"]


@dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers with a state, made by `stateful_rng`.

    Each draw takes the key that `fold_in` makes of the base key and the number of the draw. A generator is a pytree of
    the key and of a reference to the counter. So the rules for references hold: functions take generators as arguments
    and do not return them.

    Examples:

      >>> from jax.experimental.random import StatefulPRNG, stateful_rng

      >>> rng = stateful_rng(0)
      >>> isinstance(rng, StatefulPRNG)
      True
      >>> rng.normal((2,)).shape
      (1,)
    """

    _base_key: Any
    _counter: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of independent ones of a shape."""
        if self._base_key.shape:
            raise ValueError(f"a generator split to {self._base_key.shape} draws under vmap, one part at a time")
        drawn = fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        return split(drawn, shape) if shape else drawn

    def random(self, size: int | Sequence[int] | None = None, dtype: Any = float) -> Any:
        """Floats in [0, 1), of shape `size`."""
        return uniform(self.key(), _shape(size), dtypes.as_dtype(dtypes.canonicalize_dtype(dtype)))

    def uniform(
        self, low: Any = 0, high: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Any:
        """Floats in [low, high), of shape `size` (None: that of the limits)."""
        shape = _shape(size, low, high)
        return uniform(self.key(), shape, dtypes.as_dtype(dtypes.canonicalize_dtype(dtype)), minval=low, maxval=high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Any:
        """Normal numbers of mean `loc` and standard deviation `scale`, of shape `size` (None: that of these)."""
        dtype = dtypes.as_dtype(dtypes.canonicalize_dtype(dtype))
        shape = _shape(size, loc, scale)
        loc, scale = (broadcast(x, shape, dtype) for x in (loc, scale))
        return lax.add(loc, lax.mul(scale, normal(self.key(), shape, dtype)))

    def integers(self, low: Any, high: Any = None, size: int | Sequence[int] | None = None, *, dtype: Any = int) -> Any:
        """Integers in [low, high), of shape `size`; with one limit, in [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return randint(
            self.key(), _shape(size, low, high), low, high, dtypes.as_dtype(dtypes.canonicalize_dtype(dtype))
        )

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Independent generators, in a list."""
        keys = self.key((n_children,))
        return [StatefulPRNG(keys[i], new_ref(0)) for i in range(n_children)]

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators as one generator whose key and counter are arrays of shape `num`, for `vmap`."""
        shape = (num,) if isinstance(num, (int, np.integer)) else tuple(num)
        return StatefulPRNG(self.key(shape), new_ref(np.zeros(shape, np.int32)))


pytree.register_dataclass(StatefulPRNG, data_fields=["_base_key", "_counter"], meta_fields=[])


def _shape(size: Any, *like: Any) -> tuple:
    if size is None:
        return np.broadcast_shapes(*(np.shape(x) for x in like)) if like else ()
    return (size,) if isinstance(size, (int, np.integer)) else tuple(size)


def broadcast(x: Any, shape: tuple[Any, ...], dtype: np.dtype) -> Any:
    """`x` as an array of a dtype and of a shape that it can be broadcast to."""
    x = lax.convert_element_type(np.asarray(x) if isinstance(x, (list, tuple)) else x, dtype)
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator that counts its draws, like the result of `numpy.random.default_rng`.

    Args:
      seed: an integer; None: one from the operating system, which is not possible while a function is traced.
      impl: name of the generator, as in `jax.random.key`.

    Raises:
      TypeError: no seed, in a function that is being traced.

    Examples:

      >>> from jax.experimental.random import stateful_rng

      >>> rng = stateful_rng(7)
      >>> first, second = rng.uniform(), rng.uniform()
      >>> bool(first == second)
      False
    """
    if seed is None:
        if not trace_state_clean():
            raise TypeError("stateful_rng: a traced function needs a seed: it would be drawn only once, while tracing")
        seed = np.random.default_rng().integers(2**32, dtype=np.uint32)
    return StatefulPRNG(key(seed, impl=impl), new_ref(0))
