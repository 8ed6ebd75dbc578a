"""Arrays that share memory with other libraries', through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.xla_backend import clients, placement
from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend.host import check_alive, host_value
from bedrax.xla_backend.sharding import SingleDeviceSharding, make_single_device_sharding, resolve


def dlpack_device(self) -> tuple[int, int]:
    """``__dlpack_device__``: kind and number of the device that holds an array."""
    if type(self._sharding) is not SingleDeviceSharding:
        raise ValueError("__dlpack__ only supported for unsharded arrays.")
    device = self._sharding._device
    kinds = {"cpu": 1, "gpu": 2, "cuda": 2, "rocm": 10}
    if device.platform not in kinds:
        raise BufferError(f"Device type '{device.platform}' has no DLPack equivalent")
    return kinds[device.platform], device.local_hardware_id if device.platform != "cpu" else device.id


def dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """``__dlpack__``: an array as a capsule that other libraries read."""
    if type(self._sharding) is not SingleDeviceSharding:
        raise ValueError("__dlpack__ only supported for unsharded arrays.")
    check_alive(self)
    if dl_device is not None and tuple(dl_device) != tuple(dlpack_device(self)):
        if dl_device[0] != 1:
            raise BufferError(
                f"cannot export an array on {self._sharding._device} to DLPack device {tuple(dl_device)}"
            )
        return host_value(self).__dlpack__(copy=copy)
    if self.aval.dtype == np.bool_ and max_version is None:
        raise BufferError("DLPack exchange of bool arrays needs a consumer that passes max_version")
    x = self
    if copy:
        x = placement.copy(self)
    x.block_until_ready()
    return door.buffer_to_dlpack_managed_tensor(x, stream)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype can be exchanged through DLPack."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc":
        return dtype.name not in ("longdouble", "clongdouble", "float128", "complex256")
    return dtype.name == "bfloat16"


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None):
    """An array that shares memory with another library's, through DLPack.

    Args:
      external_array: an object with ``__dlpack__`` and ``__dlpack_device__``.
      device: where it should be; by default where it is.
      copy: True asks for a copy, False forbids one, None lets us choose.

    Raises:
      TypeError: `external_array` does not speak DLPack.
      ValueError: a copy would be needed and is forbidden.
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods; capsules of the"
            f" older protocol are not accepted. Got {type(external_array)}"
        )
    target = resolve(device, "device of from_dlpack")
    kind, number = external_array.__dlpack_device__()
    kind = int(kind)
    platforms = {1: "cpu", 2: "cuda", 3: "cpu", 10: "rocm"}
    if kind not in platforms:
        raise TypeError(
            f"Array passed to from_dlpack is on unsupported device type (DLDeviceType: {kind}), array: {external_array}"
        )
    client = clients.get_backend(platforms[kind])
    source = client.local_devices()[0] if kind in (1, 3) else client.device_from_local_hardware_id(number)
    stream = None if kind in (1, 3) else source.get_stream_for_external_ready_events()
    try:
        capsule = (
            external_array.__dlpack__(stream=stream) if stream is not None else external_array.__dlpack__()
        )
    except BufferError:
        if copy is False or kind not in (1, 3):
            raise
        return placement.to_sharding(np.array(external_array), make_single_device_sharding(source))
    try:
        found = door.dlpack_managed_tensor_to_buffer(capsule, source, stream)
    except door.JaxRuntimeError:
        # XLA wants memory aligned to 16 bytes and in a dense layout; what is not must be copied.
        if copy is False or kind not in (1, 3):
            raise
        found = placement.to_sharding(
            np.array(np.from_dlpack(external_array), copy=True), make_single_device_sharding(source)
        )
    if copy:
        found = placement.copy(found)
    if target is not None and target != found._sharding:
        if copy is False:
            raise ValueError(f"from_dlpack: the array is on {source}; moving it to {target} needs a copy")
        found = placement.to_sharding(found, target, True)
    return found
