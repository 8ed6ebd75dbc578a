"""Programs over arrays of unknown sizes: exported once, called at several sizes, compared with the function itself."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.experimental import sparse

FOLDER = Path(__file__).with_name("programs")

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def positive(x):
    return x @ jnp.swapaxes(x, -1, -2) + 4 * jnp.eye(x.shape[-1])


def convolved(x):
    kernel = jnp.ones((3, 3, 1, 2)) / 9
    return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooled(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def of_sparse_formats(x):
    formats = [getattr(sparse, name) for name in ("BCOO", "BCSR", "COO", "CSR", "CSC")]
    found = [cls.fromdense(jnp.where(x > 0, x, 0.0), nse=20) for cls in formats]
    empty = [sparse.empty(x.shape, sparse_format=name).todense() for name in ("bcoo", "bcsr", "coo", "csr", "csc")]
    return [m.todense() for m in found], [m @ jnp.ones(4) for m in found], [m @ x.T for m in found], empty


PROGRAMS = {
    # name: (function, specification, shapes to call with)
    "reductions": (lambda x: (jnp.argmax(x), jnp.argmin(x, 1), jnp.max(x, 0), jnp.prod(x, 0), jnp.any(x > 0, 0)), "b, c", [(5, 3), (1, 1)]),
    "statistics": (lambda x: (jnp.mean(x), jnp.var(x, 0), jnp.std(x, 1), jnp.average(x, 0), jnp.median(x, 0)), "b, n", [(5, 3), (2, 2)]),
    "slices": (lambda x: (x[1:3], x[:, None], x[..., 0], x[::2], x[::-1], x[:-1], x[jnp.array([0, 1])]), "b + 2, 3", [(5, 3), (3, 3)]),
    "positions": (lambda x: (x[0], x[1], x[-1], x[-2], x[:, 1], x[x.shape[0] - 1]), "b, n", [(5, 3), (1, 1), (2, 4)]),
    "updates": (lambda x: (x.at[0].add(1.0), x.at[1].set(0.0), x.at[-1].mul(2.0), x.at[:, 1].set(3.0)), "b, n", [(5, 3), (1, 1), (2, 4)]),
    "joining": (lambda x: (jnp.concatenate([x, x], 0), jnp.stack([x, x], 1), jnp.tile(x, (2, 1)), jnp.repeat(x, 3, 0), jnp.roll(x, 1, 0), jnp.pad(x, ((1, 2), (0, 0)))), "b, 3", [(5, 3), (1, 3)]),
    "creation": (lambda x: (jnp.linspace(0, 1, x.shape[0]), jnp.arange(x.shape[0] * 2), jnp.eye(x.shape[0]), jnp.ones_like(x), jnp.full((x.shape[0], 2), 3.0)), "b, 3", [(5, 3), (1, 3)]),
    "shapes": (lambda x: (jnp.expand_dims(x, 0), jnp.moveaxis(x, 0, 1), jnp.ravel(x), x.reshape(-1), x.reshape(x.shape[0], 2, 2), x.size, jnp.array(x.shape)), "b, 4", [(5, 4), (1, 4)]),
    "products": (lambda x: (jnp.einsum("bi,bj->ij", x, x), jnp.dot(x.T, x), jnp.tensordot(x, x, ((0,), (0,))), jnp.vdot(x, x)), "b, n", [(5, 3), (1, 2)]),
    "sorting": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1])), "b, 3", [(5, 3), (1, 3)]),
    "activations": (lambda x: (jax.nn.gelu(x), jax.nn.softmax(x, 0), jax.nn.log_softmax(x), jax.nn.one_hot(jnp.argmax(x, 1), 3)), "b, n", [(5, 3), (2, 2)]),
    "loops": (lambda x: (lax.scan(lambda c, a: (c + a, c), jnp.zeros(3), x, reverse=True), lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3)), lax.map(lambda r: r.sum() * 2, x)), "b, 3", [(5, 3), (1, 3)]),
    "vmap": (jax.vmap(lambda r: lax.cond(r.sum() > 0, lambda: r * 2, lambda: r)), "b, 3", [(5, 3), (1, 3)]),
    "convolution": (lambda x: pooled(convolved(x)), "b, 4*h, 4*w, 1", [(2, 8, 4, 1), (1, 4, 12, 1)]),
    "gradient of products": (jax.grad(lambda x: (jnp.sin(x) @ x.T).sum()), "b, n", [(5, 3), (1, 1)]),
    "gradient of convolutions": (jax.grad(lambda x: (convolved(x) ** 2).sum()), "b, h, w, 1", [(2, 5, 6, 1), (1, 4, 3, 1)]),
    "gradient of pooling": (jax.grad(lambda x: (pooled(x) ** 2).sum()), "b, _, _, 1", [(2, 6, 6, 1), (1, 6, 6, 1)]),
    "gradient of loops": (jax.grad(lambda x: lax.scan(lambda c, a: (c * a, c), jnp.ones(3), x)[1].sum()), "b, 3", [(5, 3), (1, 3)]),
    "random": (lambda x: (jax.random.normal(jax.random.key(0), x.shape), jax.random.bernoulli(jax.random.key(1), 0.5, x.shape)), "b, 3", [(5, 3), (2, 3)]),
    "sparse arrays": (of_sparse_formats, "b, 4", [(5, 4), (1, 4)]),
    "linear algebra": (
        lambda x: (
            jnp.linalg.cholesky(positive(x)),
            jnp.linalg.solve(positive(x), x),
            jnp.linalg.inv(positive(x)),
            jnp.abs(jnp.linalg.qr(x)[1]),
            jnp.linalg.svd(x, compute_uv=False),
            jnp.linalg.eigvalsh(positive(x)),
        ),
        "b, 3, 3",
        [(4, 3, 3), (1, 3, 3)],
    ),
    "factors of matrices of any size": (
        lambda x: (jnp.linalg.cholesky(positive(x)), jnp.linalg.eigvalsh(positive(x))),
        "b, n, n",
        [(2, 3, 3), (1, 5, 5)],
    ),
    "determinants": (lambda x: jnp.linalg.det(positive(x)), "b, 3, 3", [(4, 3, 3), (1, 3, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, spec, shapes = PROGRAMS[name]
    (argument,) = export.symbolic_args_specs((normal(*shapes[0]),), spec)
    exported = export.export(jax.jit(function))(argument)
    for shape in shapes:
        x = jnp.asarray(normal(*shape))
        expected, tree = jax.tree.flatten(function(x))
        got, got_tree = jax.tree.flatten(exported.call(x))
        assert got_tree == tree
        for y, z, aval in zip(got, expected, exported.out_avals, strict=True):
            np.testing.assert_allclose(y, z, rtol=2e-5, atol=2e-5)
            assert y.dtype == jnp.asarray(z).dtype == aval.dtype


def test_errors_name_the_dimensions():
    (v,) = export.symbolic_shape("v")
    of = lambda *shape: jax.ShapeDtypeStruct(shape, np.float32)
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(v,\), \(4,\)"):
        export.export(jax.jit(lambda x, y: x + y))(of(v), of(4))
    with pytest.raises(TypeError, match=r"requires contracting dimensions to have the same shape, got \[4\] and \[v\]"):
        export.export(jax.jit(lambda x: jnp.matmul(x, x)))(of(v, 4))
    with pytest.raises(
        jax.errors.InconclusiveDimensionOperation,
        match=r"Cannot divide evenly the sizes of shapes \(v, 5, 7\) and \(2, -1\)(.|\n)*Details: Cannot divide '35\*v' by '-2'",
    ):
        export.export(jax.jit(lambda x: jnp.reshape(x, (2, -1))))(of(v, 5, 7))
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type, got"):
        export.export(jax.jit(lambda x: jnp.reshape(x, (x.shape[0] * np.array([x.shape[1]]),))))(of(v, 4))


SEARCHES = FOLDER / "symbolic_searches.py"


@pytest.mark.parametrize("name", ["choice", "searchsorted"])
def test_a_search_in_an_array_of_unknown_size_compiles(name):
    """The search takes one step per bit of an index. LLVM does not finish unrolled steps for an array of three."""
    done = subprocess.run([sys.executable, SEARCHES, name], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr[-3000:]


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("sampler", ["uniform", "bits", "normal"])
def test_random_numbers_of_an_unknown_size(implementation, sampler):
    draw = lambda x: getattr(jax.random, sampler)(jax.random.key(0, impl=implementation), x.shape)
    exported = export.export(jax.jit(draw))(jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
    for n in (1, 4, 5):
        x = np.ones(n, np.float32)
        np.testing.assert_array_equal(exported.call(x), jax.jit(draw)(x))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_arguments_of_64_bits_have_32_without_x64(dtype):
    exported = export.export(jax.jit(lambda x: 2 * x))(jax.ShapeDtypeStruct(export.symbolic_shape("b"), dtype))
    (aval,) = exported.in_avals
    assert aval.dtype == jax.dtypes.canonicalize_dtype(dtype) != np.dtype(dtype)
    assert np.asarray(exported.call(np.ones(3, dtype))).tolist() == [2, 2, 2]
