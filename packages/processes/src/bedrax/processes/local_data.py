"""Arrays over several processes, each with the data of its own devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import dtypes
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.xla_backend.placement import make_array_from_callback
from bedrax.xla_backend.sharding import resolve


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """An array over all processes from the data of each process.

    Args:
      sharding: the sharding of the whole array; or a pytree of them, like `local_data`.
      local_data: an array, or a pytree of arrays. Along a dimension that the sharding splits between processes, it
        has the parts of this process's devices, in their order, or all parts; along the others, all.
      global_shape: the shape of the whole array, with None for dimensions that follow from `sharding` and `local_data`.
        Default: all follow, and data along split dimensions is the part of this process. Or a pytree of shapes, like
        `local_data`.

    Returns:
      An array of the global shape; or a pytree of them.

    Raises:
      ValueError: the data fits neither the whole array nor the part of this process; the parts of this process are no
        block.

    Examples:

      >>> where = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
      >>> jax.make_array_from_process_local_data(where, np.arange(4))
      Array([0, 1, 2, 3], dtype=int32)
    """
    leaves, tree = pytree.tree_flatten(local_data)
    shardings = pytree.tree_broadcast_leaves(sharding, local_data)
    if pytree.treedef_is_leaf(tree) or global_shape is None or _is_shape(global_shape):
        shapes = [global_shape] * len(leaves)
    else:
        shapes = pytree.tree_leaves(global_shape, is_leaf=lambda s: s is None or _is_shape(s))
    arrays = [_from_local(s, np.asarray(x), shape) for s, x, shape in zip(shardings, leaves, shapes, strict=True)]
    return pytree.tree_unflatten(tree, arrays)


def _is_shape(x: Any) -> bool:
    return isinstance(x, Sequence) and all(n is None or isinstance(n, int | np.integer) for n in x)


def _from_local(sharding: Any, local: np.ndarray, shape: Sequence[int | None] | None) -> Any:
    what = "sharding of make_array_from_process_local_data"
    sharding = resolve(sharding, what)
    resolve(sharding, what, ShapeDtypeStruct((sharding.num_devices,) * local.ndim, local.dtype))  # checks its rank
    tiles, mine = _tiles(sharding, local.ndim)
    given = (None,) * local.ndim if shape is None else tuple(shape)
    if len(given) != local.ndim:
        raise ValueError(f"global_shape {given} has another rank than the data of this process, of shape {local.shape}")
    found = [local.shape[d] * tiles[d] // len(mine[d]) if n is None else int(n) for d, n in enumerate(given)]
    resolve(sharding, what, ShapeDtypeStruct(found, local.dtype))
    starts = []  # the start of this process's data, per dimension and tile
    for d, (n, whole) in enumerate(zip(local.shape, found, strict=True)):
        if whole % tiles[d]:  # for shardings other than NamedSharding
            raise ValueError(f"dimension {d} of global_shape {tuple(found)} does not split in {tiles[d]} equal parts")
        size = whole // tiles[d]
        if n == whole:
            starts.append({tile: tile * size for tile in mine[d]})
        elif n == size * len(mine[d]):
            starts.append({tile: i * size for i, tile in enumerate(mine[d])})
        else:
            raise ValueError(
                f"dimension {d} of the data of this process has {n} elements; the whole array of shape {tuple(found)} has"
                f" {whole} and the devices of this process hold {size * len(mine[d])}"
            )

    def part(index):
        where = []
        for d, s in enumerate(index):
            first, last, _ = s.indices(found[d])
            start = starts[d][first * tiles[d] // found[d] if found[d] else 0]
            where.append(slice(start, start + last - first))
        return local[tuple(where)]

    return make_array_from_callback(tuple(found), sharding, part, dtypes.canonicalize_dtype(local.dtype))


def _tiles(sharding: Any, rank: int) -> tuple[list[int], list[list[int]]]:
    """The number of parts of each dimension, and the parts on this process's devices."""
    n = sharding.num_devices  # a length that every number of parts divides
    tiles = [n // size for size in sharding.shard_shape((n,) * rank)]
    held = [
        tuple(s.start or 0 for s in index) for index in sharding.addressable_devices_indices_map(tuple(tiles)).values()
    ]
    mine = [sorted({tile[d] for tile in held}) for d in range(rank)]
    if set(product(*mine)) != set(held):
        raise ValueError(f"the devices of this process hold no block of an array sharded by {sharding}")
    return tiles, mine
