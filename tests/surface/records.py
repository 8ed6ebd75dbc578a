"""The surface: the arguments of each public function of the face.

A record has a function's arguments. NumPy values among them are arrays: they are traced, batched, differentiated.
Everything else is a constant. `PARAMETERS` makes the record of a function from the names of its parameters; for other
functions, `CALLS` has the arguments. `ELSEWHERE` has the other names, with the tests that
call them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import methods
import numpy as np
from jax import lax

_rng = np.random.default_rng(0)


def floats(*shape):
    """Numbers in (0.15, 0.85). Every elementary function is smooth there."""
    return _rng.uniform(0.15, 0.85, shape).astype(np.float32)


M, N, V, W = floats(3, 4), floats(3, 4), floats(4), floats(4)
SQUARE = floats(3, 3) + 3 * np.eye(3, dtype=np.float32)
SYMMETRIC = SQUARE + SQUARE.T
LOWER = np.tril(SQUARE)
INTS, COUNTS = np.array([[3, 1, 2], [0, 5, 4]], np.int32), np.array([1, 0, 2, 1], np.int32)
BITS = np.array([[1, 0, 255], [7, 8, 9]], np.uint8)
BOOLS = M > 0.5
COMPLEX = (M + 1j * N).astype(np.complex64)
IMAGE, KERNEL = floats(1, 2, 5, 6), floats(3, 2, 2, 3)
PARTS = np.array([0.25, 0.125, 0.25, 0.375], np.float32)  # the sum is 1
KEY = jax.random.key(0)
ONE, HALF, TWO, THREE = (np.float32(x) for x in (1.3, 0.4, 2.2, 3.1))

PARAMETERS: dict[str, Any] = dict(
    x=M,
    a=M,
    b=M,
    x1=M,
    x2=N,
    y=N,
    z=M,
    arr=M,
    ary=M,
    m=M,
    v=V,
    A=SQUARE,
    array=M,
    array_like=M,
    operand=M,
    key=KEY,
    shape=(3,),
    arys=[M, N],
    arrays=[M, N],
    p=np.float32(0.3),
    q=HALF,
    k=np.int32(2),
    n=np.int32(5),
    alpha=ONE,
    beta=TWO,
    axis=0,
    dtype=np.float32,
    loc=HALF,
    scale=ONE,
    lhs=M,
    rhs=N,
    logits=M,
    indices=np.array([1, 0]),
    s=ONE,
    df=THREE,
    num=3,
    N=3,
    tensor=M,
    condition=BOOLS,
    keys=KEY,
    mu=ONE,
    xs=M,
    c=HALF,
    image=M,
    val=M,
    tup=[M, N],
)


class Call(NamedTuple):
    """Arguments by position and by keyword; and a function that calls the public one, to call instead of it."""

    args: tuple
    kwargs: dict
    function: Callable | None = None


def call(*args, **kwargs) -> Call:
    return Call(args, kwargs)


def over(axis_function, x=M) -> Call:
    """A call of a function under a named axis "i"."""
    return Call((x,), {}, lambda x: jax.vmap(axis_function, axis_name="i")(x))


def symmetrized(path) -> Call:
    """A function that reads one triangle of a symmetric matrix. It is differentiated along symmetric matrices."""
    module, _, name = path.rpartition(".")
    return Call((SYMMETRIC,), {}, lambda a: getattr(importlib.import_module(f"jax.{module}"), name)((a + a.T) / 2))


def initializer(name, *settings, shape=(3, 4)) -> Call:
    """The result of the function `name`: a function of a key and a shape."""
    return Call((KEY,), {}, lambda key: getattr(jax.nn.initializers, name)(*settings)(key, shape))


def _scatter(name):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return {f"lax.{name}": call(M, np.array([[1], [2]]), floats(2, 4), numbers)}


def _square(module, *names):
    return {f"{module}.{n}": call(SQUARE) for n in names}


def _pair(module, *names, of=(INTS, INTS + 1)):
    return {f"{module}.{n}": call(*of) for n in names}


SEGMENTS = np.array([0, 1, 0])
MATRICES = "cholesky eig eigh inv det eigvals eigvalsh slogdet"
CALLS: dict[str, Call] = {
    # jax.numpy
    **_pair("numpy", "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"),
    **_pair("numpy", "bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift", of=(INTS, INTS % 3)),
    **_pair("numpy", "add", "multiply", "subtract", "maximum", "minimum", "logaddexp", "logaddexp2", "logical_and",
            "logical_or", "logical_xor", of=(M, N)),
    **_pair("numpy", "bitwise_count", "bitwise_invert", "bitwise_not", "invert", of=(INTS,)),
    **_pair("numpy", "bartlett", "blackman", "hamming", "hanning", of=(5,)),
    **_pair("numpy", "polyadd", "polysub", "polymul", "polydiv", of=(V, W[:2])),
    **_pair("numpy", "array_split", "split", "dsplit", of=(floats(2, 3, 4), 2)),
    **_pair("numpy", "hsplit", of=(M, 2)), **_pair("numpy", "vsplit", of=(M.T, 2)),
    **_pair("numpy", "dot", "matmul", of=(M, N.T)), **_pair("numpy", "linspace", "logspace", "geomspace", of=(HALF, ONE)),
    **_pair("numpy", "partition", "argpartition", of=(M, 1)),
    **_pair("numpy", "convolve", "correlate", of=(V, W[:2])),
    **_pair("numpy", "array_equal", "array_equiv", of=(M, N)),
    **_pair("numpy", "cumulative_prod", "cumulative_sum", of=(V,)),
    "numpy.append": call(M, V), "numpy.negative": call(M), "numpy.apply_along_axis": call(jnp.sum, 0, M),
    "numpy.apply_over_axes": call(jnp.sum, M, [0, 1]), "numpy.arange": call(5), "numpy.array": call(M),
    "numpy.bincount": call(COUNTS, W, length=3), "numpy.broadcast_to": call(V, (3, 4)),
    "numpy.arccosh": call(M + 1), "numpy.acosh": call(M + 1), "numpy.argwhere": call(M, size=12),
    "numpy.can_cast": call(np.int32, np.float32), "numpy.choose": call(COUNTS, [V, W, V], mode="clip"),
    "numpy.clip": call(M, HALF, ONE), "numpy.column_stack": call([M, N]), "numpy.hstack": call([M, N]),
    "numpy.vstack": call([M, N]), "numpy.dstack": call([M, N]),
    "numpy.compress": call(np.array([True, False, True]), M, axis=0, size=2), "numpy.cross": call(M[:, :3], N[:, :3]),
    "numpy.delete": call(M, 1, axis=0), "numpy.diag_indices_from": call(SQUARE), "numpy.digitize": call(M, np.sort(V)),
    "numpy.einsum": call("ij,kj->ik", M, N), "numpy.einsum_path": call("ij,kj->ik", M, N),
    "numpy.empty_like": call(M), "numpy.extract": call(BOOLS, M, size=12),
    "numpy.fill_diagonal": call(SQUARE, HALF, inplace=False), "numpy.flatnonzero": call(BOOLS, size=12),
    "numpy.frombuffer": call(b"abcd", np.uint8), "numpy.fromfunction": call(lambda i, j: i + j, (2, 3)),
    "numpy.frompyfunc": call(lambda x, y: x + y, 2, 1), "numpy.fromstring": call("1 2 3", sep=" "),
    "numpy.full": call((2, 3), HALF), "numpy.full_like": call(M, HALF), "numpy.gradient": call(M),
    "numpy.histogram2d": call(V, W, 3), "numpy.histogramdd": call(M, 3), "numpy.imag": call(COMPLEX),
    "numpy.real": call(COMPLEX), "numpy.indices": call((2, 3)), "numpy.insert": call(M, 1, V, axis=0),
    "numpy.interp": call(M, np.sort(V), W), "numpy.intersect1d": call(COUNTS, COUNTS[:2], size=3),
    "numpy.isdtype": call(np.dtype(np.int32), "integral"), "numpy.isin": call(INTS, COUNTS), "numpy.isscalar": call(3),
    "numpy.issubdtype": call(np.int32, np.integer), "numpy.kaiser": call(5, TWO), "numpy.ldexp": call(M, INTS[:1, :1]),
    "numpy.mask_indices": call(3, jnp.triu, size=6), "numpy.moveaxis": call(M, 0, 1), "numpy.nonzero": call(BOOLS, size=12),
    "numpy.packbits": call(BITS > 5), "numpy.pad": call(M, 1), "numpy.permute_dims": call(M, (1, 0)),
    "numpy.piecewise": call(M, [BOOLS], [lambda x: x * 2, lambda x: x]), "numpy.place": call(M, BOOLS, V, inplace=False),
    "numpy.poly": call(V), "numpy.polyder": call(V), "numpy.polyfit": call(V, W, 2), "numpy.polyint": call(V),
    "numpy.polyval": call(V, M), "numpy.put": call(M, COUNTS, W, inplace=False),
    "numpy.put_along_axis": call(M, np.array([[1], [0], [2]]), HALF, 1, inplace=False),
    "numpy.ravel_multi_index": call((COUNTS, COUNTS), (3, 4), mode="clip"), "numpy.repeat": call(M, 2, axis=0),
    "numpy.reshape": call(M, (4, 3)), "numpy.resize": call(M, (2, 5)), "numpy.result_type": call(np.float32, np.float32),
    "numpy.roll": call(M, 1, axis=0), "numpy.roots": call(V, strip_zeros=False), "numpy.searchsorted": call(np.sort(V), M),
    "numpy.select": call([BOOLS], [M]), "numpy.setdiff1d": call(COUNTS, COUNTS[:2], size=3),
    "numpy.setxor1d": call(COUNTS, COUNTS[:2], size=3), "numpy.union1d": call(COUNTS, COUNTS[:2], size=3),
    "numpy.unique": call(COUNTS, size=3), "numpy.unique_all": call(COUNTS, size=3),
    "numpy.unique_counts": call(COUNTS, size=3), "numpy.unique_inverse": call(COUNTS, size=3),
    "numpy.unique_values": call(COUNTS, size=3), "numpy.swapaxes": call(M, 0, 1), "numpy.take": call(M, COUNTS),
    "numpy.take_along_axis": call(M, np.array([[1], [0], [2]]), 1), "numpy.tile": call(M, (2, 1)),
    "numpy.where": call(BOOLS, M, N), "random.orthogonal": call(KEY, 3), "scipy.special.bernoulli": call(5),
    **{f"scipy.sparse.linalg.{n}": call(lambda x: jnp.matmul(SYMMETRIC, x), V[:3]) for n in ("cg", "bicgstab", "gmres")},
    **{f"scipy.stats.pareto.{n}": call(M + 1, TWO, scale=HALF) for n in ("logpdf", "pdf", "logcdf", "cdf", "logsf", "sf")},
    "numpy.unpackbits": call(BITS), "numpy.unravel_index": call(COUNTS, (3, 4)),
    "numpy.unwrap": call(V), "numpy.vander": call(V), "numpy.vecmat": call(V[:3], M),
    "numpy.vectorize": call(lambda x: x + 1), "numpy.matvec": call(M, V), "numpy.vecdot": call(M, N),
    "numpy.cov": call(M), "numpy.corrcoef": call(M), "numpy.trapezoid": call(M), "numpy.tri": call(3),
    "numpy.from_dlpack": call(jnp.ones(3)), "numpy.eye": call(3), "numpy.identity": call(3),
    "numpy.tril_indices": call(3), "numpy.triu_indices": call(3), "numpy.diag_indices": call(3),
    "numpy.block": call([[M, N]]), "numpy.nanquantile": call(M, HALF), "numpy.rot90": call(M),
    "numpy.lexsort": call([V, W]), "numpy.fft.fftfreq": call(5), "numpy.fft.rfftfreq": call(5),
    "lax.top_k": call(M, 2), "lax.approx_max_k": call(M, 2), "lax.approx_min_k": call(M, 2), "numpy.rollaxis": call(M, 1), "numpy.expand_dims": call(M, 0), "numpy.diagflat": call(V), "numpy.diag": call(V),
    **_square("numpy.linalg", *MATRICES.split()),
    "numpy.linalg.cholesky": call(SYMMETRIC), "numpy.linalg.eigh": call(SYMMETRIC), "numpy.linalg.eigvalsh": call(SYMMETRIC),
    "numpy.linalg.cross": call(M[:, :3], N[:, :3]), "numpy.linalg.matmul": call(M, N.T),
    "numpy.linalg.matrix_power": call(SQUARE, 3), "numpy.linalg.matrix_rank": call(M),
    "numpy.linalg.multi_dot": call([M, N.T, M]), "numpy.linalg.outer": call(V, W), "numpy.linalg.solve": call(SQUARE, M),
    "numpy.linalg.tensorinv": call(floats(4, 6, 8, 3), 2), "numpy.linalg.tensorsolve": call(SQUARE, V[:3]),
    "numpy.linalg.lstsq": call(M.T, V), "numpy.linalg.cond": call(SQUARE), "numpy.linalg.pinv": call(M),
    # jax.lax
    **_pair("lax", "bitwise_and", "bitwise_or", "bitwise_xor", "mulhi"),
    **_pair("lax", "shift_left", "shift_right_arithmetic", "shift_right_logical", of=(INTS, INTS % 3)),
    **_pair("lax", "bitwise_not", "clz", "population_count", of=(INTS,)), **_pair("lax", "real", "imag", of=(COMPLEX,)),
    **_pair("lax", "argmax", "argmin", of=(M, 1, np.int32)),
    **_pair("lax", "reduce_max", "reduce_min", "reduce_sum", "reduce_prod", of=(M, (0,))),
    **_pair("lax", "reduce_and", "reduce_or", "reduce_xor", of=(BOOLS, (0,))),
    **_pair("lax", "dynamic_slice_in_dim", of=(M, np.int32(1), 2)), **_pair("lax", "dynamic_index_in_dim", of=(M, np.int32(1))),
    **{k: v for n in ("", "_add", "_max", "_min", "_mul", "_sub") for k, v in _scatter("scatter" + n).items()},
    **{f"lax.{f.__name__}": over(lambda x, f=f: f(x, "i")) for f in (lax.psum, lax.pmean, lax.pmax, lax.pmin, lax.all_gather)},
    "lax.acosh": call(M + 1), "lax.igamma": call(M + 1, N), "lax.igammac": call(M + 1, N), "lax.zeta": call(M + 2, N),
    "lax.polygamma": call(np.float32(1), M), "lax.random_gamma_grad": call(M, N),
    "lax.igamma_grad_a": call(M, N),
    "lax.scatter_apply": call(M, np.array([[1]]), lambda x: x * 2, lax.ScatterDimensionNumbers((1,), (0,), (0,)),
                              update_shape=(1, 4)),
    "lax.ppermute": over(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)])),
    "lax.pshuffle": over(lambda x: lax.pshuffle(x, "i", [1, 2, 0])),
    "lax.pbroadcast": over(lambda x: lax.pbroadcast(x, "i", 1)),
    "lax.all_to_all": over(lambda x: lax.all_to_all(x, "i", 0, 0), SQUARE),
    "lax.psum_scatter": over(lambda x: lax.psum_scatter(x, "i"), SQUARE),
    "lax.psum_scatter_start": over(lambda x: lax.psum_scatter_start(x, "i").done(), SQUARE),
    "lax.polynomial": call(M, [ONE, HALF, TWO]), "numpy.top_k": call(M, 2),
    "lax.pswapaxes": over(lambda x: lax.pswapaxes(x, "i", 0), SQUARE),
    "lax.axis_index": over(lambda x: x * lax.axis_index("i").astype(x.dtype)), "lax.axis_size": over(lambda x: x * lax.axis_size("i")),
    "lax.associative_scan": call(jnp.add, M), "lax.batch_matmul": call(floats(2, 3, 4), floats(2, 4, 3)),
    "lax.bitcast_convert_type": call(M, np.int32), "lax.broadcast": call(M, (2,)),
    "lax.broadcast_in_dim": call(V, (3, 4), (1,)), "lax.broadcast_like": call(V, M), "lax.broadcast_to_rank": call(M, 3),
    "lax.broadcasted_iota": call(np.int32, (3, 4), 1), "lax.clamp": call(HALF, M, ONE), "lax.collapse": call(M, 0, 2),
    "lax.composite": call(lambda x: x + 1, "my.op"), "lax.concatenate": call([M, N], 0),
    "lax.cond": call(True, jnp.sin, jnp.cos, M), "lax.conv": call(IMAGE, KERNEL, (1, 1), "SAME"),
    "lax.conv_dimension_numbers": call((1, 2, 5, 6), (3, 2, 2, 3), None),
    "lax.conv_general_dilated": call(IMAGE, KERNEL, (1, 2), "SAME"),
    "lax.conv_general_dilated_local": call(IMAGE, floats(3, 12, 4, 4), (1, 1), "VALID", (2, 3)),
    "lax.conv_general_dilated_patches": call(IMAGE, (2, 3), (1, 1), "VALID"),
    "lax.conv_general_permutations": call(("NCHW", "OIHW", "NCHW")),
    "lax.conv_general_shape_tuple": call((1, 2, 5, 6), (3, 2, 2, 3), (1, 1), "VALID", ("NCHW", "OIHW", "NCHW")),
    "lax.conv_shape_tuple": call((1, 2, 5, 6), (3, 2, 2, 3), (1, 1), ((0, 0), (0, 0))),
    "lax.conv_transpose": call(floats(1, 5, 6, 2), floats(2, 3, 2, 3), (2, 2), "SAME"),
    "lax.conv_transpose_shape_tuple": call((1, 5, 6, 2), (2, 3, 2, 3), (1, 1), "VALID", ("NHWC", "HWIO", "NHWC")),
    "lax.conv_with_general_padding": call(IMAGE, KERNEL, (1, 1), "SAME", None, None),
    "lax.convert_element_type": call(M, np.int32), "lax.dce_sink": call(M),
    "lax.custom_linear_solve": call(lambda x: 2 * x, V, lambda mv, b: b / 2, lambda mv, b: b / 2),
    "lax.custom_root": call(lambda x: x**2 - 2, ONE, lambda f, x: 2**0.5 + 0 * x, lambda g, y: y / g(1.0)),
    "lax.dot": call(M, N.T), "lax.dot_general": call(M, N, (((1,), (1,)), ((), ()))),
    "lax.dynamic_slice": call(M, (np.int32(1), np.int32(0)), (2, 2)),
    "lax.dynamic_update_index_in_dim": call(M, V, np.int32(1), 0),
    "lax.dynamic_update_slice": call(M, N[:2, :2], (np.int32(1), np.int32(0))),
    "lax.dynamic_update_slice_in_dim": call(M, N[:2], np.int32(1), 0), "lax.expand_dims": call(M, (0,)),
    "lax.fft": call(COMPLEX, "fft", (4,)), "lax.fori_loop": call(0, 3, lambda i, x: x * 0.9, M), "lax.full": call((2,), HALF),
    "lax.full_like": call(M, HALF), "lax.index_in_dim": call(M, 1), "lax.index_take": call(M, [COUNTS[:2]], (0,)),
    "lax.gather": call(M, np.array([[1], [0]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    "lax.integer_pow": call(M, 3), "lax.iota": call(np.int32, 5), "lax.map": call(jnp.sin, M),
    "lax.pad": call(M, HALF, ((1, 0, 1), (0, 1, 0))), "lax.padtype_to_pads": call((5,), (2,), (1,), "SAME"),
    "lax.platform_dependent": call(M, default=jnp.sin), "lax.ragged_dot": call(M, floats(2, 4, 3), np.array([1, 2])),
    "lax.ragged_dot_general": call(
        M, floats(2, 4, 3), np.array([1, 2]), lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    ),
    "lax.reduce": call(M, np.float32(0), lax.add, (0,)), "lax.reduce_precision": call(M, 5, 7),
    "lax.reduce_window": call(M, np.float32(0), lax.add, (2, 2), (1, 1), "VALID"),
    "lax.reduce_window_shape_tuple": call((3, 4), (2, 2), (1, 1), ((0, 0), (0, 0))),
    "lax.reshape": call(M, (4, 3)), "lax.rev": call(M, (0,)), 
    "lax.rng_bit_generator": call(np.arange(4, dtype=np.uint32), (3,)), "lax.scaled_dot": call(M, N.T),
    "lax.scan": call(lambda c, x: (c + x, c * x), V, M), "lax.select": call(BOOLS, M, N), "lax.select_n": call(BOOLS, M, N),
    "lax.slice": call(M, (0, 1), (2, 4)), "lax.slice_in_dim": call(M, 0, 2), "lax.sort_key_val": call(M, N),
    "lax.split": call(M, (1, 2)), "lax.squeeze": call(M[None], (0,)), "lax.stack": call([M, N]),
    "lax.switch": call(1, [jnp.sin, jnp.cos], M), "lax.tile": call(M, (2, 1)), "lax.transpose": call(M, (1, 0)),
    "lax.while_loop": call(lambda x: x.sum() < 50, lambda x: x * 2, M),
    "lax.with_sharding_constraint": call(M, jax.sharding.SingleDeviceSharding(jax.devices()[0])),
    **_square("lax.linalg", "eig", "hessenberg", "schur", "qdwh"),
    **{f"lax.linalg.{n}": call(SYMMETRIC) for n in ("cholesky", "eigh", "tridiagonal")},
    "lax.linalg.cholesky_update": call(LOWER.T, V[:3]), "lax.linalg.householder_product": call(M.T, V[:3]),
    "lax.linalg.lu_pivots_to_permutation": call(np.array([1, 2, 2], np.int32), 3),
    "lax.linalg.ormqr": call(SQUARE, V[:3], SQUARE), "lax.linalg.symmetric_product": call(M, SYMMETRIC),
    "lax.linalg.triangular_solve": call(LOWER, SQUARE, lower=True),
    "lax.linalg.tridiagonal_solve": call(V, V + 3, W, N.T),
    # jax.nn, jax.random, jax.image, jax.ops
    "nn.dot_product_attention": call(*[floats(1, 4, 2, 8) for _ in "qkv"]), "nn.one_hot": call(COUNTS, 3),
    "nn.get_scaled_dot_general_config": call("mxfp8"), "nn.glu": call(M), "nn.log1mexp": call(M),
    **{f"nn.initializers.{n}": initializer(n) for n in
       ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal",
        "lecun_uniform", "xavier_normal", "xavier_uniform", "normal", "uniform", "truncated_normal", "orthogonal")},
    "nn.initializers.delta_orthogonal": initializer("delta_orthogonal", shape=(3, 3, 4)),
    "nn.initializers.constant": initializer("constant", 0.5),
    "nn.initializers.variance_scaling": initializer("variance_scaling", 1.0, "fan_in", "normal"),
    "random.PRNGKey": call(3), "random.key": call(3), "random.ball": call(KEY, 2), "random.fold_in": call(KEY, np.uint32(3)),
    "random.dirichlet": call(KEY, V + 1), "random.f": call(KEY, TWO, THREE), "random.clone": call(KEY),
    "random.multinomial": call(KEY, np.float32(5), V / V.sum()), "random.poisson": call(KEY, TWO),
    "random.multivariate_normal": call(KEY, V[:3], SYMMETRIC), "random.randint": call(KEY, (3,), 0, 5),
    "random.triangular": call(KEY, HALF, ONE, TWO), "random.truncated_normal": call(KEY, -ONE, ONE),
    "random.wald": call(KEY, ONE), "random.weibull_min": call(KEY, ONE, TWO),
    "random.wrap_key_data": call(np.arange(2, dtype=np.uint32)), "random.choice": call(KEY, 5, (3,)),
    "random.categorical": call(KEY, M), "random.permutation": call(KEY, M), "random.gamma": call(KEY, ONE),
    "random.binomial": call(KEY, np.float32(5), HALF), "random.generalized_normal": call(KEY, 2.0, (3,)),
    "image.resize": call(M, (6, 8), "linear"),
    "image.scale_and_translate": call(M, (3, 4), (0, 1), V[:2], V[:2], "linear"),
    **{f"ops.segment_{n}": call(M, SEGMENTS, 2) for n in ("sum", "prod", "max", "min")},
    # jax.scipy
    "scipy.cluster.vq.vq": call(M, N), "scipy.linalg.cho_factor": symmetrized("scipy.linalg.cho_factor"), "scipy.linalg.cholesky": symmetrized("scipy.linalg.cholesky"),
    "scipy.linalg.cho_solve": call((LOWER, True), V[:3]), "scipy.linalg.circulant": call(V),
    **_square("scipy.linalg", "det", "inv", "hessenberg", "schur", "polar", "expm", "sqrtm", "lu", "lu_factor"),
    "scipy.linalg.eigh": symmetrized("scipy.linalg.eigh"), "scipy.linalg.eigh_tridiagonal": call(V, W[:3], eigvals_only=True),
    "scipy.linalg.expm_frechet": call(SQUARE, SYMMETRIC), "scipy.linalg.fiedler_companion": call(V),
    "scipy.linalg.funm": call(SYMMETRIC, jnp.exp, disp=False), "scipy.linalg.hadamard": call(4),
    "scipy.linalg.leslie": call(V, W[:3]), "scipy.linalg.companion": call(V), "scipy.linalg.hilbert": call(3),
    "scipy.linalg.lu_solve": call((SQUARE, np.arange(3, dtype=np.int32)), V[:3]), "scipy.linalg.invhilbert": call(3),
    "scipy.linalg.qr_multiply": call(SQUARE, SYMMETRIC), "scipy.linalg.rsf2csf": call(SYMMETRIC, SQUARE),
    "scipy.linalg.solve": call(SQUARE, V[:3]), "scipy.linalg.solve_triangular": call(LOWER, V[:3], lower=True),
    "scipy.linalg.solve_sylvester": call(SQUARE, SYMMETRIC, SQUARE, method="eigen"), "scipy.linalg.dft": call(3),
    "scipy.linalg.pascal": call(3), "scipy.linalg.helmert": call(3), "scipy.linalg.invpascal": call(3),
    "scipy.linalg.toeplitz": call(V), "scipy.linalg.hankel": call(V), "scipy.linalg.convolution_matrix": call(V, 3),
    "scipy.ndimage.map_coordinates": call(M, [V, W], 1),
    "scipy.optimize.minimize": call(lambda x: ((x - 1) ** 2).sum(), V, method="BFGS"),
    **_pair("scipy.signal", "convolve", "correlate", "fftconvolve", of=(V, W[:2])),
    **_pair("scipy.signal", "convolve2d", "correlate2d", of=(M, N[:2, :2])), "scipy.signal.detrend": call(M),
    "scipy.signal.istft": call((floats(5, 3) + 0j).astype(np.complex64)), "scipy.signal.stft": call(floats(64), nperseg=8),
    "scipy.signal.welch": call(floats(64), nperseg=8), "scipy.signal.csd": call(floats(64), floats(64), nperseg=8),
    "scipy.special.bessel_jn": call(M, v=2), "scipy.special.boxcox": call(M, HALF), "scipy.special.boxcox1p": call(M, HALF),
    "scipy.special.multigammaln": call(M + 3, 2), "scipy.special.owens_t": call(M, N), "scipy.special.zeta": call(M + 2, N),
    "scipy.special.lpmn": call(2, 3, V / 4),
    "scipy.special.lpmn_values": call(2, 3, V / 4, True),
    "scipy.special.sph_harm_y": call(np.array([2]), np.array([1]), V[:1], W[:1], n_max=2),
    "scipy.special.polygamma": call(np.int32(1), M), "scipy.special.betainc": call(M, N, HALF),
    "scipy.special.gammainc": call(M, N), "scipy.special.gammaincc": call(M, N), "scipy.special.logsumexp": call(M),
    "scipy.stats.dirichlet.logpdf": call(PARTS, W), "scipy.stats.dirichlet.pdf": call(PARTS, W),
    "scipy.stats.multivariate_normal.logpdf": call(V[:3], W[:3], SYMMETRIC),
    "scipy.stats.multivariate_normal.pdf": call(V[:3], W[:3], SYMMETRIC),
    "scipy.stats.vonmises.logpdf": call(M, TWO), "scipy.stats.vonmises.pdf": call(M, TWO),
    **{f"scipy.stats.truncnorm.{n}": call(M, HALF - 1, TWO) for n in ("cdf", "logcdf", "logpdf", "logsf", "pdf", "sf")},
    "scipy.stats.bernoulli.pmf": call(np.int32(1), HALF), "scipy.stats.bernoulli.logpmf": call(np.int32(1), HALF),
    "scipy.stats.mode": call(INTS), "scipy.stats.rankdata": call(M), "scipy.stats.sem": call(M),
    "scipy.stats.multinomial.logpmf": call(np.array([1, 2, 2]), np.int32(5), V[:3] / V[:3].sum()),
    "scipy.stats.multinomial.pmf": call(np.array([1, 2, 2]), np.int32(5), V[:3] / V[:3].sum()),
    "scipy.integrate.trapezoid": call(M),
}  # fmt: skip

CALLS |= methods.calls(call, M, N, V, INTS, BOOLS, SQUARE)
AT = {name: (function, given) for name, function, given in methods.at_records(call, M, HALF)}
CALLS |= {name: given for name, (_, given) in AT.items()}

_FILES = "packages/jax/tests/test_files_and_unsupported_functions.py"
# Names that are not functions of arrays, or that need more than arguments: the test that calls each.
ELSEWHERE: dict[str, str] = {
    **{f"numpy.{name}": f"{_FILES}::test_arrays_in_files" for name in ("load", "save", "savez")},
    **{
        name: f"{_FILES}::test_unsupported_functions_raise_the_reason"
        for name in ("numpy.fromfile", "numpy.fromiter", "lax.psend", "lax.precv")
    },
    "random.Key": "packages/random/tests/test_samplers.py::test_the_type_of_keys",
    "lax.rng_uniform": "packages/numpy_backend/tests/test_random_bits.py::test_rng_uniform_is_in_range",
    "numpy.trim_zeros": "packages/numpy/tests/test_arrays.py::test_call_is_numpys",
    "lax.pcast": "packages/parallel/tests/test_shard_map.py::test_types_have_the_axes_over_which_values_vary",
    "lax.ragged_all_to_all": "packages/xla_backend/tests/test_shard_map.py::test_programs",
    "nn.scaled_dot_general": "packages/nn/tests/test_attention.py::test_scaled_formats",
    "nn.scaled_matmul": "packages/nn/tests/test_attention.py::test_scaled_matmul",
}

_STATS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic"
    " multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
)
MODULES = [
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "random",
    "image",
    "ops",
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    *(f"scipy.stats.{name}" for name in _STATS.split()),
]


class Record(NamedTuple):
    """A public function and its arguments."""

    name: str
    function: Callable
    args: tuple
    kwargs: dict


def public_functions() -> Iterator[tuple[str, Any]]:
    """Every function of the modules, under its first name there."""
    yield from ((f"Array.{name}", methods.member(name)) for name in methods.names() if name not in methods.APART)
    yield from ((name, function) for name, (function, _) in AT.items())
    for path in MODULES:
        module = importlib.import_module(f"jax.{path}")
        for name in sorted(getattr(module, "__all__", None) or vars(module)):
            x = getattr(module, name)
            if not (name.startswith("_") or isinstance(x, type) or inspect.ismodule(x)) and callable(x):
                yield f"{path}.{name}", x


def record(name: str, function: Any) -> Record | None:
    """The record of a function, or None."""
    if name in CALLS:
        args, kwargs, instead = CALLS[name]
        return Record(name, instead or function, args, kwargs)
    if name.startswith("Array."):
        return Record(name, function, (M,), {})
    try:
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return Record(name, function, tuple(PARAMETERS[p.name] for p in needed), {})
    except (KeyError, ValueError):
        return None
