"""Properties of each platform, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Platform(NamedTuple):
    """One platform.

    Attributes:
      name: the name in rules and exported programs.
      family: the name of a group of platforms that users may give instead.
      dlpack: the type of its devices in DLPack, or None.
      dlpack_pinned: the DLPack type of host memory that its devices can access, or None.
      callback_target: the custom call that enters Python, or None.
      tensorflow: the name of its devices in TensorFlow.
      kernels: prefix of the names of custom calls -> the module of jaxlib that registers them.
    """

    name: str
    family: str
    dlpack: int | None = None
    dlpack_pinned: int | None = None
    callback_target: str | None = None
    tensorflow: str | None = None
    kernels: Mapping[str, str] = {}


PLATFORMS = {
    p.name: p
    for p in (
        Platform(
            "cpu",
            "cpu",
            1,
            3,
            "xla_ffi_python_cpu_callback",
            "CPU",
            {"lapack_": "lapack", "tridiagonal_solve_": "lapack", "cpu_sparse": "cpu_sparse"},
        ),
        Platform(
            "cuda",
            "gpu",
            2,
            None,
            "xla_ffi_python_gpu_callback",
            "GPU",
            {
                "cusolver_": "gpu_solver",
                "cublas_": "gpu_solver",
                "cuhybrid_": "gpu_solver",
                "cu_": "gpu_linalg",
                "cu_threefry": "gpu_prng",
                "cusparse_": "gpu_sparse",
                "cudnn_": "gpu_rnn",
            },
        ),
        Platform(
            "rocm",
            "gpu",
            10,
            None,
            "xla_ffi_python_gpu_callback",
            "GPU",
            {
                "hipsolver_": "gpu_solver",
                "hiphybrid_": "gpu_solver",
                "hip_": "gpu_linalg",
                "hip_threefry": "gpu_prng",
                "hipsparse_": "gpu_sparse",
            },
        ),
        Platform("tpu", "tpu", tensorflow="TPU"),
    )
}


def of(name: str) -> Platform:
    """The record of a platform; an empty record for the platform of a plugin."""
    return PLATFORMS.get(name) or Platform(name, name)


def members(name: str) -> tuple[str, ...]:
    """The platforms of a name: itself, or the members of a family (``"gpu"``)."""
    return tuple(p.name for p in PLATFORMS.values() if name in (p.name, p.family)) or (name,)


def of_device(device: Any) -> str:
    """The name of a device's platform."""
    platform = device.platform
    if platform == "gpu":
        return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    return platform


def of_dlpack(kind: int) -> Platform | None:
    """The platform with `kind` as the DLPack type of its memory."""
    return next((p for p in PLATFORMS.values() if kind in (p.dlpack, p.dlpack_pinned)), None)
