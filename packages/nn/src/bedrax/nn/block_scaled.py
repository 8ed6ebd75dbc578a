"""Products of block-scaled low-precision operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import bedrax.numpy as jnp
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import array

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]


@dataclass
class BlockScaleConfig:
    """The storage of a matrix: elements of `data_type`, and one scale of `scale_type` per block of `block_size`."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Array | None
    infer_only: bool


_FORMATS = {
    "nvfp4": (16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn),
    "mxfp8": (32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu),
}


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """The format of blocks with a common scale.

    Args:
      mode: ``"nvfp4"``, blocks of 16, with a scale for all of them; or ``"mxfp8"``, blocks of 32.
      global_scale: the scale of all blocks, for "nvfp4". Default: 1, of shape ``(1,)``.

    Raises:
      ValueError: another mode.

    Examples:

      >>> jax.nn.get_scaled_dot_general_config("mxfp8").mode
      'mxfp8'
    """
    one_of("get_scaled_dot_general_config", "mode", mode, _FORMATS)
    if mode == "nvfp4" and global_scale is None:
        global_scale = jnp.ones((1,), np.float32)
    return BlockScaleConfig(mode, *_FORMATS[mode], global_scale if mode == "nvfp4" else None, False)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: type = np.float32,
) -> Array:
    """Batched product of two matrices of block-scaled rows, contracted over the last axis of both.

    Args:
      lhs, rhs: arrays of shape ``[B, M, K]`` and ``[B, N, K]``.
      lhs_scales, rhs_scales: factors, of shape ``[B, M, K / block]`` and ``[B, N, K / block]``, each for a block of
        consecutive elements.
      preferred_element_type: dtype of the result.

    Returns:
      An array of shape ``[B, M, N]``. Operands are scaled in float32 before they are multiplied; no platform's
      special instructions are used.

    Raises:
      ValueError: the shapes do not fit.

    Examples:

      >>> x, y = jnp.ones((1, 2, 32), jnp.float8_e4m3fn), jnp.ones((1, 3, 32), jnp.float8_e4m3fn)
      >>> x_scales, y_scales = jnp.full((1, 2, 1), 2, jnp.float8_e8m0fnu), jnp.ones((1, 3, 1), jnp.float8_e8m0fnu)
      >>> jax.nn.scaled_matmul(x, y, x_scales, y_scales)
      Array([[[64., 64., 64.],
              [64., 64., 64.]]], dtype=float32)
    """
    lhs, rhs, left, right = (array("scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    for name, x in (("lhs", lhs), ("rhs", rhs), ("lhs_scales", left), ("rhs_scales", right)):
        if x.ndim != 3:
            raise ValueError(f"scaled_matmul: {name} must have rank 3, got shape {x.shape}")
    if lhs.shape[0] != rhs.shape[0] or lhs.shape[2] != rhs.shape[2]:
        raise ValueError(f"scaled_matmul needs lhs [B, M, K] and rhs [B, N, K], got {lhs.shape} and {rhs.shape}")
    for name, x, scales in (("lhs", lhs, left), ("rhs", rhs, right)):
        blocks = scales.shape[2]
        if scales.shape[:2] != x.shape[:2] or not blocks or x.shape[2] % blocks:
            raise ValueError(
                f"scaled_matmul: {name}_scales must have the shape of {name} with a divisor of its last size, got"
                f" {scales.shape} for {x.shape}"
            )
    dtype = dtypes.explicit_dtype(preferred_element_type, "scaled_matmul")
    return jnp.einsum("bmk,bnk->bmn", _decoded(lhs, left), _decoded(rhs, right)).astype(dtype)


def _decoded(x: Array, scales: Array) -> Array:
    blocks = scales.shape[-1]
    x = x.astype(np.float32).reshape(*scales.shape, x.shape[-1] // blocks)
    return (x * scales.astype(np.float32)[..., None]).reshape(*scales.shape[:-1], -1)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: tuple[tuple[Any, ...], ...],
    preferred_element_type: type = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> None:
    """Not supported: `lax.dot_general` of operands rounded to a block-scaled format.

    Raises:
      NotImplementedError: always. Kernels of cuDNN define the rounding of the operands, and are not available
        here; quantize explicitly and use `scaled_matmul`.

    Examples:

      >>> try:
      ...     jax.nn.scaled_dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (([1], [0]), ([], [])))
      ... except NotImplementedError as error:
      ...     print("scaled_matmul" in str(error))
      ...
      True
    """
    raise NotImplementedError(
        public(
            "scaled_dot_general needs cuDNN's block-scaling kernels, which are not available; quantize explicitly and"
            " use jax.nn.scaled_matmul."
        )
    )
