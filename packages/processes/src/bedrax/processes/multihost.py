"""Values across the processes of a run. All processes call each function, in the same order.

With one process all functions are trivial.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree
from bedrax.autodiff.tables import linear
from bedrax.batching.tables import batch_rules
from bedrax.core import jitting
from bedrax.core.avals import ShapedArray
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.processes import distributed
from bedrax.processes.local_data import make_array_from_process_local_data
from bedrax.xla_backend import clients
from bedrax.xla_backend.placement import device_put, make_array_from_single_device_arrays
from bedrax.xla_backend.sharding import NamedSharding


class ProcessFailureError(Exception):
    """Processes died inside a `live_devices` block.

    Attributes:
      failed_devices: the set of the devices of these processes.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> error = multihost_utils.ProcessFailureError(set(jax.devices()))
      >>> error.failed_devices == set(jax.devices())
      True
    """

    def __init__(self, failed_devices: set[Any]) -> None:
        super().__init__(f"processes died that held the devices {sorted(failed_devices, key=lambda d: d.id)}")
        self.failed_devices: set[Any] = failed_devices


def _mesh_of_processes() -> Any:
    """All devices, a row per process."""
    rows: dict[int, list[Any]] = {}
    for device in clients.devices():
        rows.setdefault(device.process_index, []).append(device)
    width = min(map(len, rows.values()))
    devices = np.empty((len(rows), width), object)
    for i, number in enumerate(sorted(rows)):
        devices[i] = rows[number][:width]
    return Mesh(devices, ("processes", "devices"))


def _replicated(x: Any, mesh: Any, fun: Any = lambda x: x) -> np.ndarray:
    """The result of `fun` for an array over several processes, as a value on each of them."""
    out = jitting.jit(fun, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)
    return np.asarray(out.addressable_data(0))


def _row_per_process(x: np.ndarray, mesh: Any) -> Any:
    return make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("processes")), x[None])


def _bytes(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return np.frombuffer(x.tobytes(), np.uint8)


def sync_global_devices(name: str) -> None:
    """Wait until every process has called this, and all devices have finished their work.

    Raises:
      AssertionError: the processes pass different names.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> multihost_utils.sync_global_devices("after loading")
    """
    _assert_equal_values(np.frombuffer(name.encode()[:1024].ljust(1024), np.uint8), f"sync_global_devices({name!r})")


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process on every process.

    Args:
      in_tree: a pytree of NumPy arrays, scalars or arrays of this process; with the same shapes and dtypes everywhere.
      is_source: whether the values of this process are used. Default: those of process 0.

    Returns:
      A pytree of NumPy arrays.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> multihost_utils.broadcast_one_to_all(np.arange(3)).tolist()
      [0, 1, 2]
    """
    if clients.process_count() == 1:
        return pytree.tree_map(np.asarray, in_tree)
    mesh = _mesh_of_processes()
    source = clients.process_index() == 0 if is_source is None else is_source

    def value(x):
        x = np.asarray(x)
        sent = _bytes(x) if source else np.zeros(x.nbytes, np.uint8)  # bits, so that the sum is exact
        total = _replicated(_row_per_process(sent, mesh), mesh, lambda rows: lax.reduce_sum(rows, (0,)))
        return np.frombuffer(total.tobytes(), x.dtype).reshape(x.shape)

    return pytree.tree_map(value, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes as NumPy arrays, stacked along a new leading axis (`tiled`: concatenated).

    Arrays that are distributed over several processes are gathered completely.

    Args:
      in_tree: a pytree of arrays, of the same shapes and dtypes on all processes.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> multihost_utils.process_allgather(np.arange(3)).tolist()
      [[0, 1, 2]]
    """
    mesh = _mesh_of_processes()

    def value(x):
        if not getattr(x, "is_fully_addressable", True):
            return np.asarray(x.addressable_data(0)) if x.is_fully_replicated else _replicated(x, x.sharding.mesh)
        x = np.asarray(x)
        if tiled and not x.ndim:
            raise ValueError("process_allgather(tiled=True) concatenates along the first axis; a scalar has none")
        rows = x[None] if clients.process_count() == 1 else _replicated(_row_per_process(x, mesh), mesh)
        return rows.reshape(-1, *x.shape[1:]) if tiled else rows

    return pytree.tree_map(value, in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have the same pytree of arrays. Each process must call it.

    Args:
      in_tree: a pytree of arrays or numbers, of any shapes and dtypes.
      fail_message: the beginning of the message of the error; default: "assert_equal".

    Raises:
      AssertionError: on each process whose values, shapes or dtypes differ from those of process 0.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> multihost_utils.assert_equal({"step": np.int32(3)}, "processes are at different steps")
    """
    leaves = pytree.tree_flatten_with_path(in_tree)[0]
    types = [(pytree.keystr(path), np.shape(x), str(np.asarray(x).dtype)) for path, x in leaves]
    # A broadcast needs equal types on all processes, so their sums are compared before: these have one type.
    sums = [
        hashlib.sha256(repr(types).encode()).digest(),
        hashlib.sha256(b"".join(_bytes(x).tobytes() for _, x in leaves)).digest(),
    ]
    rows = process_allgather(np.frombuffer(b"".join(sums), np.uint8).reshape(2, -1))
    me, what = clients.process_index(), fail_message or "assert_equal"
    if (rows[me, 0] != rows[0, 0]).any():
        raise AssertionError(f"{what}: process {me} has other leaves, shapes or dtypes than process 0: {types}")
    if (rows[:, 0] == rows[0, 0]).all():
        _assert_equal_values(in_tree, what)
    elif (rows[me, 1] != rows[0, 1]).any():
        raise AssertionError(f"{what}: a value of process {me} differs from that of process 0")


def _assert_equal_values(in_tree: Any, what: str) -> None:
    expected = broadcast_one_to_all(in_tree)
    for (path, x), y in zip(pytree.tree_flatten_with_path(in_tree)[0], pytree.tree_leaves(expected), strict=True):
        if _bytes(x).tobytes() != y.tobytes() and not np.array_equal(np.asarray(x), y):
            raise AssertionError(
                f"{what}: the value{pytree.keystr(path)} of process {clients.process_index()} differs from that of process 0"
            )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save and stop at this step, because one of them will be ended (by SIGTERM).

    Raises:
      RuntimeError: no signal is possible: there is one process, or `jax_enable_preemption_service` is off.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> try:
      ...     multihost_utils.reached_preemption_sync_point(0)
      ... except RuntimeError:
      ...     print("there is one process, and no scheduler announces its end")
      ...
      there is one process, and no scheduler announces its end
    """
    manager = distributed.global_state.preemption_sync_manager
    if manager is None:
        raise RuntimeError(
            "there is no run of several processes in which a preemption could be announced: call"
            " jax.distributed.initialize, with jax_enable_preemption_service"
        )
    return bool(manager.reached_sync_point(step_id))


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Context manager: returns those of the devices whose processes live, the same on all of these.

    With the option `jax_enable_recoverability` the death of one process does not end the others.

    Raises:
      ProcessFailureError: (at the end) the process of a returned device has died.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> with multihost_utils.live_devices(jax.devices()) as living:
      ...     print(living == jax.devices())
      ...
      True
    """
    live = _alive(devices)
    yield live
    failed = set(live) - set(_alive(live))
    if failed:
        raise ProcessFailureError(failed)


def _alive(devices: Sequence[Any]) -> list:
    client = distributed.global_state.client
    if client is None:
        return list(devices)
    numbers = client.get_live_nodes(sorted({d.process_index for d in devices}))
    return [d for d in devices if d.process_index in numbers]


def _parts(mesh: Any, spec: Any, ndim: int) -> tuple[int, ...]:
    """The number of parts of each axis."""
    return tuple(mesh.size // n for n in NamedSharding(mesh, spec).shard_shape((mesh.size,) * ndim))


def _shape_here(shape: Sequence[int], mesh: Any, spec: Any) -> tuple[int, ...]:
    """The shape of this process's part of a global array."""
    whole, here = _parts(mesh, spec, len(shape)), _parts(mesh.local_mesh, spec, len(shape))
    return tuple(n // p * q for n, p, q in zip(shape, whole, here, strict=True))


def ltg_abstract_eval(arr: Any, *, global_mesh: Any, pspec: Any) -> ShapedArray:
    """Return the type of the global array that consists of one block per process.

    Args:
      arr: the block of one process, or any object with a shape and a dtype.
      global_mesh: a `Mesh` with the devices of all processes.
      pspec: the `PartitionSpec` of the global array.

    Returns:
      A `ShapedArray`.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("x",))
      >>> P = jax.sharding.PartitionSpec
      >>> multihost_utils.ltg_abstract_eval(jnp.ones((4, 2)), global_mesh=mesh, pspec=P("x"))
      ShapedArray(float32[4,2])
    """
    whole, here = (_parts(mesh, pspec, len(arr.shape)) for mesh in (global_mesh, global_mesh.local_mesh))
    shape = tuple(n // q * p for n, p, q in zip(arr.shape, whole, here, strict=True))
    return ShapedArray(shape, arr.dtype)


def gtl_abstract_eval(arr: Any, *, global_mesh: Any, pspec: Any) -> ShapedArray:
    """Return the type of the block of a global array on one process: the inverse of `ltg_abstract_eval`.

    Args:
      arr: the global array, or any object with a shape and a dtype.
      global_mesh: a `Mesh` with the devices of all processes.
      pspec: the `PartitionSpec` of the global array.

    Returns:
      A `ShapedArray`.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("x",))
      >>> P = jax.sharding.PartitionSpec
      >>> multihost_utils.gtl_abstract_eval(jnp.ones((4, 2)), global_mesh=mesh, pspec=P("x"))
      ShapedArray(float32[4,2])
    """
    return ShapedArray(_shape_here(arr.shape, global_mesh, pspec), arr.dtype)


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """`host_local_array_to_global_array` of one array.

    Args:
      arr: the block of this process, an array or a NumPy array. A global array is returned unchanged.
      global_mesh: a `Mesh` with the devices of all processes.
      pspec: the `PartitionSpec` of the global array.

    Returns:
      The global array.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("x",))
      >>> P = jax.sharding.PartitionSpec
      >>> multihost_utils.host_local_array_to_global_array_impl(np.arange(4.), global_mesh=mesh, pspec=P("x")).sharding.spec
      P('x',)
    """
    if not getattr(arr, "is_fully_addressable", True):
        return arr
    return make_array_from_process_local_data(NamedSharding(global_mesh, pspec), arr)


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Any, pspec: Any) -> Any:
    """`global_array_to_host_local_array` of one array.

    Args:
      arr: an array over all devices of the mesh. An array with another sharding is moved.
      global_mesh: a `Mesh` with the devices of all processes; those of this process must form a block of it.
      pspec: the `PartitionSpec` of the array.

    Returns:
      The block of the array on the devices of this process, an array over ``global_mesh.local_mesh``.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("x",))
      >>> P = jax.sharding.PartitionSpec
      >>> x = jax.device_put(jnp.arange(4.), jax.sharding.NamedSharding(mesh, P("x")))
      >>> multihost_utils.global_array_to_host_local_array_impl(x, global_mesh=mesh, pspec=P("x"))
      Array([0., 1., 2., 3.], dtype=float32)
    """
    whole, here = NamedSharding(global_mesh, pspec), NamedSharding(global_mesh.local_mesh, pspec)
    if not hasattr(arr, "sharding"):
        arr = device_put(arr, whole)
    if not arr.sharding.is_equivalent_to(whole, arr.ndim):
        arr = jitting.jit(lambda x: x, out_shardings=whole)(arr)
    parts = {s.device: s.data for s in arr.addressable_shards}
    shape = _shape_here(arr.shape, global_mesh, pspec)
    return make_array_from_single_device_arrays(shape, here, [parts[d] for d in global_mesh.local_mesh.devices.flat])


def ltg_batcher(
    insert_axis: bool,
    axis_data: Any,
    vals_in: Sequence[Any],
    dims_in: Sequence[int],
    global_mesh: Any,
    pspec: Any,
    prim: Any = None,
) -> tuple[Any, ...]:
    """The batching rule: the mapped axis is split over the mesh axes of ``vmap(spmd_axis_name=...)``, or not split.

    Args:
      insert_axis: whether there are such mesh axes.
      axis_data: the mapped axis.
      vals_in, dims_in: the one operand, and its mapped axis.
      prim: the operation; by default `host_local_array_to_global_array_p`.
      global_mesh: a `Mesh` with the devices of all processes.
      pspec: the `PartitionSpec` of an element of the global batch.
    """
    (x,), (d,) = vals_in, dims_in
    entries = [*tuple(pspec), *[None] * (d - len(tuple(pspec)))]
    entries.insert(d, axis_data.spmd_name if insert_axis else None)
    prim = prim or host_local_array_to_global_array_p
    return prim.bind(x, global_mesh=global_mesh, pspec=PartitionSpec(*entries)), d


def _same(abstract: Callable) -> Callable:
    """Inside a program: the identity, if this process has the whole mesh."""

    def rule(x, **params):
        if abstract(x, **params).shape != x.shape:
            raise NotImplementedError(
                "the arrays of a compiled program are global: call host_local_array_to_global_array on its arguments,"
                " and global_array_to_host_local_array on its results, outside jit"
            )
        return x

    return rule


host_local_array_to_global_array_p: Final = Primitive("host_local_array_to_global_array")
global_array_to_host_local_array_p: Final = Primitive("global_array_to_host_local_array")
_OPERATIONS = (
    (host_local_array_to_global_array_p, host_local_array_to_global_array_impl, ltg_abstract_eval),
    (global_array_to_host_local_array_p, global_array_to_host_local_array_impl, gtl_abstract_eval),
)
for (_prim, _impl, _abstract), (_inverse, *_) in zip(_OPERATIONS, reversed(_OPERATIONS)):
    _prim.abstract(_abstract)
    _prim.def_impl(_impl)
    decompositions.add(_prim, _same(_abstract))
    linear(_prim, lambda ct, x, inverse=_inverse, **params: [inverse.bind(ct, **params)])
    batch_rules.add(
        _prim,
        lambda axis, args, dims, prim=_prim, **params: ltg_batcher(
            axis.spmd_name is not None, axis, args, dims, prim=prim, **params
        ),
    )


def _bind(prim: Any, inputs: Any, mesh: Any, pspecs: Any) -> Any:
    leaves, tree = pytree.tree_flatten(inputs)
    specs = pytree.tree_broadcast_leaves(pspecs, inputs, is_leaf=lambda x: x is None)
    out = [prim.bind(x, global_mesh=mesh, pspec=s or PartitionSpec()) for x, s in zip(leaves, specs, strict=True)]
    return pytree.tree_unflatten(tree, out)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over the mesh with the given blocks on the devices of this process.

    Args:
      local_inputs: a pytree of arrays of this process. Arrays that are distributed over processes already stay
        unchanged.
      global_mesh: a mesh of devices of all processes.
      pspecs: the specs of the global arrays; a pytree prefix of `local_inputs`.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> multihost_utils.host_local_array_to_global_array(np.arange(3), mesh, jax.P("i")).shape
      (3,)
    """
    return _bind(host_local_array_to_global_array_p, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The blocks of arrays on the devices of this process, as arrays over its own part of the mesh.

    Args:
      global_inputs: a pytree of arrays over the mesh.
      global_mesh: a mesh of devices of all processes; those of this one must form a block of it.
      pspecs: the specs of the arrays; a pytree prefix of `global_inputs`.

    Examples:

      >>> from jax.experimental import multihost_utils

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> x = jax.device_put(jnp.arange(3), jax.NamedSharding(mesh, jax.P("i")))
      >>> multihost_utils.global_array_to_host_local_array(x, mesh, jax.P("i"))
      Array([0, 1, 2], dtype=int32)
    """
    return _bind(global_array_to_host_local_array_p, global_inputs, global_mesh, pspecs)
