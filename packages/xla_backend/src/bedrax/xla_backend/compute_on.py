"""Host and device computation within a program (`jax.experimental.compute_on`)."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.core.avals import aval_of
from bedrax.lax.marking import Hinted, Pairs, marked_call
from bedrax.lax.primitives.placement import moved
from bedrax.parallel.mapping import prefix_leaves
from bedrax.xla_backend.sharding import Memory, Space

__all__ = ["compute_on", "compute_on2"]

# The attributes that XLA reads. A platform without such a unit computes the part on its devices.
_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}


def _pairs(compute_type: str) -> Pairs:
    """The frontend attributes that select the unit."""
    if compute_type in _TYPES:
        return (("_xla_compute_type", _TYPES[compute_type]),)
    if isinstance(compute_type, str) and compute_type.startswith("gpu_stream:"):
        return (("_xla_stream_annotation", compute_type.removeprefix("gpu_stream:")), ("inlineable", "false"))
    raise ValueError(
        f"compute_on: the unit must be one of {', '.join(map(repr, _TYPES))} or 'gpu_stream:<number>', got {compute_type!r}"
    )


def compute_on(
    f: Callable[..., Any] | str | None = None,
    *,
    compute_type: str | None = None,
    out_memory_spaces: Any = None,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[..., Any] | contextlib.AbstractContextManager[Any]:
    """Return `f`, which then computes on the given unit and puts its results into the given memories.

    The unit is a frontend attribute of the call. XLA's compilers for GPUs and TPUs read it; on CPU it has no effect.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator. A string is the `compute_type` of a context
        manager, and the operations that are traced inside are computed there.
      compute_type: ``"device_host"``, ``"device"``, ``"tpu_sparsecore"``, or ``"gpu_stream:<number>"``.
      out_memory_spaces: a `jax.memory.Space` (``Device`` or ``Host``), or a pytree prefix of the result with them.
      compiler_options: options of the compiler for the call, by name. Values are JSON values.

    Raises:
      ValueError: `compute_type` or a memory does not exist.
      TypeError: `compute_type` or `out_memory_spaces` is missing.

    Examples:

      >>> from jax.experimental.compute_on import compute_on
      >>> @compute_on(compute_type="device_host", out_memory_spaces=jax.memory.Space.Host)
      ... def f(x):
      ...     return jnp.sin(x)
      ...
      >>> y = jax.jit(f)(0.)
      >>> y, y.sharding.memory_kind
      (Array(0., dtype=float32, weak_type=True), 'pinned_host')
      >>> with compute_on("device_host"):  # what is traced inside
      ...     y = jnp.sin(0.)
      ...
    """
    if isinstance(f, str):
        return Hinted(_pairs(f))
    if compute_type is None or out_memory_spaces is None:
        raise TypeError("compute_on needs compute_type= and out_memory_spaces=, such as jax.memory.Space.Device")
    pairs = _pairs(compute_type)
    if f is None:
        return functools.partial(
            compute_on,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    for space in pytree.tree_leaves(out_memory_spaces):
        if space not in (Space.Device, Space.Host):
            raise ValueError(f"compute_on: a memory is jax.memory.Space.Device or jax.memory.Space.Host, got {space!r}")
    options = (("backend_config", json.dumps(compiler_options)),) if compiler_options else ()
    called = marked_call(Hinted(pairs)(f), (*pairs, *options))

    @functools.wraps(f)
    def computed(*args: Any, **kwargs: Any) -> Any:
        out = called(*args, **kwargs)
        leaves, tree = pytree.tree_flatten(out)
        spaces = prefix_leaves("out_memory_spaces", out_memory_spaces, out, f)
        placed = [
            moved(x, Memory(space.value)) if aval_of(x).is_array else x for x, space in zip(leaves, spaces, strict=True)
        ]
        return pytree.tree_unflatten(tree, placed)

    return computed


def compute_on2(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """`compute_on` under its name in earlier versions.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      compute_type, out_memory_spaces, compiler_options: as in `compute_on`.

    Examples:

      >>> from jax.experimental.compute_on import compute_on2
      >>> @compute_on2(compute_type="device_host", out_memory_spaces=jax.memory.Space.Device)
      ... def on_the_host(x):
      ...     return jnp.sin(x)
      ...
      >>> jax.jit(lambda x: 2 * on_the_host(x))(0.)
      Array(0., dtype=float32, weak_type=True)
    """
    return compute_on(
        f, compute_type=compute_type, out_memory_spaces=out_memory_spaces, compiler_options=compiler_options
    )
