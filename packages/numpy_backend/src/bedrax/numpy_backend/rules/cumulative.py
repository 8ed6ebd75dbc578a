"""NumPy evaluation of the cumulative reductions."""

import numpy as np

from bedrax.lax.primitives import cumulative
from bedrax.numpy_backend.numbers import narrow
from bedrax.numpy_backend.rules.reductions import accumulator
from bedrax.numpy_backend.tables import numpy_rules


def _log_add_exp(x, y):
    if np.iscomplexobj(x):
        m = np.maximum(x.real, y.real)
        m = np.where(np.isfinite(m), m, 0)
        return np.log(np.exp(x - m) + np.exp(y - m)) + m
    return np.logaddexp(x, y)


_ACCUMULATE = {
    cumulative.cumsum_p: np.add.accumulate,
    cumulative.cumprod_p: np.multiply.accumulate,
    cumulative.cummax_p: np.maximum.accumulate,
    cumulative.cummin_p: np.minimum.accumulate,
}


def _rule(prim):
    accumulate = _ACCUMULATE.get(prim)

    def evaluate(x, *, axis, reverse):
        wide = x.astype(accumulator(x.dtype), copy=False)
        if reverse:
            wide = np.flip(wide, axis)
        with np.errstate(all="ignore"):
            if accumulate is not None:
                out = accumulate(wide, axis=axis)
            elif np.iscomplexobj(wide):
                out = wide.copy()
                rows = np.moveaxis(out, axis, 0)  # a view
                for i in range(1, len(rows)):
                    rows[i] = _log_add_exp(rows[i - 1], rows[i])
            else:
                out = np.logaddexp.accumulate(wide, axis=axis)
        return narrow(np.flip(out, axis) if reverse else out, x.dtype)

    numpy_rules.add(prim, evaluate)


@numpy_rules.rule(cumulative.linear_recurrence_p)
def _linear_recurrence(a, b, *, axis, reverse):
    wide = accumulator(b.dtype)
    out = b.astype(wide)  # a copy, whose rows are replaced in the order of the recurrence
    rows, factors = np.moveaxis(out, axis, 0), np.moveaxis(a.astype(wide), axis, 0)
    if reverse:
        rows, factors = rows[::-1], factors[::-1]
    with np.errstate(all="ignore"):
        for i in range(1, len(rows)):
            rows[i] += factors[i] * rows[i - 1]
    return narrow(out, b.dtype)


for _prim in (*_ACCUMULATE, cumulative.cumlogsumexp_p):
    _rule(_prim)
