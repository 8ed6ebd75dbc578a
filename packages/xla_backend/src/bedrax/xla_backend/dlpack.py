"""Arrays that share memory with arrays of other libraries, through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.xla_backend import clients, placement, platforms
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import device_of, sharding_of
from bedrax.xla_backend.host import check_alive, host_value
from bedrax.xla_backend.sharding import SingleDeviceSharding, make_single_device_sharding, resolve


def dlpack_device(self: Any) -> tuple[int, int]:
    """``__dlpack_device__``: type and number of the device that holds an array."""
    if type(sharding_of(self)) is not SingleDeviceSharding:
        raise ValueError(f"DLPack passes on arrays of one device; this one is placed by {sharding_of(self)}")
    device = device_of(sharding_of(self))
    kind = platforms.of(platforms.of_device(device)).dlpack
    if kind is None:
        raise BufferError(f"DLPack has no number for the platform {device.platform!r}")
    return kind, device.local_hardware_id if device.platform != "cpu" else device.id


def dlpack(self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """``__dlpack__``: an array as a capsule for other libraries."""
    if type(sharding_of(self)) is not SingleDeviceSharding:
        raise ValueError(f"DLPack passes on arrays of one device; this one is placed by {sharding_of(self)}")
    check_alive(self)
    if dl_device is not None and tuple(dl_device) != tuple(dlpack_device(self)):
        if dl_device[0] != 1:
            raise BufferError(
                f"cannot export an array on {device_of(sharding_of(self))} to DLPack device {tuple(dl_device)}"
            )
        return host_value(self).__dlpack__(copy=copy)
    if self.aval.dtype == np.bool_ and max_version is None:
        raise BufferError("DLPack exchange of bool arrays needs a consumer that passes max_version")
    x = self
    if copy:
        x = placement.copy(self)
    x.block_until_ready()
    return runtime.buffer_to_dlpack_managed_tensor(x, stream)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype can be exchanged through DLPack.

    Examples:

      >>> jax.dlpack.is_supported_dtype(jnp.float32)
      True
    """
    dtype = np.dtype(dtype)
    if dtypes.is_native(dtype):
        return dtype.name not in ("longdouble", "clongdouble", "float128", "complex256")
    return dtype.name == "bfloat16"


def of_host(capsule: Any) -> Any:
    """An array on the CPU that shares the memory of a capsule from the CPU.

    Raises:
      JaxRuntimeError: XLA cannot use the memory as it is. The caller still owns it.
    """
    return runtime.dlpack_managed_tensor_to_buffer(capsule, clients.backends()["cpu"].local_devices()[0], None)


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array that shares memory with an array of another library, through DLPack.

    Args:
      external_array: an object with ``__dlpack__`` and ``__dlpack_device__``.
      device: the device of the result; by default that of the argument.
      copy: True copies, False forbids a copy, None copies if necessary. Without ``jax_enable_x64``, elements of 64 bits
        are copied to 32 bits.

    Raises:
      TypeError: `external_array` does not implement DLPack.
      ValueError: a copy is necessary and forbidden.

    Examples:

      >>> jax.dlpack.from_dlpack(np.arange(3, dtype=np.float32))
      Array([0., 1., 2.], dtype=float32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "from_dlpack needs an array with the methods __dlpack__ and __dlpack_device__; capsules of the older"
            f" protocol are not accepted. Got {type(external_array)}"
        )
    target = resolve(device, "device of from_dlpack")
    kind, number = external_array.__dlpack_device__()
    kind = int(kind)
    platform = platforms.of_dlpack(kind)
    if platform is None:
        raise TypeError(
            f"from_dlpack: no platform here has DLPack's device number {kind}, where the {type(external_array)} is"
        )
    client = clients.get_backend(platform.name)
    on_host = platform.name == "cpu"
    source = client.local_devices()[0] if on_host else client.device_from_local_hardware_id(number)
    stream = None if on_host else source.get_stream_for_external_ready_events()
    try:
        capsule = external_array.__dlpack__(stream=stream) if stream is not None else external_array.__dlpack__()
    except BufferError:
        if copy is False or not on_host:
            raise
        return placement.to_sharding(np.array(external_array), make_single_device_sharding(source))
    try:
        found = runtime.dlpack_managed_tensor_to_buffer(capsule, source, stream)
    except runtime.JaxRuntimeError:
        # XLA needs memory aligned to 16 bytes and in a dense layout. Other memory must be copied.
        if copy is False or not on_host:
            raise
        found = placement.to_sharding(
            np.array(np.from_dlpack(external_array), copy=True), make_single_device_sharding(source)
        )
    dtype = dtypes.canonicalize_dtype(found.dtype)
    if dtype != found.dtype:
        if copy is False:
            raise ValueError(
                f"from_dlpack: without jax_enable_x64, elements of {found.dtype} become {dtype}, which needs a copy"
            )
        found = placement.to_sharding(host_value(found).astype(dtype), make_single_device_sharding(source))
    elif copy:
        found = placement.copy(found)
    if target is not None and target != sharding_of(found):
        if copy is False:
            raise ValueError(f"from_dlpack: the array is on {source}; moving it to {target} needs a copy")
        found = placement.to_sharding(found, target, True)
    return found
