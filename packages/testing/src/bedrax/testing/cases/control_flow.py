"""Records of control flow."""

import numpy as np

from bedrax import lax
from bedrax.lax.primitives import control_flow as p
from bedrax.testing.records import OpCase, arg


def _recurrence(reverse=False, unroll=1):
    """A carry, a stacked result, a scanned input, and a constant."""

    def fun(a, c, xs):
        def step(c, x):
            new = lax.add(lax.mul(a, lax.sin(c)), x)
            return new, lax.mul(new, c)

        return lax.scan(step, c, xs, reverse=reverse, unroll=unroll)

    def oracle(a, c, xs):
        ys = np.zeros_like(xs)
        for i in reversed(range(len(xs))) if reverse else range(len(xs)):
            new = a * np.sin(c) + xs[i]
            ys[i] = new * c
            c = new
        return c, ys

    return dict(fun=fun, oracle=oracle)


def _counting(x):
    """No scanned inputs; an integer carry and a float carry."""

    def step(carry, _):
        i, v = carry
        return (lax.add(i, np.int32(1)), lax.mul(v, lax.cos(v))), i

    (i, v), counts = lax.scan(step, (np.int32(0), x), None, length=3)
    return i, v, counts


def _np_counting(x):
    for _ in range(3):
        x = x * np.cos(x)
    return np.int32(3), x, np.arange(3, dtype=np.int32)


def _halve_until(x, bound):
    """The number of halvings until all of `x` is below the bound; it depends on the values."""

    def going_on(state):
        return lax.gt(lax.reduce_max(lax.abs(state[1]), (0,)), lax.abs(bound))

    def halve(state):
        return lax.add(state[0], np.int32(1)), lax.mul(state[1], np.array(0.5, state[1].dtype))

    return lax.while_loop(going_on, halve, (np.int32(0), x))


def _np_halve_until(x, bound):
    n = 0
    while np.max(np.abs(x)) > np.abs(bound):
        x, n = x * x.dtype.type(0.5), n + 1
    return np.int32(n), x


def _power(x):
    return lax.fori_loop(np.int32(0), np.int32(3), lambda i, v: lax.mul(v, x), lax.full_like(x, 1))


def _either(flag, x, y):
    return lax.cond(
        flag, lambda x, y: (lax.mul(x, y), lax.sin(x)), lambda x, y: (lax.neg(y), lax.full_like(x, 2)), x, y
    )


def _np_either(flag, x, y):
    return (x * y, np.sin(x)) if flag else (-y, np.full_like(x, 2))


def _choice(i, x):
    return lax.switch(i, [lax.sin, lax.square, lambda x: lax.full_like(x, 0)], x)


def _np_choice(i, x):
    return [np.sin, np.square, np.zeros_like][min(max(int(i), 0), 2)](x)


_XS = arg((4, 2))

CASES = [
    OpCase(p.scan_p, "forward", args=(arg((2,)), arg((2,)), _XS), **_recurrence()),
    OpCase(p.scan_p, "reverse", args=(arg((2,)), arg((2,)), _XS), **_recurrence(reverse=True)),
    OpCase(p.scan_p, "unrolled", args=(arg(()), arg(()), arg((5,))), **_recurrence(unroll=2)),
    OpCase(p.scan_p, "integers", _counting, (arg((2,)),), oracle=_np_counting),
    OpCase(p.scan_p, "no_steps", args=(arg((2,)), arg((2,)), arg((0, 2))), grad=(), **_recurrence()),
    OpCase(p.while_p, "bounded_by_values", _halve_until, (arg((3,), low=3, high=9), arg((), low=0.4, high=0.6)),
           oracle=_np_halve_until, transpose=False),
    OpCase(p.while_p, "fori_unknown_bounds",
           lambda n, x: lax.fori_loop(np.int32(0), n, lambda i, v: lax.sin(v), x), (np.int32(3), arg((2,))),
           oracle=lambda n, x: np.sin(np.sin(np.sin(x))), transpose=False),
    OpCase(p.scan_p, "fori_known_bounds", _power, (arg((2,)),), oracle=lambda x: x**3),
    OpCase(p.cond_p, "true", _either, (np.array(True), arg((2,)), arg((2,))), oracle=_np_either),
    OpCase(p.cond_p, "random", _either, (arg((), "bool"), arg((2,)), arg((2,))), oracle=_np_either),
    OpCase(p.cond_p, "switch", _choice, (np.int32(1), arg((2,))), oracle=_np_choice),
    OpCase(p.cond_p, "switch_clamped", _choice, (arg((), "int32", -2, 5), arg((2,))), oracle=_np_choice),
]  # fmt: skip
