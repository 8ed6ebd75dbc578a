"""Checks of derivatives against finite differences, for any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.autodiff.derivatives import jvp
from bedrax.autodiff.linear_maps import vjp
from bedrax.core import dtypes

# Tolerances of derivatives by dtype: differences lose about half of the digits.
_TOLERANCE = {
    "bfloat16": 1e-1,
    "float16": 1e-1,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float64": 1e-5,
    "complex128": 1e-5,
}


def _like(rng: np.random.Generator, x: Any) -> np.ndarray:
    """A random array of the type of `x`, with unit norm."""
    dtype = np.dtype(getattr(x, "dtype", np.result_type(x)))
    values = rng.standard_normal(np.shape(x))
    if dtypes.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.standard_normal(np.shape(x))
    return np.asarray(values, dtype=dtypes.canonicalize_dtype(dtype))


def _wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if dtypes.issubdtype(x.dtype, np.complexfloating) else np.float64)


def _tolerance(given, *trees) -> float:
    if given is not None and not isinstance(given, dict):
        return float(given)
    table = {**_TOLERANCE, **{np.dtype(k).name: v for k, v in (given or {}).items()}}
    found = [table.get(np.asarray(x).dtype.name, 0.0) for t in trees for x in pytree.tree_leaves(t)]
    return max(found, default=0.0)


def _close(actual, expected, atol, rtol, message: str) -> None:
    a_leaves, a_tree = pytree.tree_flatten(actual)
    e_leaves, e_tree = pytree.tree_flatten(expected)
    assert a_tree == e_tree, f"{message}: structures differ: {a_tree} and {e_tree}"
    for a, e in zip(a_leaves, e_leaves, strict=True):
        np.testing.assert_allclose(
            _wide(a), _wide(e), atol=_tolerance(atol, a, e), rtol=_tolerance(rtol, a, e), err_msg=message
        )


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raise AssertionError unless two pytrees have the same structure and shapes, and close values; dtypes may differ.

    Args:
      xs, ys: pytrees of arrays.
      atol, rtol: tolerances, or dictionaries of them by dtype; by default some roundings of each dtype. Of two dtypes,
        the wider tolerance counts.
      err_msg: the beginning of the message.
    """
    leaves = [*pytree.tree_leaves(xs), *pytree.tree_leaves(ys)]
    inexact = {np.asarray(x).dtype for x in leaves if dtypes.issubdtype(np.asarray(x).dtype, np.inexact)}
    roundings = {**dict.fromkeys(_TOLERANCE, 0.0), **{t.name: 8 * float(dtypes.finfo(t).eps) for t in inexact}}
    atol, rtol = (
        t
        if t is not None and not isinstance(t, dict)
        else {**roundings, **{np.dtype(k).name: v for k, v in (t or {}).items()}}
        for t in (atol, rtol)
    )
    _close(xs, ys, atol, rtol, err_msg or "check_close")
    for x, y in zip(pytree.tree_leaves(xs), pytree.tree_leaves(ys), strict=True):
        assert np.shape(x) == np.shape(y), f"{err_msg} {np.shape(x)} and {np.shape(y)}".strip()


def _difference(f: Callable, args: tuple, tangents: tuple, eps: float):
    """Central difference of `f` along `tangents`."""

    def shifted(sign):
        return pytree.tree_map(
            lambda x, t: np.asarray(_wide(x) + sign * eps / 2 * _wide(t), dtype=np.asarray(x).dtype), args, tangents
        )

    return pytree.tree_map(lambda a, b: (_wide(a) - _wide(b)) / eps, f(*shifted(1)), f(*shifted(-1)))


def _default_eps(args) -> float:
    widths = [
        np.finfo(np.asarray(x).dtype).eps if np.asarray(x).dtype.kind in "fc" else 0 for x in pytree.tree_leaves(args)
    ]
    return 1e-4 if max(widths, default=0) < 1e-10 else 1e-2


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_jvp(args, tangents)`` with central differences of `f`.

    Args:
      args: the arguments of `f`, pytrees of float or complex arrays.
      atol, rtol: tolerances, numbers or dictionaries by dtype.
      eps: step of the differences.
      err_msg: the beginning of the messages of errors.

    Raises:
      AssertionError: values or derivatives disagree.

    Examples:

      >>> from jax.test_util import check_jvp

      >>> from functools import partial
      >>> check_jvp(jnp.sin, partial(jax.jvp, jnp.sin), (1.,))
    """
    eps = _default_eps(args) if eps is None else eps
    rng = np.random.default_rng(0)
    args = tuple(args)
    tangents = pytree.tree_map(lambda x: _like(rng, x), args)
    value, tangent = f_jvp(args, tangents)
    _close(value, f(*args), atol, rtol, f"{err_msg} primal of jvp".strip())
    _close(
        tangent,
        _cast_like(_difference(f, args, tangents, eps), tangent),
        atol,
        rtol,
        f"{err_msg} tangent of jvp".strip(),
    )


def _cast_like(tree, like):
    return pytree.tree_map(lambda x, y: x.astype(np.asarray(y).dtype), tree, like)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare ``f_vjp(*args) -> (value, pullback)`` with central differences of `f`, by inner products.

    Args:
      f, args, atol, rtol, eps: as in `check_jvp`.
      f_vjp: the function to check.
      err_msg: the start of the message of an error.

    Raises:
      AssertionError: values or derivatives disagree.

    Examples:

      >>> from jax.test_util import check_vjp

      >>> from functools import partial
      >>> check_vjp(jnp.sin, partial(jax.vjp, jnp.sin), (1.,))
    """
    eps = _default_eps(args) if eps is None else eps
    rng = np.random.default_rng(1)
    args = tuple(args)
    value, pullback = f_vjp(*args)
    _close(value, f(*args), atol, rtol, f"{err_msg} primal of vjp".strip())
    tangents = pytree.tree_map(lambda x: _like(rng, x), args)
    expected = _difference(f, args, tangents, eps)
    ct = pytree.tree_map(lambda x: _like(rng, x), value)
    back = pullback(ct)

    def inner(a, b):
        return sum(
            np.sum(_wide(x) * _wide(y)).real for x, y in zip(pytree.tree_leaves(a), pytree.tree_leaves(b), strict=True)
        )

    left, right = np.asarray(inner(tangents, back)), np.asarray(inner(expected, ct))
    np.testing.assert_allclose(
        left,
        right,
        atol=_tolerance(atol, value),
        rtol=_tolerance(rtol, value),
        err_msg=f"{err_msg} cotangent of vjp".strip(),
    )


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` up to `order` with central differences, by checking the derivatives' derivatives in turn.

    Args:
      f: a function of pytrees of float or complex arrays.
      args: its arguments.
      order: how many times derivatives are taken, at least 1.
      modes: "fwd" (jvp), "rev" (vjp), or both.
      atol, rtol: tolerances, numbers or dictionaries by dtype; None: tolerances for the dtype.
      eps: the step of the differences; None: a step for the dtype.

    Raises:
      AssertionError: some derivative disagrees.

    Examples:

      >>> from jax.test_util import check_grads

      >>> check_grads(jnp.sin, (jnp.array([0.5, 1.]),), order=2)
    """
    args = tuple(args)

    def check(f, args, order, name):
        if "fwd" in modes:
            check_jvp(f, lambda a, t: jvp(f, a, t), args, atol, rtol, eps, f"{name}jvp:")
            if order > 1:
                check(
                    lambda a, t: jvp(f, a, t),
                    (args, pytree.tree_map(lambda x: _like(np.random.default_rng(2), x), args)),
                    order - 1,
                    f"{name}jvp of ",
                )
        if "rev" in modes:
            check_vjp(f, lambda *a: vjp(f, *a), args, atol, rtol, eps, f"{name}vjp:")
            if order > 1:
                ct = pytree.tree_map(lambda x: _like(np.random.default_rng(3), x), f(*args))
                check(lambda ct, *a: vjp(f, *a)[1](ct), (ct, *args), order - 1, f"{name}vjp of ")

    check(f, args, order, "")
