"""Kernels over meshes of cores. Interpreted cores run one after the other, each to its end."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bedrax import lax, pytree
from bedrax.core.tracing import Position, extend_axes
from bedrax.pallas.calls import scratch_memory
from bedrax.pallas.inside import allocate, named, position, when
from bedrax.pallas.modes import interpreted
from bedrax.pallas.specs import CostEstimate, MemorySpace
from bedrax.state import Ref, freeze, new_ref


class Mesh(Protocol):
    """A mesh of cores: ``shape`` is a dictionary, name of an axis -> size."""

    @property
    def shape(self) -> dict[Hashable, int]: ...


@dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """A mesh of the cores of a TPU, for `kernel`.

    Attributes:
      axis_name: `jax.lax.axis_index` of this name is the number of the core.
      num_cores: the number of cores; an interpreted chip has one.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def body(x_ref, out_ref):
      ...     half = pl.ds(2 * lax.axis_index("core"), 2)
      ...     out_ref[half] = x_ref[half] + 100 * lax.axis_index("core")
      ...
      >>> x, mesh = jnp.arange(4), pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
      >>> pl.kernel(body, out_type=x, mesh=mesh, interpret=True)(x)
      Array([  0,   1, 102, 103], dtype=int32)
    """

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> dict[Hashable, int]:
        """The axis and its size."""
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(axis_name: str, devices: Sequence[Any] | None = None, num_cores: int | None = None) -> Any:
    """A `TensorCoreMesh`. New programs use that class.

    Args:
      axis_name: the name of its axis.
      devices: None; others raise NotImplementedError, because interpreted kernels run on the default device.
      num_cores: the number of cores; None: 1.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.create_tensorcore_mesh("core", num_cores=2)
      TensorCoreMesh(axis_name='core', num_cores=2)
    """
    if devices is not None:
        raise NotImplementedError(
            "create_tensorcore_mesh: interpreted kernels run on the default device; leave devices out"
        )
    return TensorCoreMesh(axis_name=axis_name, num_cores=1 if num_cores is None else num_cores)


def on_cores(shape: dict[Hashable, int], run: Callable[[], None]) -> None:
    """Run a function for each index of a mesh, one after the other; `jax.lax.axis_index` returns the index."""
    sizes = tuple(shape.values())

    def one(n, _):
        ids = position(n, sizes)
        with extend_axes({name: Position(size, i) for (name, size), i in zip(shape.items(), ids, strict=True)}):
            run()

    lax.fori_loop(0, math.prod(sizes), one, None)


def kernel(
    body: Callable[..., None] | Sequence[Callable[..., None]] | None = None,
    out_type: Any = (),
    *,
    mesh: Mesh | Sequence[Mesh],
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Any:
    """Returns a function that runs a kernel on every core of a mesh, one after the other, each to its end.

    Args:
      body: called with a reference to each argument, then to each result, then the scratch memory. All cores have the
        same arguments and results; `jax.lax.axis_index` of the mesh's axes distinguishes them. A sequence, with as many
        meshes: one after the other. None: the result is a decorator.
      out_type: a tree of objects with a shape and a dtype; the results have its structure.
      mesh: a mesh, such as a `TensorCoreMesh`.
      scratch_types: separate memory for each core: a sequence of memory, or a dictionary of keyword arguments.
      interpret: true, or `InterpretParams`. Kernels are not compiled here.
      debug: print the types of arguments at each call.
      name: the name in messages.
      compiler_params, cost_estimate, metadata: for a compiler; not used.

    Returns:
      A function of arrays. An argument may be a reference; the kernel can write to it.

    Raises:
      NotImplementedError: a call without an option that selects interpretation.
      ValueError: the numbers of bodies and meshes differ.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu as pltpu
      >>> def body(x_ref, out_ref):
      ...     core = lax.axis_index("core")
      ...     out_ref[core] = x_ref[core] * 10 + core
      ...
      >>> x, mesh = jnp.array([3, 4]), pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
      >>> pl.kernel(body, out_type=x, mesh=mesh, interpret=True)(x)
      Array([30, 41], dtype=int32)
    """
    if body is None:
        return functools.partial(
            kernel,
            out_type=out_type,
            mesh=mesh,
            scratch_types=scratch_types,
            compiler_params=compiler_params,
            interpret=interpret,
            cost_estimate=cost_estimate,
            debug=debug,
            name=name,
            metadata=metadata,
        )
    bodies, meshes = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (body, mesh))
    if len(bodies) != len(meshes):
        raise ValueError(f"kernel: there is one mesh per body, got {len(bodies)} bodies and {len(meshes)} meshes")
    name = name or named(bodies[0])

    def run(*args):
        refs = pytree.tree_map(_reference, args, is_leaf=lambda x: isinstance(x, Ref))
        made = allocate(out_type)
        if debug:
            types = pytree.tree_map(lambda ref: ref.aval.short(), (refs, made), is_leaf=lambda x: isinstance(x, Ref))
            print(f"kernel {name}: meshes {[dict(m.shape) for m in meshes]}, arguments and results {types}")
        outs = made if isinstance(out_type, (tuple, list)) else (made,)

        def core(body):
            scratch, by_name = scratch_memory(scratch_types)
            body(*refs, *outs, *scratch, **by_name)

        for body, mesh in zip(bodies, meshes, strict=True):
            on_cores(dict(mesh.shape), functools.partial(core, body))
        return pytree.tree_map(freeze, made, is_leaf=lambda x: isinstance(x, Ref))

    return interpreted(f"kernel {name}", run, interpret)


def _reference(x: Any) -> Ref:
    return x if isinstance(x, Ref) else new_ref(lax.asarray(x), memory_space=MemorySpace.ANY)


def core_map(
    mesh: Mesh,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
    debug: bool = False,
    cost_estimate: Any = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[..., None]], None]:
    """Decorator that immediately runs a function on every core of a mesh; it reads and writes outer references.

    Args:
      mesh: a mesh, such as a `TensorCoreMesh`.
      interpret: true, or `InterpretParams`. Kernels are not compiled here.
      debug: print the name and the mesh.
      name: the name in messages.
      scratch_shapes: separate memory for each core, which the function is called with.
      compiler_params, cost_estimate, metadata: for a compiler; not used.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu as pltpu
      >>> ref = jax.new_ref(jnp.zeros(3, jnp.int32))
      >>> @pl.core_map(pltpu.TensorCoreMesh(axis_name="core", num_cores=3), interpret=True)
      ... def work():
      ...     ref[lax.axis_index("core")] = 10 * lax.axis_index("core")
      ...
      >>> ref[...]
      Array([ 0, 10, 20], dtype=int32)
    """

    def run(body: Callable[..., None]) -> None:
        what = name or named(body)
        if debug:
            print(f"core_map of {what}: mesh {dict(mesh.shape)}")

        def core():
            scratch, by_name = scratch_memory(scratch_shapes)
            body(*scratch, **by_name)

        interpreted(f"core_map of {what}", lambda: on_cores(dict(mesh.shape), core), interpret)()

    return run


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Decorator that immediately runs a function without arguments, only on the first core of an axis of a mesh.

    Raises:
      NameError: the axis does not exist.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def body(out_ref):
      ...     out_ref[lax.axis_index("core")] = 1
      ...     @pltpu.run_on_first_core("core")
      ...     def _():
      ...         out_ref[0] = 7
      ...
      >>> mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
      >>> pl.kernel(body, out_type=jnp.arange(2), mesh=mesh, interpret=True)()
      Array([7, 1], dtype=int32)
    """
    return when(lax.eq(lax.axis_index(core_axis_name), np.int32(0)))


def core_barrier(sem: Ref, *, core_axis_name: str) -> None:
    """Wait until all cores of an axis call this. With one core there is no wait.

    Args:
      sem: a semaphore.
      core_axis_name: the axis.

    Raises:
      NotImplementedError: there are several cores; each runs to its end before the next one begins.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def body(x_ref, out_ref, sem_ref):
      ...     out_ref[...] = x_ref[...]
      ...     pltpu.core_barrier(sem_ref, core_axis_name="core")
      ...     out_ref[...] = out_ref[::-1]
      ...
      >>> x, mesh = jnp.arange(3), pltpu.TensorCoreMesh(axis_name="core")
      >>> pl.kernel(body, out_type=x, mesh=mesh, scratch_types=[pltpu.SemaphoreType.BARRIER], interpret=True)(x)
      Array([2, 1, 0], dtype=int32)
    """
    if lax.axis_size(core_axis_name) > 1:
        raise NotImplementedError(
            f"core_barrier of {sem.aval.short()}: the {lax.axis_size(core_axis_name)} cores of axis {core_axis_name!r} run"
            " one after the other here, so none can wait for a later one; make two kernels, one before and one after"
        )
