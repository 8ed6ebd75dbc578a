"""Specifications of TensorStore as data: tests for them, merges, comparison with arrays, merges of databases.

`Future`, `Transaction` (TensorStore's own) and `TS_CONTEXT` (the context of `tensorstore_io`) are loaded at first use.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.processes import tensorstore_io


def __getattr__(name: str) -> Any:
    if name == "TS_CONTEXT":
        return tensorstore_io.context()
    if name in ("Future", "Transaction"):
        import tensorstore

        return getattr(tensorstore, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether a node of a pytree is the specification of one array (a dictionary with a driver or a store), or None.

    Examples:

      >>> from jax.experimental.array_serialization import tensorstore_impl

      >>> tensorstore_impl.is_tensorstore_spec_leaf({"driver": "zarr3"}), tensorstore_impl.is_tensorstore_spec_leaf({"w": {}})
      (True, False)
    """
    return leaf is None or (isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf))


def merge_nested_ts_specs(dict1: dict[Any, Any], dict2: dict[Any, Any] | None) -> dict[Any, Any]:
    """Return a new specification with the entries of both. Nested dictionaries are merged in the same way.

    Args:
      dict1: a TensorStore specification, a nested dictionary.
      dict2: further entries, or None. An entry replaces the one of `dict1` with the same name.

    Examples:

      >>> from jax.experimental.array_serialization import tensorstore_impl

      >>> tensorstore_impl.merge_nested_ts_specs({"driver": "zarr", "kvstore": {"path": "a"}}, {"kvstore": {"path": "b"}})
      {'driver': 'zarr', 'kvstore': {'path': 'b'}}
    """
    merged = dict(dict1)
    for name, value in (dict2 or {}).items():
        below = merged.get(name)
        inner = isinstance(below, dict) and isinstance(value, dict)
        merged[name] = merge_nested_ts_specs(below, value) if inner else value
    return merged


def verify_tensorstore_spec(
    spec: dict[str, Any], arr: Any, path: str | os.PathLike[str], ocdbt: bool, check_metadata: bool = True
) -> None:
    """Raise unless a specification is one for this array under this path.

    Args:
      spec: a result of `get_tensorstore_spec`.
      arr: the array; may be None if `check_metadata` is off.
      path: the path of the array; with `ocdbt`, the folder of the database is sufficient.
      ocdbt: whether it is stored in a database.
      check_metadata: compare shape and dtype, which `spec` must have then.

    Raises:
      ValueError: an entry does not fit; the message names it.

    Examples:

      >>> from jax.experimental.array_serialization import serialization, tensorstore_impl

      >>> x = jnp.ones((2, 3))
      >>> spec = serialization.get_tensorstore_spec("/data/x", arr=x)
      >>> tensorstore_impl.verify_tensorstore_spec(spec, x, "/data/x", ocdbt=False)
      >>> try:
      ...     tensorstore_impl.verify_tensorstore_spec(spec, x, "/data/y", ocdbt=False)
      ... except ValueError as error:
      ...     print("/data/y" in str(error))
      ...
      True
    """
    store = spec.get("kvstore", {})
    if ocdbt != (store.get("driver") == "ocdbt"):
        raise ValueError(f"verify_tensorstore_spec(ocdbt={ocdbt}): the store is {store}")
    folder = store.get("base", "") if ocdbt else ""
    folder = folder if isinstance(folder, str) else folder.get("path", "")
    places = {os.path.join(folder.removeprefix("file://"), store.get("path", "")).rstrip("/")}
    places |= {folder.removeprefix("file://").rstrip("/")} if ocdbt else set()
    given = os.fspath(path).rstrip("/")
    if not any(place and given.endswith(place) for place in places):
        raise ValueError(f"the specification is for {sorted(places)}, not for the path {given!r}")
    if not check_metadata:
        return
    metadata = spec.get("metadata", {})
    dtype = metadata.get("data_type", metadata.get("dtype", spec.get("dtype")))
    if arr is None or "shape" not in metadata or dtype is None:
        raise ValueError(
            "verify_tensorstore_spec needs an array, and a specification with metadata (get_tensorstore_spec(arr=...)), or"
            f" check_metadata=False; got {type(arr).__name__} and {metadata}"
        )
    if tuple(metadata["shape"]) != tuple(arr.shape) or np.dtype(dtype) != np.dtype(arr.dtype):
        raise ValueError(
            f"the specification is of {dtype}{list(metadata['shape'])}, the array is {arr.dtype}{list(arr.shape)}"
        )


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """The number of bytes in memory during the read of a part of a stored array: all chunks that overlap the part.

    Args:
      t: an open `tensorstore.TensorStore`.
      domain: the part, an `IndexDomain` of the same rank.

    Examples:

      >>> from jax.experimental.array_serialization import tensorstore_impl

      >>> import tensorstore
      >>> store = tensorstore.open(
      ...     {"driver": "zarr", "kvstore": "memory://"}, create=True, dtype=tensorstore.float32, shape=[10],
      ...     chunk_layout=tensorstore.ChunkLayout(chunk_shape=[4])).result()
      >>> tensorstore_impl.estimate_read_memory_footprint(store, tensorstore.IndexDomain(inclusive_min=[3], shape=[2]))
      32
    """
    shape = t.chunk_layout.read_chunk.shape or (1,) * t.rank
    origin = t.chunk_layout.grid_origin or (0,) * t.rank
    bounds = zip(domain.inclusive_min, domain.exclusive_max, shape, origin, strict=True)
    counts = [-(-(stop - o) // n) - (start - o) // n if stop > start else 0 for start, stop, n, o in bounds]
    return math.prod(counts) * math.prod(shape) * t.dtype.numpy_dtype.itemsize


async def combine_kvstores(
    combined_kvstore: dict[str, Any], kvstores: list[dict[str, Any]], context: Any = None
) -> None:
    """Copy the contents of several stores into one: a coroutine. Only one process may do so at a time.

    Args:
      combined_kvstore: the specification of the target store.
      kvstores: the specifications of the source stores.
      context: a context of TensorStore. Default: `TS_CONTEXT`.

    Examples:

      >>> import asyncio
      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization, tensorstore_impl

      >>> import tensorstore
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     parts = [{"driver": "ocdbt", "base": f"file://{folder}/{i}/"} for i in range(2)]
      ...     for i, part in enumerate(parts):
      ...         _ = tensorstore.KvStore.open(part).result().write(f"key{i}", b"value").result()
      ...     whole = {"driver": "ocdbt", "base": f"file://{folder}/whole/"}
      ...     asyncio.run(tensorstore_impl.combine_kvstores(whole, parts))
      ...     print(tensorstore.KvStore.open(whole).result().list().result())
      ...
      [b'key0', b'key1']
    """
    import tensorstore

    context = context or tensorstore_io.context()
    opened: Sequence[Any] = await asyncio.gather(
        *[tensorstore.KvStore.open(spec, context=context) for spec in (combined_kvstore, *kvstores)]
    )
    target, *sources = opened
    transaction = tensorstore.Transaction(atomic=False)
    for source in sources:  # in turn: concurrent copies into one transaction lose about 1 of 4,000 values
        await _copied(source, target.with_transaction(transaction))
    await transaction.commit_async()


async def _copied(source: Any, target: Any) -> None:
    try:
        await source.experimental_copy_range_to(target)  # refers to the files of a database inside the other one
    except NotImplementedError:
        for key in await source.list():
            await target.write(key, (await source.read(key)).value)


__all__ = [  # noqa: F822
    "TS_CONTEXT",
    "Future",
    "Transaction",
    "combine_kvstores",
    "estimate_read_memory_footprint",
    "is_tensorstore_spec_leaf",
    "merge_nested_ts_specs",
    "verify_tensorstore_spec",
]
