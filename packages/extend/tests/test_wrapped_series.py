"""The parts of Taylor mode that are transformations of a `WrappedFun`."""

import numpy as np
import pytest

from bedrax import lax, pytree
from bedrax.extend import linear_util, wrapped_series


def flat(x):
    return [lax.exp(x), lax.mul(x, x)]


def test_series_of_a_flat_function():
    fun = wrapped_series.jet_fun(wrapped_series.jet_subtrace(linear_util.wrap_init(flat)), 3)
    (grown, square), series = fun.call_wrapped([1.0], [[1.0, 0.0, 0.0]])
    np.testing.assert_allclose(grown, np.e, rtol=1e-6)
    np.testing.assert_allclose(series[0], [np.e, np.e / 2, np.e / 6], rtol=1e-6)  # coefficients, not derivatives
    np.testing.assert_allclose([square, *series[1]], [1, 2, 1, 0], rtol=1e-6)
    with pytest.raises(ValueError, match="of order 3 needs as many terms, got .2."):
        fun.call_wrapped([1.0], [[1.0, 0.0]])


def test_arguments_as_flat_lists():
    primals, series = [1.0], [[2.0, 3.0]]
    leaves, tree = pytree.tree_flatten((primals, series))
    fun, out_tree = wrapped_series.traceable(linear_util.wrap_init(lambda ps, ss: {"s": ss, "p": ps}), tree)
    out = fun.call_wrapped(*leaves)
    assert out == [1.0, 2.0, 3.0] and pytree.tree_unflatten(out_tree(), out) == {"p": primals, "s": series}
