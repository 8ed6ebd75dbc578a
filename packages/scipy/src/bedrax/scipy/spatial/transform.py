"""`jax.scipy.spatial.transform`: rotations of space, and interpolation between them.

A rotation is a unit quaternion ``(x, y, z, w)``; formulas act on the last axis, so they are the same for one
rotation and for a stack. Sources: Shepperd (1978) for matrices, Bernardes and Viollet (2022) for Euler angles, Markley
(2007) for means.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import linalg as factor
from bedrax.numpy.arguments import inexact
from bedrax.scipy.defining import widened

__all__ = ["Rotation", "Slerp"]


@widened
def _unit(q):
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _product(p, q):
    """Hamilton's product."""
    a, b = p[..., 3:], q[..., 3:]
    u, v = p[..., :3], q[..., :3]
    vector = a * v + b * u + jnp.cross(u, v)
    return jnp.concatenate([vector, a * b - jnp.sum(u * v, axis=-1, keepdims=True)], axis=-1)


def _canonical(q):
    """q or -q: the one whose first nonzero component, in the order w, x, y, z, is positive."""
    x, y, z, w = (q[..., i] for i in range(4))
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return jnp.where(negative[..., None], -q, q)


@widened
def _from_rotvec(v):
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    small = square < 1e-3
    angle = jnp.sqrt(jnp.where(small, 1, square))
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8 + square * square / 384 - square**3 / 46080, jnp.cos(angle / 2))
    return jnp.concatenate([scale * v, cosine], axis=-1)


@widened
def _as_rotvec(q):
    q = jnp.where(q[..., 3:] < 0, -q, q)
    v, w = q[..., :3], q[..., 3:]
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    small = square < 1e-3
    size = jnp.sqrt(jnp.where(small, 1, square))
    # 2 atan(s / w) / s, by its series for small s
    r = square / (w * w)
    series = 2 / jnp.where(small, w, 1) * (1 - r / 3 + r * r / 5 - r**3 / 7 + r**4 / 9)
    return v * jnp.where(small, series, 2 * jnp.arctan2(size, w) / size)


def _as_matrix(q):
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


@widened
def _from_matrix(m):
    """The quaternion computed from the largest of x, y, z, w."""
    d = [m[..., i, i] for i in range(3)]
    trace = d[0] + d[1] + d[2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {
            i: 1 - trace + 2 * d[i],
            j: m[..., j, i] + m[..., i, j],
            k: m[..., k, i] + m[..., i, k],
            3: m[..., k, j] - m[..., j, k],
        }
        candidates.append(jnp.stack([parts[n] for n in range(4)], axis=-1))
    skew = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates.append(jnp.stack([*skew, 1 + trace], axis=-1))
    best = jnp.argmax(jnp.stack([*d, trace], axis=-1), axis=-1)
    out = candidates[3]
    for i in range(3):
        out = jnp.where((best == i)[..., None], candidates[i], out)
    return _unit(out)


@widened
def _nearest_to_all(quat, weights):
    """The eigenvector of the largest eigenvalue of ``sum_i w_i q_i q_i^T``."""
    v, _ = factor.eigh(jnp.matmul((weights[:, None] * quat).T, quat, precision="highest"))
    return v[:, -1]


def _axes_of(seq: str, least: int = 1) -> tuple[list[int], bool]:
    """Axes of a sequence, and whether it is intrinsic (about the axes of the rotated body)."""
    extrinsic, intrinsic = re.fullmatch("[xyz]{1,3}", seq), re.fullmatch("[XYZ]{1,3}", seq)
    if not (extrinsic or intrinsic):
        raise ValueError(f"Rotation: seq has letters of xyz, or of XYZ, got {seq!r}")
    axes = ["xyz".index(c) for c in seq.lower()]
    if len(axes) < least:
        raise ValueError(f"Rotation: seq has {least} letters or more, got {seq!r}")
    if any(a == b for a, b in itertools.pairwise(axes)):
        raise ValueError(f"Rotation: neighbours in seq are different axes, got {seq!r}")
    return axes, bool(intrinsic)


class Rotation(NamedTuple):
    """Rotations of space.

    Attributes:
      quat: unit quaternions ``(x, y, z, w)``, of shape ``[4]`` for one rotation or ``[n, 4]`` for a stack.

    Examples:

      >>> from jax.scipy.spatial.transform import Rotation

      >>> quarter = Rotation.from_euler("z", 90, degrees=True)
      >>> quarter.apply(jnp.array([1., 0., 0.])).round(3) + 0.
      Array([0., 1., 0.], dtype=float32)
      >>> (quarter * quarter).magnitude().round(3)
      Array(3.1420002, dtype=float32)
    """

    quat: Array

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """From quaternions ``(x, y, z, w)``, which are normalized."""
        (quat,) = inexact("Rotation.from_quat", quat)
        if quat.ndim not in (1, 2) or quat.shape[-1] != 4:
            raise ValueError(f"Rotation: quat has shape (4,) or (N, 4), got {quat.shape}")
        return cls(_unit(quat))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """From orthogonal matrices with determinant 1, ``[3, 3]`` or ``[n, 3, 3]``."""
        (matrix,) = inexact("Rotation.from_matrix", matrix)
        if matrix.ndim not in (2, 3) or matrix.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation: matrix has shape (3, 3) or (N, 3, 3), got {matrix.shape}")
        return cls(_from_matrix(matrix))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """From axes times angles, ``[3]`` or ``[n, 3]``."""
        (rotvec,) = inexact("Rotation.from_rotvec", rotvec)
        if rotvec.ndim not in (1, 2) or rotvec.shape[-1] != 3:
            raise ValueError(f"Rotation: rotvec has shape (3,) or (N, 3), got {rotvec.shape}")
        return cls(_from_rotvec(jnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """From modified Rodrigues parameters, axes times ``tan(angle / 4)``, ``[3]`` or ``[n, 3]``."""
        (mrp,) = inexact("Rotation.from_mrp", mrp)
        if mrp.ndim not in (1, 2) or mrp.shape[-1] != 3:
            raise ValueError(f"Rotation: mrp has shape (3,) or (N, 3), got {mrp.shape}")
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations from Euler angles.

        Args:
          seq: one to three axes, "xyz" for fixed axes, "XYZ" for those of the rotated body.
          angles: ``[k]`` or ``[n, k]`` for k axes; for one axis also a scalar or ``[n]``, n > 1.
          degrees: angles are in degrees.
        """
        axes, intrinsic = _axes_of(seq)
        (angles,) = inexact("Rotation.from_euler", angles)
        angles = lax.convert_to(angles, angles.dtype)  # rotations have no weak types
        k = len(axes)
        if k == 1 and (angles.ndim == 0 or angles.shape[-1] != 1):
            angles = angles[..., None]
        if angles.ndim not in (1, 2) or angles.shape[-1] != k:
            raise ValueError(f"Rotation: angles have shape ({k},) or (N, {k}) for {k} axes, got {angles.shape}")
        if degrees:
            angles = jnp.deg2rad(angles)
        out = None
        for i, axis in enumerate(axes):
            half = angles[..., i] / 2
            zero = jnp.zeros_like(half)
            parts = [zero, zero, zero, jnp.cos(half)]
            parts[axis] = jnp.sin(half)
            turn = jnp.stack(parts, axis=-1)
            if out is None:
                out = turn
            else:
                out = _product(out, turn) if intrinsic else _product(turn, out)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: type = float) -> Rotation:
        """No rotation, or a stack of `num` of them."""
        one = jnp.asarray([0, 0, 0, 1]).astype(dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, drawn uniformly."""
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """One stack of a sequence of rotations and stacks."""
        return cls(jnp.concatenate([jnp.atleast_2d(rotation.quat) for rotation in rotations]))

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not a stack."""
        return self.quat.ndim == 1

    def __getitem__(self, indexer: slice | ArrayLike) -> Rotation:
        if self.single:
            raise TypeError("a single rotation has no parts to index")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single rotation has no length")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation `other`, followed by this one."""
        return Rotation(_unit(_product(*jnp.broadcast_arrays(self.quat, other.quat))))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors ``[3]`` or ``[n, 3]`` rotated, by the inverse if `inverse`."""
        matrix = self.as_matrix()
        matrix, vectors = inexact("Rotation.apply", matrix, vectors)
        if inverse:
            matrix = jnp.swapaxes(matrix, -1, -2)
        return jnp.matmul(matrix, vectors[..., None], precision="highest")[..., 0]

    def as_matrix(self) -> Array:
        """Orthogonal matrices."""
        return _as_matrix(self.quat)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions ``(x, y, z, w)``.

        Args:
          canonical: choose the sign with w positive; if it is 0, the first of x, y, z that is not.
          scalar_first: return ``(w, x, y, z)``.
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Axes times angles in [0, pi]."""
        out = _as_rotvec(self.quat)
        return jnp.rad2deg(out) if degrees else out

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of length at most 1."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes; where they are not unique, one of the outer ones is 0.

        Args:
          seq: as for `from_euler`.
          degrees: return degrees.

        Returns:
          ``[3]`` or ``[n, 3]``; the middle one in [0, pi] if first and last axis are the same, else in [-pi/2, pi/2].
        """
        axes, intrinsic = _axes_of(seq, 3)
        if intrinsic:
            axes = axes[::-1]
        i, j, k = axes
        symmetric = i == k
        if symmetric:
            k = 3 - i - j
        sign = 1 if (j - i) % 3 == 1 else -1
        q = [self.quat[..., n] for n in range(4)]
        if symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        plus, minus = jnp.arctan2(b, a), jnp.arctan2(d, c)
        tolerance = max(1e-7, 8 * float(dtypes.finfo(self.quat.dtype).eps))
        at_zero, at_pi = abs(middle) <= tolerance, abs(middle - math.pi) <= tolerance
        degenerate = at_zero | at_pi
        first, last = plus - minus, plus + minus
        outer = jnp.where(at_zero, 2 * plus, 2 * minus * (1 if intrinsic else -1))
        if intrinsic:
            first, last = jnp.where(degenerate, 0, first), jnp.where(degenerate, outer, last)
        else:
            first, last = jnp.where(degenerate, outer, first), jnp.where(degenerate, 0, last)
        if not symmetric:
            last = last * sign
            middle = middle - math.pi / 2
        wrapped = lambda t: t - 2 * math.pi * lax.round(t / (2 * math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
        angles = [wrapped(first), middle, wrapped(last)]
        out = jnp.stack(angles[::-1] if intrinsic else angles, axis=-1)
        return jnp.rad2deg(out) if degrees else out

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """Angles in [0, pi]."""
        return 2 * jnp.arctan2(jnp.linalg.norm(self.quat[..., :3], axis=-1), abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that has the least sum of squared chordal distances, times `weights`, from those of the stack."""
        quat = jnp.atleast_2d(self.quat)
        weights = jnp.ones(quat.shape[0], quat.dtype) if weights is None else jnp.asarray(weights, quat.dtype)
        if weights.shape != (quat.shape[0],):
            raise ValueError(f"Rotation.mean: one weight per rotation, {quat.shape[0]}, got shape {weights.shape}")
        return Rotation(_nearest_to_all(quat, weights))


class Slerp(NamedTuple):
    """Spherical linear interpolation between rotations: constant velocity from each to the next.

    Made by `init`.

    Examples:

      >>> from jax.scipy.spatial.transform import Rotation, Slerp

      >>> ends = Rotation.from_euler("z", jnp.array([[0.], [90.]]), degrees=True)
      >>> middle = Slerp.init(jnp.array([0., 1.]), ends)(0.5)
      >>> middle.as_rotvec(degrees=True).round(2)
      Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation of a stack of two or more rotations at increasing `times`, ``[n]``."""
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp: rotations is a Rotation, got {type(rotations)}")
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp interpolates between two rotations at least")
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.ndim != 1:
            raise ValueError(f"Slerp: times is a vector, got rank {times.ndim}")
        if times.shape[0] != len(rotations):
            raise ValueError(f"Slerp: one time per rotation, got {len(rotations)} rotations and {times.shape[0]} times")
        before = rotations[:-1]
        return cls(times, jnp.diff(times), before, (before.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at `times`, a scalar or ``[m]``; outside, motion goes on as in the nearest interval."""
        t = jnp.asarray(times, self.times.dtype)
        if t.ndim > 1:
            raise ValueError(f"Slerp: times is a scalar or a vector, got rank {t.ndim}")
        i = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        share = (t - self.times[i]) / self.timedelta[i]
        return self.rotations[i] * Rotation(_from_rotvec(self.rotvecs[i] * share[..., None]))
