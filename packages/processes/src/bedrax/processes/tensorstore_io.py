"""Arrays, with the parts of each process, written and read by TensorStore.

A specification (a dictionary) has the place and the format of an array; see TensorStore's documentation.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.xla_backend import clients
from bedrax.xla_backend.placement import device_put, make_array_from_single_device_arrays
from bedrax.xla_backend.sharding import SingleDeviceSharding

_REMOTE = {"gs": "gcs", "s3": "s3"}
_GB = 10**9


@functools.cache
def context() -> Any:
    """The default TensorStore context of reads and writes: up to 128 of each in parallel."""
    import tensorstore

    return tensorstore.Context({"file_io_concurrency": {"limit": 128}})


_default_context = context  # where a parameter has the name


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """The specification of an array under a path.

    Args:
      ckpt_path: an absolute path, or a URL that begins with ``gs://`` or ``s3://``.
      ocdbt: store it in a database with other arrays, in the parent folder of `ckpt_path`.
      process_idx: with `ocdbt`, the process that writes, to its own folder, until all are merged.
      arr: the array; the format gets its shape, dtype and parts.
      driver: the format, ``"zarr"`` or ``"zarr3"``.

    Raises:
      ValueError: the path is not absolute.

    Examples:

      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> spec = serialization.get_tensorstore_spec("/data/run/w", driver="zarr3")
      >>> spec["driver"], "/data/run/w" in str(spec["kvstore"])
      ('zarr3', True)
    """
    path = re.sub(r"(?<!:)/+$", "", os.fspath(ckpt_path))
    remote = re.match(r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[^/]+)/?(?P<path>.*)$", path)
    if remote is None and not os.path.isabs(path):
        raise ValueError(f"checkpoints are kept under absolute paths, or gs:// or s3:// URLs, got {path!r}")
    spec: dict[str, Any] = {"driver": driver}
    if ocdbt:
        folder, _, name = path.rpartition("/")
        writer = f"/ocdbt.process_{process_idx}" if process_idx is not None else ""
        base = f"{folder}{writer}" if remote else f"file://{folder}{writer}"
        spec["kvstore"] = {"driver": "ocdbt", "base": base, "path": name}
    elif remote is not None:
        kind = _REMOTE.get(remote["scheme"])
        if kind is None:
            raise ValueError(f"only gs:// and s3:// URLs are supported, got {path!r}")
        spec["kvstore"] = {"driver": kind, "bucket": remote["bucket"], "path": remote["path"]}
    else:
        spec["kvstore"] = {"driver": "file", "path": path}
    if arr is not None:
        spec["dtype"] = np.dtype(arr.dtype).name
        spec["metadata"] = _metadata(driver, arr)
    return spec


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a specification, or a path, is in cloud storage.

    Examples:

      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> serialization.is_remote_storage("gs://bucket/run"), serialization.is_remote_storage("/data/run")
      (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(("gs://", "s3://"))
    if not isinstance(tspec, dict):
        return False
    return tspec.get("driver") in _REMOTE.values() or any(
        is_remote_storage(tspec[name]) for name in ("base", "kvstore") if name in tspec
    )


def _metadata(driver: str, x: Any) -> dict[str, Any]:
    """Shape and chunks. A chunk is the part of one device, so processes never write to the same one."""
    part = [max(1, n) for n in (x.sharding.shard_shape(x.shape) if hasattr(x, "sharding") else x.shape)]
    if driver == "zarr3":
        return {"shape": list(x.shape), "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": part}}}
    return {"shape": list(x.shape), "chunks": part}


async def async_serialize(
    arr_inp: Any,
    tensorstore_spec: Any,
    commit_future: list[Any] | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> None:
    """Write the parts of an array on this process.

    Args:
      arr_inp: the array.
      tensorstore_spec: place and format; see `get_tensorstore_spec`. Shape, chunks and dtype are those of the array.
      commit_future: if given, pending writes are added to it, and this returns after the data is copied.
      context: a context of TensorStore.
      chunk_layout: a layout of TensorStore, instead of chunks that are the parts on devices.
      primary_host: the process that creates the files. Default: each process tries.
      replica_id: the copy of a part that is written.
      transaction: the transaction of TensorStore for the writes.

    Examples:

      >>> import asyncio
      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     spec = serialization.get_tensorstore_spec(folder + "/x")
      ...     asyncio.run(serialization.async_serialize(x, spec))
      ...     print(serialization.run_deserialization([x.sharding], [spec])[0])
      ...
      [0. 1. 2. 3.]
    """
    import tensorstore

    spec = tensorstore_spec if isinstance(tensorstore_spec, dict) else tensorstore_spec.to_json()
    spec = {**spec, "dtype": np.dtype(arr_inp.dtype).name}
    if chunk_layout is None:
        spec.setdefault("metadata", _metadata(spec["driver"], arr_inp))
    options = dict(
        context=context or _default_context(), transaction=transaction, shape=arr_inp.shape, chunk_layout=chunk_layout
    )
    options = {name: value for name, value in options.items() if value is not None}
    creates = primary_host is None or clients.process_index() == primary_host
    array = await tensorstore.open(tensorstore.Spec(spec), open=True, create=creates, **options)

    async def write(shard):
        done = array[shard.index].write(np.asarray(shard.data))
        if commit_future is None:
            await done
        else:
            await done.copy
            commit_future.append(done.commit)

    await asyncio.gather(*[write(s) for s in arr_inp.addressable_shards if s.replica_id == replica_id])


class _LimitInFlightBytes:
    """Delays reads so that the current ones stay within a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = self.free = limit
        self.changed = asyncio.Condition()

    async def wait_for_bytes(self, count: int) -> None:
        """Wait until this number of bytes may be read; more than the limit are read alone."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.free >= min(count, self.limit))
            self.free -= min(count, self.limit)

    async def release_bytes(self, count: int) -> None:
        """Mark these bytes as read."""
        async with self.changed:
            self.free += min(count, self.limit)
            self.changed.notify_all()


async def async_deserialize(
    in_type: Any,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: _LimitInFlightBytes | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> Any:
    """Read the parts of an array for the devices of this process.

    Args:
      in_type: a sharding, a `Format`, or a `ShapeDtypeStruct` with one (and with shape and dtype).
      tensorstore_spec: its place.
      global_shape: the shape of the result; elements outside of the stored array are 0.
      dtype: the dtype of the result. Default: that of the stored array.
      byte_limiter: limits the bytes of parallel reads.
      context, chunk_layout: of TensorStore.
      assume_metadata: use the shape and chunks of the specification, without reading them.

    Examples:

      >>> import asyncio
      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     spec = serialization.get_tensorstore_spec(folder + "/x")
      ...     serialization.run_serialization([x], [spec])
      ...     print(asyncio.run(serialization.async_deserialize(x.sharding, spec, dtype="int32")))
      ...
      [0 1 2 3]
    """
    import tensorstore

    if hasattr(in_type, "shape") and hasattr(in_type, "dtype"):
        global_shape = in_type.shape if global_shape is None else global_shape
        dtype = in_type.dtype if dtype is None else dtype
        in_type = in_type.sharding
    sharding = getattr(in_type, "sharding", in_type)
    if not hasattr(sharding, "addressable_devices_indices_map"):
        raise ValueError(f"async_deserialize needs the sharding of the result, got {in_type!r}")
    options = {"chunk_layout": chunk_layout} if chunk_layout is not None else {}
    array = await tensorstore.open(
        tensorstore.Spec(tensorstore_spec) if isinstance(tensorstore_spec, dict) else tensorstore_spec,
        open=True,
        assume_metadata=assume_metadata,
        context=context or _default_context(),
        **options,
    )
    shape = tuple(array.shape if global_shape is None else global_shape)
    kept = dtypes.canonicalize_dtype(np.dtype(array.dtype.numpy_dtype if dtype is None else dtype))

    async def read(index):
        inside = [slice(*s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)]
        part = np.zeros([s.stop - s.start for s in inside], array.dtype.numpy_dtype)
        known = tuple(slice(s.start, max(s.start, min(s.stop, n))) for s, n in zip(inside, array.shape, strict=True))
        if byte_limiter is not None:
            await byte_limiter.wait_for_bytes(part.nbytes)
        try:
            part[tuple(slice(0, s.stop - s.start) for s in known)] = await array[known].read()
        finally:  # after an error, too: other reads wait for these bytes
            if byte_limiter is not None:
                await byte_limiter.release_bytes(part.nbytes)
        return part.astype(kept)

    places = sharding.addressable_devices_indices_map(shape)
    once = {tuple((s.start, s.stop) for s in index): index for index in places.values()}
    values = dict(zip(once, await asyncio.gather(*map(read, once.values())), strict=True))
    parts = [
        device_put(values[tuple((s.start, s.stop) for s in index)], SingleDeviceSharding(device))
        for device, index in places.items()
    ]
    out = make_array_from_single_device_arrays(shape, sharding, parts, dtype=kept)
    return out if in_type is sharding else device_put(out, in_type)


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays to files, and wait until all are written.

    Args:
      arrays: the arrays. Each process writes the parts on its own devices.
      tensorstore_specs: a TensorStore specification per array, such as `get_tensorstore_spec` returns.

    Raises:
      ValueError: the numbers of arrays and specifications differ.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     spec = serialization.get_tensorstore_spec(folder + "/x")
      ...     serialization.run_serialization([x], [spec])
      ...     print(serialization.run_deserialization([x.sharding], [spec]))
      ...
      [Array([0., 1., 2., 3.], dtype=float32)]
    """

    if len(arrays) != len(tensorstore_specs):
        raise ValueError(
            f"run_serialization: there is one specification per array, got {len(arrays)} arrays and"
            f" {len(tensorstore_specs)} specifications"
        )

    async def write_all():
        await asyncio.gather(*map(async_serialize, arrays, tensorstore_specs))

    asyncio.run(write_all())


def run_deserialization(
    shardings: Sequence[Any],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Any]:
    """Read arrays.

    Args:
      shardings, tensorstore_specs, global_shapes, dtypes: one for each array; see `async_deserialize`.
      concurrent_gb: the number of 10^9 bytes of parallel reads.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     spec = serialization.get_tensorstore_spec(folder + "/x")
      ...     serialization.run_serialization([x], [spec])
      ...     print(serialization.run_deserialization([x.sharding], [spec], global_shapes=[(6,)]))  # filled up with 0
      ...
      [Array([0., 1., 2., 3., 0., 0.], dtype=float32)]
    """
    nothing = [None] * len(shardings)

    async def read_all():
        limiter = _LimitInFlightBytes(concurrent_gb * _GB)
        reads = [
            async_deserialize(sharding, spec, shape, dtype, limiter)
            for sharding, spec, shape, dtype in zip(
                shardings, tensorstore_specs, global_shapes or nothing, dtypes or nothing, strict=True
            )
        ]
        return await asyncio.gather(*reads)

    return asyncio.run(read_all())
