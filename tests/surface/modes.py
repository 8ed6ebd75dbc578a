"""The modes in which a function of the surface is tried. A mode raises if its record does not hold.

A mode raises `Skip` if it does not apply to a record (no array, nothing to differentiate).
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import methods
import numpy as np
from records import Record


class Skip(Exception):
    """The mode does not apply; the argument is the reason."""


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic)


def as_function(record: Record) -> tuple[Callable, list]:
    """The record as a function of its arrays alone, and these."""
    leaves, tree = jax.tree.flatten((record.args, record.kwargs), is_leaf=lambda x: x is None)
    places = [i for i, x in enumerate(leaves) if _is_array(x)]

    def function(*arrays):
        new = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            new[i] = x
        args, kwargs = jax.tree.unflatten(tree, new)
        return record.function(*args, **kwargs)

    return function, [leaves[i] for i in places]


def _values(tree: Any) -> list:
    """The results that are arrays, as NumPy arrays; keys as their data."""
    out = []
    for x in jax.tree.leaves(tree):
        if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.random.key_data(x)
        if isinstance(x, jax.Array | np.ndarray | np.generic | float | int | complex):
            out.append(np.asarray(x))
    return out


def _close(found: Any, expected: Any, rtol: float = 2e-4) -> None:
    found, expected = _values(found), _values(expected)
    assert len(found) == len(expected), f"{len(found)} results in place of {len(expected)}"
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape, f"shape {x.shape} in place of {y.shape}"
        if y.dtype.kind in "fc" or y.dtype.name == "bfloat16":
            kind = complex if y.dtype.kind == "c" else float
            scale = np.nanmax(np.abs(y.astype(kind)), initial=0, where=np.isfinite(y.astype(kind)))
            np.testing.assert_allclose(x.astype(kind), y.astype(kind), rtol=rtol, atol=rtol * max(1.0, scale))
        else:
            np.testing.assert_array_equal(x, y)


def _eager(record: Record) -> Any:
    return record.function(*record.args, **record.kwargs)


def _compiled(function: Callable, arrays: list, expected: Any) -> Any:
    """The results of the function under jit, if they are arrays."""
    _must_be_arrays(expected)
    return jax.jit(function)(*arrays)


def _must_be_arrays(expected: Any) -> None:
    if not all(
        isinstance(x, jax.Array | np.ndarray | np.generic | bool | int | float | complex | None)
        for x in jax.tree.leaves(expected)
    ):
        raise Skip("its results are not arrays")


def _same_dtypes(found: Any, expected: Any) -> None:
    if not all(isinstance(x, jax.Array) for x in jax.tree.leaves(expected)):
        return  # traced Python numbers have dtypes
    found, expected = ([x.dtype for x in _values(t)] for t in (found, expected))
    assert found == expected, f"dtypes {found} in place of {expected}"


def _oracle(path: str) -> Callable | None:
    """NumPy's or SciPy's function of that name, or array method; None if there is none with the same meaning."""
    module, _, name = path.rpartition(".")
    if module.startswith("Array.at["):
        index = methods.FORMS[module[9:-1]]
        return lambda x, *rest: methods.expected_at(x, index, name, rest[-1] if rest else None)
    if name in NO_ORACLE or name in methods.VALUES:
        return None
    if module == "Array":
        if name == "sort":
            return np.sort
        return lambda x, *args, **kwargs: m(*args, **kwargs) if callable(m := getattr(x, name)) else m
    if not module.startswith(("numpy", "scipy")):
        return None
    home, *parts = module.split(".")
    try:
        found: Any = importlib.import_module(".".join([home, *parts[:1]]) if home == "scipy" else home)
        for part in parts[home == "scipy" :]:
            found = getattr(found, part)
        return getattr(found, name)
    except (ImportError, AttributeError):
        return None


def eager(record: Record) -> None:
    """The function runs. If NumPy or SciPy has it and accepts the arguments, the values are the same."""
    out = _eager(record)
    oracle = _oracle(record.name)
    if oracle is None:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = oracle(*record.args, **record.kwargs)
    except Exception:  # NumPy has no `size=`, or another order of parameters
        return
    if type(expected).__module__.startswith(("numpy", "builtins")):
        _close(out, expected, 2e-3)


# Functions with another result in NumPy: free signs and orders, uninitialised memory, other conventions.
NO_ORACLE = {
    "empty",
    "empty_like",
    "eig",
    "eigh",
    "eigvals",
    "svd",
    "qr",
    "lu",
    "schur",
    "einsum_path",
    "result_type",
    "choose",
    "can_cast",
    "get_printoptions",
    "array_repr",
    "array_str",
    "frompyfunc",
    "vectorize",
    "printoptions",
    "roots",
    "poly",
    "hessenberg",
    "polar",
    "rsf2csf",
    "cho_factor",
    "lu_factor",
    "eigh_tridiagonal",
    "qr_multiply",
    "funm",
    "sqrtm",
    "fill_diagonal",
    "place",
    "put",
    "put_along_axis",
    "from_dlpack",
    "argpartition",
    "partition",
    "sem",
    "mode",
    "minimize",
    "cdf2rdf",
    "promote_types",
    "iinfo",
    "finfo",
    "gmres",
    "cg",
    "bicgstab",
    "iscomplexobj",
    "sph_harm_y",
    "kurtosis",
    "moment",
    "polydiv",
}


def jit(record: Record) -> None:
    """Compiled, with traced arrays, it gives the same values and dtypes."""
    function, arrays = as_function(record)
    expected = _eager(record)
    out = _compiled(function, arrays, expected)
    _close(out, expected)
    if arrays:
        _same_dtypes(out, expected)


def vmap(record: Record) -> None:
    """Mapped over each array argument, it equals the loop."""
    function, arrays = as_function(record)
    if not arrays:
        raise Skip("no array arguments")
    _must_be_arrays(_eager(record))
    for i, x in enumerate(arrays):
        other = x[..., ::-1] if x.ndim else x + x if x.dtype.kind in "fc" else x
        rows = [[*arrays[:i], row, *arrays[i + 1 :]] for row in (x, other)]
        out = jax.vmap(function, [0 if k == i else None for k in range(len(arrays))])(
            *arrays[:i], np.stack([x, other]), *arrays[i + 1 :]
        )
        for k, row in enumerate(rows):
            _close(jax.tree.map(lambda v, k=k: v[k], out), function(*row), 1e-3)


def _smooth(record: Record) -> tuple[Callable, list]:
    """The function from its inexact arguments to its inexact results; and the arguments in float64."""
    function, arrays = as_function(record)
    where = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]

    def smooth(*xs):
        new = list(arrays)
        for i, x in zip(where, xs, strict=True):
            new[i] = x
        leaves = [x for x in jax.tree.leaves(function(*new)) if isinstance(x, jax.Array)]
        return [x for x in leaves if jnp.issubdtype(x.dtype, jnp.inexact)]

    if not where or not smooth(*[arrays[i] for i in where]):
        raise Skip("nothing to differentiate")
    return smooth, [arrays[i].astype(np.float64) for i in where]


def grad(record: Record) -> None:
    """Its jvp equals a difference quotient, and its vjp is the transpose of the jvp."""
    if record.name in NOT_SMOOTH or record.name.startswith("random."):
        raise Skip("not a smooth function of its arguments")
    with jax.enable_x64(True):
        function, xs = _smooth(record)
        rng = np.random.default_rng(1)
        ts = [rng.normal(size=x.shape) for x in xs]
        out, tangents = jax.jvp(function, xs, ts)
        step = 1e-6
        above = function(*[x + step * t for x, t in zip(xs, ts, strict=True)])
        below = function(*[x - step * t for x, t in zip(xs, ts, strict=True)])
        if all(x.dtype in (np.float64, np.complex128) for x in out):
            quotient = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
            _close(tangents, quotient, 1e-4)
        cotangents = [rng.normal(size=x.shape).astype(x.dtype) for x in out]
        pulled = jax.vjp(function, *xs)[1](cotangents)
        left = sum(np.vdot(np.conj(c), t).real for c, t in zip(cotangents, tangents, strict=True))
        right = sum(np.vdot(p, t) for p, t in zip(pulled, ts, strict=True))
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


# Functions with a jump at these arguments, with a derivative of 0 or one-sided by convention; or with free signs.
NOT_SMOOTH: set[str] = {
    "numpy.linalg.svd",
    "numpy.linalg.eig",
    "numpy.linalg.qr",
    "lax.linalg.svd",
    "lax.linalg.eig",
    "lax.linalg.schur",
    "scipy.linalg.svd",
    "scipy.linalg.schur",
    "numpy.linalg.matrix_rank",
    "numpy.spacing",
    "numpy.nextafter",
    "lax.nextafter",
    "lax.stop_gradient",
    "scipy.stats.dirichlet.pdf",
    "scipy.stats.dirichlet.logpdf",
    "lax.random_gamma_grad",
    "lax.reduce_precision",
    "numpy.frexp",
    "numpy.modf",
}


# Decompositions that are not unique: each algorithm gives its own signs, or order.
FREE = {
    f"{module}.{name}"
    for module in ("numpy.linalg", "lax.linalg", "scipy.linalg")
    for name in ("eig", "eigh", "svd", "qr", "schur", "hessenberg", "tridiagonal", "rsf2csf")
}


def numpy_only(record: Record) -> None:
    """Evaluated by NumPy, without XLA, it gives the same values."""
    if record.name in FREE:
        raise Skip("the decomposition is not unique")
    from bedrax.core import executors
    from bedrax.numpy_backend.executor import NumpyExecutor

    expected = _eager(record)
    saved = executors.active
    executors.install(NumpyExecutor())
    try:
        out = _eager(record)
    finally:
        executors.install(saved)
    _close([np.asarray(x) for x in _values(out)], expected, 1e-3)


def tensorflow(record: Record) -> None:
    """Converted to plain TensorFlow operations, it gives the same values."""
    from jax.experimental import jax2tf

    function, arrays = as_function(record)
    if not arrays or record.name in FREE:
        raise Skip("no array arguments, or the decomposition is not unique")
    expected = _eager(record)
    if not all(isinstance(x, jax.Array | np.ndarray) for x in jax.tree.leaves(expected)):
        raise Skip("its results are not arrays")
    out = jax2tf.convert(lambda *a: _values_traced(function(*a)))(*arrays)
    _close([np.asarray(x) for x in jax.tree.leaves(out)], expected, 2e-3)


def _values_traced(tree: Any) -> list:
    return [
        jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        for x in jax.tree.leaves(tree)
        if isinstance(x, jax.Array)
    ]


def keywords(record: Record) -> None:
    """Each keyword, with its default, changes nothing."""
    try:
        parameters = inspect.signature(record.function).parameters.values()
    except ValueError:
        raise Skip("no signature") from None
    given = {p.name for p, _ in zip(parameters, record.args)}
    names = {
        p.name: p.default
        for p in parameters
        if p.default is not p.empty
        and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        and p.name not in given
        and p.name not in record.kwargs
    }
    if not names:
        raise Skip("no keywords")
    _close(record.function(*record.args, **record.kwargs, **names), _eager(record))


@contextlib.contextmanager
def _option(name: str, value: Any):
    old = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, old)


def _under(name: str, value: Any) -> Callable:
    def mode(record: Record) -> None:
        function, arrays = as_function(record)
        if value == "strict" and len({x.dtype for x in arrays}) > 1:
            raise Skip("arguments of several dtypes, for which strict promotion raises")
        expected = _eager(record)
        with _option(name, value):
            _close(function(*arrays), expected)
            _close(_compiled(function, arrays, expected), expected)

    mode.__doc__ = f"Under `{name}={value!r}` it gives the same values, eagerly and compiled."
    return mode


def _only_finite(values: Any) -> bool:
    return all(np.isfinite(x).all() for x in _values(values) if x.dtype.kind in "fc")


def masked_values(record: Record) -> None:
    """Under the debug options, transformations raise for no value but one of a result: others are masked inside."""
    function, arrays = as_function(record)
    expected = _eager(record)
    _must_be_arrays(expected)
    where = [i for i, x in enumerate(arrays) if x.dtype.kind == "f"]

    def of_floats(*xs):
        new = list(arrays)
        for i, x in zip(where, xs, strict=True):
            new[i] = x
        return function(*new)

    def within_a_trace():
        with jax.ensure_compile_time_eval():
            return function(*arrays)

    floats = [arrays[i] for i in where]
    stacked = [np.stack([x, x]) for x in floats]
    transformed = [lambda: jax.jit(within_a_trace)()]
    if floats:
        transformed += [lambda: jax.vmap(of_floats)(*stacked), lambda: jax.jvp(of_floats, floats, floats)]
    for f in transformed:
        try:
            result = f()
        except Exception:  # not differentiable, for example: other modes test it
            continue
        if _only_finite(result):
            with _option("jax_debug_nans", True), _option("jax_debug_infs", True):
                _close(f(), result)


def _refuses_or_runs(change: Callable[[np.ndarray], np.ndarray], doc: str) -> Callable:
    """Arguments of another kind: it runs, compiled and not, to the same values; or the error names the accepted
    types."""

    def mode(record: Record) -> None:
        function, arrays = as_function(record)
        new = [change(x) for x in arrays]
        if all(a is b for a, b in zip(arrays, new, strict=True)):
            raise Skip("no such argument")
        _must_be_arrays(_eager(record))
        try:
            out = function(*map(jnp.asarray, new))
        except (TypeError, ValueError, IndexError, NotImplementedError, ZeroDivisionError, OverflowError) as error:
            assert len(str(error)) > 15 and "Tracer" not in str(error), f"the message is only {error!r}"
            return
        _close(jax.jit(function)(*map(jnp.asarray, new)), out, 2e-2)

    mode.__doc__ = doc
    return mode


def _floats_as(dtype: Any) -> Callable:
    return lambda x: x.astype(dtype) if x.dtype == np.float32 else x


MODES: dict[str, Callable[[Record], None]] = {
    "eager": eager,
    "jit": jit,
    "vmap": vmap,
    "grad": grad,
    "NumPy": numpy_only,
    "TF": tensorflow,
    "keywords": keywords,
    "x64": None,
    "rank promotion": _under("jax_numpy_rank_promotion", "raise"),
    "strict dtypes": _under("jax_numpy_dtype_promotion", "strict"),
    "debug nans": _under("jax_debug_nans", True),
    "masked values": masked_values,
    "disable jit": _under("jax_disable_jit", True),
    "bfloat16": _refuses_or_runs(_floats_as(jnp.bfloat16), "Arguments in bfloat16."),
    "float16": _refuses_or_runs(_floats_as(np.float16), "Arguments in float16."),
    "complex64": _refuses_or_runs(_floats_as(np.complex64), "Arguments in complex64."),
    "int32": _refuses_or_runs(
        lambda x: (x * 4).astype(np.int32) if x.dtype == np.float32 else x, "Integers for floats."
    ),
    "empty": _refuses_or_runs(lambda x: x[..., :0] if x.ndim else x, "Arrays without elements."),
    "scalars": _refuses_or_runs(lambda x: x.reshape(-1)[0] if x.ndim and x.size else x, "Numbers instead of arrays."),
}


def x64(record: Record) -> None:
    """With `enable_x64` and float64 arguments it gives the same values, in float64."""
    function, arrays = as_function(record)
    expected = _eager(record)
    wide = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}
    with jax.enable_x64(True):
        out = function(*[x.astype(wide.get(x.dtype, x.dtype)) for x in arrays])
        if record.name.startswith(("random.", "nn.initializers.")):
            return  # other bits
        for x, y in zip(_values(out), _values(expected), strict=True):
            assert x.shape == y.shape
            if y.dtype.kind in "fc":
                np.testing.assert_allclose(
                    x, y.astype(x.dtype), rtol=2e-3, atol=2e-3 * max(1, np.nanmax(np.abs(y), initial=0))
                )


MODES["x64"] = x64
