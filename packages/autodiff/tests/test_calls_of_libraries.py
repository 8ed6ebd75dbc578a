"""Calls of primitives as libraries write them: placements that are None, axes of length 1, params that are left out."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.lax.primitives import linalg

X = np.arange(6, dtype=np.float32).reshape(2, 3)
I32 = np.dtype("int32")

PLACED = {
    "broadcast_in_dim": lambda x, **k: lax.broadcast_in_dim_p.bind(
        x, shape=(4, 2, 3), broadcast_dimensions=(1, 2), **k
    ),
    "convert": lambda x, **k: lax.convert_element_type_p.bind(x, new_dtype=I32, weak_type=False, **k),
    "reshape": lambda x, **k: lax.reshape_p.bind(x, new_sizes=(6,), dimensions=None, **k),
    "iota": lambda x, **k: lax.iota_p.bind(dtype=I32, shape=(3,), dimension=0, **k),
    "sum": lambda x, **k: lax.reduce_sum_p.bind(x, axes=(0,), **k),
    "max": lambda x, **k: lax.reduce_max_p.bind(x, axes=(0,), **k),
    "dot": lambda x, **k: lax.dot_general_p.bind(
        x, x, dimension_numbers=(((1,), (1,)), ((), ())), precision=None, preferred_element_type=None, **k
    ),
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("placement", ["sharding", "out_sharding"])
def test_a_placement_of_none_changes_nothing(name, placement):
    f, open_placement = PLACED[name], {placement: None}
    expected = f(X)
    for run in (lambda x: f(x, **open_placement), jit(lambda x: f(x, **open_placement))):
        np.testing.assert_array_equal(run(X), expected)
    eqn = make_jaxpr(lambda x: f(x, **open_placement))(X).eqns[-1]
    assert eqn.params == make_jaxpr(f)(X).eqns[-1].params
    with pytest.raises(TypeError):
        f(X, **{placement: "x"})


OPERATIONS = "add sub mul div max min atan2 pow rem eq lt".split()


@pytest.mark.parametrize("name", OPERATIONS)
def test_axes_of_length_1(name):
    prim = getattr(lax, f"{name}_p")
    a, b = 1 + X.reshape(2, 1, 3), np.float32(2) * np.ones((2, 4, 3), np.float32)
    expected = getattr(lax, name)(a, b)
    assert expected.shape == b.shape
    for run in (prim.bind, jit(prim.bind), vmap(prim.bind)):
        np.testing.assert_array_equal(run(a, b), expected)
    if name not in ("eq", "lt"):
        ours, function = (
            grad(lambda x, f=f: lax.reduce_sum(f(x, b), (0, 1, 2))) for f in (prim.bind, getattr(lax, name))
        )
        np.testing.assert_array_equal(ours(a), function(a))


@pytest.mark.parametrize("shapes", [((3,), (2, 3)), ((2, 3), (4, 3))])
def test_operands_of_different_shapes_are_refused(shapes):
    with pytest.raises(TypeError):
        lax.mul_p.bind(*[np.ones(s, np.float32) for s in shapes])
    with pytest.raises(TypeError):
        lax.select_n_p.bind(np.ones((2, 1), bool), X, X)


def test_the_algorithm_of_svd_is_optional():
    given = dict(full_matrices=False, compute_uv=True, subset_by_index=None)
    for a, b in zip(linalg.svd_p.bind(X, **given), linalg.svd_p.bind(X, algorithm=None, **given), strict=True):
        np.testing.assert_array_equal(a, b)
