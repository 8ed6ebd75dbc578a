"""The two ways to compute cumulative reductions agree with the NumPy rules."""

import numpy as np
import pytest

from bedrax.lax.primitives import cumulative as p
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.tables import numpy_rules

CUMULATIVE = [p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p, p.linear_recurrence_p]


@pytest.mark.parametrize("way", [p.parallel, p.sequential])
@pytest.mark.parametrize("prim", CUMULATIVE, ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13, 70])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(way, prim, n, reverse):
    rng = np.random.default_rng(n)
    count = 2 if prim is p.linear_recurrence_p else 1
    for axis, shape in ((0, (n,)), (1, (2, n)), (1, (2, n, 3))):
        xs = [rng.uniform(-1.2, 1.2, shape).astype(np.float32) for _ in range(count)]
        expected = numpy_rules[prim](*xs, axis=axis, reverse=reverse)
        actual = to_numpy(way(prim)(*xs, axis=axis, reverse=reverse))[0]
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", [p.parallel, p.sequential])
def test_narrow_sums_are_formed_in_a_wider_type(way):
    x = np.ones(600, "float16")
    assert to_numpy(way(p.cumsum_p)(x.astype("bfloat16"), axis=0, reverse=False))[0][-1] == 600
    ints = np.arange(-5, 5, dtype=np.int8)
    assert to_numpy(way(p.cummax_p)(ints, axis=0, reverse=True))[0].tolist() == [4] * 10


@pytest.mark.parametrize("way", [p.parallel, p.sequential])
def test_narrow_recurrences_are_formed_in_a_wider_type(way):
    """Derivatives of the other reductions are recurrences. Rounded pairs lost a seventh of the largest value."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.98, 1.02, 3000).astype("bfloat16"), rng.uniform(-1, 1, 3000).astype("bfloat16")
    exact = numpy_rules[p.linear_recurrence_p](a.astype("f8"), b.astype("f8"), axis=0, reverse=False)
    found = to_numpy(way(p.linear_recurrence_p)(a, b, axis=0, reverse=False))[0]
    assert found.dtype == a.dtype
    assert np.abs(found.astype("f8") - exact).max() < 0.005 * np.abs(exact).max()
