"""Each function that is one program when called eagerly: a second call like the first runs no Python code of it.

The functions are found by the attribute that `one_program` sets. Required arguments are matrices, unless the tables
below have others. Every other parameter is passed, too, with its default.
"""

import importlib
import inspect
import pkgutil
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import bedrax.lax
import bedrax.nn
import bedrax.numpy
import bedrax.random
import bedrax.scipy
from bedrax.core import executors
from bedrax.core.one_program import one_program
from bedrax.numpy import einstein, index_plans
from bedrax.numpy_backend.executor import NumpyExecutor
from bedrax.numpy_backend.host_array import HostArray
from bedrax.random.continuous import gumbel_function

MATRIX = jnp.asarray(np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], np.float32))
VECTOR, SCALAR, INTS = MATRIX[0], jnp.float32(0.5), jnp.arange(3)


def _modules():
    for package in (bedrax.lax, bedrax.numpy, bedrax.nn, bedrax.random, bedrax.scipy):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)


FUNCTIONS = {
    f"{m.__name__.removeprefix('bedrax.')}.{name}": f
    for m in _modules()
    for name, f in vars(m).items()
    if hasattr(f, "static") and hasattr(f, "__wrapped__") and inspect.unwrap(f).__module__ == m.__name__
}
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
BY_NAME = {"key": jax.random.key(0), "shape": (3,), "dtype": F32}
VECTORS = {"a": VECTOR, "v": VECTOR}
WINDOW = index_plans.read((3, 3), (slice(0, 2), 1))[0].plan
ROWS = index_plans.read((3, 3), INTS)[0].plan
PATCHES = {"lhs": jnp.ones((1, 2, 5, 5)), "filter_shape": (2, 2), "window_strides": (1, 1), "padding": "VALID"}
WORDS = [INTS.astype(np.uint32)]
BY_FUNCTION = {
    "lax.dynamic_slices.dynamic_slice": {"start_indices": (0, 1), "slice_sizes": (2, 2)},
    "lax.dynamic_slices.dynamic_slice_in_dim": {"start_index": 1, "slice_size": 2},
    "lax.dynamic_slices.dynamic_index_in_dim": {"index": 1},
    "lax.dynamic_slices.dynamic_update_slice": {"start_indices": (0, 1)},
    "lax.dynamic_slices.dynamic_update_slice_in_dim": {"start_index": 1, "axis": 0},
    "lax.dynamic_slices.dynamic_update_index_in_dim": {"update": VECTOR, "index": 1, "axis": 0},
    "lax.primitives.convolution.conv_general_dilated_patches": PATCHES,
    "lax.primitives.convolution.conv_general_dilated_local": PATCHES | {"rhs": jnp.ones((3, 8, 4, 4))},
    "numpy.diagonals._band_of": {"shape": (3, 3), "k": 1, "compare": lax.eq, "dtype": bool},
    "numpy.diagonals.vander": {"x": VECTOR},
    "numpy.fft.fftfreq": {"n": 4},
    "numpy.packing.packbits": {"a": INTS},
    "numpy.products._cross": {"axisa": -1, "axisb": -1, "axisc": -1},
    "numpy.sorting._top_k": {"k": 2, "axis": -1, "mode": "largest"},
    "numpy.packing.unpackbits": {"a": INTS.astype(np.uint8)},
    "numpy.polynomial.polyfit": {"x": VECTOR, "y": VECTOR, "deg": 1},
    "numpy.sorting.searchsorted": VECTORS,
    "numpy.statistics.digitize": {"bins": VECTOR},
    "numpy.statistics.histogram2d": {"x": VECTOR, "y": VECTOR},
    "numpy.windows._cosines": {"M": 5, "coefficients": (0.5, 0.5)},
    "numpy.windows.bartlett": {"M": 5},
    "numpy.windows.kaiser": {"M": 5, "beta": SCALAR},
    "numpy.calculus.interp": {"xp": VECTOR, "fp": VECTOR},
    "numpy.calculus.convolve": VECTORS,
    "numpy.calculus.correlate": VECTORS,
    "numpy.cumulative.cumulative_sum": {"x": VECTOR},
    "numpy.cumulative.cumulative_prod": {"x": VECTOR},
    "numpy.einstein._einsum": {
        "values": [jnp.ones((3, 3))] * 2, "precision": None, "dtype": np.dtype(np.float32), "weak": False,
        "steps": einstein._steps((tuple("ij"), tuple("jk")), tuple("ik"), ((3, 3), (3, 3)), "auto"),
    },
    "numpy.indexing._get_at": {"vector": INTS[:2], "plan": WINDOW},
    "numpy.indexing._get_dynamic_now": {
        "plan": ROWS, "starts": [], "arrays": [INTS], "mode": lax.GatherScatterMode.CLIP, "fill_value": None,
        "indices_are_sorted": False, "unique_indices": False, "wraps": (True,),
    },
    "numpy.updates._update_now": {
        "plan": ROWS, "starts": [], "arrays": [INTS], "values": SCALAR, "mode": lax.GatherScatterMode.CLIP,
        "name": "add", "indices_are_sorted": False, "unique_indices": False, "wraps": (True,), "inside": False,
    },
    "numpy.searching.take": {"indices": INTS},
    "numpy.searching.take_along_axis": {"indices": jnp.zeros((3, 1), int)},
    "numpy.selection.clip": {"arr": MATRIX, "min": SCALAR, "max": None},
    "numpy.statistics.quantile": {"q": SCALAR},
    "numpy.statistics.nanquantile": {"q": SCALAR},
    "numpy.statistics.percentile": {"q": SCALAR},
    "numpy.statistics.nanpercentile": {"q": SCALAR},
    "numpy.ufuncs.ldexp": {"x2": INTS},
    "numpy.ufuncs.gcd": {"x1": INTS, "x2": INTS},
    "numpy.ufuncs.lcm": {"x1": INTS, "x2": INTS},
    "nn.activations.glu": {"x": jnp.ones((3, 4))},
    "nn.activations.one_hot": {"x": INTS, "num_classes": 3},
    "nn.attention.dot_product_attention": dict.fromkeys(("query", "key", "value"), jnp.ones((4, 2, 8))),
    "random.block_ciphers.threefry4x32": {"key": WORDS * 4, "block": WORDS * 4},
    "random.block_ciphers.philox4x32": {"key": WORDS * 2, "block": WORDS * 4},
    "random.block_ciphers.philox2x32": {"key": WORDS, "block": WORDS * 2},
    "random.continuous._gumbel": {"formula": gumbel_function("low")},
    "random.continuous._multivariate_normal": {"mean": VECTOR, "cov": MATRIX, "method": "cholesky"},
    "random.continuous._orthogonal": {"n": 3, "m": 3},
    "random.counts._multinomial": {"n": jnp.float32(4), "p": VECTOR / VECTOR.sum(), "unroll": 1},
    "random.discrete._shuffle": {"x": VECTOR, "axis": 0},
    "random.discrete._permuted_range": {"n": 4, "dtype": I32},
    "random.discrete._permute_slices": {"x": MATRIX, "axis": 0},
    "random.discrete._categorical": {"axis": -1, "mode": "low", "logits": VECTOR},
    "random.discrete._categories_apart": {"prefix": (3,), "shape": (), "axis": 0, "mode": "low", "logits": VECTOR},
    "random.discrete._weighted": {"p": VECTOR},
    "random.discrete._weighted_apart": {"p": VECTOR, "draws": 2, "mode": "low"},
    "random.gamma_family._dirichlet": {"alpha": VECTOR, "shape": ()},
    "random.gamma_family._generalized_normal": {"p": 2.0},
    "random.gamma_family._ball": {"d": 2, "p": 2.0},
    "random.uniforms._randint": {"dtype": I32, "minval": 0, "maxval": 9},
    "scipy.linalg.factorizations._eigh_tridiagonal": {
        "d": VECTOR, "e": VECTOR[1:], "eigvals_only": True, "select": "a", "select_range": None,
    },
    "scipy.linalg.special_matrices.fiedler_companion": {"a": VECTOR},
    "scipy.signal.istft": {"Zxx": jnp.ones((5, 4), np.complex64)},
    "scipy.special.gamma_family.multigammaln": {"d": 2},
    "scipy.special.harmonics.lpmn_values": {"m": 2, "n": 2, "z": VECTOR / 5, "is_normalized": False},
    "scipy.special.harmonics.lpmn": {"m": 2, "n": 2, "z": VECTOR / 5},
    "scipy.linalg.solutions._solve_triangular": {"trans": 0, "lower": False, "unit_diagonal": False},
    "scipy.linalg.solutions._cho_solve": {"lower": True},
    "scipy.linalg.solutions._lu_solve": {"pivots": INTS, "trans": 0},
    "scipy.ndimage._map_coordinates": {"coordinates": [VECTOR, VECTOR], "cval": SCALAR, "order": 1, "mode": "nearest"},
    "scipy.signal._convolve": {"mode": "full", "method": "direct", "precision": None, "mirror": False, "later": False},
    "scipy.special.bessel.bessel_jn": {"z": VECTOR, "v": 2},
    "scipy.stats.dirichlet.logpdf": {"x": VECTOR / VECTOR.sum(), "alpha": VECTOR},
    "scipy.stats.dirichlet.pdf": {"x": VECTOR / VECTOR.sum(), "alpha": VECTOR},
    "scipy.stats.multivariate_normal._evaluated": {"x": VECTOR, "mean": VECTOR, "cov": MATRIX, "log": True},
}  # fmt: skip


def arguments(name, function):
    given = dict(BY_FUNCTION.get(name, {}))
    positional, keywords = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            positional.extend(given.pop(p.name, ()))
            continue
        value = given.pop(
            p.name,
            BY_NAME.get(p.name, SCALAR if name.startswith("random.") else MATRIX)
            if p.default is p.empty
            else p.default,
        )
        if p.kind is not p.KEYWORD_ONLY and (p.default is p.empty or p.kind is p.POSITIONAL_ONLY):
            positional.append(value)
        else:
            keywords[p.name] = value
    assert not given, f"{name} has no parameters {list(given)}"
    return positional, keywords


def enters(function, call):
    """Whether `call` runs the body of `function`."""
    body = inspect.unwrap(function).__code__
    entered = []
    sys.setprofile(lambda frame, event, _: event == "call" and frame.f_code is body and entered.append(frame))
    try:
        call()
    finally:
        sys.setprofile(None)
    return bool(entered)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_call_traces_nothing(name):
    function = FUNCTIONS[name]
    positional, keywords = arguments(name, function)
    first = function(*positional, **keywords)
    assert not enters(function, lambda: function(*positional, **keywords))
    assert jax.tree.structure(first) == jax.tree.structure(function(*positional, **keywords))


@pytest.mark.parametrize(
    "function, args, keywords",
    [
        (jnp.linalg.svd, (MATRIX,), {"full_matrices": False}),
        (jnp.linalg.eigvalsh, (MATRIX,), {"UPLO": "U"}),
        (jnp.diff, (VECTOR,), {"n": 2}),
        (jnp.polyval, (VECTOR, 2.0), {"unroll": 2}),
        (jnp.trace, (MATRIX,), {"axis1": 1, "axis2": 0}),
        (jnp.mean, (MATRIX, [0, 1]), {}),
        (jnp.take, (VECTOR, INTS), {"fill_value": float("nan")}),
        (jnp.var, (np.ones(3, np.float32),), {}),
    ],
)
def test_constants_are_recognized(function, args, keywords):
    function(*args, **keywords)
    assert not enters(function, lambda: function(*args, **keywords))


def test_constants_are_compared_by_their_bits():
    outside = jnp.array([7])
    for value in (0.0, -0.0, np.nan, 0.0):
        out = np.asarray(jnp.take(VECTOR, outside, fill_value=value))[0]
        np.testing.assert_array_equal((out, np.signbit(out)), (value, np.signbit(value)))


def test_an_error_is_found_once():
    calls = []

    @one_program(static=("axis",))
    def function(x, axis=0):
        calls.append(axis)
        return jnp.sum(jnp.asarray(x), axis)

    with pytest.raises(ValueError, match="out of bounds"):
        function(VECTOR, axis=5)
    with pytest.raises(TypeError):
        function("no array")
    assert calls == [5, 0]


def test_values_are_read_only_where_no_program_is_known(monkeypatch):
    module, reads = sys.modules["bedrax.core.one_program"], []
    monkeypatch.setattr(module, "_is_value", lambda x, old=module._is_value: reads.append(x) or old(x))

    @one_program(static=("axis",), arrays=("more",))
    def function(x, more=None, axis=0):
        return jnp.sum(jnp.asarray(x), axis) + (0 if more is None else more[0])

    for call in (lambda: function(VECTOR), lambda: function(VECTOR, [2.0], axis=0), lambda: function(VECTOR, None, 0)):
        expected = call()
        assert reads
        call()
        reads.clear()
        assert call() == expected and not reads


class Convertible:
    """An object that functions convert to an array, and that no program takes."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def test_a_value_that_no_program_takes_is_for_the_function():
    given = []

    @one_program
    def function(x, y):
        given.append(type(y))
        return jnp.add(x, y)

    expected = function(VECTOR, VECTOR)
    given.clear()
    for y in (VECTOR, Convertible(VECTOR), Convertible(VECTOR), VECTOR):
        np.testing.assert_array_equal(function(VECTOR, y), expected)
    assert given == [Convertible, Convertible]
    with pytest.raises(TypeError, match="jnp.add.*list"):
        function(VECTOR, [VECTOR])


def test_names_are_checked_when_it_is_decorated():
    with pytest.raises(TypeError, match="no parameter 'axes', only x, axis"):
        one_program(lambda x, axis=0: x, static=("axes",))
    with pytest.raises(TypeError, match="is keepdims=False of .* a constant or an array"):
        one_program(lambda x, keepdims=False: x)
    assert one_program(lambda x, where=None: x, arrays=("where",))(VECTOR) is not None


def test_the_signature_is_that_of_the_function():
    assert str(inspect.signature(jnp.diff)).startswith("(a: 'ArrayLike', n: 'int' = 1, axis: 'int' = -1")


def test_concurrent_threads_make_the_first_call():
    @one_program
    def function(x):
        return jnp.sin(x) + 1

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: np.asarray(function(VECTOR)), range(64)))
    assert all((r == results[0]).all() for r in results)


def test_the_first_evaluation_of_a_process_is_one_program():
    given = []
    function = one_program(lambda x: given.append(x) or jnp.sin(x) + 1)
    executors.install(None)  # as before the first evaluation, where an array was unpickled: no executor is active
    assert executors.active is None
    function(VECTOR)
    assert [isinstance(x, jax.core.Tracer) for x in given] == [True]


def test_each_executor_gets_its_own_program():
    function = one_program(lambda x: jnp.sin(x) + 1, everywhere=True)
    before = executors.active
    compiled = function(VECTOR)
    try:
        executors.install(NumpyExecutor())
        evaluated = function(np.asarray(VECTOR))
    finally:
        executors.install(before)
    assert type(evaluated) is HostArray and type(compiled) is type(function(VECTOR)) is type(VECTOR)
    np.testing.assert_allclose(np.asarray(evaluated), np.asarray(compiled), rtol=1e-6)


def test_functions_in_the_tables_exist():
    assert set(BY_FUNCTION) <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 240
