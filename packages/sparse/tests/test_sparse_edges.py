"""Sparse arrays at the edges: narrow indices, wrong axes, elements with one index."""

import numpy as np
import pytest
import scipy.sparse

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.sparse import bcoo, bcoo_shaping, creation, transform
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR

DENSE = np.arange(1.0, 401).reshape(20, 20)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_indices_of_a_narrow_dtype_count_to_the_size(dtype):
    wide = np.arange(300.0)
    np.testing.assert_array_equal(BCOO.fromdense(wide, index_dtype=dtype).todense(), wide)
    np.testing.assert_array_equal(BCOO.fromdense(DENSE, index_dtype=dtype).todense(), DENSE)
    np.testing.assert_array_equal(BCSR.fromdense(DENSE, index_dtype=dtype).todense(), DENSE)
    host = scipy.sparse.csr_matrix(DENSE)
    for cls in (BCOO, BCSR):
        np.testing.assert_array_equal(cls.from_scipy_sparse(host, index_dtype=dtype).todense(), DENSE)
    np.testing.assert_array_equal(creation.eye(300, index_dtype=dtype).todense(), np.eye(300))
    drawn = creation.random_bcoo(random.key(0), (300,), indices_dtype=dtype, nse=250)
    assert (np.asarray(drawn.todense()) != 0).sum() == 250
    given = BCOO((jnp.array([1.0, 2.0]), jnp.array([[100], [100]], dtype)), shape=(300,))
    assert given.sum_duplicates(nse=1).todense()[100] == 3
    mat = BCOO.fromdense(DENSE, index_dtype=dtype)
    np.testing.assert_array_equal(bcoo_shaping.bcoo_reshape(mat, new_sizes=(400,)).todense(), DENSE.ravel())
    small = BCOO.fromdense(wide[:100], index_dtype=dtype)
    joined = bcoo_shaping.bcoo_concatenate([small] * 3, dimension=0)
    np.testing.assert_array_equal(joined.todense(), np.concatenate([wide[:100]] * 3))
    repeated = BCSR.from_bcoo(BCOO((jnp.ones(300), jnp.zeros((300, 2), dtype)), shape=(2, 2)))
    assert repeated.todense()[0, 0] == 300


def test_indices_that_count_to_the_size_keep_their_dtype():
    assert BCOO.fromdense(jnp.ones((10, 10)), index_dtype=np.int8).indices.dtype == np.int8


def test_an_axis_beyond_the_rank_is_refused():
    mat = BCOO.fromdense(jnp.ones((2, 3)))
    for wrong in (
        lambda: mat.transpose((0, 3)),
        lambda: bcoo_shaping.bcoo_reduce_sum(mat, axes=(3,)),
        lambda: bcoo_shaping.bcoo_concatenate([mat, mat], dimension=2),
        lambda: bcoo_shaping.bcoo_rev(mat, (2,)),
        lambda: bcoo_shaping.bcoo_squeeze(bcoo.bcoo_fromdense(jnp.ones((1, 3))), dimensions=(2,)),
    ):
        with pytest.raises(ValueError, match="out of bounds"):
            wrong()


def test_duplicates_are_added_before_a_conversion_or_division_that_cuts():
    twice = lambda *data: BCOO((jnp.array(data), jnp.zeros((2, 1), np.int32)), shape=(1,))
    assert twice(0.6, 0.6).astype(int).todense() == 1
    assert not twice(1, -1).astype(bool).todense()
    assert twice(0.5, 0.5).astype(jnp.bfloat16).todense() == 1
    divided = transform.sparsify(lambda x: lax.div(x, jnp.array([2])))(twice(1, 1))
    assert divided.todense() == 1
