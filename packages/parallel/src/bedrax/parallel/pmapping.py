"""`pmap`: a function mapped over an axis of its arguments, with each element on its own device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.batching import vmap
from bedrax.core import executors
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit
from bedrax.core.signatures import Signature, positions_of
from bedrax.core.staging import function_name
from bedrax.core.typing import JitFunction, P, R
from bedrax.lax import expand_dims, squeeze
from bedrax.parallel import meshes
from bedrax.parallel.mapping import axis_spec, map_blocks, prefix_leaves
from bedrax.parallel.meshes import Mesh

__all__ = ["pmap"]


def pmap(
    fun: Callable[P, R],
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> JitFunction[P, R]:
    """Map a function over an axis of its arguments, with each element on its own device.

    It is `jit` of `shard_map` over a mesh of one axis. Inside another `pmap` (or `shard_map`), which uses the devices,
    it is `vmap`.

    Args:
      fun: takes and returns pytrees of arrays.
      axis_name: a name for collectives inside `fun`.
      in_axes: the mapped axis of each argument: an int, None (not mapped), or a tuple with one entry per positional
        argument, pytree prefixes of these. Keyword arguments are mapped over axis 0.
      out_axes: the position of the mapped axis in the results: a pytree prefix of them; None: the first device's value.
      static_broadcasted_argnums: positional arguments that are compile-time constants, passed to each call unchanged.
      devices: the devices, one per element. Default: the first ones of the backend.
      backend: the platform of the devices.
      axis_size: size of the mapped axis, needed only if no argument is mapped.
      donate_argnums: arguments whose buffers the result may use.

    Returns:
      A function with the signature of `fun`, whose results are split over the devices.

    Raises:
      ValueError: sizes differ, or there are fewer devices than elements.

    Examples:

      >>> jax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([4.]))
      Array([1.], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"pmap needs a function, got {fun!r} of type {type(fun)}")
    static = positions_of(static_broadcasted_argnums, "pmap: static_broadcasted_argnums")
    donated = positions_of(donate_argnums, "pmap: donate_argnums")
    name = _Unnamed() if axis_name is None else axis_name

    @functools.wraps(fun)
    def mapped(*args, **kwargs):
        places = Signature(fun, static).static_positions(len(args)) if static else set()
        axes = in_axes
        if isinstance(axes, tuple | list):
            if len(axes) != len(args):
                raise ValueError(
                    f"pmap: in_axes has one entry per positional argument, got {len(axes)} entries for {len(args)} arguments"
                    f" of {function_name(fun)}"
                )
            axes = tuple(a for i, a in enumerate(axes) if i not in places)
        dynamic = tuple(a for i, a in enumerate(args) if i not in places)

        def call(positional, named):
            rest = iter(positional)
            return fun(*(args[i] if i in places else next(rest) for i in range(len(args))), **named)

        if meshes.get_abstract_mesh().manual_axes:
            inner = vmap(call, in_axes=(axes, 0), out_axes=out_axes, axis_name=axis_name, axis_size=axis_size)
            return inner(dynamic, kwargs)
        given = (dynamic, kwargs)
        leaves = pytree.tree_leaves(given)
        dims = prefix_leaves("in_axes", (axes, 0), given, fun)
        size = _size(fun, leaves, dims, axis_size)
        mesh = Mesh(_devices(fun, size, devices, backend), (name,))
        return _mapped(fun, call, given, dims, out_axes, mesh, name)

    return jit(mapped, static_argnums=static or None, donate_argnums=donated or None)


class _Unnamed:
    """The name of an axis without a name: no collective can use it."""

    def __repr__(self) -> str:
        return "<the axis of pmap>"


def _mapped(fun: Callable, call: Callable, given: tuple, dims: Sequence, out_axes: Any, mesh: Mesh, name: Any) -> Any:
    out_dims: list[Any] = []

    def block(*blocks):
        leaves, tree = pytree.tree_flatten(blocks)
        leaves = [x if d is None else squeeze(x, (d,)) for x, d in zip(leaves, dims, strict=True)]
        out = call(*pytree.tree_unflatten(tree, leaves))
        out_dims[:] = prefix_leaves("out_axes", out_axes, out, fun)
        values, out_tree = pytree.tree_flatten(out)
        values = [x if d is None else expand_dims(x, (d,)) for x, d in zip(values, out_dims, strict=True)]
        return pytree.tree_unflatten(out_tree, values)

    def in_specs(types, _):
        return [axis_spec("in_axes", d, len(t.shape), name, fun) for t, d in zip(types, dims, strict=True)]

    def out_specs(types, _):
        return [axis_spec("out_axes", d, len(t.shape), name, fun) for t, d in zip(types, out_dims, strict=True)]

    return map_blocks(block, given, in_specs, out_specs, mesh, (name,), False)


def _size(fun: Callable, leaves: Sequence, dims: Sequence, given: int | None) -> int:
    sizes = {}
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            shape = aval_of(x).shape
            if not -len(shape) <= d < len(shape):
                raise ValueError(f"pmap: in_axes maps axis {d} of an argument of {function_name(fun)} of shape {shape}")
            sizes.setdefault(shape[d], shape)
    if given is not None:
        sizes.setdefault(given, "axis_size")
    if len(sizes) > 1:
        found = ", ".join(
            f"axis_size={n}" if shape == "axis_size" else f"{n} (an argument of shape {shape})"
            for n, shape in sizes.items()
        )
        raise ValueError(f"pmap: mapped axes of the arguments of {function_name(fun)} differ in size: {found}")
    if not sizes:
        raise ValueError(f"pmap: in_axes maps no argument of {function_name(fun)}; pass axis_size")
    return next(iter(sizes))


def _devices(fun: Callable, size: int, devices: Sequence | None, backend: str | None) -> np.ndarray:
    if devices is not None:
        found = list(devices)
        if len(found) != size:
            raise ValueError(
                f"pmap: {function_name(fun)} is mapped over an axis of size {size}, but devices has {len(found)} of them;"
                " give as many as there are elements"
            )
    else:
        executor = executors.get()
        found = executor.devices(backend) if backend is not None else executor.devices()
        if not found:  # the host computes all elements
            found = list(range(size))
    if len(found) < size:
        raise ValueError(
            f"pmap: {function_name(fun)} is mapped over an axis of size {size}, but there are {len(found)} devices. Reshape"
            f" the axis to ({len(found)}, {-(-size // len(found))}) and vmap over the second, or (on CPU) set"
            f" jax.config.update('jax_num_cpu_devices', {size}) at the start."
        )
    array = np.empty(size, object)
    array[:] = found[:size]
    return array
