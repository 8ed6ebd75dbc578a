"""`x.at[index]`: each method with each keyword, compared with a loop over elements; indices inside and outside."""

import itertools
import os
import zlib

import jax
import jax.numpy as jnp
import methods
import numpy as np
import pytest

X = np.random.default_rng(3).uniform(1, 2, (4, 5)).astype(np.float32)
INDICES = {
    "array": np.array([1, -2, 7, 0, -9]),
    "matrix": np.array([[3, -1], [4, 2]]),
    "number": np.array(2),
    "outside": np.array(-5),
    "pair": (np.array([0, 3, -4, 4]), np.array([1, -6, 2, 0])),
    "mixed": (slice(1, 3), np.array([4, -7, 2])),
    "first": (np.array([-1, 5]), slice(None, None, 2)),
}
MODES = [None, "clip", "fill", "drop", "promise_in_bounds"]
SHARE = 1 if os.environ.get("BEDRAX_SURFACE") == "all" else 12
CASES = list(itertools.product(INDICES, MODES, [True, False], [*methods.UPDATES, "get", "apply"]))


def read(index, mode, wraps, reading):
    """For each index array: its positions, and which of them are inside."""
    parts = index if isinstance(index, tuple) else (index,)
    new, inside = [], True
    for part, size in zip(parts, X.shape):
        if isinstance(part, np.ndarray):
            part = np.where((part < 0) & wraps, part + size, part)
            if mode != "clip" and not (reading and mode is None):
                inside = inside & (part >= 0) & (part < size)
            part = np.clip(part, 0, size - 1)
        new.append(part)
    return tuple(new), inside


def expected(x, index, mode, wraps, method, value, fill):
    """The result with NumPy, one element after the other. Positions outside are skipped, or filled."""
    places, inside = read(index, mode, wraps, method == "get")
    where = np.arange(x.size).reshape(x.shape)[places]
    if isinstance(places[0], np.ndarray):  # the rest of the index is whole axes
        inside = np.reshape(inside, np.shape(inside) + (1,) * (where.ndim - np.ndim(inside)))
    inside = np.broadcast_to(inside, where.shape)
    if method == "get":
        return np.where(inside, x[places], np.float32(fill))
    out = x.copy()
    for place, keep in zip(where.ravel(), inside.ravel(), strict=True):
        if keep:
            old = out.flat[place]
            out.flat[place] = np.sin(old) if method == "apply" else methods.UPDATES[method](old, np.float32(value))
    return out


def inside_only(index):
    """The index with all its positions inside."""
    if not isinstance(index, tuple):
        return index % len(X)
    return tuple(i if isinstance(i, slice) else i % n for i, n in zip(index, X.shape))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_at(name, compiled):
    for case in CASES:
        _, mode, wraps, method = case
        if case[0] != name or zlib.crc32(repr((case, compiled)).encode()) % SHARE:
            continue
        index = INDICES[name]
        if mode == "promise_in_bounds":  # indices outside are undefined then
            index = inside_only(index)
        options = {"mode": mode, "wrap_negative_indices": wraps}
        fill = np.nan
        if method == "get" and mode == "fill":
            options["fill_value"] = fill = 7.5
        given = [jnp.sin] if method == "apply" else [] if method == "get" else [3.0]
        call = lambda x, index=index, method=method, given=given, options=options: getattr(x.at[index], method)(
            *given, **options
        )
        found = (jax.jit(call) if compiled else call)(jnp.asarray(X))
        np.testing.assert_allclose(
            found, expected(X, index, mode, wraps, method, 3.0, fill), rtol=1e-5, err_msg=repr(case)
        )


@pytest.mark.parametrize("method", [*methods.UPDATES, "get"])
def test_true_promises_change_no_result(method):
    index, given = np.array([0, 2, 3]), [] if method == "get" else [X[:3]]
    plain = getattr(jnp.asarray(X).at[index], method)(*given)
    promised = getattr(jnp.asarray(X).at[index], method)(*given, indices_are_sorted=True, unique_indices=True)
    np.testing.assert_array_equal(plain, promised)
    jaxpr = jax.make_jaxpr(
        lambda x: getattr(x.at[index], method)(*given, indices_are_sorted=True, unique_indices=True)
    )(X)
    assert "unique_indices=True" in str(jaxpr) and "indices_are_sorted=True" in str(jaxpr)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "min", "max", "get", "subtract", "divide", "power"])
def test_results_are_placed(method):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    place = jax.NamedSharding(mesh, jax.P(None, "i"))
    with jax.set_mesh(mesh):
        out = getattr(jnp.asarray(X).at[np.array([0, 2])], method)(
            *([] if method == "get" else [2.0]), out_sharding=place
        )
    assert out.sharding.is_equivalent_to(place, 2)
