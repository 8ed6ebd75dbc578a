"""Arrays whose axes are longer than int32 counts, without the memory for them.

The programs are lowered for abstract arrays of 2^31 + 10 elements. Their values are tested with a lower limit of
positions, so that short axes count as long. `nox -s huge` runs some programs on arrays of that size.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bedrax.core import positions

N = 2**31 + 10
NUMBERS = jax.ShapeDtypeStruct((5,), np.int32)

# name: (function of an array and some positions, its values by NumPy). Without x64.
RIGHT = {
    "item from the end": (lambda x, i: x[-3], lambda x, i: x[-3]),
    "item": (lambda x, i: x[x.size - 3], lambda x, i: x[-3]),
    "slice": (lambda x, i: x[x.size - 5 :], lambda x, i: x[-5:]),
    "strided slice": (lambda x, i: x[x.size - 5 :: 2], lambda x, i: x[-5::2]),
    "reshaped": (lambda x, i: x.reshape(-1)[-1], lambda x, i: x[-1]),
    "row": (lambda x, i: x[None, :][0, -3], lambda x, i: x[-3]),
    "index array": (lambda x, i: x[i], lambda x, i: x[i]),
    "index array from the end": (lambda x, i: x[-1 - i], lambda x, i: x[-1 - i]),
    "scalar index": (lambda x, i: x[i[1]], lambda x, i: x[i[1]]),
    "constant indices": (lambda x, i: x[np.array([x.size - 3, 5])], lambda x, i: x[[-3, 5]]),
    "get": (lambda x, i: x.at[x.size + 3].get(mode="fill", fill_value=3), lambda x, i: np.int8(3)),
    "set": (lambda x, i: x.at[x.size - 3].set(5)[-4:], lambda x, i: np.r_[x[-4], 5, x[-2:]].astype(np.int8)),
    "add": (lambda x, i: x.at[-3].add(1)[-4:], lambda x, i: x[-4:] + np.int8([0, 1, 0, 0])),
    "set a slice": (lambda x, i: x.at[x.size - 3 :].set(7)[-4:], lambda x, i: np.r_[x[-4], 7, 7, 7].astype(np.int8)),
    "add at indices": (lambda x, i: x.at[-1 - i].add(1)[-5:], lambda x, i: x[-5:] + np.int8([1, 0, 1, 1, 1])),
    "apply": (lambda x, i: x.at[x.size - 3].apply(jnp.negative)[-3:], lambda x, i: x[-3:] * np.int8([-1, 1, 1])),
    "take": (lambda x, i: jnp.take(x, -1 - i), lambda x, i: np.take(x, -1 - i)),
    "take around": (lambda x, i: jnp.take(x, -1 - i, mode="wrap"), lambda x, i: x[-1 - i]),
    "take constant": (lambda x, i: jnp.take(x, np.array([x.size - 3])), lambda x, i: x[[-3]]),
    "take along": (lambda x, i: jnp.take_along_axis(x, -1 - i, 0), lambda x, i: x[-1 - i]),
    "put": (lambda x, i: jnp.put(x, -1 - i, 1, mode="wrap", inplace=False)[-1], lambda x, i: np.int8(1)),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (x.size - 4,), (3,)), lambda x, i: x[-4:-1]),
    "dynamic slice from the end": (lambda x, i: lax.dynamic_slice(x, (-3 - i[1],), (2,)), lambda x, i: x[-4:-2]),
    "dynamic update": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones(2, np.int8), (x.size - 2,))[-3:],
        lambda x, i: np.r_[x[-3], 1, 1].astype(np.int8),
    ),
    "index_take": (lambda x, i: lax.index_take(x, (-1 - i,), (0,)), lambda x, i: x[-1 - i]),
    "compress": (lambda x, i: jnp.compress(x > 3, x, size=3), lambda x, i: x[x > 3][:3]),
    "cumulative maximum": (lambda x, i: lax.cummax(x)[-2:], lambda x, i: np.maximum.accumulate(x)[-2:]),
    "scan": (
        lambda x, i: lax.scan(lambda c, v: (c ^ v, None), np.int8(0), x)[0],
        lambda x, i: np.bitwise_xor.reduce(x),
    ),
    "scan of results": (
        lambda x, i: lax.scan(lambda c, v: (c ^ v, c), np.int8(0), x, reverse=True)[1][0],
        lambda x, i: np.bitwise_xor.reduce(x[1:]),
    ),
    "repeat": (
        lambda x, i: jnp.repeat(x, (x > 3).astype(np.int8) + np.int8(1), total_repeat_length=x.size)[-2:],
        lambda x, i: np.repeat(x, 1 + (x > 3))[: x.size][-2:],
    ),
    "insert": (lambda x, i: jnp.insert(x, x.size - 2, 7)[-4:], lambda x, i: np.insert(x, x.size - 2, np.int8(7))[-4:]),
    "delete": (lambda x, i: jnp.delete(x, x.size - 2)[-3:], lambda x, i: np.delete(x, x.size - 2)[-3:]),
    "delete traced": (lambda x, i: jnp.delete(x, -1 - i[1])[-3:], lambda x, i: np.delete(x, -1 - i[1])[-3:]),
    "roll": (lambda x, i: jnp.roll(x, -i[1])[-2:], lambda x, i: np.roll(x, -i[1])[-2:]),
    "triangle": (lambda x, i: jnp.tril(jnp.stack([x, x]))[1, :3], lambda x, i: np.tril(np.stack([x, x]))[1, :3]),
    "diagonal": (
        lambda x, i: jnp.diagonal(jnp.stack([x, x]), offset=x.size - 2),
        lambda x, i: np.diagonal(np.stack([x, x]), offset=x.size - 2),
    ),
    "sort": (lambda x, i: jnp.sort(x)[-3:], lambda x, i: np.sort(x)[-3:]),
    "derivative": (
        lambda x, i: jax.grad(lambda y: y[-3] ** 2)(x.astype(np.float32))[-3:],
        lambda x, i: np.float32([2 * x[-3], 0, 0]),
    ),
    "derivative of sort": (
        lambda x, i: jax.grad(lambda y: jnp.sort(y)[0])(x.astype(np.float32)).sum(),
        lambda x, i: np.float32(1),
    ),
}
# name: (function that returns positions, its values by NumPy). Refused without x64, right under x64.
POSITIONS = {
    "argmax": (jnp.argmax, np.argmax),
    "argmin": (jnp.argmin, np.argmin),
    "argsort": (lambda x: jnp.argsort(x)[-3:], lambda x: np.argsort(x, stable=True)[-3:]),
    "lexsort": (lambda x: jnp.lexsort((x,))[-3:], lambda x: np.lexsort((x,))[-3:]),
    "nonzero": (lambda x: jnp.nonzero(x == 3, size=2)[0], lambda x: np.nonzero(x == 3)[0][:2]),
    "flatnonzero": (lambda x: jnp.flatnonzero(x == 3, size=2), lambda x: np.flatnonzero(x == 3)[:2]),
    "count_nonzero": (jnp.count_nonzero, np.count_nonzero),
    "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x), 3), lambda x: np.searchsorted(np.sort(x), 3)),
    "unique": (lambda x: jnp.unique(x, return_index=True, size=3)[1], lambda x: np.unique(x, return_index=True)[1][:3]),
    "bincount": (lambda x: jnp.bincount(x, length=3), lambda x: np.bincount(x)[:3]),
    "iota": (lambda x: lax.iota(np.int64, x.size)[-2:], lambda x: np.arange(x.size)[-2:]),
}


def example(seed, n):
    return np.random.default_rng(seed).integers(0, 9, n).astype(np.int8)


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.extend.core.jaxprs_in_params(eqn.params):
            yield from equations(inner)


@pytest.mark.parametrize("name", RIGHT)
def test_positions_are_computed_in_64_bits(name):
    """The data is int8, so an int32 array as long as the axis holds positions or counts."""
    traced = jax.jit(RIGHT[name][0]).trace(jax.ShapeDtypeStruct((N,), np.int8), NUMBERS)
    traced.lower()
    for eqn in equations(traced.jaxpr.jaxpr):
        for var in eqn.outvars:
            assert var.aval.dtype != np.int32 or max(var.aval.shape, default=0) < N, eqn


@pytest.mark.parametrize("jitted", [True, False], ids=["jit", "eager"])
@pytest.mark.parametrize("name", RIGHT)
def test_values_at_positions_in_64_bits(name, jitted, monkeypatch):
    function, expected = RIGHT[name]
    x, i = example(0, 211 + jitted), np.int32([0, 1, 2, 4])
    monkeypatch.setattr(positions, "LIMIT", 100)
    found = (jax.jit(function) if jitted else function)(jnp.asarray(x), jnp.asarray(i))
    wanted = np.asarray(expected(x, i))
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("name", POSITIONS)
def test_functions_that_return_positions_refuse_long_axes(name):
    with pytest.raises(OverflowError, match="are beyond int32.*enable_x64"):
        jax.eval_shape(POSITIONS[name][0], jax.ShapeDtypeStruct((N,), np.int8))


@pytest.mark.parametrize("name", POSITIONS)
def test_functions_that_return_positions_under_x64(name, monkeypatch):
    function, expected = POSITIONS[name]
    x = example(1, 223)
    monkeypatch.setattr(positions, "LIMIT", 100)
    with pytest.raises(OverflowError, match="are beyond int32"):
        function(jnp.asarray(x))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(function(jnp.asarray(x)), expected(x))
        jax.jit(function).lower(jax.ShapeDtypeStruct((N,), np.int8))


def test_a_histogram_counts_beyond_the_integers_of_its_dtype():
    """float16 has the integers up to 2048, as float32 has those up to 2^24."""
    counts, _ = jnp.histogram(jnp.zeros(5001, np.float16), bins=2, range=(0, 1))
    np.testing.assert_array_equal(counts, np.float16([5001, 0]))


def test_narrow_positions_are_refused():
    with pytest.raises(OverflowError, match="argmax: positions among 300 elements are beyond int8"):
        lax.argmax(jnp.zeros(300), 0, np.int8)
    with pytest.raises(ValueError, match="top_k: positions are int32"):
        jax.eval_shape(lambda x: lax.top_k(x, 2), jax.ShapeDtypeStruct((N,), np.int8))
