"""The import package `jax`: names, laziness, options, arrays, and a sample of jnp against NumPy."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PROGRAMS = Path(__file__).with_name("programs")


def run_program(*arguments: str) -> str:
    """The output of a program in this folder's `programs`, or of other arguments of Python, in a new process."""
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=PROGRAMS)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- names


def test_versions():
    assert re.fullmatch(r"\d+\.\d+\.\d+([.\w+]*)?", jax.__version__)
    assert jax.__version_info__ == tuple(int(n) for n in jax.__version__.split("."))
    assert jax.version.__version__ == jax.__version__


def loaded(code):
    """The packages, and the modules of this project, that a fresh interpreter has imported after the code."""
    names = run_program("-c", f"{code}; import sys; print(*sys.modules)").split()
    return {n for n in names if "." not in n or n.startswith(("jax.", "bedrax."))}


def test_import_is_lazy():
    house = {n for n in loaded("import jax") if n.startswith(("jax", "bedrax", "scipy", "tensorflow"))}
    assert house == {
        "jax",
        "jax._removed_names",
        "bedrax",
        "bedrax.numpy",
        "bedrax.random",
        "bedrax.core",
        "bedrax.core.array",
        "bedrax.core.executors",
        "bedrax.core.lazy",
        "bedrax.core.offers",
        "bedrax.lax",
        "bedrax.numpy_backend",
    }


def test_a_first_program_loads_no_package_that_it_does_not_need():
    names = loaded("import jax; jax.jit(lambda x: x + 1)(1.0)")
    packages = {".".join(n.split(".")[:2]) for n in names if n.startswith("bedrax.")}
    assert not packages & {"bedrax.nn", "bedrax.scipy", "bedrax.extend", "bedrax.shape_poly", "bedrax.jax2tf"}
    assert not names & {"bedrax.numpy.methods", "bedrax.random.keys", "jax.numpy", "scipy", "tensorflow"}
    assert not names & {"bedrax.autodiff.tables", "bedrax.parallel.rules", "bedrax.parallel.process_parts"}


@pytest.mark.parametrize(
    "expression",
    [
        "jax.numpy.linalg.norm(jax.numpy.ones(4)) == 2",
        "jax.numpy.fft.fft(jax.numpy.ones(4))[0] == 4",
        "jax.lax.linalg.cholesky(jax.numpy.eye(2))[0, 0] == 1",
        "jax.nn.initializers.zeros(jax.random.key(0), (2,)).sum() == 0",
        "jax.scipy.special.erf(0.0) == 0",
        "jax.scipy.stats.norm.cdf(0.0) == 0.5",
        "jax.tree_util.tree_leaves({'a': 1}) == [1]",
        "jax.tree.map(lambda x: x + 1, [1]) == [2]",
        "jax.random.split(jax.random.key(0)).shape == (2,)",
        "jax.interpreters.ad.Zero is not None",
        "jax.sharding.PartitionSpec('x') == jax.P('x')",
        "callable(jax.export.export) and callable(jax.dlpack.from_dlpack)",
    ],
)
def test_submodules_are_attributes(expression):
    assert run_program("-c", f"import jax; print(bool({expression}))") == "True"


ABSENT = r"bedrax\[tf\]" if sys.version_info < (3, 14) else r"wheels for Python 3\.11 to 3\.13"


@pytest.mark.parametrize(
    "module",
    [
        "jax.ad_checkpoint",
        "jax.api_util",
        "jax.core",
        "jax.custom_batching",
        "jax.custom_derivatives",
        "jax.debug",
        "jax.distributed",
        "jax.dlpack",
        "jax.dtypes",
        "jax.errors",
        "jax.experimental",
        "jax.experimental.checkify",
        pytest.param("jax.experimental.jax2tf", marks=pytest.mark.needs("tensorflow")),
        "jax.experimental.layout",
        "jax.experimental.multihost_utils",
        "jax.experimental.pjit",
        "jax.experimental.sparse",
        "jax.export",
        "jax.extend.random",
        "jax.ffi",
        "jax.image",
        "jax.ops",
        "jax.profiler",
        "jax.extend.core",
        "jax.extend.core.primitives",
        "jax.extend.linear_util",
        "jax.extend.mlir.dialects.stablehlo",
        "jax.extend.mlir.ir",
        "jax.flatten_util",
        "jax.interpreters.ad",
        "jax.interpreters.batching",
        "jax.interpreters.mlir",
        "jax.interpreters.partial_eval",
        "jax.interpreters.pxla",
        "jax.interpreters.xla",
        "jax.lax",
        "jax.lax.linalg",
        "jax.nn",
        "jax.numpy",
        "jax.numpy.fft",
        "jax.numpy.linalg",
        "jax.random",
        "jax.scipy",
        "jax.scipy.special",
        "jax.scipy.stats",
        "jax.sharding",
        "jax.stages",
        "jax.test_util",
        "jax.tree",
        "jax.tree_util",
        "jax.typing",
    ],
)
def test_every_name_of_a_module_is_there(module):
    without_tf = importlib.util.find_spec("tensorflow") is None
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", ()):
        assert name in dir(found)
        if name == "jax2tf" and without_tf:
            with pytest.raises(AttributeError, match=ABSENT):  # as for a missing module
                getattr(found, name)
            with pytest.raises(ModuleNotFoundError, match=ABSENT):
                importlib.import_module(f"{module}.{name}")
        else:
            getattr(found, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        found.no_such_name


def test_from_imports():
    namespace: dict = {}
    exec(
        "from jax import numpy as jnp, jit, grad, vmap, lax; from jax.numpy import *; import jax.numpy as again",
        namespace,
    )
    assert namespace["again"] is namespace["jnp"] is jnp
    assert namespace["arange"] is jnp.arange
    assert jax.Array is jnp.ndarray


def test_functions_have_docstrings_and_modules():
    for f in (jax.jit, jax.grad, jax.vmap, jax.device_put, jnp.where, jax.lax.scan, jax.random.normal, jax.nn.relu):
        assert f.__doc__ and len(f.__doc__) > 30
        assert f.__module__.split(".")[0] in ("bedrax", "jax")


# ---- arrays


def test_names_of_other_libraries_are_left_as_they_are():
    """A face may offer another library's function or class. Its lookup does not modify it."""
    assert run_program("names_of_other_libraries.py") == ""


def test_the_class_of_arrays():
    x = jnp.arange(3.0)
    assert isinstance(x, jax.Array) and not isinstance(np.ones(3), jax.Array)
    assert isinstance(jax.jit(lambda a: jnp.full((), isinstance(a, jax.Array)))(x).item(), bool)
    assert jax.jit(lambda a: a * isinstance(a, jax.Array))(x)[1] == 1.0
    assert isinstance(jax.random.key(0), jax.Array)
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1.0
    assert repr(x) == "Array([0., 1., 2.], dtype=float32)"
    assert x.to_device(jax.devices()[0]).committed


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64", "int4"])
def test_pickling_keeps_everything(dtype):
    x = jnp.asarray(np.array([[0, 1], [1, 0]]), dtype=dtype)
    back = pickle.loads(pickle.dumps(x))
    assert back.dtype == x.dtype and back.weak_type == x.weak_type
    np.testing.assert_array_equal(back, x)


def test_pickling_of_other_objects():
    tree = jax.tree.structure({"a": [1, (2, None)]})
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert pickle.loads(pickle.dumps(jax.P("x", None))) == jax.P("x", None)
    s = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    assert pickle.loads(pickle.dumps(s)) == s
    assert pickle.loads(pickle.dumps(jnp.float32))(2).dtype == jnp.float32


# ---- options


def test_options_read_and_write():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        assert jax.config.jax_enable_x64 is True
        assert jnp.ones(()).dtype == jnp.float64
    finally:
        jax.config.update("jax_enable_x64", before)
    assert jnp.ones(()).dtype == jnp.float32
    with pytest.raises(AttributeError, match="jax_no_such_option"):
        jax.config.update("jax_no_such_option", 1)


def test_options_as_contexts():
    with jax.enable_x64(True):
        assert jnp.arange(2).dtype == jnp.int64
        with jax.enable_x64(False):
            assert jnp.arange(2).dtype == jnp.int32
        seen = []
        thread = threading.Thread(target=lambda: seen.append(jnp.arange(2).dtype))
        thread.start()
        thread.join()
        assert seen == [jnp.int32]  # a context applies to its own thread
    assert jnp.arange(2).dtype == jnp.int32

    calls = []

    def f(x):
        calls.append(x)
        return x + 1

    with jax.disable_jit():
        jax.jit(f)(1)
    assert calls == [1]
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(-1.0)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 3)) + jnp.ones(3)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion"):
        jnp.ones(2, jnp.int32) + jnp.ones(2, jnp.float32)
    with jax.default_matmul_precision("float32"):
        assert "HIGHEST" in str(jax.make_jaxpr(jnp.dot)(jnp.ones((2, 2)), jnp.ones((2, 2))))


def test_contexts_of_users():
    context, traced = jax.make_user_context(1), []

    @jax.jit
    def f(x):
        traced.append(context.value)
        return x * context.value

    assert f(2.0) == 2.0
    with context(5):
        assert f(2.0) == 10.0 and f(3.0) == 15.0
    assert f(4.0) == 4.0
    assert traced == [1, 5]


def test_environment_is_described():
    text = jax.print_environment_info(return_string=True)
    for part in (jax.__version__, np.__version__, "cpu", "device info"):
        assert part in text


def test_a_library_defines_a_generator():
    extend = importlib.import_module("jax.extend.random")
    impl = extend.define_prng_impl(
        key_shape=(1,),
        seed=lambda s: jnp.reshape(s, (1,)).astype(jnp.uint32),
        split=lambda k, shape: k + jnp.arange(np.prod(shape), dtype=jnp.uint32).reshape(*shape, 1),
        random_bits=lambda k, width, shape: jnp.full(shape, k[0], jnp.uint32),
        fold_in=lambda k, n: k + n,
        name="counter",
        tag="ctr",
    )
    key = jax.random.key(3, impl=impl)
    np.testing.assert_array_equal(jax.random.key_data(jax.random.split(key)), [[3], [4]])
    np.testing.assert_array_equal(jax.random.bits(jax.random.fold_in(key, 2), (2,)), [5, 5])
    np.testing.assert_array_equal(jax.vmap(jax.random.bits)(jax.random.split(key)), [3, 4])
    hashed = extend.threefry_2x32(jnp.array([1, 2], jnp.uint32), jnp.arange(3, dtype=jnp.uint32))
    np.testing.assert_array_equal(hashed, np.array([4128513521, 2271449651, 2345921600], np.uint32))
    keys = extend.random_seed(jnp.arange(4).reshape(2, 2), impl=extend.threefry_prng_impl)
    assert keys.shape == (2, 2) and keys[1, 0] == jax.random.key(2)


def test_the_older_form_of_cond():
    def f(p, x):
        return jax.lax.cond(p, x, lambda x: x + 1, (x, 2.0), lambda xs: xs[0] * xs[1])

    assert f(True, 5.0) == 6.0 and jax.jit(f)(False, 5.0) == 10.0
    assert jax.grad(f, 1)(False, 5.0) == 2.0
    with pytest.raises(TypeError, match="true_fun and false_fun are functions"):
        jax.lax.cond(True, 1.0, 2.0)


def test_leaks_are_found():
    kept = []

    @jax.jit
    def f(x):
        kept.append(x)
        return x

    f(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        kept[0] + 1
    with jax.checking_leaks(), pytest.raises(Exception, match=r"[Ll]eaked"):
        f(2)


def test_evaluation_at_trace_time():
    def f(x):
        with jax.ensure_compile_time_eval():
            known = jnp.sin(1.0)
            assert not isinstance(known, jax.core.Tracer)
            return jnp.where(x, known, float(known) + 1)

    np.testing.assert_allclose(jax.jit(f)(True), np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(jnp.array([True, False])), np.sin(1.0) + np.array([0, 1]), rtol=1e-6)


# ---- jnp under jit against NumPy

RNG = np.random.RandomState(0)
A = RNG.standard_normal((4, 5)).astype(np.float32)
B = RNG.standard_normal((5, 3)).astype(np.float32)
V = RNG.standard_normal(6).astype(np.float32)
S = RNG.standard_normal((4, 4)).astype(np.float32)
I = RNG.randint(-5, 6, (4, 5)).astype(np.int32)
M = A > 0
UNARY = (
    "abs all angle any arccos arcsin arctan argmax argmin argsort atleast_3d ceil corrcoef cos cosh count_nonzero cov"
    " cumprod cumsum deg2rad diff ediff1d exp expm1 flip fliplr flipud floor i0 isfinite log1p max mean median min"
    " nan_to_num nancumsum nanmax nanmean nansum negative prod ptp ravel rint rot90 sign signbit sin sinc sinh sort sqrt"
    " square squeeze std sum tan tanh transpose trapezoid trunc unwrap var"
).split()
BINARY = (
    "arctan2 copysign divide equal floor_divide fmod heaviside hypot less logaddexp logaddexp2 maximum minimum multiply"
    " nextafter power remainder subtract"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_sample(name):
    x = np.abs(A) * 0.7 if name in ("arccos", "arcsin", "sqrt", "log1p") else A
    x = np.clip(x, -1, 1) if name in ("arccos", "arcsin") else x
    got = jax.jit(getattr(jnp, name))(x)
    np.testing.assert_allclose(got, getattr(np, name)(x), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", BINARY)
def test_binary_sample(name):
    x, y = (np.abs(A), A[::-1]) if name == "power" else (A, A[::-1])
    np.testing.assert_allclose(jax.jit(getattr(jnp, name))(x, y), getattr(np, name)(x, y), rtol=1e-4, atol=1e-5)


CALLS = {
    "dot": lambda np: np.dot(A, B),
    "matmul": lambda np: np.matmul(A, B),
    "inner": lambda np: np.inner(A, A),
    "outer": lambda np: np.outer(V, V),
    "kron": lambda np: np.kron(A, B),
    "einsum": lambda np: np.einsum("ij,jk->ki", A, B),
    "tensordot": lambda np: np.tensordot(A, B, 1),
    "cross": lambda np: np.cross(A[:, :3], A[:, 2:]),
    "vander": lambda np: np.vander(V[:3], 4),
    "where": lambda np: np.where(M, A, 0),
    "select": lambda np: np.select([A > 1, A > 0], [A, -A], 7.0),
    "clip": lambda np: np.clip(A, -0.5, 0.5),
    "take": lambda np: np.take(A, np.array([0, 2]), axis=1),
    "take_along": lambda np: np.take_along_axis(A, np.argsort(A, 1), 1),
    "searchsorted": lambda np: np.searchsorted(np.sort(V), V),
    "digitize": lambda np: np.digitize(V, np.array([-1.0, 0.0, 1.0])),
    "histogram": lambda np: np.histogram(V, 4, (-2, 2))[0],
    "interp": lambda np: np.interp(V, np.array([-2.0, 0.0, 2.0]), np.array([1.0, 5.0, 3.0])),
    "polyval": lambda np: np.polyval(V[:3], V),
    "convolve": lambda np: np.convolve(V, V[:3]),
    "correlate": lambda np: np.correlate(V, V[:3], "same"),
    "concatenate": lambda np: np.concatenate([A, A[:1]], 0),
    "stack": lambda np: np.stack([V, V], -1),
    "block": lambda np: np.block([[S, S], [S, S]]),
    "pad": lambda np: np.pad(A, ((1, 2), (0, 1)), mode="reflect"),
    "roll": lambda np: np.roll(A, (1, -2), (0, 1)),
    "tile": lambda np: np.tile(V, (2, 2)),
    "repeat": lambda np: np.repeat(V, 3),
    "split": lambda np: np.split(V, 3)[1],
    "meshgrid": lambda np: np.meshgrid(V, V[:2], indexing="ij")[1],
    "tri": lambda np: np.tril(S) + np.triu(S, 1),
    "diag": lambda np: np.diag(np.diag(S)),
    "linspace": lambda np: np.linspace(0, 1, 7),
    "logspace": lambda np: np.logspace(0, 1, 5),
    "quantile": lambda np: np.quantile(A, np.array([0.2, 0.8]), axis=1),
    "percentile": lambda np: np.percentile(A, 30),
    "average": lambda np: np.average(A, 0, np.array([1.0, 2.0, 3.0, 4.0])),
    "gradient": lambda np: np.gradient(V),
    "det": lambda np: np.linalg.det(S),
    "inv": lambda np: np.linalg.inv(S) @ S,
    "solve": lambda np: np.linalg.solve(S, A),
    "svdvals": lambda np: np.linalg.svd(A, compute_uv=False),
    "eigvalsh": lambda np: np.linalg.eigvalsh(S + S.T),
    "pinv": lambda np: np.linalg.pinv(A),
    "matrix_power": lambda np: np.linalg.matrix_power(S, 3),
    "norms": lambda np: np.linalg.norm(A, axis=1) + np.linalg.norm(A, "fro"),
    "cholesky": lambda np: np.linalg.cholesky(S @ S.T + 4 * np.eye(4)),
    "lstsq": lambda np: np.linalg.lstsq(A.T, B)[0],
    "fft": lambda np: np.abs(np.fft.fft(V)),
    "irfft": lambda np: np.fft.irfft(np.fft.rfft(V)),
    "fftshift": lambda np: np.fft.fftshift(np.fft.fft2(A)).real,
    "bits": lambda np: np.bitwise_xor(I, 3) | np.left_shift(I & 7, 2),
    "integers": lambda np: I // 3 * 100 + I % 3,
    "gcd": lambda np: np.gcd(I, 4) + np.lcm(I, 2),
    "indexing": lambda np: A[1:3, ::-2] + A[None, 0, [0, 1, 2]][:, None],
    "boolean": lambda np: np.logical_xor(M, A > 1) & ~M,
    "apply": lambda np: np.apply_along_axis(lambda r: r[0] * r, 1, A),
    "unravel": lambda np: np.stack(np.unravel_index(np.arange(6), (2, 3))),
    "insert": lambda np: np.insert(V, 2, 9.0),
    "delete": lambda np: np.delete(V, 2),
    "trim": lambda np: np.append(V, V),
    "nanstd": lambda np: np.nanstd(np.where(M, A, np.nan), 1),
    "ldexp": lambda np: np.ldexp(A, I) + np.frexp(A)[0],
    "divmod": lambda np: np.divmod(A, 0.3)[0] + np.modf(A)[0],
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_calls_sample(name):
    call = CALLS[name]
    expected = call(np)
    for got in (call(jnp), jax.jit(lambda: call(jnp))()):
        assert got.shape == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-4)


def test_unary_sample_of_other_kinds():
    for name in ("abs", "negative", "sign", "square", "sum", "cumsum", "max", "sort"):
        np.testing.assert_array_equal(jax.jit(getattr(jnp, name))(I), getattr(np, name)(I))
    z = (A[:, :3] + 1j * B[:4]).astype(np.complex64)
    for name in ("abs", "exp", "sqrt", "conj", "angle", "sum", "prod", "real", "imag", "sin", "tanh"):
        np.testing.assert_allclose(jax.jit(getattr(jnp, name))(z), getattr(np, name)(z), rtol=2e-4, atol=1e-5)


def test_blocks_are_cast_before_they_are_broadcast():
    # The transpose of the cast is a sum over devices: of the given array, not of the broadcast one.
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    f = jax.shard_map(
        lambda a, s: a[..., :1] * s[None] + s, mesh=mesh, in_specs=(jax.P("x"), jax.P()), out_specs=jax.P("x")
    )
    (eqn,) = jax.make_jaxpr(f)(np.ones((2, 4)), np.ones(4)).eqns
    cast = [e.invars[0].aval.shape for e in eqn.params["jaxpr"].eqns if e.primitive.name == "pvary"]
    assert cast == [(1, 4), (4,)]
