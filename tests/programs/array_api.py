"""Every function of the Python array API standard, version 2024.12, on the installed `jax.numpy`.

`run OUT [PREFIX...]` calls the functions whose names start with a prefix with arguments that hypothesis draws, with
`jax.numpy` and with `array_api_strict`, and writes which agree: in dtype, shape, structure and values. `compare THEIRS
OURS` prints the failures of both, and fails if a case passes there and not here, or if fewer pass here.
"""

import functools
import inspect
import json
import math
import sys
import warnings
from pathlib import Path

import array_api_strict as strict
import jax
import jax.numpy as xp
import numpy as np
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

VERSION = "2024.12"
EXAMPLES = 12
INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
REALS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
FLOATS = REALS + COMPLEX
DTYPES = {
    "bool": ["bool"],
    "integer": INTEGERS,
    "bits": ["bool", *INTEGERS],
    "real": INTEGERS + REALS,
    "float": REALS,
    "complex": COMPLEX,
    "floating": FLOATS,
    "numeric": INTEGERS + FLOATS,
    "real or bool": ["bool", *INTEGERS, *REALS],
    "all": ["bool", *INTEGERS, *FLOATS],
}
xps = make_strategies_namespace(strict, api_version=VERSION)


# ---- strategies: each draws (positional arguments, keyword arguments) ----


def shapes(least=0, most=3, side=0):
    return xps.array_shapes(min_dims=least, max_dims=most, min_side=side, max_side=3)


def elements(dtype, low=None, high=None):
    """Numbers that the operations of the standard are defined for; `low` and `high` narrow them."""
    if dtype == "bool":
        return st.booleans()
    if "int" in dtype:
        least, most = (0, 9) if dtype.startswith("uint") else (-9, 9)
        return st.integers(
            max(least, math.ceil(low)) if low is not None else least,
            min(most, math.floor(high)) if high is not None else most,
        )
    reals = st.integers(-24, 24).map(lambda n: n / 8)
    if low is not None or high is not None:
        reals = reals.map(lambda x: min(max(x, -3 if low is None else low), 3 if high is None else high))
    return st.builds(complex, reals, reals) if dtype.startswith("complex") else reals


@st.composite
def arrays(draw, kind="numeric", shape=None, low=None, high=None, dtype=None):
    dtype = dtype or draw(st.sampled_from(DTYPES[kind]))
    shape = draw(shapes()) if shape is None else shape
    size = math.prod(shape)
    values = draw(st.lists(elements(dtype, low, high), min_size=size, max_size=size))
    return strict.reshape(strict.asarray(values, dtype=getattr(strict, dtype)), shape)


def dtype_name(x):
    return str(x.dtype).rpartition(".")[2]


def calls(*args, **kwargs):
    """The call with arguments that are drawn; a keyword argument that is drawn as ... is left out."""
    left = lambda pair: (pair[0], {k: v for k, v in pair[1].items() if v is not ...})
    return st.tuples(st.tuples(*args), st.fixed_dictionaries(kwargs)).map(left)


def unary(kind, low=None, high=None):
    return calls(arrays(kind, low=low, high=high))


@st.composite
def binary(draw, kind, low=None, high=None, scalars=True):
    """Two arrays of one dtype whose shapes can be broadcast; or an array and a Python number."""
    dtype = draw(st.sampled_from(DTYPES[kind]))
    first, second = draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3)).input_shapes
    x = draw(arrays(shape=first, dtype=dtype))
    y = draw(arrays(shape=second, dtype=dtype, low=low, high=high))
    if scalars and draw(st.integers(0, 4)) == 0:
        y = draw(elements(dtype, low, high))
        y = bool(y) if dtype == "bool" else y
    return (x, y), {}


@st.composite
def promoted(draw, kind):
    """Two arrays of two dtypes that the standard promotes."""
    first = draw(arrays(kind))
    second = draw(arrays(kind, shape=first.shape))
    try:
        strict.result_type(first, second)
    except TypeError:
        reject()
    return (first, second), {}


@st.composite
def reduced(draw, kind, axes=True, empty=True, **more):
    x = draw(arrays(kind, shape=draw(shapes(side=0 if empty else 1))))
    kwargs = {}
    if x.ndim and draw(st.booleans()):
        axis = st.integers(-x.ndim, x.ndim - 1)
        kwargs["axis"] = draw(xps.valid_tuple_axes(x.ndim) if axes and draw(st.booleans()) else axis)
    if draw(st.booleans()):
        kwargs["keepdims"] = draw(st.booleans())
    kwargs.update({k: draw(v) for k, v in more.items() if draw(st.booleans())})
    return (x,), kwargs


@st.composite
def along(draw, kind="all", least=1, axis=True, **more):
    """Draw an array, one of its axes, and some of the other keyword arguments."""
    x = draw(arrays(kind, shape=draw(shapes(least))))
    kwargs = {k: draw(v) for k, v in more.items() if draw(st.booleans())}
    if axis and (axis == "always" or draw(st.booleans())):
        kwargs["axis"] = draw(st.integers(-x.ndim, x.ndim - 1))
    return (x,), kwargs


@st.composite
def cumulative(draw, kind):
    (x,), kwargs = draw(along(kind, include_initial=st.booleans()))
    if x.ndim > 1 and "axis" not in kwargs:
        kwargs["axis"] = draw(st.integers(-x.ndim, x.ndim - 1))
    return (x,), kwargs


def dtypes(kind="all"):
    return st.sampled_from(DTYPES[kind]).map(lambda name: getattr(strict, name))


@st.composite
def distinct(draw, kind="real", shape=None):
    """An array without equal elements."""
    x = draw(arrays(kind, shape=draw(shapes(1)) if shape is None else shape))
    order = draw(st.permutations(range(x.size)))
    numbers = strict.reshape(strict.asarray(list(order), dtype=x.dtype), x.shape) if x.size else x
    return numbers


@st.composite
def joined(draw, stack=False):
    shape = draw(shapes(0 if stack else 1))
    dtype = draw(st.sampled_from(DTYPES["all"]))
    axis = draw(st.integers(-len(shape), len(shape) - 1)) if shape else 0
    several = []
    for _ in range(draw(st.integers(1, 3))):
        each = list(shape)
        if not stack:
            each[axis] = draw(st.integers(0, 3))
        several.append(draw(arrays(shape=tuple(each), dtype=dtype)))
    return (several,), {"axis": axis}


@st.composite
def reshaped(draw):
    x = draw(arrays("all"))
    to = draw(st.permutations([1, *x.shape])) if draw(st.booleans()) else [x.size]
    if x.size and draw(st.booleans()):
        to = [-1, *to[1:]]
    return (x, tuple(to)), {}


@st.composite
def axes_of(draw, make):
    x = draw(arrays("all", shape=draw(shapes(1))))
    return (x, *make(draw, x)), {}


def _permuted(draw, x):
    return (tuple(draw(st.permutations(range(x.ndim)))),)


def _moved(draw, x):
    n = draw(st.integers(0, x.ndim))
    source, to = (draw(st.permutations(range(x.ndim)))[:n] for _ in range(2))
    return tuple(source), tuple(to)


def _rolled(draw, x):
    return (draw(st.integers(-4, 4)),)


def _tiled(draw, x):
    return (tuple(draw(st.lists(st.integers(0, 2), min_size=0, max_size=4))),)


@st.composite
def squeezed(draw):
    x = draw(arrays("all", shape=(*draw(shapes(0, 2)), 1)))
    return (x,), {"axis": draw(st.sampled_from([-1, x.ndim - 1, (x.ndim - 1,)]))}


@st.composite
def expanded(draw):
    x = draw(arrays("all"))
    return (x,), {"axis": draw(st.integers(-x.ndim - 1, x.ndim))}


@st.composite
def spread(draw):
    found = draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3))
    return tuple(draw(arrays("all", shape=s)) for s in found.input_shapes), {}


@st.composite
def spread_to(draw):
    found = draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3))
    return (draw(arrays("all", shape=found.input_shapes[0])), found.result_shape), {}


@st.composite
def repeated(draw):
    x = draw(arrays("all", shape=draw(shapes(1))))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    if draw(st.booleans()):
        return (x, draw(st.integers(0, 3))), draw(st.sampled_from([{}, {"axis": axis}]))
    counts = draw(st.lists(st.integers(0, 2), min_size=x.shape[axis], max_size=x.shape[axis]))
    return (x, strict.asarray(counts, dtype=strict.int64)), {"axis": axis}


@st.composite
def taken(draw, along=False):
    x = draw(arrays("all", shape=draw(shapes(1, side=1))))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    at = st.integers(-x.shape[axis], x.shape[axis] - 1)
    if along:
        shape = list(x.shape)
        shape[axis] = draw(st.integers(1, 3))
        indices = draw(st.lists(at, min_size=math.prod(shape), max_size=math.prod(shape)))
        return (x, strict.reshape(strict.asarray(indices, dtype=strict.int64), tuple(shape))), {"axis": axis}
    indices = draw(st.lists(at, max_size=3))
    return (x, strict.asarray(indices, dtype=draw(st.sampled_from([strict.int32, strict.int64])))), {"axis": axis}


@st.composite
def searched(draw):
    x = strict.sort(draw(distinct(shape=(draw(st.integers(1, 4)),))))
    kwargs = {"side": draw(st.sampled_from(["left", "right"]))}
    if draw(st.booleans()):
        order = draw(st.permutations(range(x.size)))
        inverse = sorted(range(x.size), key=lambda i: order[i])
        x = strict.take(x, strict.asarray(order))
        kwargs["sorter"] = strict.asarray(inverse)
    return (x, draw(arrays(shape=draw(shapes(0, 2)), dtype=dtype_name(x)))), kwargs


@st.composite
def chosen(draw):
    found = draw(xps.mutually_broadcastable_shapes(3, max_dims=3, max_side=3)).input_shapes
    dtype = draw(st.sampled_from(DTYPES["all"]))
    return (draw(arrays("bool", shape=found[0])), *(draw(arrays(shape=s, dtype=dtype)) for s in found[1:])), {}


@st.composite
def clipped(draw):
    x = draw(arrays("real"))
    dtype = dtype_name(x)
    low, high = sorted([draw(elements(dtype)), draw(elements(dtype))])
    kwargs = {}
    if draw(st.booleans()):
        kwargs["min"] = strict.asarray(low, dtype=x.dtype) if draw(st.booleans()) else low
    if draw(st.booleans()):
        kwargs["max"] = high
    return (x,), kwargs


@st.composite
def differences(draw):
    (x,), kwargs = draw(along("numeric"))
    axis = kwargs.get("axis", -1)
    kwargs["n"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        shape = list(x.shape)
        shape[axis] = 1
        kwargs["prepend"] = draw(arrays(shape=tuple(shape), dtype=dtype_name(x)))
    return (x,), kwargs


@st.composite
def matrices(draw, kind="floating", square=False, hermitian=False, regular=False, **more):
    batch = draw(shapes(0, 1))
    n = draw(st.integers(1, 3))
    m = n if square or hermitian or regular else draw(st.integers(1, 3))
    x = draw(arrays(kind, shape=(*batch, n, m)))
    if regular or hermitian:  # far from singular, and without equal eigenvalues
        scale = strict.asarray([10.0 * (i + 1) for i in range(n)], dtype=strict.float64)
        x = strict.astype(strict.eye(n, dtype=strict.float64) * scale, x.dtype) + x / 8
    if hermitian:
        x = (
            (x + strict.conj(strict.matrix_transpose(x))) / 2
            if "complex" in dtype_name(x)
            else (x + strict.matrix_transpose(x)) / 2
        )
    return (x,), {k: draw(v) for k, v in more.items() if draw(st.booleans())}


@st.composite
def products(draw, kind="numeric"):
    dtype = draw(st.sampled_from(DTYPES[kind]))
    n, k, m = (draw(st.integers(1, 3)) for _ in range(3))
    batch = draw(xps.mutually_broadcastable_shapes(2, max_dims=1, max_side=2)).input_shapes
    first, second = draw(st.sampled_from([((n, k), (k, m)), ((k,), (k, m)), ((n, k), (k,)), ((k,), (k,))]))
    if len(first) == len(second) == 2:
        first, second = (*batch[0], *first), (*batch[1], *second)
    return (draw(arrays(shape=first, dtype=dtype)), draw(arrays(shape=second, dtype=dtype))), {}


@st.composite
def contracted(draw):
    dtype = draw(st.sampled_from(DTYPES["numeric"]))
    shared = draw(shapes(0, 2, 1))
    x = draw(arrays(shape=(*draw(shapes(0, 1, 1)), *shared), dtype=dtype))
    y = draw(arrays(shape=(*shared, *draw(shapes(0, 1, 1))), dtype=dtype))
    n = len(shared)
    axes = draw(st.sampled_from([n, (tuple(range(x.ndim - n, x.ndim)), tuple(range(n)))]))
    return (x, y), {"axes": axes}


@st.composite
def vectors(draw, kind="numeric", length=None):
    dtype = draw(st.sampled_from(DTYPES[kind]))
    shape = (*draw(shapes(0, 2, 1)), length or draw(st.integers(1, 3)))
    x, y = (draw(arrays(shape=shape, dtype=dtype)) for _ in range(2))
    return (x, y), {"axis": -1} if draw(st.booleans()) else {}


@st.composite
def pairs_of_vectors(draw):
    dtype = draw(st.sampled_from(DTYPES["numeric"]))
    return tuple(draw(arrays(shape=(draw(st.integers(1, 3)),), dtype=dtype)) for _ in range(2)), {}


@st.composite
def systems(draw):
    ((a,), _) = draw(matrices(regular=True))
    if a.ndim > 2 and a.shape[0] == 0:
        reject()
    b = draw(arrays(shape=draw(st.sampled_from([a.shape, (*a.shape[:-1], 2), (a.shape[-1],)])), dtype=dtype_name(a)))
    return (a, b), {}


@st.composite
def powers(draw):
    ((a,), _) = draw(matrices(regular=True))
    return (a / 30, draw(st.integers(-1, 3))), {}


@st.composite
def norms(draw):
    (x,), kwargs = draw(reduced("floating", axes=False, empty=False))
    kwargs["ord"] = draw(st.sampled_from([1, 2, 3, math.inf, -math.inf, 2.5]))
    return (x,), kwargs


@st.composite
def transformed(draw, kind, several=False, real=False):
    x = draw(arrays(kind, shape=draw(shapes(1, 3, 2 if real else 1))))
    kwargs = {"norm": draw(st.sampled_from(["backward", "ortho", "forward"]))} if draw(st.booleans()) else {}
    if several:
        if draw(st.booleans()):
            kwargs["axes"] = tuple(range(x.ndim))[-draw(st.integers(1, x.ndim)) :]
            if draw(st.booleans()):
                kwargs["s"] = tuple(draw(st.integers(2, 4)) for _ in kwargs["axes"])
        return (x,), kwargs
    if draw(st.booleans()):
        kwargs["axis"] = draw(st.integers(-x.ndim, x.ndim - 1))
    if draw(st.booleans()):
        kwargs["n"] = draw(st.integers(2, 4))
    return (x,), kwargs


def maybe(strategy):
    return strategy | st.just(...)


_FLOAT_OR_NONE = maybe(dtypes("float"))
_ELEMENTWISE = {
    "numeric": "abs conj negative positive sign square",
    "real": "ceil floor trunc",
    "all": "isfinite isinf isnan",
    "floating": "cos cosh exp expm1 sin sinh tanh atan asinh sqrt reciprocal",
    "float": "signbit",
    "complex": "imag real",
    "bits": "bitwise_invert",
    "bool": "logical_not",
}
_PAIRS = {
    "numeric": "add multiply subtract",
    "floating": "",
    "all": "equal not_equal",
    "real": "greater greater_equal less less_equal maximum minimum",
    "float": "atan2 copysign hypot logaddexp nextafter",
    "bits": "bitwise_and bitwise_or bitwise_xor",
    "bool": "logical_and logical_or logical_xor",
}
CALLS = {
    **{name: unary(kind) for kind, names in _ELEMENTWISE.items() for name in names.split()},
    **{name: binary(kind) for kind, names in _PAIRS.items() for name in names.split()},
    **{f"{name} of two dtypes": promoted(kind) for kind, names in _PAIRS.items() for name in names.split()},
    "round": unary("numeric"),
    "tan": unary("floating", -1, 1),
    "acos": unary("float", -1, 1),
    "asin": unary("float", -1, 1),
    "atanh": unary("float", -0.75, 0.75),
    "acosh": unary("float", 1),
    **{name: unary("float", 0.125) for name in ("log", "log2", "log10", "log1p")},
    "log of complex numbers": unary("complex"),
    "divide": binary("floating", 0.5),
    "floor_divide": binary("real", 1),
    "remainder": binary("real", 1),
    "pow": binary("integer", 0, 2),
    "pow of floats": binary("float", 0, 2),
    **{name: binary("integer", 0, 3) for name in ("bitwise_left_shift", "bitwise_right_shift")},
    "clip": clipped(),
    "where": chosen(),
    **{name: reduced("numeric", dtype=dtypes("floating")) for name in ("sum", "prod")},
    "mean": reduced("floating", empty=False),
    **{name: reduced("float", empty=False, correction=st.sampled_from([0, 0.0])) for name in ("std", "var")},
    **{name: reduced("real", empty=False) for name in ("max", "min")},
    **{name: reduced("all") for name in ("all", "any", "count_nonzero")},
    **{name: reduced("real", axes=False, empty=False) for name in ("argmax", "argmin")},
    **{name: cumulative("numeric") for name in ("cumulative_sum", "cumulative_prod")},
    "diff": differences(),
    "sort": along("real", descending=st.booleans(), stable=st.booleans()),
    "argsort": st.tuples(distinct(), st.booleans()).map(lambda p: ((p[0],), {"descending": p[1]})),
    "searchsorted": searched(),
    "nonzero": calls(arrays("all", shape=(2, 3))),
    **{f"unique_{what}": calls(arrays("all", shape=None)) for what in ("all", "counts", "inverse", "values")},
    "take": taken(),
    "take_along_axis": taken(along=True),
    "concat": joined(),
    "stack": joined(stack=True),
    "unstack": along(),
    "reshape": reshaped(),
    "permute_dims": axes_of(_permuted),
    "moveaxis": axes_of(_moved),
    "roll": axes_of(_rolled),
    "tile": axes_of(_tiled),
    "flip": along("all"),
    "repeat": repeated(),
    "squeeze": squeezed(),
    "expand_dims": expanded(),
    "broadcast_arrays": spread(),
    "broadcast_to": spread_to(),
    "matrix_transpose": calls(shapes(2).flatmap(lambda s: arrays("all", shape=s))),
    "meshgrid": st.tuples(
        st.lists(shapes(1, 1).flatmap(lambda s: arrays(shape=s, dtype="int32")), min_size=1, max_size=3),
        st.sampled_from(["xy", "ij"]),
    ).map(lambda p: (tuple(p[0]), {"indexing": p[1]})),
    "matmul": products(),
    "tensordot": contracted(),
    "vecdot": vectors(),
    "astype": calls(arrays("all", low=0), dtypes("numeric"), copy=maybe(st.booleans())).filter(
        lambda c: not ("complex" in dtype_name(c[0][0]) and "complex" not in str(c[0][1]))
    ),
    "can_cast": calls(dtypes(), dtypes()),
    "result_type": calls(dtypes("numeric"), dtypes("numeric")),
    "isdtype": calls(
        dtypes(),
        st.sampled_from(
            [
                "bool",
                "signed integer",
                "unsigned integer",
                "integral",
                "real floating",
                "complex floating",
                "numeric",
                ("bool", "integral"),
            ]
        ),
    ),
    "finfo": calls(dtypes("floating")),
    "iinfo": calls(dtypes("integer")),
    "arange": calls(
        st.integers(-3, 3),
        maybe(st.integers(-3, 6)).map(lambda x: 5 if x is ... else x),
        st.sampled_from([1, 2, 0.5]),
        dtype=_FLOAT_OR_NONE,
    ),
    "linspace": calls(
        st.integers(-3, 3),
        st.floats(-3, 3, width=16),
        st.integers(0, 5),
        endpoint=maybe(st.booleans()),
        dtype=_FLOAT_OR_NONE,
    ),
    "eye": calls(
        st.integers(0, 3), st.none() | st.integers(0, 3), k=st.integers(-3, 3), dtype=maybe(dtypes("numeric"))
    ),
    **{name: calls(shapes(), dtype=maybe(dtypes())) for name in ("zeros", "ones")},
    **{f"{name}_like": calls(arrays("all"), dtype=maybe(dtypes("numeric"))) for name in ("zeros", "ones")},
    "full": calls(shapes(), st.booleans() | st.integers(0, 9) | st.floats(-3, 3, width=16)),
    "full_like": calls(arrays("numeric"), st.integers(0, 9)),
    **{
        name: calls(shapes(2).flatmap(lambda s: arrays("all", shape=s)), k=st.integers(-2, 2))
        for name in ("tril", "triu")
    },
    "asarray": calls(
        st.lists(st.integers(-9, 9)) | st.lists(st.floats(-3, 3, width=16)) | st.booleans(),
        dtype=maybe(dtypes("floating")),
    ),
    "linalg.cholesky": matrices(hermitian=True, upper=st.booleans()),
    "linalg.cross": vectors(length=3),
    "linalg.det": matrices(square=True),
    "linalg.diagonal": matrices("all", offset=st.integers(-1, 1)),
    "linalg.eigvalsh": matrices(hermitian=True),
    "linalg.inv": matrices(regular=True),
    "linalg.matmul": products(),
    "linalg.matrix_norm": matrices(
        ord=st.sampled_from(["fro", "nuc", 1, -1, 2, math.inf, -math.inf]), keepdims=st.booleans()
    ),
    "linalg.matrix_power": powers(),
    "linalg.matrix_rank": matrices(regular=True),
    "linalg.matrix_transpose": matrices("all"),
    "linalg.outer": pairs_of_vectors(),
    "linalg.pinv": matrices(regular=True),
    "linalg.slogdet": matrices(regular=True),
    "linalg.solve": systems(),
    "linalg.svdvals": matrices(),
    "linalg.tensordot": contracted(),
    "linalg.trace": matrices("numeric", offset=st.integers(-1, 1)),
    "linalg.vecdot": vectors(),
    "linalg.vector_norm": norms(),
    "fft.fft": transformed("complex"),
    "fft.ifft": transformed("complex"),
    "fft.rfft": transformed("float"),
    "fft.irfft": transformed("complex", real=True),
    "fft.hfft": transformed("complex", real=True),
    "fft.ihfft": transformed("float"),
    "fft.fftn": transformed("complex", several=True),
    "fft.ifftn": transformed("complex", several=True),
    "fft.rfftn": transformed("float", several=True),
    "fft.irfftn": transformed("complex", several=True, real=True),
    **{
        f"fft.{name}freq": calls(st.integers(1, 5), d=st.sampled_from([1.0, 0.5]), dtype=_FLOAT_OR_NONE)
        for name in ("fft", "rfft")
    },
    **{f"fft.{name}shift": along("floating", axis=False) for name in ("fft", "ifft")},
}
_OPERATORS = {
    "numeric": "__add__ __sub__ __mul__ __neg__ __pos__ __abs__",
    "all": "__eq__ __ne__",
    "real": "__lt__ __le__ __gt__ __ge__",
    "bits": "__and__ __or__ __xor__ __invert__",
}
_OF_ONE = "__neg__ __pos__ __abs__ __invert__"
OPERATORS = {
    **{n: unary(k) if n in _OF_ONE else binary(k) for k, names in _OPERATORS.items() for n in names.split()},
    "__truediv__": binary("floating", 0.5),
    "__floordiv__": binary("real", 1),
    "__mod__": binary("real", 1),
    "__pow__": binary("integer", 0, 2),
    "__lshift__": binary("integer", 0, 3),
    "__rshift__": binary("integer", 0, 3),
    "__matmul__": products(),
}


@st.composite
def indexed(draw):
    x = draw(arrays("all", shape=draw(shapes(1, side=1))))
    return (x, draw(xps.indices(x.shape, allow_newaxis=True))), {}


# ---- functions whose results are not unique: what holds of them ----


def _close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-3, atol=1e-4)


def _adjoint(x):
    return xp.conj(xp.matrix_transpose(x))


def _svd(x, full_matrices=True):
    u, s, v = xp.linalg.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    _close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x)
    assert u.dtype == v.dtype == x.dtype and not xp.isdtype(s.dtype, "complex floating")
    assert u.shape[-1] == (x.shape[-2] if full_matrices else k)


def _qr(x, mode="reduced"):
    q, r = xp.linalg.qr(x, mode=mode)
    _close(q @ r, x)
    assert q.dtype == r.dtype == x.dtype and q.shape[-1] == (x.shape[-2] if mode == "complete" else min(x.shape[-2:]))


def _eigh(x):
    found = xp.linalg.eigh(x)
    _close((found.eigenvectors * found.eigenvalues[..., None, :]) @ _adjoint(found.eigenvectors), x)
    assert found.eigenvectors.dtype == x.dtype


def _empty(shape, **kwargs):
    assert xp.empty(shape, **kwargs).shape == shape
    assert xp.empty_like(xp.empty(shape, **kwargs)).shape == shape


def _dlpack(x):
    _close(xp.from_dlpack(x), x)
    assert xp.from_dlpack(x).dtype == x.dtype


def _astype_truth(x):
    assert (np.asarray(xp.astype(x, xp.bool)) == (np.asarray(x) != 0)).all()


def _attributes(x):
    assert x.__array_namespace__(api_version=VERSION) is not None
    assert x.ndim == len(x.shape) and x.size == math.prod(x.shape) and x.device is not None
    assert x.to_device(x.device).shape == x.shape
    if x.ndim > 1:
        assert x.mT.shape == (*x.shape[:-2], x.shape[-1], x.shape[-2])
    if x.ndim == 2:
        assert x.T.shape == x.shape[::-1]


def _numbers(x):
    kind = x.dtype.kind
    assert bool(x) == bool(np.asarray(x)) and complex(x) == complex(np.asarray(x))
    if kind != "c":
        assert float(x) == float(np.asarray(x)) and int(x) == int(np.asarray(x))
    if kind in "iu":
        assert x.__index__() == int(x)


PROPERTIES = {
    "linalg.svd": (_svd, matrices(full_matrices=st.booleans())),
    "linalg.qr": (_qr, matrices(mode=st.sampled_from(["reduced", "complete"]))),
    "linalg.eigh": (_eigh, matrices(hermitian=True)),
    "empty": (_empty, calls(shapes(), dtype=maybe(dtypes()))),
    "from_dlpack": (_dlpack, calls(arrays("numeric"))),
    "astype to booleans": (_astype_truth, unary("numeric")),
    "attributes of arrays": (_attributes, unary("all")),
    "numbers of arrays": (_numbers, calls(arrays("all", shape=()))),
}


def _info():
    ours, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert ours.capabilities().keys() >= theirs.capabilities().keys()
    names = lambda found: {k: np.dtype(str(v).rpartition(".")[2]).name for k, v in found.items()}
    assert names(ours.default_dtypes()) == names(theirs.default_dtypes())
    for kind in (
        None,
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
        ("bool", "integral"),
    ):
        assert names(ours.dtypes(kind=kind)) == names(theirs.dtypes(kind=kind)), kind
    assert ours.default_device() in ours.devices()
    for device in ours.devices():  # None: where the array is made is left open
        assert xp.zeros(1, device=device).device == (device or xp.zeros(1).device)


def _constants():
    for name in ("e", "inf", "nan", "pi"):
        np.testing.assert_equal(float(getattr(xp, name)), float(getattr(strict, name)))
    assert xp.newaxis is None


def _strategies():
    """hypothesis draws arrays of this namespace."""
    made = make_strategies_namespace(xp, api_version=VERSION)

    @settings(max_examples=5, derandomize=True, database=None, deadline=None)
    @given(made.arrays(dtype=made.scalar_dtypes(), shape=made.array_shapes(max_dims=2, max_side=2)))
    def draws(x):
        assert isinstance(x, jax.Array)

    draws()


def _signature(theirs, ours):
    """Arguments that the standard names have these names, and those with defaults may be left out."""
    found = inspect.signature(ours).parameters
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_KEYWORD for p in found.values()):
        return
    for name, parameter in inspect.signature(theirs).parameters.items():
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
            assert name in found, f"no argument {name!r}"
            assert parameter.default is kinds.empty or found[name].default is not kinds.empty, f"{name} has no default"


# ---- running and comparing ----


def _attribute(namespace, name):
    return functools.reduce(getattr, name.split(" of ")[0].split("."), namespace)


def _converted(x):
    """A value of `array_api_strict` as one of `jax.numpy`."""
    if isinstance(x, strict.asarray([1]).__class__):
        return xp.asarray(np.from_dlpack(x).copy())
    if type(x) is type(strict.float32):
        return getattr(xp, str(x).rpartition(".")[2])
    return x


def _convert(value):
    if isinstance(value, tuple | list):
        return type(value)(map(_convert, value))
    return {k: _convert(v) for k, v in value.items()} if isinstance(value, dict) else _converted(value)


def _agree(theirs, ours):
    if isinstance(theirs, tuple | list):
        assert len(theirs) == len(ours), f"{len(ours)} results for {len(theirs)}"
        if fields := getattr(theirs, "_fields", None):
            assert ours._fields == fields, f"fields {ours._fields} for {fields}"
        for a, b in zip(theirs, ours, strict=True):
            _agree(a, b)
    elif hasattr(theirs, "shape"):
        assert isinstance(ours, jax.Array), type(ours).__name__
        assert np.dtype(dtype_name(theirs)) == ours.dtype, f"dtype {ours.dtype} for {dtype_name(theirs)}"
        assert theirs.shape == ours.shape, f"shape {ours.shape} for {theirs.shape}"
        tolerance = 1e-3 if dtype_name(theirs) in ("float32", "complex64") else 1e-7
        np.testing.assert_allclose(np.asarray(ours), np.from_dlpack(theirs), rtol=tolerance, atol=tolerance)
    elif hasattr(theirs, "smallest_normal"):
        for name in ("bits", "eps", "max", "min", "smallest_normal"):
            assert float(getattr(theirs, name)) == float(getattr(ours, name)), name
        assert np.dtype(str(theirs.dtype).rpartition(".")[2]) == np.dtype(ours.dtype)
    elif hasattr(theirs, "bits"):
        assert (theirs.bits, theirs.min, theirs.max) == (ours.bits, ours.min, ours.max)
    elif type(theirs) is type(strict.float32):
        assert np.dtype(str(theirs).rpartition(".")[2]) == np.dtype(ours)
    else:
        assert theirs == ours, f"{ours!r} for {theirs!r}"


def _drawn(check, strategy):
    @seed(0)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(strategy)
    def run(call):
        check(*call)

    run()


def _compared(theirs, ours):
    def check(args, kwargs):
        try:
            expected = theirs(*args, **kwargs)
        except Exception:
            reject()
        _agree(expected, ours(*_convert(args), **_convert(kwargs)))

    return check


def cases():
    """name -> function that fails if `jax.numpy` differs from the standard."""
    found = {"namespace info": _info, "constants": _constants, "strategies of hypothesis": _strategies}
    for name, strategy in CALLS.items():
        theirs = functools.partial(lambda name, *a, **k: _attribute(strict, name)(*a, **k), name)
        ours = functools.partial(lambda name, *a, **k: _attribute(xp, name)(*a, **k), name)
        found[name] = functools.partial(_drawn, _compared(theirs, ours), strategy)
    for name, strategy in OPERATORS.items():
        call = functools.partial(lambda name, x, *y: getattr(x, name)(*y), name)
        found[f"operator {name}"] = functools.partial(_drawn, _compared(call, call), strategy)
    found["operator __getitem__"] = functools.partial(
        _drawn, _compared(lambda x, i: x[i], lambda x, i: x[i]), indexed()
    )
    for name, (check, strategy) in PROPERTIES.items():
        own = functools.partial(lambda check, a, k: check(*_convert(a), **_convert(k)), check)
        found[name] = functools.partial(_drawn, own, strategy)
    for prefix, module in (("", strict), ("linalg.", strict.linalg), ("fft.", strict.fft)):
        for name in module.__all__:
            if inspect.isfunction(function := getattr(module, name)) and "flags" not in name:
                full = prefix + name
                found[f"signature of {full}"] = lambda full=full, f=function: _signature(f, _attribute(xp, full))
    return found


def run(out, *prefixes):
    """Write name of a case -> "", or the reason of its failure."""
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    results = {}
    for name, check in cases().items():
        if not prefixes or name.startswith(prefixes):
            try:
                check()
                results[name] = ""
            except Exception as error:
                results[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    Path(out).write_text(json.dumps(results, indent=1), encoding="utf-8")


def compare(theirs, ours):
    first, second = (json.loads(Path(p).read_text(encoding="utf-8")) for p in (theirs, ours))
    worse = [name for name, why in second.items() if why and not first.get(name)]
    for name, why in second.items():
        if why:
            print(f"{'' if name in worse else 'both: '}{name}: {why}")
    passed = [sum(not why for why in found.values()) for found in (first, second)]
    print(f"{len(second)} cases; pass: {passed[0]} with upstream, {passed[1]} here")
    return int(bool(worse) or passed[1] < passed[0] or first.keys() != second.keys())


if __name__ == "__main__":
    sys.exit({"run": run, "compare": compare}[sys.argv[1]](*sys.argv[2:]))
