"""Arrays of devices for meshes, in an order that suits the connections of the devices."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import executors

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

device_kind_handler_dict: dict[Any, Any] = {}
"""``device_kind -> function(mesh_shape, devices, **options) -> array of devices or None``: orders that users know better."""


def _array(devices: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    found = np.empty(len(devices), object)
    found[:] = list(devices)
    return found.reshape(tuple(shape))


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The devices as an array for a `Mesh`. For devices with coordinates, each axis follows physical axes.

    The last axis gets its physical axes first. On small slices of TPU v5e, v5p, v6e and v7x, the devices are in the order
    of a ring, so that each is a neighbour of the next.

    Args:
      mesh_shape: the shape of the array; axes with more communication come last.
      devices: the devices. Default: those of the default platform.
      contiguous_submeshes: the devices of each process are a block of the array.
      allow_split_physical_axes: if no physical axes have these sizes, use the devices in their order.

    Raises:
      ValueError: the shape has another number of devices; or `contiguous_submeshes`, and processes have different
        numbers of devices.
      NotImplementedError: no physical axes have these sizes.

    Examples:

      >>> from jax.experimental import mesh_utils

      >>> mesh_utils.create_device_mesh((1, 1), jax.devices()[:1]).shape
      (1, 1)
    """
    devices = executors.get().devices() if devices is None else list(np.asarray(devices, object).flat)
    if math.prod(mesh_shape) != len(devices):
        raise ValueError(
            f"create_device_mesh: a mesh of shape {tuple(mesh_shape)} has {math.prod(mesh_shape)} devices, got"
            f" {len(devices)}; change the shape, or pass as many in devices="
        )
    handler = device_kind_handler_dict.get(devices[0].device_kind)
    if handler is not None:
        found = handler(mesh_shape, devices, contiguous_submeshes=contiguous_submeshes)
        if found is not None:
            return found
    if contiguous_submeshes:
        return _in_blocks_of_processes(tuple(mesh_shape), devices, allow_split_physical_axes)
    return _ordered(tuple(mesh_shape), devices, allow_split_physical_axes)


def _ordered(shape: tuple[int, ...], devices: list, may_split: bool) -> np.ndarray:
    if getattr(devices[0], "coords", None) is None:
        return _array(devices, shape)
    return _along_physical_axes(shape, devices, may_split)


def _in_blocks_of_processes(shape: tuple[int, ...], devices: list, may_split: bool) -> np.ndarray:
    """An array in which the devices of each process are a block: the usual order if it has such blocks."""
    groups: dict[int, list[Any]] = {}
    for d in devices:
        groups.setdefault(getattr(d, "process_index", 0), []).append(d)
    (size, *others) = {len(group) for group in groups.values()}
    if others:
        counts = {index: len(group) for index, group in sorted(groups.items())}
        raise ValueError(
            f"create_device_mesh(contiguous_submeshes=True): the devices of each process are to be a block of a mesh of shape"
            f" {shape}, and processes have different numbers of devices, {counts}; pass devices= with as many of each, or"
            " contiguous_submeshes=False"
        )
    with contextlib.suppress(NotImplementedError):
        whole = _ordered(shape, devices, may_split)
        if all(_is_block(whole, group) for group in groups.values()):
            return whole
    # A block is as long as possible along the last axes, which have the most communication.
    block, left = [], size
    for n in reversed(shape):
        block.insert(0, math.gcd(n, left))
        left //= block[0]
    outer = tuple([n // b for n, b in zip(shape, block, strict=True)])
    return _joined(tuple(block), outer, [_ordered(tuple(block), groups[k], True) for k in sorted(groups)])


def _is_block(whole: np.ndarray, group: list) -> bool:
    chosen = set(map(id, group))
    places = [place for place, d in np.ndenumerate(whole) if id(d) in chosen]
    return math.prod(np.ptp(places, axis=0) + 1) == len(group)


def _joined(block: tuple[int, ...], outer: tuple[int, ...], blocks: list[np.ndarray]) -> np.ndarray:
    """An array of blocks, along each axis as many as `outer` has."""
    whole = np.stack(blocks).reshape(*outer, *block)
    n = len(block)
    whole = whole.transpose([a for i in range(n) for a in (i, n + i)])
    return whole.reshape([a * b for a, b in zip(outer, block, strict=True)])


def _along_physical_axes(shape: tuple[int, ...], devices: list, may_split: bool) -> np.ndarray:
    where = [(*d.coords, getattr(d, "core_on_chip", 0)) for d in devices]
    low, high = np.min(where, 0), np.max(where, 0)
    grid = np.empty(tuple(high - low + 1), object)
    for place, d in zip(where, devices, strict=True):
        grid[tuple(np.subtract(place, low))] = d
    if grid.size == len(devices):
        rings = _in_rings(shape, grid, devices[0].device_kind)
        if rings is not None:
            return rings
        groups = _grouped(shape, grid.shape)
        if groups is not None:
            return grid.transpose([a for g in groups for a in g]).reshape(shape)
    if may_split:
        return _array([d for _, d in sorted(zip(where, devices, strict=True), key=lambda p: p[0])], shape)
    raise NotImplementedError(
        f"create_device_mesh: no axes of the {'x'.join(map(str, grid.shape))} devices have the sizes of {shape}; pass"
        " allow_split_physical_axes=True to take them in their order"
    )


# The most chips of a slice whose order is a ring: for every mesh, and for a mesh with one axis of several devices.
_RINGS: dict[str, tuple[int, int]] = {
    "TPU v2": (4, 4),
    "TPU v3": (4, 4),
    "TPU v5 lite": (8, 16),
    "TPU v5e": (8, 16),
    "TPU v6 lite": (8, 16),
    "TPU v6e": (8, 16),
    "TPU7x": (16, 16),
    "TPU v5": (8, 8),
    "TPU v5p": (8, 8),
}
_SQUARES = ("TPU7x", "TPU v5", "TPU v5p")  # only planes of 2 x 2 chips
_CLOSED = ("TPU v5", "TPU v5p")  # one ring goes through both planes of 2 x 2 x 2 chips; smaller slices have none


def _in_rings(shape: tuple[int, ...], grid: np.ndarray, kind: str) -> np.ndarray | None:
    """The devices of a small slice in rings, one for each plane of it; None for other slices."""
    if grid.ndim != 4:
        return None
    x, y, z, _ = grid.shape
    of_all, of_one = _RINGS.get(kind, (0, 0))
    if x * y * z > (of_one if sum(n > 1 for n in shape) == 1 else of_all) or min(x, y) < 2 or x * y % 2:
        return None
    closed = kind in _CLOSED
    if (kind in _SQUARES and (x, y) != (2, 2)) or (closed and z != 2):
        return None
    swapped = x % 2 == 0 and (x < y or y % 2 == 1)
    ring = [(r, c) if swapped else (c, r) for r, c in (_ring(x, y) if swapped else _ring(y, x))]
    back = ring[::-1] if closed else ring
    return np.array([grid[i, j, k] for k in range(z) for i, j in (back if k % 2 else ring)], object).reshape(shape)


def _ring(rows: int, columns: int) -> list[tuple[int, int]]:
    """The places of a grid with an even number of rows, each a neighbour of the next, and the last one of the first.

    They are the first row, the other rows back and forth without their first place, and the first column back.
    """
    first = [(0, c) for c in range(columns)]
    others = [(r, c) for r in range(1, rows) for c in (range(columns - 1, 0, -1) if r % 2 else range(1, columns))]
    return [*first, *others, *[(r, 0) for r in range(rows - 1, 0, -1)]]


_CORES = 3  # the physical axis of the cores of a chip, after three of coordinates


def _grouped(shape: tuple[int, ...], physical: tuple[int, ...]) -> list[tuple[int, ...]] | None:
    """For each axis of `shape`, the physical axes with this product of sizes, each axis used once; None if there are
    none.

    The last axis of `shape` is first, gets as many axes as possible, and has the cores of a chip among them.
    """

    def assign(i: int, free: tuple[int, ...]):
        if i < 0:
            return [] if all(physical[a] == 1 for a in free) else None
        for count in range(len(free), -1, -1):
            for chosen in sorted(itertools.combinations(free, count), key=lambda c: _CORES not in c):
                if math.prod(physical[a] for a in chosen) == shape[i]:
                    rest = assign(i - 1, tuple([a for a in free if a not in chosen]))
                    if rest is not None:
                        return [*rest, chosen]
        return None

    found = assign(len(shape) - 1, tuple([a for a, n in enumerate(physical) if n > 1]))
    if found is not None:
        found[-1] = (*found[-1], *[a for a, n in enumerate(physical) if n == 1])
    return found


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """An array of devices of several groups, with slower connections between the groups.

    Args:
      mesh_shape: the shape within a group.
      dcn_mesh_shape: the number of groups along each axis; of the same length.
      devices: the devices. Default: those of the default platform.
      process_is_granule: a group is the devices of a process, else of a slice (`slice_index`).
      should_sort_granules_by_key: use the groups in the order of their index, else in the order of the devices.
      allow_split_physical_axes: see `create_device_mesh`.

    Returns:
      An array of shape ``mesh_shape * dcn_mesh_shape``, element by element.

    Raises:
      ValueError: the number of groups differs.

    Examples:

      >>> from jax.experimental import mesh_utils

      >>> devices = mesh_utils.create_hybrid_device_mesh(
      ...     (1,), (1,), jax.devices()[:1], process_is_granule=True
      ... )
      >>> devices.shape
      (1,)
    """
    devices = executors.get().devices() if devices is None else list(np.asarray(devices, object).flat)
    name = "process_index" if process_is_granule else "slice_index"
    groups: dict[int, list[Any]] = {}
    for d in devices:
        groups.setdefault(getattr(d, name, 0), []).append(d)
    keys = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(mesh_shape) != len(dcn_mesh_shape) or math.prod(dcn_mesh_shape) != len(groups):
        raise ValueError(
            f"create_hybrid_device_mesh: dcn_mesh_shape {tuple(dcn_mesh_shape)} has {math.prod(dcn_mesh_shape)} groups for"
            f" mesh_shape {tuple(mesh_shape)}, and the devices have {len(groups)} by {name}"
        )
    parts = [
        create_device_mesh(mesh_shape, groups[k], allow_split_physical_axes=allow_split_physical_axes) for k in keys
    ]
    return _joined(tuple(mesh_shape), tuple(dcn_mesh_shape), parts)
