"""One table: operations, on arrays of every layout, under every transformation, against dense arrays."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.autodiff import jacfwd, jvp, vjp
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.pytree import tree_flatten, tree_unflatten
from bedrax.sparse import (
    ad,
    bcoo,
    bcoo_products,
    bcoo_shaping,
    bcsr,
    creation,
    environment,
    linalg,
    matrices,
    samples,
    transform,
)
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning
from bedrax.sparse.transform import SparseTracer, sparsify, todense

DATA = np.random.RandomState(0)


def dense_array(*shape):
    """Half of the elements are zero."""
    x = DATA.randint(1, 9, shape) * (DATA.rand(*shape) < 0.5)
    return x.astype(np.float32)


def with_duplicates(mat):
    """The same array, with each element in two parts, in another order."""
    b = mat.n_batch
    data = np.concatenate([np.asarray(mat.data) * 3, np.asarray(mat.data) * -2], b)
    indices = np.concatenate([np.asarray(mat.indices)] * 2, b)
    return BCOO((np.flip(data, b), np.flip(indices, b)), shape=mat.shape)


# name -> how it is made of a dense array of rank 2 at least
LAYOUTS = {
    "sparse": BCOO.fromdense,
    "padded": lambda x: BCOO.fromdense(x, nse=x.size + 2),
    "duplicates": lambda x: with_duplicates(BCOO.fromdense(x)),
    "batch": lambda x: BCOO.fromdense(x, n_batch=1),
    "dense": lambda x: BCOO.fromdense(x, n_dense=1),
    "batch and dense": lambda x: BCOO.fromdense(x, n_batch=1, n_dense=1),
    "all batch": lambda x: BCOO.fromdense(x, n_batch=2),
    "all dense": lambda x: BCOO.fromdense(x, n_dense=x.ndim),
    "padded duplicates": lambda x: with_duplicates(BCOO.fromdense(x, nse=x.size + 1)),
}

V = dense_array(4)
M = dense_array(4, 3)
SPARSE_M = BCOO.fromdense(M)
SLICED = functools.partial(bcoo_shaping.bcoo_slice, start_indices=(1, 0), limit_indices=(3, 4))

# name -> (on sparse arrays of shape (3, 4), on dense ones); the first may refuse a layout
OPERATIONS = {
    "todense": (bcoo.bcoo_todense, lambda x: x),
    "transpose": (lambda m: m.T, lambda x: x.T),
    "sum 0": (lambda m: m.sum(0), lambda x: x.sum(0)),
    "sum 1": (lambda m: m.sum(1), lambda x: x.sum(1)),
    "sum": (lambda m: m.sum(), lambda x: x.sum()),
    "sum keeping": (lambda m: m.sum(1, keepdims=True), lambda x: x.sum(1, keepdims=True)),
    "mul scalar": (lambda m: m * 3, lambda x: x * 3),
    "mul vector": (lambda m: m * V, lambda x: x * V),
    "mul column": (lambda m: m * M[:3, :1], lambda x: x * M[:3, :1]),
    "mul dense": (lambda m: m * M.T, lambda x: x * M.T),
    "mul sparse": (lambda m: m * m, lambda x: x * x),
    "add": (lambda m: m + 2 * m, lambda x: 3 * x),
    "add dense": (lambda m: m + M.T, lambda x: x + M.T),
    "sub": (lambda m: M.T - m, lambda x: M.T - x),
    "neg": (lambda m: -m, lambda x: -x),
    "div": (lambda m: m / 2, lambda x: x / 2),
    "power": (lambda m: m**2, lambda x: x**2),
    "sin": (sparsify(jnp.sin), np.sin),
    "matvec": (lambda m: m @ V, lambda x: x @ V),
    "matmat": (lambda m: m @ M, lambda x: x @ M),
    "rmatmat": (lambda m: M @ m, lambda x: M @ x),
    "rmatvec": (lambda m: V[:3] @ m, lambda x: V[:3] @ x),
    "spmat": (lambda m: m @ SPARSE_M, lambda x: x @ M),
    "full contraction": (lambda m: bcoo_products.bcoo_dot_general(m, M.T, dimension_numbers=(((0, 1), (0, 1)), ((), ()))),
                         lambda x: (x * M.T).sum()),
    "outer": (lambda m: bcoo_products.bcoo_dot_general(m, V, dimension_numbers=(((), ()), ((), ()))),
              lambda x: x[:, :, None] * V),
    "batched product": (lambda m: bcoo_products.bcoo_dot_general(m, M.T, dimension_numbers=(((1,), (1,)), ((0,), (0,)))),
                        lambda x: (x * M.T).sum(1)),
    "batched outer": (lambda m: bcoo_products.bcoo_dot_general(m, M.T, dimension_numbers=(((), ()), ((0,), (0,)))),
                      lambda x: x[:, :, None] * M.T[:, None]),
    "dense batched": (lambda m: bcoo_products.bcoo_dot_general(M.T, m, dimension_numbers=(((1,), (1,)), ((0,), (0,)))),
                      lambda x: (x * M.T).sum(1)),
    "sparse batched": (lambda m: bcoo_products.bcoo_dot_general(m, m, dimension_numbers=(((1,), (1,)), ((0,), (0,)))),
                       lambda x: (x * x).sum(1)),
    "sparse outer": (lambda m: bcoo_products.bcoo_dot_general(m, m, dimension_numbers=(((0,), (0,)), ((), ()))),
                     lambda x: np.einsum("ij,ik->jk", x, x)),
    "reshape": (lambda m: m.reshape(4, 3), lambda x: x.reshape(4, 3)),
    "reshape more": (lambda m: m.reshape(3, 2, -1), lambda x: x.reshape(3, 2, 2)),
    "reshape flat": (lambda m: m.reshape(-1), lambda x: x.reshape(-1)),
    "rev": (lambda m: bcoo_shaping.bcoo_rev(m, (0, 1)), lambda x: x[::-1, ::-1]),
    "slice": (SLICED, lambda x: x[1:3]),
    "strides": (lambda m: m[::2, 1::2], lambda x: x[::2, 1::2]),
    "backwards": (lambda m: m[::-1], lambda x: x[::-1]),
    "element": (lambda m: m[2, 1], lambda x: x[2, 1]),
    "row": (lambda m: m[-1], lambda x: x[-1]),
    "column": (lambda m: m[:, 2], lambda x: x[:, 2]),
    "new axes": (lambda m: m[None, :, None], lambda x: x[None, :, None]),
    "trailing axis": (lambda m: m[..., None], lambda x: x[..., None]),
    "rows": (lambda m: m[np.array([2, 0, 2, 1])], lambda x: x[[2, 0, 2, 1]]),
    "columns": (lambda m: m[:, np.array([[3], [0]])], lambda x: x[:, [[3], [0]]]),
    "points": (lambda m: m[np.array([2, 0]), np.array([1, 3])], lambda x: x[[2, 0], [1, 3]]),
    "dynamic slice": (lambda m: bcoo_shaping.bcoo_dynamic_slice(m, (1, jnp.array(9)), (2, 3)), lambda x: x[1:3, 1:4]),
    "concatenate 0": (lambda m: bcoo_shaping.bcoo_concatenate([m, 2 * m, m], dimension=0), lambda x: np.concatenate([x, 2 * x, x])),
    "concatenate 1": (lambda m: bcoo_shaping.bcoo_concatenate([m, 2 * m], dimension=1), lambda x: np.concatenate([x, 2 * x], 1)),
    "broadcast": (lambda m: bcoo_shaping.bcoo_broadcast_in_dim(m, shape=(2, 3, 4), broadcast_dimensions=(1, 2)),
                  lambda x: np.broadcast_to(x, (2, 3, 4))),
    "broadcast between": (lambda m: bcoo_shaping.bcoo_broadcast_in_dim(m, shape=(3, 2, 4), broadcast_dimensions=(0, 2)),
                          lambda x: np.broadcast_to(x[:, None], (3, 2, 4))),
    "broadcast after": (lambda m: bcoo_shaping.bcoo_broadcast_in_dim(m, shape=(3, 4, 2), broadcast_dimensions=(0, 1)),
                        lambda x: np.broadcast_to(x[..., None], (3, 4, 2))),
    "broadcast one": (lambda m: bcoo_shaping.bcoo_broadcast_in_dim(m[:, 1:2], shape=(3, 5), broadcast_dimensions=(0, 1)),
                      lambda x: np.broadcast_to(x[:, 1:2], (3, 5))),
    "squeeze": (lambda m: bcoo_shaping.bcoo_squeeze(m[1:2], dimensions=(0,)), lambda x: x[1]),
    "sort": (lambda m: m.sort_indices(), lambda x: x),
    "sum duplicates": (lambda m: bcoo.bcoo_sum_duplicates(m, nse=12), lambda x: x),
    "without zeros": (lambda m: bcoo.bcoo_eliminate_zeros(m - m + m, nse=12), lambda x: x),
    "n_batch 0": (lambda m: m.update_layout(n_batch=0, n_dense=0), lambda x: x),
    "n_batch 2": (lambda m: m.update_layout(n_batch=2, n_dense=0, on_inefficient=None), lambda x: x),
    "n_dense 2": (lambda m: m.update_layout(n_batch=0, n_dense=2, on_inefficient=None), lambda x: x),
    "n_dense 1": (lambda m: m.update_layout(n_batch=1, n_dense=1, on_inefficient=None), lambda x: x),
    "extract": (lambda m: bcoo.bcoo_extract(m, m.todense() * 2), lambda x: x * 2),
    "rows of": (lambda m: BCSR.from_bcoo(m), lambda x: x),
    "program": (sparsify(jit(lambda x: jnp.tanh(x * 2).T @ (x + x))), lambda x: np.tanh(x * 2).T @ (x + x)),
    "loop": (sparsify(lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2, x)), lambda x: 8 * x),
    "branch": (sparsify(lambda x: lax.cond(True, lambda x: x * 2, lambda x: x, x)), lambda x: 2 * x),
    "dense inside": (sparsify(lambda x: jnp.cos(todense(x))), np.cos),
}  # fmt: skip

# What a layout cannot do: a sparse result mixes dimensions, or another layout is needed first.
REFUSES = {
    "transpose": {"batch", "dense", "batch and dense"},
    "batched product": {"sparse", "padded", "duplicates", "padded duplicates", "dense", "all dense"},
    "batched outer": {"sparse", "padded", "duplicates", "padded duplicates", "dense", "all dense"},
    "dense batched": {"sparse", "padded", "duplicates", "padded duplicates", "dense", "all dense"},
    "sparse batched": {"sparse", "padded", "duplicates", "padded duplicates", "dense", "all dense", "batch and dense"},
    "sparse outer": {"dense", "all dense", "batch and dense"},
    "spmat": {"dense", "all dense", "batch and dense"},
    "reshape": {"batch", "dense", "batch and dense"},
    "reshape flat": {"batch", "dense", "batch and dense"},
    "rows of": {"batch", "dense", "batch and dense", "all batch", "all dense"},
    "program": {"batch", "dense", "batch and dense", "all dense"},
}


def densified(x):
    return np.asarray(x.todense() if isinstance(x, JAXSparse) else x)


def case(name, layout):
    sparse, dense = OPERATIONS[name]
    x = np.where(np.arange(12).reshape(3, 4) % 3 == 1, 0, DATA.randint(1, 9, (3, 4))).astype(np.float32)
    mat = LAYOUTS[layout](x)
    if layout in REFUSES.get(name, ()):
        with pytest.raises((NotImplementedError, ValueError)):
            sparse(mat)
        pytest.skip("refused")
    return sparse, dense, mat, x


CASES = pytest.mark.parametrize(("name", "layout"), list(itertools.product(OPERATIONS, LAYOUTS)))


@CASES
def test_values(name, layout):
    sparse, dense, mat, x = case(name, layout)
    out = sparse(mat)
    assert isinstance(out, JAXSparse) or np.ndim(out) == np.ndim(dense(x))
    assert tuple(out.shape) == np.shape(dense(x))
    np.testing.assert_allclose(densified(out), dense(x), rtol=2e-6)
    np.testing.assert_allclose(densified(jit(sparse)(mat)), dense(x), rtol=2e-6)


@CASES
def test_mapped(name, layout):
    sparse, dense, mat, x = case(name, layout)
    scales = np.array([1, -2], np.float32)
    out = vmap(lambda s: densify(sparse(BCOO((mat.data * s, mat.indices), **mat._info._asdict()))))(scales)
    np.testing.assert_allclose(out, np.stack([dense(x * s) for s in scales]), rtol=2e-6)


def densify(x):
    return x.todense() if isinstance(x, JAXSparse) else x


@CASES
def test_derivatives(name, layout):
    sparse, dense, mat, x = case(name, layout)

    def of_data(data):
        return densify(sparse(BCOO((data, mat.indices), **mat._info._asdict())))

    step = np.asarray(mat.data) * 0 + DATA.rand(*mat.data.shape).astype(np.float32)
    out, slope = jvp(of_data, (mat.data,), (step,))
    eps = 1e-2
    ahead, behind = (np.asarray(of_data(mat.data + s * eps * step)) for s in (1, -1))
    if name not in ("sin", "dense inside", "program", "without zeros"):  # of the others, differences are exact
        np.testing.assert_allclose(slope, (ahead - behind) / (2 * eps), rtol=3e-2, atol=3e-2)
    _, back = vjp(of_data, mat.data)
    ct = np.asarray(DATA.rand(*np.shape(out)), np.float32)
    np.testing.assert_allclose((back(ct)[0] * step).sum(), (ct * slope).sum(), rtol=1e-4)


def test_stored_elements_of_sparse_arrays():
    x = np.array([[0, 2, 0], [1, 0, 4]], np.float32)
    mat = BCOO.fromdense(x, nse=5)
    assert repr(mat) == "BCOO(float32[2, 3], nse=5)" and len(mat) == 2
    np.testing.assert_array_equal(mat.indices, [[0, 1], [1, 0], [1, 2], [2, 3], [2, 3]])
    np.testing.assert_array_equal(mat.data, [2, 1, 4, 0, 0])
    assert mat.unique_indices and mat.indices_sorted and (mat.n_batch, mat.n_sparse, mat.n_dense) == (0, 2, 0)
    assert repr(BCOO.fromdense(x, n_batch=1)) == "BCOO(float32[2, 3], nse=2, n_batch=1)"
    assert repr(BCOO.fromdense(x, n_dense=1)) == "BCOO(float32[2, 3], nse=2, n_dense=1)"
    assert BCOO.fromdense(x.astype(np.int8), index_dtype=np.int16).indices.dtype == np.int16
    assert (mat + mat).nse == 10 and (mat + mat).sum_duplicates().nse == 3 and mat.sum_duplicates(nse=4).nse == 4
    assert (0 * mat).sum_duplicates().nse == 0 and (mat - mat).sum_duplicates(remove_zeros=False).nse == 3
    assert mat[0:1].nse == 3 and (mat @ mat.T).nse == 4
    leaves, tree = tree_flatten(mat)
    assert len(leaves) == 2 and hash(tree) == hash(tree_flatten(mat)[1])
    assert tree_unflatten(tree, leaves).shape == (2, 3)
    assert [m.shape for m in mat] == [(3,), (3,)]


def test_broadcast_batches_share_indices():
    indices = np.array([[[0], [2]]], np.int32)
    mat = BCOO((np.arange(6, dtype=np.float32).reshape(3, 2), indices), shape=(3, 3))
    dense = np.array([[0, 0, 1], [2, 0, 3], [4, 0, 5]], np.float32)
    np.testing.assert_array_equal(mat.todense(), dense)
    for f in (
        lambda m: m.T if isinstance(m, np.ndarray) else m.todense().T,
        lambda m: m @ V[:3],
        lambda m: (m * 2).sum(0),
        lambda m: m[1:],
        lambda m: m * dense,
        lambda m: (m + m).sum(1),
    ):
        np.testing.assert_allclose(densified(f(mat)), f(dense))


def test_booleans_and_integers():
    x = np.array([[0, 2, 0], [1, 0, 4]])
    for dtype in (bool, np.int32, np.int8, np.complex64):
        mat = BCOO.fromdense(x.astype(dtype))
        np.testing.assert_array_equal(mat.todense(), x.astype(dtype))
        assert mat.todense().dtype == dtype
    mat = BCOO.fromdense(x.astype(np.int32))
    np.testing.assert_array_equal(mat @ np.arange(3), x @ np.arange(3))
    assert mat.astype(np.float32).dtype == np.float32


def test_scipy():
    x = dense_array(5, 4)
    for kind, cls in (("csr_matrix", BCSR), ("coo_matrix", BCOO), ("csc_matrix", BCOO), ("csr_matrix", matrices.CSR)):
        mat = cls.from_scipy_sparse(getattr(scipy.sparse, kind)(x))
        np.testing.assert_array_equal(mat.todense(), x)
        np.testing.assert_allclose(mat @ V, x @ V)


@pytest.mark.parametrize("cls", [matrices.COO, matrices.CSR, matrices.CSC])
def test_matrices(cls):
    x = dense_array(3, 4)
    mat = jit(lambda x: cls.fromdense(x, nse=14))(x)
    np.testing.assert_array_equal(mat.todense(), x)
    np.testing.assert_allclose(jit(lambda m: m @ V)(mat), x @ V)
    np.testing.assert_allclose(mat @ M, x @ M)
    np.testing.assert_allclose(mat.T @ M.T[0, :3], x.T @ M.T[0, :3])
    slope = ad.grad(lambda m: (m @ V).sum())(mat)
    np.testing.assert_allclose(np.asarray(slope.todense()) * (x != 0), V * (x != 0))
    assert type(mat).__name__ in repr(mat)
    for f in (lambda: mat * 2, lambda: mat[0], lambda: mat + mat):
        with pytest.raises(NotImplementedError, match="BCOO"):
            f()


def test_functions_of_formats():
    x = dense_array(3, 4)
    for name in ("coo", "csr"):
        of = lambda what, name=name: getattr(matrices, f"{name}_{what}")
        mat = of("fromdense")(x)
        np.testing.assert_array_equal(of("todense")(mat), x)
        np.testing.assert_allclose(of("matvec")(mat, V), x @ V)
        np.testing.assert_allclose(of("matvec")(mat, V[:3], transpose=True), x.T @ V[:3])
        np.testing.assert_allclose(of("matmat")(mat, M), x @ M)
        np.testing.assert_allclose(vmap(of("matvec"), (None, 0))(mat, M.T), M.T @ x.T)
        with pytest.raises(TypeError, match="format"):
            of("todense")(x)


@pytest.mark.parametrize("options", [{}, {"nse": 14}, {"n_batch": 1}, {"n_dense": 1}, {"n_batch": 1, "n_dense": 1}])
def test_compressed_rows(options):
    x = dense_array(*(2,) * options.get("n_batch", 0), 3, 4, *(2,) * options.get("n_dense", 0))
    mat = BCSR.fromdense(x, **options)
    np.testing.assert_array_equal(mat.todense(), x)
    np.testing.assert_array_equal(jit(lambda m: m.to_bcoo().todense())(mat), x)
    np.testing.assert_array_equal(BCSR.from_bcoo(mat.to_bcoo()).todense(), x)
    b = mat.n_batch
    numbers = (((b + 1,), (0,)), ((), ()))
    np.testing.assert_allclose(
        bcsr.bcsr_dot_general(mat, V, dimension_numbers=numbers), np.tensordot(x, V, ((b + 1,), (0,))), rtol=1e-6
    )
    np.testing.assert_array_equal(bcsr.bcsr_concatenate([mat, mat], dimension=b).todense(), np.concatenate([x, x], b))
    data = bcsr.bcsr_extract(mat.indices, mat.indptr, x)
    np.testing.assert_array_equal(BCSR((data, mat.indices, mat.indptr), shape=x.shape).todense(), x)
    np.testing.assert_array_equal(mat.sum_duplicates(nse=12).todense(), x)
    assert mat.n_sparse == 2 and f"nse={mat.nse}" in repr(mat)


def test_gather_needs_no_dense_array():
    x = dense_array(4, 3)
    mat = BCOO.fromdense(x)
    for i in (np.array([3, 1]), np.array([[0], [9]]), np.array([-1])):
        out = sparsify(lambda m, i=i: m.at[i].get(mode="fill", fill_value=0))(mat)
        inside = ((i >= -4) & (i < 4))[..., None]
        np.testing.assert_array_equal(out.todense(), np.where(inside, x[np.clip(i, -4, 3)], 0))
    assert mat[np.array([1, 2])].n_batch == 1


def test_sampled_products():
    a, b = dense_array(3, 5), dense_array(5, 4)
    at = np.array([[0, 1], [2, 3], [3, 4]], np.int32)
    numbers = (((1,), (0,)), ((), ()))
    out = bcoo_products.bcoo_dot_general_sampled(a, b, at, dimension_numbers=numbers)
    np.testing.assert_allclose(out, [(a @ b)[0, 1], (a @ b)[2, 3], 0])
    out = bcoo_products.bcoo_dot_general_sampled(a, b, at[:, :1], dimension_numbers=numbers)
    np.testing.assert_allclose(out, np.stack([(a @ b)[0], (a @ b)[2], np.zeros(4)]))


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 1)]])
@pytest.mark.parametrize(("stride", "left", "right"), [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 1, 2)])
def test_convolutions(padding, stride, left, right):
    x, k = dense_array(2, 3, 9), dense_array(4, 3, 3)
    if left > 1 and isinstance(padding, str):
        padding = [(1, 1)]
    options = dict(window_strides=(stride,), padding=padding, lhs_dilation=(left,), rhs_dilation=(right,))
    out = bcoo_shaping.bcoo_conv_general_dilated(BCOO.fromdense(x), BCOO.fromdense(k), **options)
    np.testing.assert_allclose(out.todense(), lax.conv_general_dilated(x, k, **options), rtol=1e-5)


def test_layouts_that_take_more_memory():
    mat = BCOO.fromdense(M)
    with pytest.raises(SparseEfficiencyError, match="n_batch from 0 to 1"):
        mat.update_layout(n_batch=1)
    with pytest.warns(SparseEfficiencyWarning, match="n_dense from 0 to 1"):
        assert mat.update_layout(n_dense=1, on_inefficient="warn").n_dense == 1
    with pytest.raises(ValueError, match="on_inefficient"):
        mat.update_layout(n_batch=1, on_inefficient="no")


def test_sizes_must_be_known():
    for f in (
        BCOO.fromdense,
        BCSR.fromdense,
        lambda x: (BCOO.fromdense(x, nse=9) + 0 * BCOO.fromdense(x, nse=9)).sum_duplicates(),
    ):
        with pytest.raises(ConcretizationTypeError, match="nse"):
            jit(f)(M)


def test_operations_with_dense_results_are_refused():
    mat = BCOO.fromdense(M)
    for f in (sparsify(jnp.cos), lambda m: m + 1, lambda m: 2 / m, lambda m: m > 1, lambda m: m**0, sparsify(jnp.exp)):
        with pytest.raises(NotImplementedError, match="dense|power"):
            f(mat)
    assert todense(M).shape == M.shape
    seen = []
    sparsify(lambda x: seen.append(x))(mat)
    assert isinstance(seen[0], SparseTracer) and seen[0].shape == (4, 3) and "BCOO" in repr(seen[0])


def test_misuse():
    for f, text in (
        (lambda: BCOO((np.ones(3), np.zeros((2, 1), int)), shape=(4,)), "BCOO of shape"),
        (lambda: BCOO((np.ones(3), np.zeros((3, 2), int)), shape=(4,)), "BCOO of shape"),
        (lambda: BCOO((np.ones((2, 3)), np.zeros((2, 3, 1), int)), shape=(3, 4)), "batch dimensions"),
        (lambda: BCSR((np.ones(3), np.zeros(3, int), np.zeros(3, int)), shape=(4, 4)), "BCSR of shape"),
        (lambda: BCOO.fromdense(M, n_batch=2, n_dense=1), "n_batch"),
        (lambda: creation.empty((2, 3), sparse_format="x"), "sparse_format='x'"),
        (lambda: BCOO.fromdense(M).reshape(5), "size"),
        (lambda: bcoo.bcoo_extract(BCOO.fromdense(M), V), "one shape"),
    ):
        with pytest.raises(ValueError, match=text):
            f()


def test_derivatives_with_respect_to_sparse_arrays():
    mat = BCOO.fromdense(M.T, nse=8)
    f = lambda m, v: ((m @ v) ** 2).sum()
    value, (of_mat, of_v) = ad.value_and_grad(f, argnums=(0, 1))(mat, V)
    y = M.T @ V
    np.testing.assert_allclose(of_v, 2 * M @ y)
    np.testing.assert_allclose(of_mat.todense(), 2 * np.outer(y, V) * (M.T != 0))
    assert value == (y**2).sum() and of_mat.nse == 8
    grads, aux = ad.grad(lambda t: (f(t["m"], V), 7), has_aux=True)({"m": mat})
    np.testing.assert_allclose(grads["m"].todense(), of_mat.todense())
    assert aux == 7
    expected = np.einsum("ik,j->ikj", np.eye(3), V) * (M.T != 0)
    for jac in (ad.jacfwd, ad.jacrev):
        out = jac(lambda m: m @ V)(mat)
        assert out.shape == (3, 3, 4) and out.n_batch == 1
        np.testing.assert_allclose(out.todense(), expected)
        both = jac(lambda m, v: {"a": m @ v}, argnums=(0, 1))(mat, V)["a"]
        np.testing.assert_allclose(both[1], M.T)
    np.testing.assert_allclose(
        jacfwd(lambda x: BCOO.fromdense(x, nse=12).todense())(M), np.eye(12).reshape(4, 3, 4, 3) * (M != 0)
    )


def test_creation():
    for fmt in creation.FORMATS:
        np.testing.assert_array_equal(creation.eye(3, 4, 1, sparse_format=fmt).todense(), np.eye(3, 4, 1))
        np.testing.assert_array_equal(creation.eye(4, 3, -2, sparse_format=fmt).todense(), np.eye(4, 3, -2))
        assert creation.empty((2, 3), sparse_format=fmt).nse == 0
    np.testing.assert_array_equal(creation.eye(3, n_batch=1).todense(), np.eye(3))
    assert creation.empty((2, 3, 4), n_batch=1, n_dense=1, nse=2).data.shape == (2, 2, 4)
    key = random.key(0)
    for options, nse in (({}, 4), ({"nse": 3, "n_batch": 1}, 3), ({"nse": 0.5, "n_dense": 1}, 2), ({"nse": 20}, 20)):
        mat = creation.random_bcoo(key, (4, 5), dtype=np.float32, **options)
        assert mat.nse == nse and (np.asarray(mat.todense()) != 0).sum() == np.size(mat.data)
    assert creation.random_bcoo(key, (4, 5), sorted_indices=True).indices_sorted


def test_direct_solver():
    a = (np.eye(5) * 4 + dense_array(5, 5) * 0.3).astype(np.float32)
    b = np.arange(1, 6).astype(np.float32)
    mat = BCSR.fromdense(a)
    solve = lambda data, b: linalg.spsolve(data, mat.indices, mat.indptr, b)
    np.testing.assert_allclose(jit(solve)(mat.data, b), np.linalg.solve(a, b), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        vmap(solve, (None, 0))(mat.data, np.stack([b, 2 * b]))[1], np.linalg.solve(a, 2 * b), rtol=1e-5, atol=1e-6
    )
    ct = np.ones(5, np.float32)
    of_data, of_b = vjp(solve, mat.data, b)[1](ct)
    np.testing.assert_allclose(of_b, np.linalg.solve(a.T, ct), rtol=1e-5, atol=1e-6)
    slope = -np.outer(np.linalg.solve(a.T, ct), np.linalg.solve(a, b))
    np.testing.assert_allclose(of_data, slope[a != 0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="square matrix"):
        linalg.spsolve(mat.data, mat.indices, mat.indptr, b[:3])


def test_some_eigenvectors():
    x = DATA.rand(40, 40)
    a = (x @ x.T).astype(np.float32)
    a[np.abs(a) < 9] = 0
    a = (a + a.T) / 2 + np.diag(np.arange(40)).astype(np.float32)
    values, vectors, steps = jit(lambda m, x: linalg.lobpcg_standard(m, x, m=200))(
        BCOO.fromdense(a), DATA.rand(40, 3).astype(np.float32)
    )
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:3], rtol=1e-4)
    np.testing.assert_allclose(a @ np.asarray(vectors), vectors * values, atol=0.2)
    assert 0 < int(steps) < 200
    with pytest.raises(ValueError, match="5 k < n"):
        linalg.lobpcg_standard(a, np.ones((40, 8), np.float32))


def test_maps_over_batch_dimensions():
    x = dense_array(2, 3, 4)
    several = BCOO.fromdense(x, n_batch=1)
    shapes = []

    def f(m):
        shapes.append(m.shape)
        return m.T

    out = vmap(f)(several)
    assert shapes == [(3, 4)] and out.shape == (2, 4, 3) and out.n_batch == 1
    np.testing.assert_array_equal(out.todense(), x.transpose(0, 2, 1))
    np.testing.assert_allclose(vmap(lambda m, v: m @ v, (0, None))(several, V), x @ V)
    np.testing.assert_array_equal(vmap(lambda x: BCSR.fromdense(x, nse=12))(x).todense(), x)
    np.testing.assert_array_equal(vmap(lambda m: m, in_axes=1, out_axes=1)(BCOO.fromdense(x, n_batch=2)).todense(), x)
    np.testing.assert_array_equal(
        vmap(lambda m: m, in_axes=1)(BCOO.fromdense(x, n_batch=2)).todense(), x.swapaxes(0, 1)
    )
    same = vmap(lambda m: m, in_axes=None, axis_size=2)(BCOO.fromdense(M))
    assert same.shape == (2, 4, 3) and same.n_batch == 1
    np.testing.assert_allclose(vmap(jit(lambda m: m @ V))(BCSR.fromdense(x, n_batch=1)), x @ V)
    grads = vmap(ad.grad(lambda m: (m @ V).sum()))(several)
    np.testing.assert_allclose(grads.todense(), V * (x != 0))
    with pytest.raises(ValueError, match="batch dimension"):
        vmap(lambda m: m)(BCOO.fromdense(M))


def test_values_that_name_buffers():
    x = dense_array(3, 4)
    env = environment.SparsifyEnv()
    coo, rows, vector = environment.arrays_to_spvalues(env, (BCOO.fromdense(x), BCSR.fromdense(x), V))
    assert coo.is_bcoo() and rows.is_bcsr() and vector.is_dense() and coo.ndim == 2
    twice = env.sparse(coo.shape, 2 * env.data(coo), indices_ref=coo.indices_ref)
    (out,), _ = environment.sparsify_raw(lambda a, b, v: (a + b) @ v)(env, coo, twice, vector)
    np.testing.assert_allclose(environment.spvalues_to_arrays(env, out), 3 * x @ V)
    program = make_jaxpr(lambda a, b: a.T @ b)(x, x)
    (out,) = environment.eval_sparse(program, program.consts, [coo, rows], env)
    assert environment.spvalues_to_avals(env, out).shape == (4, 4)
    np.testing.assert_allclose(environment.spvalues_to_arrays(env, out).todense(), x.T @ x)
    with pytest.raises(ValueError, match="either data or data_ref"):
        env.sparse((3,), indices=V)
    with pytest.raises(RuntimeError, match="indices"):
        env.indices(vector)


def test_samples():
    layouts = list(samples.iter_sparse_layouts((3, 4)))
    assert len(layouts) == 6 and next(iter(samples.iter_bcsr_layouts((2, 3, 4)))) == (0, 1, 2)
    assert list(samples.iter_subsets("ab")) == [(), ("a",), ("b",), ("a", "b")]
    check = samples.SparseTestCase()
    for layout in layouts:
        make = samples.rand_bcoo(DATA, nse=5, n_batch=layout.n_batch, n_dense=layout.n_dense)
        mat = make((3, 4), np.float32)
        assert (np.asarray(mat.todense()) != 0).sum() == 5
        check.assertSparseArraysEquivalent(mat, mat)
        check._CheckAgainstDense(lambda x: x * 2, lambda m: m * 2, lambda m=mat: [m])
        with pytest.raises(AssertionError):
            check.assertSparseArraysEquivalent(mat, mat * 2)
    assert samples.rand_bcsr(DATA)((3, 4), np.float32).nse == 6


def test_sparsify_fun_takes_flat_arguments():
    x = np.diag(np.arange(3, dtype=np.float32))
    out, dense = transform.sparsify_fun(lambda a, b: [a * 2, b + 1], [BCOO.fromdense(x), jnp.asarray(x)])
    assert isinstance(out, BCOO)
    np.testing.assert_array_equal(out.todense(), 2 * x)
    np.testing.assert_array_equal(dense, x + 1)


def test_flatten_fun_for_sparse_ad():
    x = BCOO.fromdense(np.diag(np.arange(1, 4, dtype=np.float32)))
    fun, positions, leaves, rebuilt = ad.flatten_fun_for_sparse_ad(lambda s, y: (s @ y, y), (0, 1), (x, np.ones(3)))
    assert [leaves[i].shape for i in positions] == [(3,), (3,)] and leaves[positions[0]] is x.data
    np.testing.assert_array_equal(fun(*leaves)[0], [1, 2, 3])
    new, dense = rebuilt([x.data * 2, np.zeros(3)])
    np.testing.assert_array_equal(new.todense(), 2 * x.todense())
    assert isinstance(new, BCOO) and not dense.any()
    _, _, _, single = ad.flatten_fun_for_sparse_ad(lambda s, y: s @ y, 1, (x, np.ones(3)))
    assert single([5]) == 5


def test_arrays_of_symbolic_dimensions():
    shapes = pytest.importorskip("bedrax.shape_poly")

    def work(x):
        m = BCOO.fromdense(x, nse=3)
        column = bcoo_shaping.bcoo_squeeze(bcoo_shaping.bcoo_reduce_sum(m[None], axes=(2,)), dimensions=(0,))
        half = m * jnp.full(x.shape, 0.5)
        return m.todense(), column.todense(), half.todense()

    whole = shapes.symbolic_shape("b, 4")
    program = make_jaxpr(work)(ShapeDtypeStruct(whole, np.float32))
    assert [aval.shape for aval in program.out_avals] == [whole, whole[:1], whole]
    with pytest.raises(TypeError):
        BCOO((np.ones(1), np.zeros((1, 1), np.int32)), shape=(1.5,))
