"""Checks that hold for every record: typing, batching, derivatives, XLA against NumPy.

Each takes an `OpCase` and raises AssertionError. Values are compared with tolerances that belong
to the dtype unless the record has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import config, dtypes, executors, staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit
from bedrax.core.passes import all_equations
from bedrax.core.typing import ArrayLike
from bedrax.numpy_backend.executor import evaluate, to_numpy
from bedrax.testing.records import ArgSpec, OpCase
from bedrax.testing.typing import as_list, check_program, x64_if_needed
from bedrax.testing.typing import check_complete as check_complete
from bedrax.testing.typing import check_types as check_types

# Relative to the larger of 1 and the magnitude of the expected value.
_EPS_FACTOR = {16: 4, 32: 64, 64: 512}


def tolerance(dtype: np.dtype) -> float:
    """The default tolerance of comparisons of values of `dtype`."""
    if not dtypes.is_inexact(dtype):
        return 0.0
    eps = float(dtypes.finfo(dtype).eps)
    return eps * (_EPS_FACTOR[64 if eps < 1e-12 else 32] if eps < 1e-5 else 3)


def as_numpy(x: ArrayLike) -> np.ndarray:
    """A result as a NumPy array."""
    return to_numpy(x)[0] if not isinstance(x, np.ndarray) else x


def assert_same(
    actual: ArrayLike,
    expected: np.ndarray[Any, Any],
    rtol: float | None = None,
    atol: Any = None,
    equal_nan: bool = True,
    what: str = "",
) -> None:
    """Equal shapes and dtypes, and values within the tolerance."""
    actual, expected = as_numpy(actual), as_numpy(expected)
    assert actual.dtype == expected.dtype, f"{what}: dtype {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    dtype = actual.dtype
    if dtypes.is_inexact(dtype):
        rtol = tolerance(dtype) if rtol is None else rtol
        atol = rtol if atol is None else atol
        wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
        options = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, err_msg=what)
        np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), **options)
    else:
        if not dtypes.is_native(dtype) and dtype != dtypes.float0:
            actual, expected = actual.astype(np.int64), expected.astype(np.int64)
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def numpy_results(case: OpCase, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the NumPy rules for a jaxpr, with any active executor."""
    jaxpr = staging.program_of(lambda *xs: as_list(case.fun(*xs)), [aval_of(a) for a in args])
    assert any(eqn.primitive is case.primitive for eqn in all_equations(jaxpr)), (
        f"{case.id}: the function does not bind '{case.primitive}'"
    )
    return evaluate(jaxpr, *[to_numpy(a)[0] for a in args])


def check_evaluation(case: OpCase) -> None:
    """The NumPy rule returns exactly the types of the shape rule, and the values of the oracle."""
    with x64_if_needed(case):
        args = case.make_args()
        results = numpy_results(case, args)
        jaxpr = staging.program_of(lambda *xs: as_list(case.fun(*xs)), [aval_of(a) for a in args])
        for out, aval in zip(results, jaxpr.out_avals, strict=True):
            if not aval.is_array:
                continue
            assert type(out) is np.ndarray, f"{case.id}: the rule returned {type(out)}"
            assert (out.shape, out.dtype) == (aval.shape, aval.dtype), (
                f"{case.id}: NumPy gives {out.dtype}{out.shape}, the shape rule gives {aval}"
            )
        if case.oracle is not None:
            with np.errstate(all="ignore"):
                expected = case.oracle(*args)
            if not (isinstance(expected, tuple) or len(results) > 1):
                expected = [expected]  # a plain list is an array here
            for out, want in zip(results, expected, strict=True):
                assert_same(out, np.asarray(want).astype(out.dtype), case.rtol, case.atol, what=case.id)


# ---- conditioning --------------------------------------------------------------------------------

# They select, compare or convert, and round nothing inside.
_EXACT = frozenset(
    "argmax argmin bitcast_convert_type convert_element_type eq eq_to ge gt le le_to lt lt_to max min ne"
    " reduce_max reduce_min round select_and_scatter_add sort".split()
)


def moved(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`x` with each element moved by one unit in the last place, up or down.

    Zeros, integers, elements that are not finite, and floats of fewer than 32 bits stay: operations compute with the
    latter in 32 bits, whose rounding is finer than their unit.
    """
    if not dtypes.is_inexact(x.dtype) or x.dtype.itemsize < 4:
        return x
    if dtypes.is_complex(x.dtype):
        return (moved(x.real, rng) + 1j * moved(x.imag, rng)).astype(x.dtype)
    with np.errstate(all="ignore"):
        near = np.nextafter(x, np.where(rng.random(x.shape) < 0.5, x.dtype.type(np.inf), x.dtype.type(-np.inf)))
    return np.where(np.isfinite(x) & np.isfinite(near) & (x != 0), near, x)


def check_conditioned(case: OpCase, draws: int = 3) -> None:
    """The results move less than their tolerance if the operands move by one unit in the last place.

    CPUs and libraries round differently. So a comparison that is finer than that depends on the machine.
    """
    if case.exact is not None or case.primitive.name in _EXACT:
        return
    with x64_if_needed(case):
        args = case.make_args()
        rng = case.rng()
        results = numpy_results(case, args)
        for _ in range(draws):
            near = numpy_results(case, [moved(a, rng) for a in args])
            for out, want in zip(near, results, strict=True):
                assert_same(out, want, case.rtol, case.atol, what=f"{case.id}: ill-conditioned")


# ---- types of programs ---------------------------------------------------------------------------


def check_batched_types(case: OpCase) -> None:
    """The batched program is well typed, with all operands mapped at the front or at the back, and mapped twice."""
    from bedrax.batching import vmap

    with x64_if_needed(case):
        args = case.make_args()
        allowed = tuple(range(len(args))) if case.batch is None else case.batch
        if not allowed:
            return
        for front in (True, False):
            axes = tuple((0 if front else a.ndim) if i in allowed else None for i, a in enumerate(args))
            mapped = [a if d is None else np.stack([a] * 3, d) for a, d in zip(args, axes, strict=True)]
            check_program(vmap(case.fun, in_axes=axes), mapped, f"{case.id} in_axes={axes}")
        axes = tuple(0 if i in allowed else None for i in range(len(args)))
        twice = [np.stack([np.stack([a] * 3)] * 2) if d == 0 else a for a, d in zip(args, axes, strict=True)]
        check_program(vmap(vmap(case.fun, in_axes=axes), in_axes=axes), twice, f"{case.id} mapped twice")


def check_derivative_types(case: OpCase) -> None:
    """Forward and reverse mode, one in the other, the linear program and the mapped ones give well typed programs."""
    from bedrax.autodiff import jvp, linearize, vjp
    from bedrax.batching import vmap

    with config.enable_x64(True):
        f, xs = _prepared(case)
        out = as_list(f(*xs)) if xs else []
        if not out:
            return
        tangents = [np.ones_like(x) for x in xs]
        cts = [np.ones(aval_of(x).shape, aval_of(x).dtype) for x in out]
        n = len(xs)

        def forward(*values):
            return as_list(jvp(f, values[:n], values[n:])[1])

        def linear(*values):
            return as_list(linearize(f, *values[:n])[1](*values[n:]))

        def backward(*values):
            return list(vjp(f, *values[:n])[1](tuple(values[n:])))

        programs = [("jvp", forward, [*xs, *tangents])]
        if case.transpose:
            programs += [("linearize", linear, [*xs, *tangents]), ("vjp", backward, [*xs, *cts])]
        if case.second and case.transpose:
            reverse = [*xs, *cts]
            moved = [*reverse, *(np.ones_like(x) for x in reverse)]
            second = lambda *v: as_list(jvp(backward, v[: len(reverse)], v[len(reverse) :])[1])
            programs.append(("jvp of vjp", second, moved))
        for name, fun, args in programs:
            check_program(fun, args, f"{case.id} {name}")
            if case.batch is None and name in ("jvp", "vjp"):
                check_program(vmap(fun), [np.stack([a] * 3) for a in args], f"{case.id} vmap of {name}")


# ---- batching ------------------------------------------------------------------------------------


def _axis_choices(args, allowed):
    """Some ways to map: each operand alone, all in front, all at the back, and a mixture."""
    ranks = [a.ndim for a in args]
    base = [None] * len(args)
    choices = []
    for i in allowed:
        choices.append([*base[:i], 0, *base[i + 1 :]])
    if len(allowed) > 1:
        choices.append([0 if i in allowed else None for i in range(len(args))])
        choices.append([(ranks[i] if k % 2 else 0) if i in allowed else None for k, i in enumerate(range(len(args)))])
    choices.append([ranks[i] if i in allowed else None for i in range(len(args))])
    return [list(c) for c in dict.fromkeys(map(tuple, choices))]


def check_batching(case: OpCase, size: int = 3) -> None:
    """`vmap` equals a loop, for several choices of mapped axes; once nested."""
    from bedrax.batching import vmap

    with x64_if_needed(case):
        args = case.make_args()
        allowed = tuple(range(len(args))) if case.batch is None else case.batch
        if not allowed:
            return
        # Different operands per position: the first is the record's own.
        others = [args] + [_varied(case, args, k) for k in range(1, size)]
        for in_axes in _axis_choices(args, allowed):
            stacked = [
                args[i] if axis is None else np.stack([o[i] for o in others], axis) for i, axis in enumerate(in_axes)
            ]
            expected = _loop(case, args, others, [axis is not None for axis in in_axes])
            actual = as_list(vmap(case.fun, in_axes=tuple(in_axes))(*stacked))
            for out, want in zip(actual, expected, strict=True):
                assert_same(out, want, case.rtol, case.atol, what=f"{case.id} in_axes={in_axes}")
        in_axes = tuple(0 if i in allowed else None for i in range(len(args)))
        twice = [np.stack([np.stack([o[i] for o in others])] * 2) if i in allowed else a for i, a in enumerate(args)]
        nested = as_list(vmap(vmap(case.fun, in_axes=in_axes), in_axes=in_axes)(*twice))
        expected = _loop(case, args, others, [i in allowed for i in range(len(args))])
        for out, want in zip(nested, expected, strict=True):
            assert_same(out, np.stack([want] * 2), case.rtol, case.atol, what=f"{case.id} nested")


def _loop(case, args, others, mapped) -> list[np.ndarray]:
    """The definition of `vmap`: the results for each set of operands, stacked."""
    rows = []
    for other in others:
        operands = [o if m else a for a, o, m in zip(args, other, mapped, strict=True)]
        rows.append([as_numpy(v) for v in as_list(case.fun(*operands))])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _varied(case, args, k):
    """Other operands of the same types: the elements rolled, or drawn again if they are random."""
    rng = np.random.default_rng(case.rng().integers(1 << 31) + k)
    return [s.make(rng) if isinstance(s, ArgSpec) else a for s, a in zip(case.args, args, strict=True)]


# ---- derivatives (in 64 bits) --------------------------------------------------------------------


def _direction(rng, x):
    d = rng.standard_normal(x.shape)
    return d + 1j * rng.standard_normal(x.shape) if dtypes.is_complex(x.dtype) else d


def _numeric(f, args, tangents, step):
    """A central difference of fourth order."""

    def at(k):
        return [as_numpy(v) for v in as_list(f(*[a + k * step * t for a, t in zip(args, tangents, strict=True)]))]

    p1, m1, p2, m2 = at(1), at(-1), at(2), at(-2)
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in zip(p1, m1, p2, m2, strict=True)]


def _restricted(case, args, positions):
    """The function of the differentiated operands, returning its inexact results."""

    def f(*xs):
        full = list(args)
        for i, x in zip(positions, xs, strict=True):
            full[i] = x
        return tuple(v for v in as_list(case.fun(*full)) if dtypes.is_inexact(aval_of(v).dtype))

    return f


def _prepared(case):
    args = case.make_args(wide=True)
    positions = case.diff_args(args)
    return _restricted(case, args, positions), [args[i] for i in positions]


def _close(actual, expected, rtol, what):
    for a, e in zip(actual, expected, strict=True):
        a = as_numpy(a)
        e = as_numpy(e)
        assert a.shape == e.shape, f"{what}: shape {a.shape}, expected {e.shape}"
        scale = max(1.0, float(np.max(np.abs(e), initial=0.0)))
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol * scale, err_msg=what)


def check_jvp(case: OpCase, step: float = 1e-3) -> None:
    """Forward derivatives equal finite differences, for all operands together and each alone."""
    from bedrax.autodiff import jvp

    with config.enable_x64(True):
        f, xs = _prepared(case)
        if not xs or not as_list(f(*xs)):
            return
        rng = case.rng()
        tangents = [_direction(rng, x) for x in xs]
        each = range(len(xs) if len(xs) > 1 else 0)
        choices = [tangents]
        choices += [[t if i == j else np.zeros_like(t) for j, t in enumerate(tangents)] for i in each]
        for choice in choices:
            _, out = jvp(f, tuple(xs), tuple(choice))
            _close(as_list(out), _numeric(f, xs, choice, step), case.grad_rtol, f"{case.id} jvp")
        for i in each:  # others not differentiated at all

            def alone(x, i=i):
                return f(*xs[:i], x, *xs[i + 1 :])

            _, out = jvp(alone, (xs[i],), (tangents[i],))
            expected = _numeric(alone, [xs[i]], [tangents[i]], step)
            _close(as_list(out), expected, case.grad_rtol, f"{case.id} jvp {i}")


def _pair(ct, t) -> float:
    return float(np.sum(np.real(as_numpy(ct) * as_numpy(t))))


def check_vjp(case: OpCase) -> None:
    """<ct, J t> = <J^T ct, t>, where pairs are the real parts of products; all operands, and each alone."""
    from bedrax.autodiff import jvp, vjp

    if not case.transpose:
        return
    with config.enable_x64(True):
        f, xs = _prepared(case)
        if not xs:
            return
        rng = case.rng()
        subsets = [tuple(range(len(xs)))] + ([(i,) for i in range(len(xs))] if len(xs) > 1 else [])
        for subset in subsets:

            def g(*ys, subset=subset):
                full = list(xs)
                for i, y in zip(subset, ys, strict=True):
                    full[i] = y
                return f(*full)

            primals = tuple(xs[i] for i in subset)
            tangents = tuple(_direction(rng, x) for x in primals)
            out, out_tangents = jvp(g, primals, tangents)
            if not out:
                return
            cts = tuple(_direction(rng, as_numpy(o)) for o in out)
            _, pullback = vjp(g, *primals)
            back = pullback(cts)
            for b, x in zip(back, primals, strict=True):
                assert as_numpy(b).shape == x.shape and as_numpy(b).dtype == x.dtype, f"{case.id}: cotangent type"
            left = sum(_pair(c, t) for c, t in zip(cts, out_tangents, strict=True))
            right = sum(_pair(b, t) for b, t in zip(back, tangents, strict=True))
            np.testing.assert_allclose(right, left, rtol=1e-9, atol=1e-9, err_msg=f"{case.id} vjp {subset}")


def check_second_derivative(case: OpCase, step: float = 1e-3) -> None:
    """Forward over reverse equals finite differences of reverse."""
    from bedrax.autodiff import jvp, vjp

    if not (case.second and case.transpose):
        return
    with config.enable_x64(True):
        f, xs = _prepared(case)
        out = as_list(f(*xs)) if xs else []
        if not out:
            return
        rng = case.rng()
        cts = tuple(_direction(rng, as_numpy(o)) for o in out)

        def gradient(*ys):
            return tuple(vjp(f, *ys)[1](cts))

        tangents = [_direction(rng, x) for x in xs]
        _, actual = jvp(gradient, tuple(xs), tuple(tangents))
        expected = _numeric(gradient, xs, tangents, step)
        _close(as_list(actual), expected, max(case.grad_rtol, 1e-4), f"{case.id} second derivative")


# ---- XLA -----------------------------------------------------------------------------------------


def check_xla(case: OpCase) -> None:
    """The results of XLA equal those of the NumPy rules, with equal types."""
    with x64_if_needed(case):
        args = case.make_args()
        expected = numpy_results(case, args)
        actual = as_list(jit(case.fun)(*args))
        for out, want in zip(actual, expected, strict=True):
            assert_same(out, want, case.rtol, case.atol, case.equal_nan, what=case.id)


# ---- several devices ---------------------------------------------------------------------------


def check_devices(case: OpCase, sharding: Any) -> str | None:
    """Check that a batch with one element per device gives the results of its elements, with the same sharding.

    Args:
      sharding: splits the leading axis, one element on each device.

    Returns:
      None, or what the result's placement is where it is another one.
    """
    from bedrax.batching import vmap

    with x64_if_needed(case):
        args = case.make_args()
        allowed = tuple(range(len(args))) if case.batch is None else case.batch
        if not allowed:
            return None
        count = sharding.num_devices
        axes = tuple(0 if i in allowed else None for i in range(len(args)))
        mapped = [np.stack([a] * count) if d == 0 else a for a, d in zip(args, axes, strict=True)]
        f = jit(lambda *xs: as_list(vmap(case.fun, in_axes=axes)(*xs)))
        spread = [executors.get().reshard(a, sharding) if d == 0 else a for a, d in zip(mapped, axes, strict=True)]
        for x, want in zip(f(*spread), f(*mapped), strict=True):
            assert_same(x, want, case.rtol, case.atol, what=case.id)
            if x.size and not x.sharding.is_equivalent_to(sharding, x.ndim):
                return str(x.sharding)
    return None
