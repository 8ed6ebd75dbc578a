"""Data of GPUs, by the names that their drivers report (`jax.experimental.pallas.triton`)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from bedrax.core import executors

CUSTOM_CALL_TARGET_NAME = "__gpu$xla.gpu.triton"  # of XLA's custom call that holds a compiled kernel


class GpuVersion(enum.Enum):
    """Kinds of GPUs. The value of a member is the `device_kind` of its devices.

    Examples:

      >>> from jax.experimental.pallas import triton as plgpu

      >>> plgpu.GpuVersion.H100
      <GpuVersion.H100: 'NVIDIA H100'>
    """

    A10 = "NVIDIA A10"
    A30 = "NVIDIA A30"
    A100 = "NVIDIA A100"
    H100 = "NVIDIA H100"
    H200 = "NVIDIA H200"
    GH200 = "NVIDIA GH200"
    B200 = "NVIDIA B200"
    GB200 = "NVIDIA GB200"
    B300 = "NVIDIA B300"
    GB300 = "NVIDIA GB300"
    GB10 = "NVIDIA GB10"
    L4 = "NVIDIA L4"
    L40 = "NVIDIA L40"
    T4 = "Tesla T4"
    RTX_4090 = "NVIDIA GeForce RTX 4090"
    RTX_PRO_4500 = "NVIDIA RTX PRO 4500"
    RTX_PRO_5000 = "NVIDIA RTX PRO 5000"
    RTX_PRO_6000 = "NVIDIA RTX PRO 6000"
    THOR = "NVIDIA Thor"
    VR200 = "NVIDIA VR200"


# Compute capability -> GPUs, from NVIDIA's table of CUDA GPUs (developer.nvidia.com/cuda-gpus).
_CAPABILITIES = {
    "7.5": "T4",
    "8.0": "A100 A30",
    "8.6": "A10",
    "8.9": "L4 L40 RTX_4090",
    "9.0": "H100 H200 GH200",
    "10.0": "B200 GB200",
    "10.3": "B300 GB300",
    "10.7": "VR200",
    "11.0": "THOR",
    "12.0": "RTX_PRO_4500 RTX_PRO_5000 RTX_PRO_6000",
    "12.1": "GB10",
}


@dataclass(frozen=True, kw_only=True)
class GpuInfo:
    """A kind of GPU.

    Attributes:
      gpu_version: a `GpuVersion`, or None for another one.
      arch_name: its compute capability, ``"9.0"``.
      compute_capability: the same without the dot, 90.

    Examples:

      >>> from jax.experimental.pallas import triton as plgpu

      >>> plgpu.GpuInfo(gpu_version=None, arch_name="8.7", compute_capability=87)  # of a kind without a name of its own
      GpuInfo(gpu_version=None, arch_name='8.7', compute_capability=87)
    """

    gpu_version: GpuVersion | None
    arch_name: str
    compute_capability: int


def get_gpu_info_from_version(gpu_version: GpuVersion) -> GpuInfo:
    """The data of a kind of GPU.

    Raises:
      ValueError: the argument is no `GpuVersion`.

    Examples:

      >>> from jax.experimental.pallas import triton as plgpu

      >>> plgpu.get_gpu_info_from_version(plgpu.GpuVersion.L4).compute_capability
      89
    """
    for arch, names in _CAPABILITIES.items():
        if isinstance(gpu_version, GpuVersion) and gpu_version.name in names.split():
            return GpuInfo(gpu_version=gpu_version, arch_name=arch, compute_capability=int(arch.replace(".", "")))
    raise ValueError(f"get_gpu_info_from_version: a GpuVersion is needed, got {gpu_version!r}")


def _device_kind() -> tuple[str, str, str]:
    """(platform, kind, compute capability or an empty string) of the default device."""
    devices = executors.get().devices()
    if not devices:
        return "cpu", "cpu", ""
    device = devices[0]
    return device.platform, device.device_kind, str(getattr(device, "compute_capability", ""))


def get_gpu_info() -> GpuInfo:
    """The data of the GPU that programs run on.

    Raises:
      ValueError: programs do not run on a GPU.

    Examples:

      >>> from jax.experimental.pallas import triton as plgpu

      >>> warps = 8 if plgpu.is_gpu_device() and plgpu.get_gpu_info().compute_capability >= 90 else 4
      >>> plgpu.CompilerParams(num_warps=warps).num_warps in (4, 8)
      True
    """
    platform, kind, capability = _device_kind()
    versions = [v for v in GpuVersion if v.value in kind]
    if versions:
        return get_gpu_info_from_version(max(versions, key=lambda v: len(v.value)))
    if platform not in ("gpu", "cuda") or not capability:
        raise ValueError(
            f"get_gpu_info: the default device is no GPU of a known kind, but {kind!r} of platform {platform!r}"
        )
    return GpuInfo(gpu_version=None, arch_name=capability, compute_capability=int(capability.replace(".", "")))


def is_gpu_device() -> bool:
    """Whether programs run on a GPU.

    Examples:

      >>> from jax.experimental.pallas import triton as plgpu

      >>> plgpu.is_gpu_device() == (jax.default_backend() == "gpu")
      True
    """
    return _device_kind()[0] in ("gpu", "cuda", "rocm")


def is_tpu_device() -> bool:
    """Whether programs run on a TPU.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.is_tpu_device() == (jax.default_backend() == "tpu")
      True
    """
    return _device_kind()[0] == "tpu"
