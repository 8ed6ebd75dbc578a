"""Pytrees of arrays in a folder: the structure as text, the arrays with TensorStore.

The folder has ``pytreedef.json`` (the structure, in the form of exported programs) and ``arrays``, with a folder per
leaf.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import json
import os
import pathlib
import shutil
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.processes import multihost, tensorstore_io, tensorstore_specs
from bedrax.xla_backend import clients
from bedrax.xla_backend.export_words import read_tree, register_pytree_node_serialization, write_tree
from bedrax.xla_backend.placement import device_put

_STRUCTURE, _ARRAYS = "pytreedef.json", "arrays"
_THREAD = "bedrax-checkpoints"
_background = concurrent.futures.ThreadPoolExecutor(1, _THREAD)


def serialize_pytreedef(node: Any) -> dict[str, Any]:
    """A structure as a dictionary of data, for `deserialize_pytreedef`.

    Examples:

      >>> from jax.experimental.array_serialization import pytree_serialization_utils as utils

      >>> written = utils.serialize_pytreedef(jax.tree.structure({"a": 1, "b": (2, None)}))
      >>> utils.deserialize_pytreedef(written)
      PyTreeDef({'a': *, 'b': (*, None)})
    """
    return {"version": 1, "tree": write_tree(node)}


def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> Any:
    """The structure from the result of `serialize_pytreedef`.

    Raises:
      ValueError: it has another version, or a node of a class that is not registered here.

    Examples:

      >>> from jax.experimental.array_serialization import pytree_serialization_utils as utils

      >>> utils.deserialize_pytreedef(utils.serialize_pytreedef(jax.tree.structure([1, {"x": 2}])))
      PyTreeDef([*, {'x': *}])
    """
    if pytreedef_repr.get("version") != 1:
        raise ValueError(f"a saved structure of version 1 is expected, got {pytreedef_repr.get('version')!r}")
    return read_tree(pytreedef_repr["tree"])


def _specs(directory: pathlib.Path, count: int, given: Any) -> list:
    own = [
        tensorstore_io.get_tensorstore_spec(directory.absolute() / _ARRAYS / str(i), driver="zarr3")
        for i in range(count)
    ]
    if given is None:
        return own
    leaves = pytree.tree_leaves(given, is_leaf=tensorstore_specs.is_tensorstore_spec_leaf)
    if len(leaves) != count:
        raise ValueError(f"ts_specs has {len(leaves)} specifications for {count} arrays")
    for x in leaves:
        if not tensorstore_specs.is_tensorstore_spec_leaf(x):
            raise ValueError(
                f"ts_specs has a dictionary with 'driver' or 'kvstore', or None, for each array; got the leaf {x!r}"
            )
    return [mine if theirs is None else {**mine, **theirs} for mine, theirs in zip(own, leaves, strict=True)]


def save(data: Any, directory: str | os.PathLike[str], *, overwrite: bool = True, ts_specs: Any = None) -> None:
    """Save a pytree of arrays, with all processes, and wait for the end of the write.

    Args:
      data: a pytree of arrays; its nodes must be of the standard types, or registered for serialization
        (`register_pytree_node_serialization`).
      directory: a folder, local to process 0's host or shared.
      overwrite: replace existing files; otherwise these are an error.
      ts_specs: per array, None or further entries of its TensorStore specification, with ``"driver"`` or
        ``"kvstore"`` among them.

    Raises:
      FileExistsError: the folder is not empty and must not be overwritten.
      TypeError: a leaf is not an array, or is an array of keys.
      OverflowError: a leaf is a Python integer that does not fit into the default integer type.
      ValueError: `ts_specs` does not fit. The files of the last save are kept.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import pytree_serialization
      >>> tree = {"w": jnp.arange(4.), "step": jnp.array(3)}
      >>> where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     pytree_serialization.save(tree, folder)
      ...     try:
      ...         pytree_serialization.save(tree, folder, overwrite=False)
      ...     except FileExistsError:
      ...         print("it is there already")
      ...
      it is there already
    """
    nonblocking_save(data, directory, overwrite=overwrite, ts_specs=ts_specs).result()


def nonblocking_save(
    data: Any, directory: str | os.PathLike[str], *, overwrite: bool = True, ts_specs: Any = None
) -> concurrent.futures.Future[Any]:
    """Save a pytree of arrays in the background.

    Args:
      data: a pytree of arrays, as in `save`. Its values are copied before this function returns, after the end of
        earlier saves. The caller may then write to the arrays of NumPy among them, and donate the others.
      directory, overwrite, ts_specs: as in `save`.

    Returns:
      A future. Its result is None. An error of the write is raised by ``result()``.

    Raises:
      FileExistsError: the folder is not empty and must not be overwritten.
      TypeError: a leaf is not an array, or is an array of keys.
      OverflowError: a leaf is a Python integer that does not fit into the default integer type.
      ValueError: `ts_specs` does not fit. The files of the last save are kept.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import pytree_serialization
      >>> tree = {"w": jnp.arange(4.), "step": jnp.array(3)}
      >>> where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     done = pytree_serialization.nonblocking_save(tree, folder)  # the program goes on
      ...     print(done.result(), pytree_serialization.load(folder, where)["step"])
      ...
      None 3
    """
    import tensorstore

    leaves, tree = pytree.tree_flatten(data)
    for path, x in pytree.tree_flatten_with_path(data)[0]:
        if not isinstance(x, Array | np.ndarray | np.generic | int | float | complex):
            raise TypeError(f"save: the leaf data{pytree.keystr(path)} is not an array, but {x!r} of type {type(x)}")
        if dtypes.is_extended(dtype := getattr(x, "dtype", None)):
            raise TypeError(
                f"save: the leaf data{pytree.keystr(path)} has the dtype {dtype}, which has no format on disk; save"
                " jax.random.key_data(keys), and make keys of it with jax.random.wrap_key_data"
            )
    structure = json.dumps(serialize_pytreedef(tree))
    folder = pathlib.Path(directory)
    arrays = [x if hasattr(x, "addressable_shards") else _array(x) for x in leaves]
    specs = _specs(folder, len(arrays), ts_specs)
    for spec in specs:
        tensorstore.Spec(spec)  # an error for a wrong entry, before the files of the last save are removed
    problem = _made(folder, structure, overwrite) if clients.process_index() == 0 else None
    # All processes raise an error together: otherwise the others would wait for process 0.
    if not multihost.broadcast_one_to_all(np.int32(problem is None)):
        raise problem or OSError(f"save: process 0 could not make the folder {folder}; its error has the reason")
    copied = threading.Event()
    future = _submitted(_write, arrays, specs, copied)
    copied.wait()
    return future


def _submitted(work: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
    """The future of work in the background. A callback of a future runs there: its own work is done immediately, because
    the thread would wait for itself."""
    if not threading.current_thread().name.startswith(_THREAD):
        return _background.submit(work, *args)
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    try:
        future.set_result(work(*args))
    except Exception as error:
        future.set_exception(error)
    return future


def _array(x: Any) -> Any:
    """A leaf as an array on the default device.

    Raises:
      OverflowError: a Python integer has too many bits.
    """
    return device_put(x if dtypes.is_python_scalar(x) else np.asarray(x))


def _write(arrays: list[Any], specs: list[Any], copied: threading.Event) -> None:
    """Write arrays. `copied` is set when their values are copied, or cannot be."""
    commits: list[list[Any]] = [[] for _ in arrays]

    async def copy_all():
        writes = zip(arrays, specs, commits, strict=True)
        await asyncio.gather(*[tensorstore_io.async_serialize(x, spec, commit) for x, spec, commit in writes])

    try:
        asyncio.run(copy_all())
    finally:
        copied.set()
    for commit in itertools.chain.from_iterable(commits):
        commit.result()


def _made(folder: pathlib.Path, structure: str, overwrite: bool) -> OSError | None:
    """Make the folder. Returns the error, if there is one."""
    try:
        if folder.exists() and any(folder.iterdir()):
            if not overwrite:
                return FileExistsError(f"save: {folder} is not empty; overwrite=True replaces its files")
            shutil.rmtree(folder / _ARRAYS, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _STRUCTURE).write_text(structure, encoding="utf-8")
    except OSError as error:
        return error
    return None


def load_pytreedef(directory: str | os.PathLike[str]) -> Any:
    """The pytree in a folder, with ShapeDtypeStructs instead of its arrays.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import pytree_serialization
      >>> tree = {"w": jnp.arange(4.), "step": jnp.array(3)}
      >>> where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     pytree_serialization.save(tree, folder)
      ...     print(pytree_serialization.load_pytreedef(folder)["w"].shape)
      ...
      (4,)
    """
    import tensorstore

    tree = deserialize_pytreedef(json.loads((pathlib.Path(directory) / _STRUCTURE).read_text(encoding="utf-8")))
    kept = [
        tensorstore.open(spec, open=True).result() for spec in _specs(pathlib.Path(directory), tree.num_leaves, None)
    ]
    return pytree.tree_unflatten(tree, [ShapeDtypeStruct(tuple(x.shape), x.dtype.numpy_dtype) for x in kept])


def load(directory: str | os.PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """Load the result of `save`.

    Args:
      directory: the folder.
      shardings: a pytree prefix of the saved tree with the shardings, `Format`s or ShapeDtypeStructs of the results.
      mask: a pytree prefix of bools; leaves with False are not read, and are None in the result.
      ts_specs: as for `save`.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import pytree_serialization
      >>> tree = {"w": jnp.arange(4.), "step": jnp.array(3)}
      >>> where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     pytree_serialization.save(tree, folder)
      ...     print(pytree_serialization.load(folder, where)["w"])
      ...     print(pytree_serialization.load(folder, where, mask={"w": False, "step": True}))
      ...
      [0. 1. 2. 3.]
      {'step': Array(3, dtype=int32), 'w': None}
    """
    return nonblocking_load(directory, shardings, mask=mask, ts_specs=ts_specs).result()


def nonblocking_load(
    directory: str | os.PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> concurrent.futures.Future[Any]:
    """Load the result of `save` in the background.

    Args:
      directory, shardings, mask, ts_specs: as in `load`.

    Returns:
      A future. Its result is the loaded pytree. An error of the read is raised by ``result()``.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import pytree_serialization
      >>> tree = {"w": jnp.arange(4.), "step": jnp.array(3)}
      >>> where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

      >>> with tempfile.TemporaryDirectory() as folder:
      ...     pytree_serialization.save(tree, folder)
      ...     loading = pytree_serialization.nonblocking_load(folder, where)
      ...     print(loading.result()["step"])
      ...
      3
    """
    folder = pathlib.Path(directory)
    tree = deserialize_pytreedef(json.loads((folder / _STRUCTURE).read_text(encoding="utf-8")))
    whole = pytree.skeleton(tree)
    places = pytree.tree_broadcast_leaves(shardings, whole)
    wanted = [True] * tree.num_leaves if mask is None else pytree.tree_broadcast_leaves(mask, whole)
    specs = _specs(folder, tree.num_leaves, ts_specs)

    def read():
        chosen = [i for i, w in enumerate(wanted) if w]
        values = tensorstore_io.run_deserialization([places[i] for i in chosen], [specs[i] for i in chosen])
        found: list[Any] = [None] * tree.num_leaves
        for i, value in zip(chosen, values, strict=True):
            found[i] = value
        return pytree.tree_unflatten(tree, found)

    return _submitted(read)


__all__ = [
    "deserialize_pytreedef",
    "load",
    "load_pytreedef",
    "nonblocking_load",
    "nonblocking_save",
    "register_pytree_node_serialization",
    "save",
    "serialize_pytreedef",
]
