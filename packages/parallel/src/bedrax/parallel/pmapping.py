"""`pmap`: a function mapped over an axis of its arguments, with each element on its own device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.batching import vmap
from bedrax.core import executors, staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit, jit_p, jit_params
from bedrax.core.public import public
from bedrax.core.signatures import Signature, positions_of
from bedrax.core.staging import function_name
from bedrax.core.typing import JitFunction, P, R
from bedrax.lax import expand_dims, squeeze
from bedrax.parallel import meshes
from bedrax.parallel.mapping import axis_spec, map_blocks, prefix_leaves
from bedrax.parallel.meshes import Mesh
from bedrax.parallel.process_parts import own_parts, whole_arrays
from bedrax.parallel.specs import PartitionSpec

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

    In a run of several processes, the mapped axis spans the devices of all of them, and so do collectives and
    `axis_index`. Each process calls the function with the elements of its own devices, and gets their results. An
    argument that is not mapped may differ between processes. With `devices` of one process, only that process calls it.

    Args:
      fun: takes and returns pytrees of arrays.
      axis_name: a name for collectives inside `fun`.
      in_axes: the mapped axis of each argument: an int, None (not mapped), or a tuple with one entry per positional
        argument, pytree prefixes of these. Keyword arguments are mapped over axis 0.
      out_axes: the position of the mapped axis in the results: a pytree prefix of them; None: the first device's value.
      static_broadcasted_argnums: positional arguments that are compile-time constants, passed to each call unchanged.
      devices: the devices, one per element, also of other processes. Default: the first ones of the backend; all of
        them in a run of several processes.
      backend: the platform of the devices.
      axis_size: size of the mapped axis in all processes together, needed only if no argument is mapped.
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
        found = list(devices) if devices is not None else executors.get().devices(backend)
        if _of_others(found):
            mesh = _mesh_of_processes(fun, _size(fun, leaves, dims, None, len(found)), found, axis_size, name)
            given_away = _donated_leaves(dynamic, donated, places)
            return _mapped_in_processes(fun, call, given, dims, out_axes, mesh, name, given_away)
        size = _size(fun, leaves, dims, axis_size)
        mesh = Mesh(_devices(fun, size, found, devices is not None), (name,))
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


def _of_others(devices: Sequence) -> bool:
    """Whether some of the devices are of other processes."""
    return any(hasattr(d, "process_index") and d.process_index != d.client.process_index() for d in devices)


def _mesh_of_processes(fun: Callable, size: int | None, devices: Sequence, axis_size: int | None, name: Any) -> Mesh:
    """The mesh for a mapped axis with `size` elements in this process (None: no argument is mapped)."""
    array = np.empty(len(devices), object)
    array[:] = devices
    mesh = Mesh(array, (name,))
    own, count = len(mesh.local_devices), len({d.process_index for d in devices})
    if axis_size is None and size is None:
        raise ValueError(f"pmap: in_axes maps no argument of {function_name(fun)}; pass axis_size")
    if axis_size is not None and axis_size != len(devices):
        raise ValueError(
            f"pmap: {function_name(fun)} has axis_size={axis_size}, but the axis spans {len(devices)} devices of {count}"
            f" processes; pass axis_size={len(devices)}, or as many devices as elements"
        )
    if not own:
        raise ValueError(
            f"pmap: {function_name(fun)} is mapped over {len(devices)} devices of {count} processes, and none of them is"
            " of this process; call it only in the processes of its devices"
        )
    if size is not None and size != own:
        raise ValueError(
            f"pmap: {function_name(fun)} is mapped over {len(devices)} devices of {count} processes. This process has {own}"
            f" of these devices, but the mapped axis of its arguments has size {size}. Each process passes the elements of its"
            f" own devices: give an axis of size {own}, or name other devices"
        )
    return mesh


def _donated_leaves(dynamic: tuple, donated: Iterable[int], places: set[int]) -> tuple[int, ...]:
    """The positions of donated values among the leaves of the arguments. Those of `dynamic` are without the static ones."""
    count = len(dynamic) + len(places)
    of_all = {i % count for i in donated if -count <= i < count}
    positions = [i for i in range(count) if i not in places]
    leaves = [i for i, x in zip(positions, dynamic, strict=True) for _ in pytree.tree_leaves(x)]
    return tuple(j for j, i in enumerate(leaves) if i in of_all)


def _mapped_in_processes(
    fun: Callable, call: Callable, given: tuple, dims: Sequence, out_axes: Any, mesh: Mesh, name: Any, donated: Sequence
) -> Any:
    """`_mapped` of the whole arrays whose parts the processes pass. Returns this process's parts of the results."""
    leaves, tree = pytree.tree_flatten(given)
    ranks = [len(aval_of(x).shape) for x in leaves]
    specs = [axis_spec("in_axes", d, n, name, fun) for d, n in zip(dims, ranks, strict=True)]
    values = whole_arrays(leaves, mesh, specs)

    def whole(*values):
        return _mapped(fun, call, pytree.tree_unflatten(tree, values), dims, out_axes, mesh, name)

    in_tree = pytree.tree_structure((tuple(values), {}))
    program, consts, out_tree = staging.trace_function(whole, in_tree, tuple(map(aval_of, values)))
    given_away = (False,) * len(consts) + tuple(i in donated for i in range(len(values)))
    consts = whole_arrays(consts, mesh, [PartitionSpec()] * len(consts))  # `fun` closes over values of this process
    params = jit_params(program, function_name(fun), donated_invars=given_away)
    results = jit_p.bind(*consts, *values, **params)
    out_dims = prefix_leaves("out_axes", out_axes, pytree.tree_unflatten(out_tree, results), fun)
    ranks = [len(t.shape) for t in program.out_avals]
    out_specs = [axis_spec("out_axes", d, n, name, fun) for d, n in zip(out_dims, ranks, strict=True)]
    return pytree.tree_unflatten(out_tree, own_parts(results, mesh, out_specs))


def _size(fun: Callable, leaves: Sequence, dims: Sequence, given: int | None, spanned: int = 0) -> int | None:
    """The size of the mapped axis. None, if no argument is mapped, and the axis is known to span some devices."""
    sizes = {}
    for x, d in zip(leaves, dims, strict=True):
        if d is not None:
            shape = aval_of(x).shape
            if type(d) is not int:
                raise TypeError(f"pmap: in_axes of {function_name(fun)} holds ints and None, got {d!r}")
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
    if not sizes and spanned:
        return None
    if not sizes:
        raise ValueError(f"pmap: in_axes maps no argument of {function_name(fun)}; pass axis_size")
    (size,) = sizes
    if not size:
        raise ValueError(
            f"pmap: the mapped axis of {function_name(fun)} has size 0; there is one element per device, so map one at least"
        )
    return size


def _devices(fun: Callable, size: int, found: Sequence, given: bool) -> np.ndarray:
    if given and len(found) != size:
        raise ValueError(
            f"pmap: {function_name(fun)} is mapped over an axis of size {size}, but devices has {len(found)} of them;"
            " give as many as there are elements"
        )
    if not found:  # the host computes all elements
        found = list(range(size))
    if len(found) < size:
        raise ValueError(
            public(
                f"pmap: {function_name(fun)} is mapped over an axis of size {size}, but there are {len(found)} devices."
                f" Reshape the axis to ({len(found)}, {-(-size // len(found))}) and vmap over the second, or (on CPU)"
                f" set jax.config.update('jax_num_cpu_devices', {size}) at the start."
            )
        )
    array = np.empty(size, object)
    array[:] = found[:size]
    return array
