from bedrax.core.array import Array as _Array
from math import e as e, inf as inf, nan as nan, pi as pi
from numpy import (
    array_repr as array_repr, array_str as array_str, character as character,
    complexfloating as complexfloating, dtype as dtype, euler_gamma as euler_gamma, flexible as flexible,
    floating as floating, generic as generic, get_printoptions as get_printoptions, inexact as inexact,
    integer as integer, newaxis as newaxis, number as number, object_ as object_,
    printoptions as printoptions, save as save, savez as savez, set_printoptions as set_printoptions,
    signedinteger as signedinteger, unsignedinteger as unsignedinteger,
)  # fmt: skip
from numpy.exceptions import ComplexWarning as ComplexWarning
from . import fft as fft, linalg as linalg
from .scalars import (
    bfloat16 as bfloat16, bool as bool, bool_ as bool_, cdouble as cdouble, complex128 as complex128,
    complex64 as complex64, complex_ as complex_, csingle as csingle, double as double, float16 as float16,
    float32 as float32, float4_e2m1fn as float4_e2m1fn, float64 as float64, float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn, float8_e3m4 as float8_e3m4, float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz, float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu, float_ as float_, int1 as int1, int16 as int16, int2 as int2,
    int32 as int32, int4 as int4, int64 as int64, int8 as int8, int_ as int_, single as single,
    uint as uint, uint1 as uint1, uint16 as uint16, uint2 as uint2, uint32 as uint32, uint4 as uint4,
    uint64 as uint64, uint8 as uint8,
)  # fmt: skip
from .dtype_queries import (
    astype as astype, can_cast as can_cast, finfo as finfo, iinfo as iinfo, iscomplexobj as iscomplexobj,
    isdtype as isdtype, isrealobj as isrealobj, isscalar as isscalar, issubdtype as issubdtype,
    iterable as iterable, ndim as ndim, promote_types as promote_types, result_type as result_type,
    shape as shape, size as size,
)  # fmt: skip
from .creation import (
    array as array, asarray as asarray, copy as copy, empty as empty, empty_like as empty_like,
    from_dlpack as from_dlpack, frombuffer as frombuffer, fromfile as fromfile, fromiter as fromiter,
    fromstring as fromstring, full as full, full_like as full_like, load as load, ones as ones,
    ones_like as ones_like, zeros as zeros, zeros_like as zeros_like,
)  # fmt: skip
from .ranges import (
    arange as arange, c_ as c_, fromfunction as fromfunction, geomspace as geomspace,
    index_exp as index_exp, indices as indices, linspace as linspace, logspace as logspace,
    meshgrid as meshgrid, mgrid as mgrid, ogrid as ogrid, r_ as r_, s_ as s_,
)  # fmt: skip
from .diagonals import (
    diag as diag, diag_indices as diag_indices, diag_indices_from as diag_indices_from,
    diagflat as diagflat, diagonal as diagonal, eye as eye, fill_diagonal as fill_diagonal,
    identity as identity, mask_indices as mask_indices, tri as tri, tril as tril,
    tril_indices as tril_indices, tril_indices_from as tril_indices_from, triu as triu,
    triu_indices as triu_indices, triu_indices_from as triu_indices_from, vander as vander,
)  # fmt: skip
from .universal import frompyfunc as frompyfunc, ufunc as ufunc
from bedrax.lax.operators import (
    absolute as absolute, equal as equal, floor_divide as floor_divide, greater as greater,
    greater_equal as greater_equal, invert as invert, left_shift as left_shift, less as less,
    less_equal as less_equal, not_equal as not_equal, positive as positive, power as power,
    remainder as remainder, right_shift as right_shift, true_divide as true_divide, divmod_,
)  # fmt: skip
from .ufuncs import (
    add as add, angle as angle, arccos as arccos, arccosh as arccosh, arcsin as arcsin,
    arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh,
    bitwise_and as bitwise_and, bitwise_count as bitwise_count, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, cbrt as cbrt, ceil as ceil, conjugate as conjugate, copysign as copysign,
    cos as cos, cosh as cosh, deg2rad as deg2rad, exp as exp, exp2 as exp2, expm1 as expm1, fabs as fabs,
    float_power as float_power, floor as floor, fmax as fmax, fmin as fmin, fmod as fmod, frexp as frexp,
    gcd as gcd, heaviside as heaviside, hypot as hypot, imag as imag, lcm as lcm, ldexp as ldexp,
    log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_not as logical_not,
    logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    modf as modf, multiply as multiply, nan_to_num as nan_to_num, negative as negative,
    nextafter as nextafter, rad2deg as rad2deg, real as real, reciprocal as reciprocal, rint as rint,
    round as round, sign as sign, signbit as signbit, sin as sin, sinc as sinc, sinh as sinh,
    spacing as spacing, sqrt as sqrt, square as square, subtract as subtract, tan as tan, tanh as tanh,
    trunc as trunc,
)  # fmt: skip
from .number_queries import (
    iscomplex as iscomplex, isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf,
    isposinf as isposinf, isreal as isreal,
)  # fmt: skip
from .selection import (
    choose as choose, clip as clip, piecewise as piecewise, select as select,
)  # fmt: skip
from .comparison import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, isclose as isclose,
)  # fmt: skip
from .reductions import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin,
    count_nonzero as count_nonzero, max as max, mean as mean, min as min, minmax as minmax, prod as prod, ptp as ptp,
    std as std, sum as sum, var as var,
)  # fmt: skip
from .cumulative import (
    cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
)  # fmt: skip
from .manipulation import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to, expand_dims as expand_dims, flip as flip, fliplr as fliplr,
    flipud as flipud, matrix_transpose as matrix_transpose, moveaxis as moveaxis,
    permute_dims as permute_dims, ravel as ravel, repeat as repeat, reshape as reshape, resize as resize,
    roll as roll, rollaxis as rollaxis, rot90 as rot90, squeeze as squeeze, swapaxes as swapaxes,
    tile as tile, transpose as transpose,
)  # fmt: skip
from .joining import (
    append as append, array_split as array_split, block as block, column_stack as column_stack,
    concat as concat, concatenate as concatenate, delete as delete, dsplit as dsplit, dstack as dstack,
    hsplit as hsplit, hstack as hstack, insert as insert, split as split, stack as stack,
    trim_zeros as trim_zeros, unstack as unstack, vsplit as vsplit, vstack as vstack,
)  # fmt: skip
from .padding import pad as pad
from .searching import (
    argwhere as argwhere, compress as compress, extract as extract, flatnonzero as flatnonzero, ix_ as ix_, where as where,
    nonzero as nonzero, place as place, put as put, put_along_axis as put_along_axis,
    ravel_multi_index as ravel_multi_index, take as take, take_along_axis as take_along_axis,
    unravel_index as unravel_index,
)  # fmt: skip
from .functional import (
    apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, vectorize as vectorize,
)  # fmt: skip
from .products import (
    cross as cross, dot as dot, inner as inner, kron as kron, matmul as matmul, matvec as matvec,
    outer as outer, tensordot as tensordot, trace as trace, vdot as vdot, vecdot as vecdot,
    vecmat as vecmat,
)  # fmt: skip
from .einstein import einsum as einsum, einsum_path as einsum_path
from .calculus import (
    convolve as convolve, correlate as correlate, diff as diff, ediff1d as ediff1d, gradient as gradient,
    interp as interp, trapezoid as trapezoid, unwrap as unwrap,
)  # fmt: skip
from .setops import (
    intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d,
    union1d as union1d, unique as unique, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)  # fmt: skip
from .sorting import (
    argpartition as argpartition, argsort as argsort, lexsort as lexsort, partition as partition,
    searchsorted as searchsorted, sort as sort, sort_complex as sort_complex,
    top_k as top_k,
)  # fmt: skip
from .statistics import (
    average as average, bincount as bincount, corrcoef as corrcoef, cov as cov, digitize as digitize,
    histogram as histogram, histogram2d as histogram2d, histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd, median as median, nanmedian as nanmedian, nanpercentile as nanpercentile,
    nanquantile as nanquantile, percentile as percentile, quantile as quantile,
)  # fmt: skip
from .nan_reductions import (
    nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum,
    nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanprod as nanprod, nanstd as nanstd,
    nansum as nansum, nanvar as nanvar,
)  # fmt: skip
from .polynomial import (
    poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit,
    polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval, roots as roots,
)  # fmt: skip
from .packing import packbits as packbits, unpackbits as unpackbits
from .windows import (
    bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, i0 as i0,
    kaiser as kaiser,
)  # fmt: skip
from .array_api import namespace_info as _namespace_info, version as _version

ndarray = _Array
__array_namespace_info__ = _namespace_info
__array_api_version__ = _version
abs = absolute
divmod = divmod_
bitwise_invert = invert
bitwise_not = invert
bitwise_left_shift = left_shift
pow = power
mod = remainder
bitwise_right_shift = right_shift
divide = true_divide
acos = arccos
acosh = arccosh
around = round
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
conj = conjugate
degrees = rad2deg
radians = deg2rad
