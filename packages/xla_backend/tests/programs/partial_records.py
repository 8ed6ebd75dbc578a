"""Checks the records with the given ids with operands that are partial sums, and with operands that are sums.

Prints a line per record: its id, its primitive, "passed on", "refused", or what is wrong.
"""

import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax.autodiff import vjp
from bedrax.core import dtypes
from bedrax.core.avals import aval_of, typeof
from bedrax.core.jitting import jit
from bedrax.lax.filling import full_like
from bedrax.parallel import AxisType, set_mesh
from bedrax.parallel.explicit import ShardingTypeError
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend.placement import make_array_from_single_device_arrays
from bedrax.xla_backend.sharding import NamedSharding
from bedrax.xla_backend.sharding import PartitionSpec as P

mesh = xla.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
SUMS, REDUCED = NamedSharding(mesh, P(unreduced={"x"})), NamedSharding(mesh, P(reduced={"x"}))


def in_parts(value):
    """An array whose four parts differ, with `value` as their sum."""
    half = value // 2 if dtypes.is_integer(value.dtype) else value * value.dtype.type(0.5)
    other = np.arange(value.size).reshape(value.shape).astype(value.dtype)
    if value.dtype.itemsize == 1 or value.dtype.kind == "u":
        other = 0 * other  # parts that wrap around are not those of a wider result
    parts = [half, other, value - half, (0 * other - other).astype(value.dtype)]
    devices = [(d, parts[i].astype(value.dtype)) for (i, _), d in np.ndenumerate(mesh.devices)]
    return make_array_from_single_device_arrays(value.shape, SUMS, [xla.device_put(v, d) for d, v in devices])


def is_number(a):
    return a.dtype != np.bool_ and a.dtype.kind != "V" and isinstance(a.dtype, np.dtype) and a.size > 0


def of_parts(case, args, chosen, want):
    """Whether the operation passes partial sums on; raises if it is refused."""
    given = [in_parts(a) if i in chosen else a for i, a in enumerate(args)]
    with set_mesh(mesh):
        found = jit(lambda *xs: checks.as_list(case.fun(*xs)))(*given)
    partial = False
    for x, y in zip(found, want, strict=True):
        partial = partial or bool(typeof(x).split is not None and typeof(x).split.spec.unreduced == {"x"})
        finite = np.asarray(y).astype(np.complex128)
        size = np.max(np.abs(finite[np.isfinite(finite)]), initial=1) + max(a.size for a in args)
        known = np.isfinite(finite)  # the sum of 1 / 0 and 0 / 0 is not an infinity
        tolerance = 1e-4 if np.dtype(y.dtype).itemsize >= 4 else 0.07
        found_values = np.asarray(x).astype(np.complex128)[known]
        np.testing.assert_allclose(found_values, finite[known], rtol=tolerance, atol=float(size) * tolerance)
    return partial


def cotangents(case, args, wrt, place):
    def of_chosen(*chosen):
        every = list(args)
        for i, x in zip(wrt, chosen, strict=True):
            every[i] = x
        return [y for y in checks.as_list(case.fun(*every)) if dtypes.is_inexact(aval_of(y).dtype)]

    def pulled(*chosen):
        outs, back = vjp(of_chosen, *chosen)
        return back([full_like(y, 1) for y in outs])

    with set_mesh(mesh):
        return jit(pulled)(*[place(args[i]) for i in wrt])


def check(case):
    with checks.x64_if_needed(case):
        args = case.make_args()
        want = [np.asarray(y) for y in jit(lambda *xs: checks.as_list(case.fun(*xs)))(*args)]
        numbers = [i for i, a in enumerate(args) if is_number(a)]
        verdicts = []
        for chosen in [(i,) for i in numbers] + ([tuple(numbers)] if len(numbers) > 1 else []):
            try:
                verdicts.append("passed on" if of_parts(case, args, chosen, want) else "independent")
            except ShardingTypeError:
                verdicts.append("refused")
        wrt = case.diff_args(args) if case.transpose else ()
        wrt = [i for i in wrt if args[i].size and dtypes.is_inexact(args[i].dtype)]
        if wrt and any(dtypes.is_inexact(y.dtype) for y in want):
            plain = cotangents(case, args, wrt, lambda a: a)
            for x, y in zip(cotangents(case, args, wrt, lambda a: xla.device_put(a, REDUCED)), plain, strict=True):
                assert typeof(x).split is not None and typeof(x).split.spec.unreduced == {"x"}, typeof(x)
                checks.assert_same(np.asarray(x), np.asarray(y), case.rtol or 1e-3, case.atol or 1e-3, what=case.id)
    return next((v for v in ("passed on", "refused", "independent") if v in verdicts), "no operand")


chosen = set(sys.stdin.read().split("\n"))
for case in all_cases():
    if case.id in chosen:
        try:
            verdict = check(case)
        except Exception as error:
            verdict = f"raised {type(error).__name__}: {error}"
        print(case.id, case.primitive, verdict.replace("\n", " ")[:400], sep="\t", flush=True)
