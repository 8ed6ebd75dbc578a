"""`bedrax.numpy`: the NumPy API for traceable, differentiable, batchable arrays.

Importing it gives all arrays their NumPy methods. Functions are found in their modules on first use.
"""

from __future__ import annotations

import importlib as _importlib
import math as _math

import numpy as _np
from bedrax.core.array import Array as ndarray  # noqa: F401
from bedrax.core.dtypes import float0 as _float0  # noqa: F401
from bedrax.numpy import methods as _methods
from bedrax.numpy.ufunc import ufunc  # noqa: F401  (now: importing the module of this name later would hide it)

_methods.install()

# module -> the public names in it
_HOMES: dict[str, str] = {
    "scalars": (
        "bfloat16 bool bool_ cdouble complex128 complex64 complex_ csingle double float16 float32 float4_e2m1fn"
        " float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn"
        " float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ int1 int16 int2 int32 int4 int64 int8"
        " int_ single uint uint1 uint16 uint2 uint32 uint4 uint64 uint8"
    ),
    "kinds": (
        "astype can_cast finfo iinfo iscomplexobj isdtype isrealobj isscalar issubdtype iterable ndim promote_types"
        " result_type shape size"
    ),
    "creation": (
        "array asarray copy empty empty_like from_dlpack frombuffer fromfile fromiter fromstring full full_like load"
        " ones ones_like zeros zeros_like"
    ),
    "ranges": (
        "arange c_ fromfunction geomspace index_exp indices linspace logspace meshgrid mgrid ogrid r_ s_"
    ),
    "diagonals": (
        "diag diag_indices diag_indices_from diagflat diagonal eye fill_diagonal identity mask_indices tri tril"
        " tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "ufunc": "frompyfunc ufunc",
    "ufuncs": (
        "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around asin asinh atan"
        " atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or"
        " bitwise_right_shift bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod"
        " equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd greater greater_equal"
        " heaviside hypot imag invert iscomplex isfinite isinf isnan isneginf isposinf isreal lcm ldexp left_shift less"
        " less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum"
        " minimum mod modf multiply nan_to_num negative nextafter not_equal positive pow power rad2deg radians real"
        " reciprocal remainder right_shift rint round sign signbit sin sinc sinh spacing sqrt square subtract tan tanh"
        " true_divide trunc"
    ),
    "selection": "choose clip piecewise select where",
    "comparison": "allclose array_equal array_equiv isclose",
    "reductions": "all amax amin any argmax argmin count_nonzero max mean min prod ptp std sum var",
    "cumulative": "cumprod cumsum cumulative_prod cumulative_sum",
    "manipulation": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr flipud"
        " matrix_transpose moveaxis permute_dims ravel repeat reshape resize roll rollaxis rot90 squeeze swapaxes tile"
        " transpose"
    ),
    "joining": (
        "append array_split block column_stack concat concatenate delete dsplit dstack hsplit hstack insert split"
        " stack trim_zeros unstack vsplit vstack"
    ),
    "padding": "pad",
    "searching": (
        "argwhere compress extract flatnonzero ix_ nonzero place put put_along_axis ravel_multi_index take"
        " take_along_axis unravel_index"
    ),
    "functional": "apply_along_axis apply_over_axes vectorize",
    "products": "cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat",
    "einstein": "einsum einsum_path",
    "calculus": "convolve correlate diff ediff1d gradient interp trapezoid unwrap",
    "setops": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "sorting": "argpartition argsort lexsort partition searchsorted sort sort_complex",
    "statistics": (
        "average bincount corrcoef cov digitize histogram histogram2d histogram_bin_edges histogramdd median nanmedian"
        " nanpercentile nanquantile percentile quantile"
    ),
    "nan_reductions": (
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"
    ),
    "polynomial": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "packing": "packbits unpackbits",
    "windows": "bartlett blackman hamming hanning i0 kaiser",
}  # fmt: skip
_MODULES = ("linalg", "fft")
_FROM_NUMPY = (
    "array_repr array_str character complexfloating dtype flexible floating generic get_printoptions inexact integer"
    " number object_ printoptions save savez set_printoptions signedinteger unsignedinteger"
).split()

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

pi, e, euler_gamma, inf, nan = _math.pi, _math.e, _np.euler_gamma, _math.inf, _math.nan
newaxis = None
ComplexWarning = _np.exceptions.ComplexWarning
for _name in _FROM_NUMPY:
    globals()[_name] = getattr(_np, _name)

__array_api_version__ = "2024.12"

__all__ = sorted(
    [
        *_HOME_OF, *_FROM_NUMPY, *_MODULES, "ComplexWarning", "e", "euler_gamma", "inf", "nan", "ndarray", "newaxis", "pi",
    ]
)  # fmt: skip


def __getattr__(name: str):
    module = _HOME_OF.get(name)
    if module is not None:
        value = getattr(_importlib.import_module(f"bedrax.numpy.{module}"), name)
    elif name in _MODULES:
        value = _importlib.import_module(f"bedrax.numpy.{name}")
    elif name == "__array_namespace_info__":
        value = _importlib.import_module("bedrax.numpy.array_api").namespace_info
    else:
        raise AttributeError(f"module 'bedrax.numpy' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return __all__
