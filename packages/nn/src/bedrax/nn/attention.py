"""Scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.nn.activations import softmax
from bedrax.numpy.arguments import array
from bedrax.numpy.logsumexp import logsumexp

__all__ = ["dot_product_attention"]


@one_program(
    composite="nn.dot_product_attention",
    static=("scale", "is_causal", "local_window_size", "implementation", "return_residual"),
    arrays=("bias", "mask", "query_seq_lengths", "key_value_seq_lengths"),
)
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, ...]:
    """``softmax(scale * query @ key^T + bias) @ value``, with masks, per head (Vaswani et al. 2017, eq. 1).

    Sizes: B batch, T queries, S keys, N heads, K heads of keys and values (a divisor of N: consecutive heads
    share them), H size of a head. The softmax is computed in float32 at least.

    Args:
      query: ``[B, T, N, H]``, or all three without B.
      key, value: ``[B, S, K, H]``.
      bias: added to the scores; broadcasts to ``[B, N, T, S]``.
      mask: booleans that broadcast to ``[B, N, T, S]``; where False, a key is ignored.
      scale: default ``1 / sqrt(H)``.
      is_causal: a query uses only keys at its position and before.
      query_seq_lengths: ``[B]``: rows of the result from there on are 0.
      key_value_seq_lengths: ``[B]``: keys from there on are ignored.
      local_window_size: the numbers of keys to the left and to the right of a query that it uses; one number for both.
      implementation: ``"xla"`` or None: the composition of operations, on every platform. ``"cudnn"`` is not
        supported.
      return_residual: also return the logarithms of the softmax's denominators, ``[B, T, N]``.

    Returns:
      An array of the shape and dtype of `query`; with `return_residual`, a pair.

    Raises:
      ValueError: shapes or dtypes do not fit, an unknown implementation.
      NotImplementedError: ``implementation="cudnn"``.

    Examples:

      >>> query = jnp.ones((1, 2, 1, 4))
      >>> key = jnp.ones((1, 3, 1, 4))
      >>> value = jnp.arange(3.).reshape(1, 3, 1, 1) * jnp.ones(4)
      >>> jax.nn.dot_product_attention(query, key, value)[0, :, 0]
      Array([[1., 1., 1., 1.],
             [1., 1., 1., 1.]], dtype=float32)
      >>> jax.nn.dot_product_attention(query, key, value, key_value_seq_lengths=jnp.array([2]))[0, 0, 0]
      Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    _check_implementation(implementation)
    q, k, v = (array("dot_product_attention", x) for x in (query, key, value))
    shape, batched = q.shape, q.ndim == 4
    q, k, v = _operands(q, k, v)
    batch, rows, heads, size = q.shape
    columns, groups = k.shape[1:3]
    full = (batch, heads, rows, columns)
    bias, mask = _of_rank_4("bias", bias, full), _of_rank_4("mask", mask, full)
    if mask is not None and not dtypes.is_bool(mask.dtype):
        raise ValueError(f"dot_product_attention: mask holds bools, got {mask.dtype}")
    lengths = [
        _lengths("query_seq_lengths", query_seq_lengths, batch),
        _lengths("key_value_seq_lengths", key_value_seq_lengths, batch),
    ]
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    scale = 1 / math.sqrt(size) if scale is None else scale

    wide = q.dtype if dtypes.finfo(q.dtype).bits >= 32 else np.dtype(np.float32)
    # Without groups there is no axis for them: XLA would copy the scores to move an axis of one element.
    g, per_key = ("g", (heads // groups,)) if heads > groups else ("", ())
    q = q.reshape(batch, rows, groups, *per_key, size)
    scores = jnp.einsum(f"btk{g}h,bskh->bk{g}ts", q, k, preferred_element_type=wide) * jnp.asarray(scale, wide)
    scores = scores.reshape(full)
    if bias is not None:
        scores = (scores + bias).astype(wide)
    visible = _visible(rows, columns, mask, is_causal, lengths, local_window_size)
    if visible is not None:
        # finite, so that a row without keys is uniform rather than NaN
        scores = jnp.where(visible, scores, np.asarray(-0.7 * float(dtypes.finfo(wide).max), wide))
    weights = softmax(scores, axis=-1).astype(v.dtype).reshape(batch, groups, *per_key, rows, columns)
    out = jnp.einsum(f"bk{g}ts,bskh->btk{g}h", weights, v).reshape(batch, rows, heads, size)
    if lengths[0] is not None:
        inside = lax.iota(np.int32, rows)[None, :] < lengths[0][:, None]
        out = jnp.where(inside[:, :, None, None], out, np.zeros((), out.dtype))
    out = out.reshape(shape)
    if not return_residual:
        return out
    residual = lax.stop_gradient(logsumexp(scores, axis=-1)).astype(q.dtype)
    residual = jnp.swapaxes(residual, 1, 2)
    return out, residual if batched else residual[0]


def _check_implementation(implementation: str | None) -> None:
    if implementation == "cudnn":
        raise NotImplementedError(
            "dot_product_attention: implementation='cudnn' is not supported, as it needs kernels that the compiler does"
            " not offer; use implementation='xla' or None."
        )
    if implementation not in (None, "xla"):
        raise ValueError(f"dot_product_attention: implementation is 'xla' or None, got {implementation!r}")


def _operands(q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    """Query, key and value with a batch axis, after checks of shapes and dtypes."""
    if q.ndim not in (3, 4):
        raise ValueError(f"query must have shape [B, T, N, H] or [T, N, H], got {q.shape}")
    if q.ndim == 3:
        if k.ndim != 3 or v.ndim != 3:
            raise ValueError(f"key and value must have rank 3 like query, got shapes {k.shape} and {v.shape}")
        q, k, v = q[None], k[None], v[None]
    if k.ndim != 4:
        raise ValueError(f"key must have rank 4 like query, got shape {k.shape}")
    _check("key", k, (q.shape[0], None, None, q.shape[3]), q.dtype)
    _check("value", v, k.shape, q.dtype)
    if q.shape[2] % k.shape[2]:
        raise ValueError(
            f"the number of heads of query must be a multiple of that of key, got {q.shape[2]} and {k.shape[2]}"
        )
    return q, k, v


def _check(name: str, x: Array, shape: tuple, dtype: np.dtype) -> None:
    if x.ndim != len(shape) or any(w is not None and w != s for s, w in zip(x.shape, shape, strict=True)):
        raise ValueError(
            f"{name}: expected shape [{', '.join('*' if w is None else str(w) for w in shape)}], got {x.shape}"
        )
    if x.dtype != dtype:
        raise ValueError(f"{name}: expected dtype {dtype}, as of query, got {x.dtype}")


def _of_rank_4(name: str, x: ArrayLike | None, full: tuple) -> Array | None:
    if x is None:
        return None
    x = array("dot_product_attention", x)
    if x.ndim > 4 or any(s not in (1, f) for s, f in zip(x.shape[::-1], full[::-1], strict=False)):
        raise ValueError(f"{name} must broadcast to [B, N, T, S] = {list(full)}, got shape {x.shape}")
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def _lengths(name: str, x: ArrayLike | None, batch) -> Array | None:
    if x is None:
        return None
    x = array("dot_product_attention", x)
    if x.shape != (batch,) or not dtypes.is_integer(x.dtype):
        raise ValueError(f"{name} must be integers of shape [{batch}], got {x.dtype}{list(x.shape)}")
    return x


def _visible(rows, columns, mask, is_causal, lengths, window) -> Array | None:
    """A mask of the keys of each query, which broadcasts to [B, N, T, S]; None: all keys."""
    row = lax.broadcasted_iota(np.int32, (rows, columns), 0)
    column = lax.broadcasted_iota(np.int32, (rows, columns), 1)
    parts = [] if mask is None else [mask]
    if is_causal:
        parts.append((row >= column)[None, None])
    if window is not None:
        left, right = window
        parts.append(((column >= row - left) & (column <= row + right))[None, None])
    for index, count in ((row, lengths[0]), (column, lengths[1])):
        if count is not None:
            parts.append(index[None, None] < count[:, None, None, None])
    visible = None
    for part in parts:
        visible = part if visible is None else visible & part
    return visible
