"""Maps over several devices, by the names that libraries import: not supported; calls say what to use instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def _refusing(name: str, instead: str) -> Callable:
    def make(f: Callable | None = None, /, *args: Any, **options: Any) -> Callable:
        if f is None:
            return functools.partial(make, *args, **options)

        @functools.wraps(f)
        def call(*_, **__):
            raise NotImplementedError(f"jax.{name} is not supported: {instead}")

        return call

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Not supported: what it returns raises NotImplementedError when called ({instead})."
    return make


pmap = _refusing("pmap", "use jax.jit on arrays with a jax.sharding.NamedSharding, or jax.vmap on one device")
shard_map = _refusing("shard_map", "use jax.jit on arrays with a jax.sharding.NamedSharding")
smap = _refusing("smap", "use jax.jit on arrays with a jax.sharding.NamedSharding")
