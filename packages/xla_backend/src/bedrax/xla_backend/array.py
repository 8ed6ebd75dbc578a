"""jaxlib's `ArrayImpl`, completed with the methods and properties of arrays that are not operators or NumPy methods.

Core and `bedrax.numpy` install operators and NumPy methods through `bedrax.core.array`. This module adds shape and
dtype, conversion to the host, printing, shards, deletion, pickling and DLPack.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dtypes, jitting, offers
from bedrax.core.avals import ShapedArray
from bedrax.core.caches import remembered
from bedrax.core.codes import coded
from bedrax.core.tracing import current, eval_trace
from bedrax.lax.primitives import shaping
from bedrax.xla_backend import dlpack, placement
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import (
    ArrayImpl,
    any_layout_of,
    check_of_parts,
    device_of,
    is_committed,
    known_value,
    parts_of,
    sharding_of,
    start_copy_to_host,
)
from bedrax.xla_backend.host import addressable_shards, block_until_ready, check_alive, global_shards, host_value
from bedrax.xla_backend.layout import Format, Layout
from bedrax.xla_backend.sharding import SingleDeviceSharding, make_single_device_sharding


def _to_array(self, dtype=None, copy=None):
    value = host_value(self)
    if dtype is None and not copy:
        return value
    return np.array(value, dtype=dtype, copy=copy) if copy is not None else np.asarray(value, dtype=dtype)


def _scalar(convert):
    def method(self):
        if self.aval.shape:
            raise TypeError(
                coded(
                    "BX-NUMBER",
                    f"a Python number is made of an array of rank 0, got shape {self.aval.shape}; index it first",
                )
            )
        return convert(host_value(self))

    return method


def _bool(self):
    aval = self.aval
    if aval.size == 0:
        raise ValueError(
            coded("BX-TRUTH", f"an empty array is neither true nor false, got shape {aval.shape}; test x.size > 0")
        )
    if aval.size != 1:
        raise ValueError(
            coded("BX-TRUTH", f"an array of {aval.size} elements is neither true nor false; use x.any() or x.all()")
        )
    return bool(host_value(self))


def _index(self):
    aval = self.aval
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise TypeError(f"an index is made of an integer array of rank 0, got {aval.str_short()}")
    return int(host_value(self))


def _len(self):
    shape = self.aval.shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


def _iter(self):
    aval = self.aval
    if not aval.shape:
        raise TypeError("iteration over a 0-d array")
    if isinstance(sharding_of(self), SingleDeviceSharding):
        small = aval.shape[0] <= _ROWS and aval.size * aval.dtype.itemsize <= _BYTES
        if small and current.trace is eval_trace:  # a trace would record the operation
            return iter(shaping.unstack_p.bind(self, axis=0))
        return _rows(self)
    return (self[i] for i in range(aval.shape[0]))


_ROWS, _BYTES = 100, 1 << 16  # of an array whose rows one program makes


def _rows(x):
    """Rows of an array. On the CPU a row is a copy of memory; elsewhere one program slices up to a hundred rows."""
    if x.platform() == "cpu":
        value, sharding, aval = host_value(x), sharding_of(x), x.aval
        row_aval = ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)
        for row in value:
            yield runtime.batched_device_put(
                row_aval, sharding, [np.asarray(row)], [device_of(sharding)], is_committed(x)
            )
        return
    n = x.aval.shape[0]
    for begin in range(0, n, _ROWS):
        yield from _row_cutter(begin, min(begin + _ROWS, n))(x)


@remembered(256)
def _row_cutter(begin: int, end: int):
    return jitting.jit(lambda x: [lax.index_in_dim(x, i, keepdims=False) for i in range(begin, end)])


def _text(self) -> str:
    return str(host_value(self))


def _repr(self) -> str:
    aval = self.aval
    check_alive(self)
    name = aval.dtype.name
    weak = ", weak_type=True" if aval.weak_type else ""
    if not self.is_fully_addressable and not self.is_fully_replicated:
        return f"Array(shape={aval.shape}, dtype={name}{weak})"
    width = np.get_printoptions()["linewidth"]
    if aval.size == 0:
        body = f"[], shape={aval.shape}"
    else:
        body = np.array2string(host_value(self), separator=", ", prefix="Array(", max_line_width=width)
    tail = f"dtype={name}{weak})"
    last = body[body.rfind("\n") + 1 :]
    start = len("Array(") if last is body or "\n" not in body else 0
    glue = ",\n" + " " * len("Array(") if start + len(last) + len(tail) + 2 > width else ", "
    return f"Array({body}{glue}{tail}"


def _format(self, spec: str) -> str:
    if not self.aval.shape:
        return format(host_value(self)[()], spec)
    return format(host_value(self), spec)


def _item(self, *args):
    """The element (at `args`) as a Python scalar."""
    return host_value(self).item(*args)


def _tolist(self):
    """Nested lists of Python scalars."""
    return host_value(self).tolist()


def _tobytes(self, order="C") -> bytes:
    """The bytes of the elements."""
    return host_value(self).tobytes(order)


def _copy_to_host_async(self) -> None:
    """Start a copy to the host. A later conversion waits less."""
    check_alive(self)
    if known_value(self) is None and type(sharding_of(self)) is SingleDeviceSharding:
        start_copy_to_host(self)
    elif known_value(self) is None:
        for shard in addressable_shards(self):
            if shard.replica_id == 0:
                start_copy_to_host(shard.data)


def _device(self):
    sharding = sharding_of(self)
    if type(sharding) is SingleDeviceSharding:
        return device_of(sharding)
    return next(iter(sharding.device_set)) if sharding.num_devices == 1 else sharding


def _format_of(self) -> Format:
    """The layout, which is None if the array was deleted, and the sharding."""
    layout = any_layout_of(self)
    return Format(None if layout is None else Layout.from_pjrt_layout(layout), sharding_of(self))


def _addressable_data(self, index: int):
    """The shard on the device at a position among this process's devices of the sharding."""
    check_alive(self)
    return parts_of(self)[index]


def _set_item(self, i, x):
    raise TypeError(
        coded(
            "BX-IMMUTABLE",
            "arrays are immutable: instead of x[i] = y write x = x.at[i].set(y), or another method of x.at[i]",
        )
    )


def _reduce(self):
    sharding = sharding_of(self)
    if sharding.partial and sharding.spec.unreduced and self.is_fully_addressable:
        return _rebuild_parts, (self.aval.shape, sharding, [shard.data for shard in addressable_shards(self)])
    value = host_value(self)
    if dtypes.is_native(value.dtype):
        return _rebuild, (value, self.aval.weak_type, None)
    return _rebuild, (value.view(np.dtype(f"u{value.dtype.itemsize}")), self.aval.weak_type, self.aval.dtype.name)


def _rebuild_parts(shape: tuple[int, ...], sharding: Any, parts: list[Any]):
    """An array that is partial sums."""
    devices = sharding._addressable_device_assignment
    placed = [placement.to_sharding(x, make_single_device_sharding(d)) for x, d in zip(parts, devices, strict=True)]
    return placement.make_array_from_single_device_arrays(shape, sharding, placed, dtype=placed[0].dtype)


def _rebuild(value: np.ndarray, weak_type: bool, name: str | None = None):
    if name is not None:
        value = value.view(dtypes.as_dtype(name))
    return placement.put_uncommitted(value, weak_type)


def _aval_attribute(path: str, doc: str):
    return property(operator.attrgetter(path), doc=doc)


def _to_device(self, device, *, stream=None):
    """This array on another device or with another sharding (array API)."""
    if stream is not None:
        raise NotImplementedError("to_device: there are no streams to choose from; leave stream=None")
    return placement.device_put(self, device)


_METHODS: dict[str, Any] = {
    "shape": _aval_attribute("aval.shape", "Sizes of the dimensions."),
    "dtype": _aval_attribute("aval.dtype", "Type of the elements."),
    "weak_type": _aval_attribute("aval.weak_type", "Whether the dtype gives way in promotion."),
    "ndim": property(lambda self: len(self.aval.shape), doc="Number of dimensions."),
    "size": property(lambda self: self.aval.size, doc="Number of elements."),
    "itemsize": _aval_attribute("aval.dtype.itemsize", "Bytes of an element."),
    "nbytes": property(lambda self: self.aval.size * self.aval.dtype.itemsize, doc="Bytes of all elements."),
    "sharding": property(sharding_of, doc="Where the parts are."),
    "committed": property(is_committed, doc="Whether the array must stay on its devices."),
    "device": property(_device, doc="The device, or the sharding if there are several."),
    "devices": lambda self: sharding_of(self).device_set,
    "format": property(_format_of),
    "is_fully_addressable": property(lambda self: sharding_of(self).is_fully_addressable),
    "is_fully_replicated": property(lambda self: sharding_of(self).is_fully_replicated),
    "addressable_shards": property(addressable_shards),
    "global_shards": property(global_shards),
    "addressable_data": _addressable_data,
    "_value": property(host_value),
    "_check_and_rearrange": check_of_parts(placement.check_and_rearrange),
    "__array__": _to_array,
    "__array_priority__": 100,
    "__hash__": None,
    "__len__": _len,
    "__iter__": _iter,
    "__bool__": _bool,
    "__int__": _scalar(int),
    "__float__": _scalar(float),
    "__complex__": _scalar(complex),
    "__index__": _index,
    "__repr__": _repr,
    "_repr_html_": offers.shown("array"),
    "__str__": _text,
    "__format__": _format,
    "__setitem__": _set_item,
    "__reduce__": _reduce,
    "__copy__": lambda self: _copy(self),
    "__deepcopy__": lambda self, memo: _copy(self),
    "__dlpack__": dlpack.dlpack,
    "__dlpack_device__": dlpack.dlpack_device,
    "block_until_ready": block_until_ready,
    "item": _item,
    "tolist": _tolist,
    "tobytes": _tobytes,
    "copy_to_host_async": _copy_to_host_async,
    "to_device": _to_device,
}


def _copy(x):
    check_alive(x)
    return placement.copy(x)


def install() -> None:
    """Complete the class. Called once, at import of the package."""
    for name, value in _METHODS.items():
        setattr(ArrayImpl, name, value)
    for name in ("item", "tolist", "tobytes", "copy_to_host_async", "to_device", "addressable_data"):
        getattr(ArrayImpl, name).__name__ = name
