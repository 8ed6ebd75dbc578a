"""Operations on keys that are errors, and their types; arrays of keys that are filled with a number."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.batching import vmap
from bedrax.core import dtypes
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.testing.records import all_cases

ERRORS = {
    "add": (lambda k: k + 1, TypeError),
    "added": (lambda k: 1 + k, TypeError),
    "multiply": (lambda k: k * k, TypeError),
    "negative": (lambda k: -k, TypeError),
    "shift": (lambda k: k << 1, TypeError),
    "dot": (lambda k: jnp.dot(random.split(k), random.split(k)), TypeError),
    "convolution": (
        lambda k: lax.conv(random.split(k, (1, 1, 4)), random.split(k, (1, 1, 2)), (1,), "SAME"),
        TypeError,
    ),
    "top_k": (lambda k: lax.top_k(random.split(k), 1), TypeError),
    "sum": (lambda k: jnp.sum(random.split(k)), TypeError),
    "max": (lambda k: jnp.max(random.split(k)), TypeError),
    "scatter_add": (lambda k: random.split(k).at[0].add(k), TypeError),
    "scatter_max": (lambda k: random.split(k).at[0].max(k), TypeError),
    "bincount": (lambda k: jnp.bincount(np.array([0, 1]), weights=random.split(k)), TypeError),
    "sort": (lambda k: jnp.sort(random.split(k)), TypeError),
    "sort by keys": (lambda k: lax.sort((random.split(k), jnp.arange(2)), num_keys=1), TypeError),
    "where": (lambda k: jnp.where(True, k, 0), ValueError),
    "concatenate": (lambda k: jnp.concatenate([random.split(k), jnp.zeros(2, np.uint32)]), ValueError),
    "stack": (lambda k: jnp.stack([k, random.key(0, impl="rbg")]), ValueError),
    "convert": (lambda k: lax.convert_element_type(k, np.int32), ValueError),
    "promote": (lambda k: jnp.promote_types(k.dtype, np.int32), TypeError),
    "result type": (lambda k: jnp.result_type(k, 1), dtypes.TypePromotionError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_arithmetic_of_keys_is_an_error(name):
    call, error = ERRORS[name]
    with pytest.raises(error):
        call(random.key(0))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("stable", [True, False])
def test_a_sort_of_numbers_carries_keys(axis, stable):
    x = np.random.default_rng(0).permutation(12).reshape(3, 4).astype(np.float32)
    keys = random.split(random.key(1), (3, 4))
    order = np.argsort(x, axis)
    data = np.take_along_axis(np.asarray(random.key_data(keys)), order[..., None], axis)

    def carry(x, keys, axis=axis):
        return lax.sort((x, keys, 2 * x), dimension=axis, is_stable=stable, num_keys=1)

    across = vmap(lambda x, k: carry(x, k, 0), in_axes=1 - axis, out_axes=1 - axis)
    for run in (carry, jit(carry), across, jit(across)):
        values, moved, doubled = run(x, keys)
        np.testing.assert_array_equal(values, np.sort(x, axis))
        np.testing.assert_array_equal(random.key_data(moved), data)
        np.testing.assert_array_equal(doubled, 2 * np.sort(x, axis))
    for none in ((0, 4), (3, 0)):
        assert carry(x[: none[0], : none[1]], keys[: none[0], : none[1]])[1].shape == none
    with pytest.raises(TypeError, match="sort: the operands have one shape"):
        lax.sort((x, keys[0]))


def test_keys_are_permuted_like_numbers():
    keys = random.split(random.key(0), 5)
    order = random.permutation(random.key(3), np.arange(5))
    moved = random.permutation(random.key(3), keys)
    np.testing.assert_array_equal(random.key_data(moved), random.key_data(keys)[order])


@pytest.mark.parametrize("value", [0, 3])
def test_keys_are_filled_with_a_number(value):
    key = random.key(0)
    for keys in (jnp.full_like(key, value, shape=(2,)), jnp.full((2,), value, key.dtype)):
        assert keys.dtype == key.dtype and (random.key_data(keys) == value).all()
    assert (random.key_data(jnp.ones_like(key)) == 1).all()
    with pytest.raises(TypeError, match="fill_value"):
        jnp.full_like(key, 1.5)


# Primitives that may meet keys: they move elements, compare whole keys, or hold programs.
MOVING = {
    "indexing",
    "shaping",
    "control_flow",
    "calls",
    "custom_rules",
    "markers",
    "placement",
    "references",
    "callbacks",
}
OTHERS = {"add_any", "copy", "copy_p", "eq", "ne", "select_n", "stop_gradient", "sort", "convert_element_type"}


def test_primitives_that_compute_refuse_keys():
    """Every record of a primitive, with keys in place of floats."""
    key_type, met = random.key(0).dtype, set()
    for case in all_cases():
        dtypes_of = [np.dtype(a.dtype) for a in case.args]
        types = [
            ShapeDtypeStruct(a.shape, key_type if dtype.kind == "f" else dtype)
            for a, dtype in zip(case.args, dtypes_of, strict=True)
        ]
        if not any(dtype.kind == "f" for dtype in dtypes_of):
            continue
        try:
            program = make_jaxpr(case.fun)(*types)
        except Exception:  # the function around the primitive computes, too
            continue
        for eqn in program.eqns:
            if eqn.primitive is case.primitive and any(
                isinstance(v.aval.dtype, dtypes.ExtendedDType) for v in (*eqn.invars, *eqn.outvars)
            ):
                met.add(case.primitive)
    assert {p.name for p in met if p.family not in MOVING} <= OTHERS
    assert {"gather", "scatter", "reshape", "concatenate"} <= {p.name for p in met}
