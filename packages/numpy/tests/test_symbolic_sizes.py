"""Slices with symbolic bounds: their types are decided, and are those of the same slices of known sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax.core import dims
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.errors import InconclusiveDimensionOperation
from bedrax.core.staging import eval_shape

symbolic_shape = pytest.importorskip("bedrax.shape_poly").symbolic_shape  # not below this package

SIZES = [(1, 1), (2, 7), (3, 4), (5, 3), (1, 9), (4, 8)]
SLICES = """
    b:-b  2:-b:2  -2*b::-1  :b  b:  -b:  :-b  ::2  ::-2  b:c  1:b+1  b:2*b  0:b:2  -b:-1  ::b  -b::-1  :b:-1  b:-b:2
    b:-b:-1  2*b:b:-1  c:  c-1::-1  c+1:  :c+1  -c:  -c-1:  2*b:-2*b:3  -2*b:  b:-1  1:-1  -b:b  b//2:-b:2 
    c//2:  :c//2:2
""".split()


def _slice(text, b, c):
    return slice(*[eval(part, {"b": b, "c": c}) if part else None for part in text.split(":")])


@pytest.mark.parametrize("text", SLICES)
def test_types_of_slices(text):
    b, c = symbolic_shape("b, c")
    out = eval_shape(lambda x: x[_slice(text, b, c)], ShapeDtypeStruct((c,), np.float32))
    for n, m in SIZES:
        size = out.shape[0]
        found = size.evaluate({"b": n, "c": m}) if dims.is_symbolic(size) else size
        assert found == len(range(m)[_slice(text, n, m)])


bounds_of_slices = st.sampled_from(
    ["", "b", "-b", "c", "-c", "2*b", "b+1", "c-1", "-b-1", "1", "-2", "min(b, c)", "max(b, c)"]
)


@settings(deadline=None, max_examples=40)
@given(bounds_of_slices, bounds_of_slices, st.sampled_from(["", "1", "2", "-1", "-3", "b"]))
def test_slices_are_decided_or_refused(start, stop, step):
    b, c = symbolic_shape("b, c")
    functions = {"min": dims.min_dim, "max": dims.max_dim}

    def parts(b, c):
        return slice(*[eval(p, {"b": b, "c": c, **functions}) if p else None for p in (start, stop, step)])

    try:
        out = eval_shape(lambda x: x[parts(b, c)], ShapeDtypeStruct((c,), np.float32))
    except InconclusiveDimensionOperation:  # whether a bound is negative may depend on the sizes
        return
    for n, m in SIZES:
        size = out.shape[0]
        found = size.evaluate({"b": n, "c": m}) if dims.is_symbolic(size) else size
        assert found == len(range(m)[parts(n, m)])


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("k", [-1, 0, 1])
@pytest.mark.parametrize("shape", ["c, c", "b, c", "3, c", "c, 3"])
def test_the_number_of_positions_in_a_triangle(lower, k, shape):
    symbols = dict(zip("bc", symbolic_shape("b, c"), strict=True))
    n, m = eval(shape, dict(symbols))
    of = jnp.tril_indices if lower else jnp.triu_indices
    try:
        rows, columns = eval_shape(lambda: of(n, k, m))
    except InconclusiveDimensionOperation:
        pytest.fail("the number is a dimension")
    assert rows.shape == columns.shape
    for b, c in SIZES:
        count = rows.shape[0].evaluate({"b": b, "c": c})
        given = np.tril_indices if lower else np.triu_indices
        n_, m_ = eval(shape, {"b": b, "c": c})
        assert count == len(given(n_, k, m_)[0])


def test_the_axes_of_a_squeeze_are_named():
    x = ShapeDtypeStruct(symbolic_shape("1, c"), np.float32)
    assert str(eval_shape(lambda x: jnp.squeeze(x, 0), x).shape) == "(c,)"
    with pytest.raises(ValueError, match="axis=None is not supported"):
        eval_shape(jnp.squeeze, x)
