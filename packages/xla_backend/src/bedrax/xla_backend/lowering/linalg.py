"""StableHLO of linear algebra: calls of the kernels that jaxlib registers with XLA, as a table.

CPU: LAPACK (``lapack_*_ffi``). GPU: cuSOLVER, hipSOLVER, cuSPARSE and MAGMA or LAPACK on the host (``*hybrid_*``), by
the names of jaxlib's plugins. TPU: StableHLO's own operations and the custom calls of its compiler. A primitive without
a row is composed (`bedrax.lax.decompositions.linalg`). The GPU and TPU forms are compiled
(`nox -s accelerators`), and have not been run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray
from bedrax.lax import matrices
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives import linalg as p
from bedrax.lax.tables import decompositions
from bedrax.xla_backend.tables import lowering_rules, platform_rule

_PREFIX = {np.dtype(t): c for t, c in zip((np.float32, np.float64, np.complex64, np.complex128), "sdcz")}
# LAPACK's names for the complex counterparts of real routines.
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
_VENDOR = {"cuda": "cu", "rocm": "hip"}
_INT = np.dtype(np.int32)


_NAMES_SIZES = {p.hessenberg_p}  # the configurations of their kernels hold sizes, so the sizes must be static


class Kernel(NamedTuple):
    """A kernel that computes a primitive on a platform.

    Attributes:
      target: the name: ``"lapack routine"``, or a name in which ``{v}`` is the GPU's vendor
        and ``{t}`` the type of the elements.
      config: the attributes, or ``(ctx, **params) -> attributes``.
      results: ``ctx -> [(shape, dtype)]``; default: the results of the primitive.
      aliases: operands whose memory results may use.
      fails: how the kernel's last result, an integer per matrix, marks a failure, which makes the results NaN: it is
        not 0 (``"EQ"`` is the test of success), or it is negative (``"GE"``). Empty: the kernel has no such result.
      rank: number of axes of the first operand that are not batch axes.
      finish: ``(ctx, results, **params) -> results`` of the primitive.
    """

    target: str
    config: dict[Any, Any] | Callable[..., dict[Any, Any]] | None = None
    results: Callable[[Any], list[Any]] | None = None
    aliases: dict[Any, Any] | None = None
    fails: str = ""
    rank: int = 2
    finish: Callable[..., list[Any]] | None = None


kernels: dict[tuple[Any, str], Kernel] = {}


def _row(prim, platforms: str, target: str, config=None, **options) -> None:
    """Add a row of the table and the rule that reads it. Blanks separate the `platforms`."""
    kernel = Kernel(target, config, **options)

    def rule(ctx, *operands, **params):
        if _empty(ctx):
            return _of_empty_operands(ctx, operands, params)
        if prim in _NAMES_SIZES and not ctx.is_static(ctx.avals_in[0].shape):
            return ctx.lower_fun(decompositions[prim], *operands, **params)
        out = _run(ctx, kernel, operands, params)
        return out if prim.multiple_results else out[0]

    for platform in platforms.split():
        kernels[prim, platform] = kernel
        platform_rule(prim, platform)(rule)


def _empty(ctx) -> bool:
    """Whether an operand has no elements. Kernels do not support that."""
    return any(ctx.is_static(a.shape) and 0 in a.shape for a in ctx.avals_in)


def _of_empty_operands(ctx, operands, params):
    """Results for empty operands: composed, or empty."""
    decomposition = decompositions.find(ctx.prim)
    if decomposition is not None:
        return ctx.lower_fun(decomposition, *operands, **params)
    out = [ctx.full(a.shape, 0, a.dtype) for a in ctx.avals_out]
    return out if ctx.prim.multiple_results else out[0]


def _target(ctx, target: str) -> str:
    dtype = ctx.avals_in[0].dtype
    if dtype not in _PREFIX and dtype != _INT:
        raise NotImplementedError(
            f"{ctx.prim} is implemented for float32, float64, complex64 and complex128 on {ctx.platform}, got {dtype}; "
            "convert the operands"
        )
    if not target.startswith("lapack "):
        return target.format(v=_VENDOR.get(ctx.platform), t="comp" if dtype.kind == "c" else "real")
    routine = target.removeprefix("lapack ")
    return f"lapack_{_PREFIX[dtype]}{_COMPLEX.get(routine, routine) if dtype.kind == 'c' else routine}_ffi"


def _run(ctx, kernel: Kernel, operands, params: dict, row_major: bool = False) -> list:
    batch = ctx.avals_in[0].shape[: -kernel.rank]
    config = kernel.config(ctx, **params) if callable(kernel.config) else kernel.config
    results = kernel.results(ctx) if kernel.results else [(a.shape, a.dtype) for a in ctx.avals_out]
    results = [*results, (batch, _INT)] if kernel.fails else results
    out = _call(
        ctx,
        _target(ctx, kernel.target),
        operands,
        results,
        config,
        aliases=kernel.aliases,
        batch=len(batch),
        row_major=row_major,
    )
    if kernel.fails:
        *out, info = out
        floats = [i for i, v in enumerate(out) if dtypes.is_inexact(ctx.dtype(v))]
        for i, v in zip(floats, _nan_where_failed(ctx, info, [out[i] for i in floats], kernel.fails)):
            out[i] = v
    return kernel.finish(ctx, out, **params) if kernel.finish else out


def _letter(c: str) -> np.uint8:
    return np.uint8(ord(c))


_FACTORS = "ijklmnopqrstuvwxyz"


def _sharding_rule(batch: int, shapes_in: list, shapes_out: list) -> str | None:
    """The sharding rule for the partitioner: batch axes may be split, and no others."""
    sizes: list[int] = []
    for shapes in (shapes_in, shapes_out):
        for shape in shapes:
            sizes.extend(shape[batch:])
    if len(sizes) + batch > len(_FACTORS):
        return None
    names = iter(_FACTORS[batch:])
    shared = list(_FACTORS[:batch])
    mappings = [
        ", ".join("[" + ", ".join(shared + [next(names) for _ in shape[batch:]]) + "]" for shape in shapes)
        for shapes in (shapes_in, shapes_out)
    ]
    lead = list(shapes_in[0][:batch])
    table = ", ".join(f"{name}={size}" for name, size in zip(_FACTORS, lead + sizes))
    return f"#sdy.op_sharding_rule<({mappings[0]})->({mappings[1]}) {{{table}}}, custom>"


def _call(
    ctx, target: str, operands, results, config=None, *, aliases=None, batch: int, row_major: bool = False
) -> list:
    """A call of a kernel for column-major matrices behind `batch` axes; `results`: (shape, dtype) each."""
    shapes_in = [ctx.shape(v) for v in operands]
    shapes_out = [tuple(s) for s, _ in results]
    static = all(map(ctx.is_static, shapes_in + shapes_out))

    def layout(shape):
        rank = len(shape)
        order = list(range(rank - 1, -1, -1))
        if rank - batch == 2 and not row_major:
            order[:2] = order[1::-1]
        return tuple(order)

    attributes = {"mhlo.frontend_attributes": {"num_batch_dims": str(batch)}}
    rule = _sharding_rule(batch, shapes_in, shapes_out) if static else None
    if rule is not None:
        attributes["sdy.sharding_rule"] = ctx.parse(rule)
    outs = ctx.custom_call(
        target,
        operands,
        [ctx.tensor_type(s, np.dtype(d)) for s, d in results],
        config or {},
        operand_layouts=[layout(s) for s in shapes_in],
        result_layouts=[layout(s) for s in shapes_out],
        operand_output_aliases=aliases,
        extra_attributes=attributes,
        result_shapes=shapes_out,
    )
    if not static:
        ctx.program.shapes.update(zip(outs, shapes_out, strict=True))
    return outs


def _nan_where_failed(ctx, info, values, test: str = "EQ") -> list:
    """`values`, with NaN for the matrices whose `info` is not 0 (or, with ``GE``, is negative)."""
    good = ctx.compare(info, ctx.full(ctx.shape(info), 0, _INT), test)
    batch = len(ctx.shape(info))
    out = []
    for v in values:
        shape, dtype = ctx.shape(v), ctx.dtype(v)
        nan = ctx.full(shape, dtype.type(complex(np.nan, np.nan) if dtype.kind == "c" else np.nan), dtype)
        chosen = ctx.select(ctx.broadcast_in_dim(good, shape, tuple(range(batch))), v, nan)
        if not ctx.is_static(shape):
            ctx.program.shapes[chosen] = shape
        out.append(chosen)
    return out


# ---- the table ---------------------------------------------------------------------------------------------

_IN_PLACE = {0: 0}


def _all(ctx, **params):
    return params


def _triangle_read(ctx, *, lower, **_):
    return {"uplo": _letter("L" if lower else "U")}


def _aval(ctx, v):
    return ShapedArray(ctx.shape(v), ctx.dtype(v))


def _lower_triangle(ctx, out):
    return [ctx.lower_fun(matrices.triangle, out[0], avals=ctx.avals_out[:1], lower=True)]


_CHOLESKY = dict(aliases=_IN_PLACE, fails="EQ", finish=_lower_triangle)
_row(p.cholesky_p, "cpu", "lapack potrf", {"uplo": _letter("L")}, **_CHOLESKY)
_row(p.cholesky_p, "gpu", "{v}solver_potrf_ffi", {"lower": True}, **_CHOLESKY)


@lowering_rules.rule(p.cholesky_p)
def _cholesky(ctx, x):
    return _lower_triangle(ctx, [ctx.emit("stablehlo.cholesky", [x], lower=True)])[0]


def _with_permutation(ctx, out):
    lu, pivots = out
    pivots = ctx.binary("stablehlo.subtract", pivots, ctx.full(ctx.shape(pivots), 1, _INT))
    rows = ctx.avals_in[0].shape[-2]
    avals = [ctx.avals_out[1]]
    return [lu, pivots, ctx.lower_fun(p.lu_pivots_to_permutation, pivots, avals=avals, permutation_size=rows)]


_LU = dict(
    results=lambda ctx: [(a.shape, a.dtype) for a in ctx.avals_out[:2]],
    aliases=_IN_PLACE,
    fails="GE",
    finish=_with_permutation,
)
_row(p.lu_p, "cpu", "lapack getrf", **_LU)
_row(p.lu_p, "gpu", "{v}solver_getrf_ffi", **_LU)
_row(p.lu_pivots_to_permutation_p, "gpu", "{v}_lu_pivots_to_permutation", rank=1)

_row(p.geqrf_p, "cpu", "lapack geqrf", aliases=_IN_PLACE)
_row(p.geqrf_p, "gpu", "{v}solver_geqrf_ffi", aliases=_IN_PLACE)
_row(p.geqp3_p, "cpu", "lapack geqp3", aliases={0: 0, 1: 1})
_row(p.geqp3_p, "gpu", "{v}hybrid_geqp3", {"magma": "auto"}, aliases={0: 0, 1: 1})
_row(p.householder_product_p, "cpu", "lapack orgqr", aliases=_IN_PLACE)
_row(p.householder_product_p, "gpu", "{v}solver_orgqr_ffi", aliases=_IN_PLACE)
_row(p.ormqr_p, "cpu", "lapack ormqr", _all, aliases={0: 2})
_row(p.ormqr_p, "gpu", "{v}solver_ormqr_ffi", _all, aliases={0: 2})


_row(
    p.hessenberg_p,
    "cpu",
    "lapack gehrd",
    lambda ctx: {"low": np.int32(1), "high": np.int32(ctx.avals_in[0].shape[-1])},
    aliases=_IN_PLACE,
    fails="EQ",
)
_row(p.tridiagonal_p, "cpu", "lapack sytrd", _triangle_read, aliases=_IN_PLACE, fails="EQ")
_row(p.tridiagonal_p, "gpu", "{v}solver_sytrd_ffi", _all, aliases=_IN_PLACE, fails="EQ")


def _tpu(prim, target: str, api_version: int = 1, only: str = "fdFD") -> None:
    """A row for a call of the TPU's compiler, for elements of these types. Its configuration is empty."""

    def rule(ctx, *operands, **params):
        if ctx.avals_in[0].dtype.char not in only:
            return ctx.lower_fun(decompositions[prim], *operands, **params)
        out = ctx.custom_call(target, operands, ctx.avals_out, "", api_version=api_version)
        return out if prim.multiple_results else out[0]

    kernels[prim, "tpu"] = Kernel(target)
    platform_rule(prim, "tpu")(rule)


_tpu(p.lu_p, "LuDecomposition", api_version=2, only="fF")
_tpu(p.geqrf_p, "Qr")
_tpu(p.householder_product_p, "ProductOfElementaryHouseholderReflectors")


# ---- eigenvalues -------------------------------------------------------------------------------------------

_EIGH_ALGORITHMS = {None: 0, p.EighImplementation.QR: 1, p.EighImplementation.JACOBI: 2}


def _refused(ctx, algorithm) -> NotImplementedError:
    return NotImplementedError(f"{ctx.prim}: {algorithm} is not available on {ctx.platform}")


def _range(ctx, v, subset, axis: int = -1):
    """The range `subset` of an axis."""
    if subset is None:
        return v
    shape = ctx.shape(v)
    start, end = [0] * len(shape), list(shape)
    start[axis], end[axis] = subset
    return ctx.slice(v, tuple(start), tuple(end))


def _real_values(ctx) -> tuple:
    """The type of an array of real eigenvalues or parts of them."""
    aval = ctx.avals_in[0]
    return aval.shape[:-1], dtypes.to_real_dtype(aval.dtype)


def _symmetric_config(ctx, *, lower, algorithm, **_):
    if ctx.platform == "cpu":
        if algorithm not in (None, p.EighImplementation.QR):
            raise _refused(ctx, algorithm)
        return {"mode": _letter("V"), "uplo": _letter("L" if lower else "U")}
    if algorithm not in _EIGH_ALGORITHMS:
        raise _refused(ctx, algorithm)
    return {"algorithm": np.uint8(_EIGH_ALGORITHMS[algorithm]), "lower": lower}


_EIGH = dict(
    config=_symmetric_config,
    aliases=_IN_PLACE,
    fails="EQ",
    results=lambda ctx: [(ctx.avals_in[0].shape, ctx.avals_in[0].dtype), _real_values(ctx)],
    finish=lambda ctx, out, *, subset_by_index, **_: [_range(ctx, v, subset_by_index) for v in out],
)
_row(p.eigh_p, "cpu", "lapack syevd", **_EIGH)
_row(p.eigh_p, "gpu", "{v}solver_syevd_ffi", **_EIGH)


@platform_rule(p.eigh_p, "tpu")
def _eigh_tpu(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    """The Jacobi iteration of the compiler, with its default limits of steps and accuracy."""
    if algorithm not in (None, p.EighImplementation.JACOBI):
        raise _refused(ctx, algorithm)
    types = [ctx.avals_in[0], ShapedArray(*_real_values(ctx))]
    config = f"{int(lower)},{int(sort_eigenvalues)},100,1e-6"
    out = ctx.custom_call("Eigh", [x], types, config, api_version=1)
    return [_range(ctx, v, subset_by_index) for v in out]


_MAGMA = {None: "auto", p.EigImplementation.MAGMA: "on", p.EigImplementation.LAPACK: "off"}


def _general_config(ctx, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation=None, **_):
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    if ctx.platform == "cpu":
        if implementation not in (None, p.EigImplementation.LAPACK):
            raise _refused(ctx, implementation)
        return dict(zip(("compute_left", "compute_right"), (_letter("V" if w else "N") for w in wanted)))
    if implementation not in _MAGMA:
        raise NotImplementedError("eig: cuSOLVER's geev is not connected; use LAPACK or MAGMA")
    return {"left": wanted[0], "magma": _MAGMA[implementation], "right": wanted[1]}


def _eig_results(ctx):
    aval = ctx.avals_in[0]
    parts = [(aval.shape[:-1], aval.dtype)] * (1 if aval.dtype.kind == "c" else 2)
    return [*parts, *[(aval.shape, dtypes.to_complex_dtype(aval.dtype))] * 2]


def _eig_finish(ctx, out, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    *parts, left, right = out
    w = parts[0] if len(parts) == 1 else ctx.emit("stablehlo.complex", parts, ctx.type_of(ctx.avals_out[0]))
    return [w, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]


_EIG = dict(config=_general_config, results=_eig_results, fails="EQ", finish=_eig_finish)
_row(p.eig_p, "cpu", "lapack geev", **_EIG)
_row(p.eig_p, "gpu", "{v}hybrid_eig_{t}", **_EIG)


def _schur_config(ctx, *, compute_schur_vectors, **_):
    return {"mode": _letter("V" if compute_schur_vectors else "N"), "sort": _letter("N")}


def _schur_results(ctx):
    matrix, *parts = [(ctx.avals_in[0].shape, ctx.avals_in[0].dtype), *_eig_results(ctx)[:-2]]
    return [matrix, matrix, *parts, (matrix[0][:-2], _INT)]


_row(
    p.schur_p,
    "cpu",
    "lapack gees",
    _schur_config,
    results=_schur_results,
    aliases=_IN_PLACE,
    fails="EQ",
    finish=lambda ctx, out, *, compute_schur_vectors, **_: out[: 1 + compute_schur_vectors],
)


# ---- singular values ---------------------------------------------------------------------------------------

_SVD = p.SvdAlgorithm
_SVD_ROUTINES = {
    "cpu": {None: "gesdd", _SVD.DEFAULT: "gesdd", _SVD.DIVIDE_AND_CONQUER: "gesdd", _SVD.QR: "gesvd"},
    "cuda": {_SVD.JACOBI: "gesvdj", _SVD.QR: "gesvd", _SVD.POLAR: "gesvdp"},
    "rocm": {_SVD.JACOBI: "gesvdj", _SVD.QR: "gesvd"},
}


@platform_rule(p.svd_p, "cpu", "gpu")
def _svd(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    if _empty(ctx):
        return _of_empty_operands(
            ctx,
            [x],
            dict(full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=None),
        )
    m, n = ctx.avals_in[0].shape[-2:]
    if ctx.platform != "cpu" and algorithm in (None, _SVD.DEFAULT):
        algorithm = _SVD.JACOBI if max(m, n) <= 1024 else _SVD.QR
    routine = _SVD_ROUTINES[ctx.platform].get(algorithm)
    if routine is None:
        raise _refused(ctx, algorithm)
    kernel = _svd_on_cpu if ctx.platform == "cpu" else _svd_on_gpu
    s, u, vh = kernel(ctx, x, routine, full_matrices, compute_uv)
    s = _range(ctx, s, subset_by_index)
    return [s, _range(ctx, u, subset_by_index), _range(ctx, vh, subset_by_index, -2)] if compute_uv else [s]


def _svd_on_cpu(ctx, x, routine: str, full_matrices, compute_uv):
    kernel = Kernel(
        f"lapack {routine}",
        {"mode": _letter("N" if not compute_uv else "A" if full_matrices else "S")},
        results=lambda ctx: _svd_results(ctx, full_matrices, "s u vh"),
        aliases=_IN_PLACE,
        fails="EQ",
    )
    x, bad = ctx.lower_fun(matrices.finite_or_zero, x, avals=ctx.avals_in)
    return _nan_where_failed(ctx, bad, _run(ctx, kernel, [x], {})[1:])


def _svd_results(ctx, full: bool, order: str) -> list:
    """Types of the results of kernels: the destroyed operand first, then those of `order`."""
    aval = ctx.avals_in[0]
    *batch, m, n = aval.shape
    k = dims.min_dim(m, n)
    rows, columns = (m, n) if full else (k, k)
    found = {
        "s": ((*batch, k), _real_values(ctx)[1]),
        "u": ((*batch, m, rows), aval.dtype),
        "vh": ((*batch, columns, n), aval.dtype),
        "v": ((*batch, n, columns), aval.dtype),
    }
    return [(aval.shape, aval.dtype), *[found[name] for name in order.split()]]


def _svd_on_gpu(ctx, x, routine: str, full_matrices, compute_uv):
    """gesvd: LAPACK's QR iteration, for at least as many rows as columns; gesvdj: Jacobi; gesvdp: polar decomposition.
    gesvdj and gesvdp return V, not V^H; gesvdj returns all of V."""
    m, n = ctx.avals_in[0].shape[-2:]
    k, flip = min(m, n), routine == "gesvd" and m < n
    full = full_matrices or routine == "gesvdj"
    config = {"compute_uv": compute_uv, "full_matrices": full}
    if routine == "gesvd":
        config["transposed"] = flip  # a row-major matrix is the column-major transpose: its U is our V^H
    order = "s vh u" if flip else "s u vh" if routine == "gesvd" else "s u v"
    results = lambda ctx: _svd_results(ctx, full, order)
    kernel = Kernel(f"{{v}}solver_{routine}_ffi", config, results, _IN_PLACE, "EQ")
    _, s, u, vh = _run(ctx, kernel, [x], {}, row_major=flip)
    if flip:
        u, vh = vh, u
    if routine != "gesvd":
        vh = ctx.lower_fun(matrices.adjoint, vh, avals=[_aval(ctx, vh)])
    if full and not full_matrices:
        u, vh = _range(ctx, u, (0, k)), _range(ctx, vh, (0, k), -2)
    return s, u, vh


# ---- systems of equations ----------------------------------------------------------------------------------


def _conjugated(ctx, a, conjugate_a: bool):
    return ctx.lower_fun(elementwise.conj, a, avals=ctx.avals_in[:1]) if conjugate_a else a


@lowering_rules.rule(p.triangular_solve_p)
def _triangular_solve(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    a = _conjugated(ctx, a, conjugate_a and not transpose_a)
    kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    return ctx.emit(
        "stablehlo.triangular_solve",
        [a, b],
        left_side=left_side,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=ctx.parse(f"#stablehlo<transpose {kind}>"),
    )


def _trsm_config(ctx, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    letters = {
        "side": "L" if left_side else "R",
        "uplo": "L" if lower else "U",
        "diag": "U" if unit_diagonal else "N",
        "trans_x": "N" if not transpose_a else "C" if conjugate_a else "T",
    }
    return {name: _letter(c) for name, c in letters.items()}


_TRSM = Kernel("lapack trsm", _trsm_config, aliases={0: 1})


def _triangular_solve_in_float32(rule, ctx, a, b, params):
    dtype, wide = ctx.avals_in[0].dtype, np.dtype(np.float32)
    avals = dict(avals_in=[v.update(dtype=wide) for v in ctx.avals_in], avals_out=[ctx.avals_out[0].update(dtype=wide)])
    x = rule(ctx.replace(**avals), ctx.convert(a, wide), ctx.convert(b, wide), **params)
    return ctx.convert(x, dtype)


@platform_rule(p.triangular_solve_p, "gpu")
def _triangular_solve_gpu(ctx, a, b, **params):
    if dtypes.itemsize_bits(ctx.avals_in[0].dtype) < 32:  # cuBLAS has no such floats
        return _triangular_solve_in_float32(_triangular_solve, ctx, a, b, params)
    return _triangular_solve(ctx, a, b, **params)


@platform_rule(p.triangular_solve_p, "cpu")
def _triangular_solve_cpu(ctx, a, b, **params):
    if _empty(ctx):
        return b
    dtype = ctx.avals_in[0].dtype
    if dtype in dtypes.narrow_float_dtypes:  # XLA would round every partial sum
        return _triangular_solve_in_float32(_triangular_solve_cpu, ctx, a, b, params)
    if dtype.itemsize == 2:  # LAPACK has no 16-bit floats; XLA expands the loop itself
        return _triangular_solve(ctx, a, b, **params)
    a = _conjugated(ctx, a, params["conjugate_a"] and not params["transpose_a"])
    return _run(ctx, _TRSM, [a, b], params)[0]


def _tridiagonal_results(ctx):
    diagonal, b = ctx.avals_in[1], ctx.avals_out[0]
    return [*[(diagonal.shape, b.dtype)] * 3, (b.shape, b.dtype)]


_GTSV = {
    "cpu": Kernel(
        "lapack gtsv", {}, _tridiagonal_results, {0: 0, 1: 1, 2: 2, 3: 3}, "EQ", 1, lambda ctx, out, **_: out[3:]
    ),
    "cuda": Kernel("cusparse_gtsv2_ffi", {}, aliases={0: 3}, rank=1),
}
_GTSV_PERTURBED = {
    "cpu": Kernel("tridiagonal_solve_perturbed_ffi", {}, rank=1),
    "cuda": Kernel("cu_tridiagonal_solve_perturbed", {}, rank=1),
}


@platform_rule(p.tridiagonal_solve_p, "cpu", "cuda")
def _tridiagonal_solve(ctx, *operands, perturb_singular):
    if _empty(ctx):
        return operands[3]
    return _run(ctx, (_GTSV_PERTURBED if perturb_singular else _GTSV)[ctx.platform], operands, {})[0]
