"""StableHLO of linear algebra: calls of the kernels that jaxlib registers with XLA.

CPU: LAPACK (``lapack_*_ffi``). GPU: cuSOLVER, hipSOLVER, cuSPARSE and MAGMA or LAPACK on the host (``*hybrid_*``), as
jaxlib's plugins name them. TPU: StableHLO's own operations and the custom calls that its compiler knows. Kernels that
fail say so in an integer per matrix, and their results become NaN. The GPU and TPU forms have not been run.
"""

from __future__ import annotations

import math

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray
from bedrax.lax.primitives import control_flow, elementwise, reductions, shaping
from bedrax.lax.primitives import linalg as p
from bedrax.xla_backend.tables import lower_fun, lowering_rules, platform_rule

_PREFIX = {
    np.dtype(t): c
    for t, c in ((np.float32, "s"), (np.float64, "d"), (np.complex64, "c"), (np.complex128, "z"))
}
# LAPACK's names for the complex counterparts of real routines.
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
_VENDOR = {"cuda": "cu", "rocm": "hip"}
_INT = np.dtype(np.int32)


def _letter(c: str) -> np.uint8:
    return np.uint8(ord(c))


def _check_dtype(ctx) -> np.dtype:
    dtype = ctx.avals_in[0].dtype
    if dtype not in _PREFIX:
        raise NotImplementedError(
            f"{ctx.prim} is implemented for float32, float64, complex64 and complex128 on {ctx.platform}, got {dtype}; "
            "convert the operands"
        )
    return dtype


def _lapack(ctx, routine: str) -> str:
    """The name of a LAPACK kernel for the operands' dtype."""
    dtype = _check_dtype(ctx)
    return f"lapack_{_PREFIX[dtype]}{_COMPLEX.get(routine, routine) if dtype.kind == 'c' else routine}_ffi"


def _solver(ctx, routine: str) -> str:
    """The name of a kernel of the GPU's solver library."""
    _check_dtype(ctx)
    return f"{_VENDOR[ctx.platform]}solver_{routine}_ffi"


def _batch(ctx) -> tuple:
    return ctx.avals_in[0].shape[:-2]


def _real(dtype) -> np.dtype:
    return dtypes.to_real_dtype(dtype)


_FACTORS = "ijklmnopqrstuvwxyz"


def _sharding_rule(batch: int, shapes_in: list, shapes_out: list) -> str | None:
    """Tells the partitioner that batch axes may be split, and no others."""
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
    """A call of a kernel that works on column-major matrices behind `batch` axes; `results`: (shape, dtype) each."""
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
        target, operands, [ctx.tensor_type(s, np.dtype(d)) for s, d in results], config or {},
        operand_layouts=[layout(s) for s in shapes_in], result_layouts=[layout(s) for s in shapes_out],
        operand_output_aliases=aliases, extra_attributes=attributes, result_shapes=shapes_out)  # fmt: skip
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
        nan = ctx.full(
            shape, np.array(complex(np.nan, np.nan) if dtype.kind == "c" else np.nan, dtype), dtype
        )
        chosen = ctx.select(ctx.broadcast_in_dim(good, shape, tuple(range(batch))), v, nan)
        if not ctx.is_static(shape):
            ctx.program.shapes[chosen] = shape
        out.append(chosen)
    return out


def _empty(ctx) -> bool:
    """Whether the first operand has no elements: kernels do not expect that."""
    shape = ctx.avals_in[0].shape
    return ctx.is_static(shape) and 0 in shape


def _identities(ctx) -> list:
    """Results of a factorization of nothing: identity matrices, and zeros."""
    out = []
    for aval in ctx.avals_out:
        if aval.ndim >= 2 and aval.dtype in _PREFIX:
            eye = ctx.constant(np.eye(*aval.shape[-2:], dtype=aval.dtype))
            out.append(ctx.broadcast_in_dim(eye, aval.shape, (aval.ndim - 2, aval.ndim - 1)))
        elif aval.dtype == _INT and aval.ndim:
            positions = ctx.constant(np.arange(aval.shape[-1], dtype=_INT))
            out.append(ctx.broadcast_in_dim(positions, aval.shape, (aval.ndim - 1,)))
        else:
            out.append(ctx.full(aval.shape, 0, aval.dtype))
    return out


def _kernel_rule(prim, *platforms):
    """Registers a rule for platforms with kernels, which do not see empty matrices."""

    def register(rule):
        def lowered(ctx, *operands, **params):
            if _empty(ctx):
                out = _identities(ctx)
                return out if prim.multiple_results else out[0]
            return rule(ctx, *operands, **params)

        for platform in platforms:
            platform_rule(prim, platform)(lowered)
        return rule

    return register


def _lower_triangle(ctx, x):
    return ctx.lower_fun(p.triangle, x, avals=[_aval(ctx, x)], lower=True)


def _aval(ctx, v):
    return ShapedArray(ctx.shape(v), ctx.dtype(v))


# ---- Cholesky ----------------------------------------------------------------------------------------------


@lowering_rules.rule(p.cholesky_p)
def _cholesky(ctx, x):
    out = ctx.emit("stablehlo.cholesky", [x], lower=True)
    return _lower_triangle(ctx, out)


@_kernel_rule(p.cholesky_p, "cpu", "gpu")
def _cholesky_kernel(ctx, x):
    batch, aval = _batch(ctx), ctx.avals_in[0]
    if ctx.platform == "cpu":
        name, config = _lapack(ctx, "potrf"), {"uplo": _letter("L")}
    else:
        name, config = _solver(ctx, "potrf"), {"lower": True}
    out, info = _call(
        ctx, name, [x], [(aval.shape, aval.dtype), (batch, _INT)], config, aliases={0: 0}, batch=len(batch)
    )
    return _lower_triangle(ctx, _nan_where_failed(ctx, info, [out])[0])


def _cholesky_update(r, w):
    """A rotation for each row of R; the rest of w is carried along (Golub and Van Loan, 6.5.4)."""
    rank = len(r.shape)
    rows = shaping.transpose(p.triangle(r, lower=False), (rank - 2, *range(rank - 2), rank - 1))
    index = shaping.broadcasted_iota(np.int32, w.shape, rank - 2)
    zeros = shaping.zeros_like(w)

    def rotate(carry, row):
        k, w = carry
        here = elementwise.eq(index, shaping.broadcast(k, w.shape))
        pick = lambda x: reductions.reduce_sum(elementwise.select(here, x, zeros), axes=(rank - 2,))
        x, y = pick(row), pick(w)
        size = elementwise.max(elementwise.abs(x), elementwise.abs(y))
        some = elementwise.gt(size, shaping.zeros_like(size))
        one = shaping.full_like(size, 1)
        safe = elementwise.select(some, size, one)
        xs, ys = elementwise.div(x, safe), elementwise.div(y, safe)
        length = elementwise.sqrt(elementwise.add(elementwise.mul(xs, xs), elementwise.mul(ys, ys)))
        length = elementwise.select(some, length, one)
        c = elementwise.select(some, elementwise.div(xs, length), one)
        s = elementwise.select(some, elementwise.div(ys, length), shaping.zeros_like(one))
        c, s = (shaping.broadcast_in_dim(v, w.shape, tuple(range(rank - 2))) for v in (c, s))
        new = elementwise.add(elementwise.mul(c, row), elementwise.mul(s, w))
        rest = elementwise.sub(elementwise.mul(c, w), elementwise.mul(s, row))
        return (elementwise.add(k, np.int32(1)), rest), new

    _, out = control_flow.scan(rotate, (np.int32(0), w), rows)
    return p.triangle(shaping.transpose(out, (*range(1, rank - 1), 0, rank - 1)), lower=False)


lower_fun(p.cholesky_update_p, _cholesky_update)


# ---- LU ----------------------------------------------------------------------------------------------------


@_kernel_rule(p.lu_p, "cpu", "gpu")
def _lu(ctx, x):
    batch, aval = _batch(ctx), ctx.avals_in[0]
    name = (_lapack if ctx.platform == "cpu" else _solver)(ctx, "getrf")
    pivots = ctx.avals_out[1]
    out, pivots, info = _call(
        ctx, name, [x], [(aval.shape, aval.dtype), (pivots.shape, _INT), (batch, _INT)], aliases={0: 0}, batch=len(batch))  # fmt: skip
    pivots = ctx.binary("stablehlo.subtract", pivots, ctx.full(ctx.shape(pivots), 1, _INT))
    (out,) = _nan_where_failed(ctx, info, [out], "GE")
    permutation = ctx.lower_fun(
        p.lu_pivots_to_permutation, pivots, avals=[ctx.avals_out[1]], permutation_size=aval.shape[-2]
    )
    return [out, pivots, permutation]


@platform_rule(p.lu_p, "tpu")
def _lu_tpu(ctx, x):
    return ctx.custom_call("LuDecomposition", [x], ctx.avals_out, "", api_version=2)


lowering_rules.absent(p.lu_p, why="it is implemented for CPU, GPU and TPU")


def _permutation(pivots, *, permutation_size):
    """Exchanges in sequence, on the matrices of a batch laid end to end."""
    *lead, k = pivots.shape
    count = math.prod(lead)
    start = shaping.broadcast_in_dim(
        elementwise.mul(shaping.iota(np.int32, count), np.int32(permutation_size)),
        (count, permutation_size),
        (0,),
    )
    within = shaping.broadcasted_iota(np.int32, (count, permutation_size), 1)
    if not k or not count:
        return shaping.reshape(within, (*lead, permutation_size))
    steps = shaping.transpose(shaping.reshape(pivots, (count, k)), (1, 0))
    offsets = shaping.squeeze(shaping.slice_in_dim(start, 0, 1, axis=1), (1,)) if permutation_size else start
    from bedrax import lax

    def exchange(i, order):
        j = lax.dynamic_index_in_dim(steps, i, keepdims=False)
        here = elementwise.add(offsets, shaping.broadcast(i, (count,)))
        there = elementwise.add(offsets, j)
        both = shaping.concatenate([here, there], 0)
        values = lax.index_take(order, (both,), axes=(0,))
        values = shaping.reshape(values, (2 * count,))
        swapped = shaping.concatenate(
            [shaping.slice_in_dim(values, count, 2 * count), shaping.slice_in_dim(values, 0, count)], 0
        )
        return lax.scatter(
            order, shaping.reshape(both, (2 * count, 1)), swapped,
            lax.ScatterDimensionNumbers(
                update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
            ), mode="promise_in_bounds")  # fmt: skip

    order = control_flow.fori_loop(
        np.int32(0), np.int32(k), exchange, shaping.reshape(within, (count * permutation_size,))
    )
    return shaping.reshape(order, (*lead, permutation_size))


lower_fun(p.lu_pivots_to_permutation_p, _permutation)


@_kernel_rule(p.lu_pivots_to_permutation_p, "gpu")
def _permutation_gpu(ctx, pivots, *, permutation_size):
    name = f"{_VENDOR[ctx.platform]}_lu_pivots_to_permutation"
    aval = ctx.avals_out[0]
    return _call(ctx, name, [pivots], [(aval.shape, _INT)], batch=aval.ndim - 1)[0]


# ---- Householder reflectors and QR -------------------------------------------------------------------------


def _results(ctx) -> list:
    return [(aval.shape, aval.dtype) for aval in ctx.avals_out]


@_kernel_rule(p.geqrf_p, "cpu", "gpu")
def _geqrf(ctx, a):
    name = (_lapack if ctx.platform == "cpu" else _solver)(ctx, "geqrf")
    return _call(ctx, name, [a], _results(ctx), aliases={0: 0}, batch=len(_batch(ctx)))


@platform_rule(p.geqrf_p, "tpu")
def _geqrf_tpu(ctx, a):
    return ctx.custom_call("Qr", [a], ctx.avals_out, "", api_version=1)


lowering_rules.absent(p.geqrf_p, why="it is implemented for CPU, GPU and TPU")


@_kernel_rule(p.geqp3_p, "cpu", "gpu")
def _geqp3(ctx, a, jpvt):
    if ctx.platform == "cpu":
        name, config = _lapack(ctx, "geqp3"), {}
    else:
        _check_dtype(ctx)
        name, config = f"{_VENDOR[ctx.platform]}hybrid_geqp3", {"magma": "auto"}
    return _call(ctx, name, [a, jpvt], _results(ctx), config, aliases={0: 0, 1: 1}, batch=len(_batch(ctx)))


lowering_rules.absent(p.geqp3_p, why="column pivoting is implemented for CPU and GPU only")


@_kernel_rule(p.householder_product_p, "cpu", "gpu")
def _householder_product(ctx, a, taus):
    name = (_lapack if ctx.platform == "cpu" else _solver)(ctx, "orgqr")
    return _call(ctx, name, [a, taus], _results(ctx), aliases={0: 0}, batch=len(_batch(ctx)))[0]


@platform_rule(p.householder_product_p, "tpu")
def _householder_product_tpu(ctx, a, taus):
    return ctx.custom_call(
        "ProductOfElementaryHouseholderReflectors", [a, taus], ctx.avals_out, "", api_version=1
    )[0]


lowering_rules.absent(p.householder_product_p, why="it is implemented for CPU, GPU and TPU")


def _multiplied(a, taus, c, *, left, transpose):
    """By a loop over the reflectors."""
    k = taus.shape[-1]
    rank = len(a.shape)
    v = shaping.slice_in_dim(p.triangle(a, lower=True, offset=-1), 0, k, axis=rank - 1)
    diagonal = elementwise.bitwise_and(p.triangle_mask(v.shape, True), p.triangle_mask(v.shape, False))
    v = elementwise.select(diagonal, shaping.full_like(v, 1), v)
    vs = shaping.transpose(v, (rank - 1, *range(rank - 1)))
    factors = shaping.transpose(taus, (rank - 2, *range(rank - 2)))
    if transpose and dtypes.is_complex(a.dtype):
        factors = elementwise.conj(factors)

    def reflect(c, step):
        v, tau = step
        row = shaping.expand_dims(elementwise.conj(v) if dtypes.is_complex(v.dtype) else v, (rank - 2,))
        tau_v = elementwise.mul(shaping.broadcast_in_dim(tau, v.shape, tuple(range(rank - 2))), v)
        column = shaping.expand_dims(tau_v, (rank - 1,))
        change = p.matmul(column, p.matmul(row, c)) if left else p.matmul(p.matmul(c, column), row)
        return elementwise.sub(c, change), ()

    return control_flow.scan(reflect, c, (vs, factors), reverse=left != transpose)[0]


lower_fun(p.ormqr_p, _multiplied)


@_kernel_rule(p.ormqr_p, "cpu", "gpu")
def _ormqr(ctx, a, taus, c, *, left, transpose):
    if 0 in ctx.avals_in[2].shape:
        return c
    name = (_lapack if ctx.platform == "cpu" else _solver)(ctx, "ormqr")
    config = {"left": left, "transpose": transpose}
    return _call(ctx, name, [a, taus, c], _results(ctx), config, aliases={0: 2}, batch=len(_batch(ctx)))[0]


def _qr(x, *, pivoting, full_matrices, use_magma):
    """From the packed form: R is its upper triangle, Q the product of its reflectors."""
    *lead, m, n = x.shape
    batch = len(lead)
    rank = batch + 2
    k = m if full_matrices else min(m, n)
    if not x.size:
        eye = np.eye(m, k, dtype=x.dtype)
        out = [
            shaping.broadcast_in_dim(eye, (*lead, m, k), (batch, batch + 1)),
            shaping.full((*lead, k, n), 0, x.dtype),
        ]
        return [*out, shaping.broadcasted_iota(np.int32, (*lead, n), batch)] if pivoting else out
    if pivoting:
        packed, order, taus = p.geqp3_p.bind(x, shaping.full((*lead, n), 0, np.int32))
        permutation = [elementwise.sub(order, np.int32(1))]
    else:
        (packed, taus), permutation = p.geqrf_p.bind(x), []
    r = shaping.slice_in_dim(packed, 0, k, axis=rank - 2)
    if m < n:
        vectors = shaping.slice_in_dim(packed, 0, m, axis=rank - 1)
    elif k > n:
        vectors = shaping.pad(packed, np.zeros((), x.dtype), [(0, 0, 0)] * (rank - 1) + [(0, k - n, 0)])
    else:
        vectors = packed
    return [p.householder_product_p.bind(vectors, taus), p.triangle(r, lower=False), *permutation]


lower_fun(p.qr_p, _qr)


@_kernel_rule(p.hessenberg_p, "cpu")
def _hessenberg(ctx, a):
    batch, n = _batch(ctx), ctx.avals_in[0].shape[-1]
    config = {"low": np.int32(1), "high": np.int32(n)}
    packed, taus, info = _call(
        ctx,
        _lapack(ctx, "gehrd"),
        [a],
        [*_results(ctx), (batch, _INT)],
        config,
        aliases={0: 0},
        batch=len(batch),
    )
    return _nan_where_failed(ctx, info, [packed, taus])


lowering_rules.absent(p.hessenberg_p, why="it is implemented for CPU only")


@_kernel_rule(p.tridiagonal_p, "cpu", "gpu")
def _tridiagonal(ctx, a, *, lower):
    batch = _batch(ctx)
    if ctx.platform == "cpu":
        name, config = _lapack(ctx, "sytrd"), {"uplo": _letter("L" if lower else "U")}
    else:
        name, config = _solver(ctx, "sytrd"), {"lower": lower}
    *out, info = _call(
        ctx, name, [a], [*_results(ctx), (batch, _INT)], config, aliases={0: 0}, batch=len(batch)
    )
    return _nan_where_failed(ctx, info, out)


lowering_rules.absent(p.tridiagonal_p, why="it is implemented for CPU and GPU only")


# ---- eigenvalues -------------------------------------------------------------------------------------------

_EIGH_ALGORITHMS = {None: 0, p.EighImplementation.QR: 1, p.EighImplementation.JACOBI: 2}


def _columns(ctx, v, subset):
    """The range `subset` of the last axis."""
    if subset is None:
        return v
    shape = ctx.shape(v)
    return ctx.slice(v, (0,) * (len(shape) - 1) + (subset[0],), (*shape[:-1], subset[1]))


@_kernel_rule(p.eigh_p, "cpu", "gpu")
def _eigh(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    aval, batch = ctx.avals_in[0], _batch(ctx)
    allowed = (None, p.EighImplementation.QR) if ctx.platform == "cpu" else tuple(_EIGH_ALGORITHMS)
    if algorithm not in allowed:
        raise NotImplementedError(f"eigh: {algorithm} is not available on {ctx.platform}")
    if ctx.platform == "cpu":
        name, config = _lapack(ctx, "syevd"), {"mode": _letter("V"), "uplo": _letter("L" if lower else "U")}
    else:
        name, config = (
            _solver(ctx, "syevd"),
            {"algorithm": np.uint8(_EIGH_ALGORITHMS[algorithm]), "lower": lower},
        )
    results = [(aval.shape, aval.dtype), (aval.shape[:-1], _real(aval.dtype)), (batch, _INT)]
    v, w, info = _call(ctx, name, [x], results, config, aliases={0: 0}, batch=len(batch))
    return [_columns(ctx, r, subset_by_index) for r in _nan_where_failed(ctx, info, [v, w])]


@platform_rule(p.eigh_p, "tpu")
def _eigh_tpu(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    """The compiler's Jacobi iteration, with its usual limits of steps and accuracy."""
    if algorithm not in (None, p.EighImplementation.JACOBI):
        raise NotImplementedError(f"eigh: {algorithm} is not available on {ctx.platform}")
    aval = ctx.avals_in[0]
    types = [aval, ShapedArray(aval.shape[:-1], _real(aval.dtype))]
    config = f"{int(lower)},{int(sort_eigenvalues)},100,1e-6"
    return [
        _columns(ctx, r, subset_by_index) for r in ctx.custom_call("Eigh", [x], types, config, api_version=1)
    ]


lowering_rules.absent(p.eigh_p, why="it is implemented for CPU, GPU and TPU")


@_kernel_rule(p.eig_p, "cpu", "gpu")
def _eig(
    ctx,
    x,
    *,
    compute_left_eigenvectors,
    compute_right_eigenvectors,
    enable_eigvec_derivs=False,
    implementation=None,
):
    aval, batch = ctx.avals_in[0], _batch(ctx)
    wanted = (compute_left_eigenvectors, compute_right_eigenvectors)
    if ctx.platform == "cpu":
        if implementation not in (None, p.EigImplementation.LAPACK):
            raise NotImplementedError(f"eig: {implementation} is not available on CPU; LAPACK is")
        name = _lapack(ctx, "geev")
        config = {
            key: _letter("V" if w else "N")
            for key, w in zip(("compute_left", "compute_right"), wanted, strict=True)
        }
    else:
        if implementation is p.EigImplementation.CUSOLVER:
            raise NotImplementedError("eig: cuSOLVER's geev is not connected; use LAPACK or MAGMA")
        magma = {None: "auto", p.EigImplementation.MAGMA: "on", p.EigImplementation.LAPACK: "off"}[
            implementation
        ]
        name = f"{_VENDOR[ctx.platform]}hybrid_eig_{'comp' if _check_dtype(ctx).kind == 'c' else 'real'}"
        config = {"left": wanted[0], "magma": magma, "right": wanted[1]}
    is_complex = aval.dtype.kind == "c"
    dtype = dtypes.to_complex_dtype(aval.dtype)
    values = [(aval.shape[:-1], aval.dtype)] * (1 if is_complex else 2)
    *parts, left, right, info = _call(
        ctx,
        name,
        [x],
        [*values, (aval.shape, dtype), (aval.shape, dtype), (batch, _INT)],
        config,
        batch=len(batch),
    )
    w = (
        parts[0]
        if is_complex
        else ctx.emit("stablehlo.complex", parts, ctx.tensor_type(aval.shape[:-1], dtype))
    )
    return _nan_where_failed(
        ctx, info, [w, *(v for v, keep in zip((left, right), wanted, strict=True) if keep)]
    )


lowering_rules.absent(p.eig_p, why="eigenvalues of general matrices are implemented for CPU and GPU only")


@_kernel_rule(p.schur_p, "cpu")
def _schur(ctx, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    aval, batch = ctx.avals_in[0], _batch(ctx)
    config = {"mode": _letter("V" if compute_schur_vectors else "N"), "sort": _letter("N")}
    values = [(aval.shape[:-1], aval.dtype)] * (1 if aval.dtype.kind == "c" else 2)
    results = [(aval.shape, aval.dtype)] * 2 + values + [(batch, _INT)] * 2
    u, q, *_, info = _call(ctx, _lapack(ctx, "gees"), [x], results, config, aliases={0: 0}, batch=len(batch))
    return _nan_where_failed(ctx, info, [u, q] if compute_schur_vectors else [u])


lowering_rules.absent(p.schur_p, why="it is implemented for CPU only")


# ---- singular values ---------------------------------------------------------------------------------------

_SVD = p.SvdAlgorithm


def _svd_kernel_cpu(ctx, x, aval, batch, full_matrices, compute_uv, algorithm):
    routines = {None: "gesdd", _SVD.DEFAULT: "gesdd", _SVD.DIVIDE_AND_CONQUER: "gesdd", _SVD.QR: "gesvd"}
    if algorithm not in routines:
        raise NotImplementedError(f"svd: {algorithm} is not available on CPU; QR and DIVIDE_AND_CONQUER are")
    m, n = aval.shape[-2:]
    rows, columns = (m, n) if full_matrices else (min(m, n),) * 2
    config = {"mode": _letter("N" if not compute_uv else "A" if full_matrices else "S")}
    _, s, u, vh, info = _call(
        ctx, _lapack(ctx, routines[algorithm]), [x],
        [(aval.shape, aval.dtype), ((*batch, min(m, n)), _real(aval.dtype)), ((*batch, m, rows), aval.dtype),
         ((*batch, columns, n), aval.dtype), (batch, _INT)], config, aliases={0: 0}, batch=len(batch))  # fmt: skip
    return s, u, vh, info


def _svd_kernel_gpu(ctx, x, aval, batch, full_matrices, compute_uv, algorithm):
    """gesvd: LAPACK's QR iteration, for at least as many rows as columns; gesvdj: Jacobi; gesvdp: polar decomposition.
    The last two return V, not V^H; gesvdj all of it."""
    m, n = aval.shape[-2:]
    k = min(m, n)
    if algorithm in (None, _SVD.DEFAULT):
        algorithm = _SVD.JACOBI if max(m, n) <= 1024 else _SVD.QR
    routine = {_SVD.JACOBI: "gesvdj", _SVD.QR: "gesvd", _SVD.POLAR: "gesvdp"}.get(algorithm)
    if routine is None or (routine == "gesvdp" and ctx.platform == "rocm"):
        raise NotImplementedError(f"svd: {algorithm} is not available on {ctx.platform}")
    full = full_matrices or routine == "gesvdj"
    rows, columns = (m, n) if full else (k, k)
    config = {"compute_uv": compute_uv, "full_matrices": full}
    head = [(aval.shape, aval.dtype), ((*batch, k), _real(aval.dtype))]
    u_type, vh_type = ((*batch, m, rows), aval.dtype), ((*batch, columns, n), aval.dtype)
    info_type = (batch, _INT)
    if routine == "gesvd":
        config["transposed"] = m < n  # a row-major matrix is the column-major transpose: its U is our V^H
        types = [vh_type, u_type] if m < n else [u_type, vh_type]
        _, s, first, second, info = _call(
            ctx, _solver(ctx, routine), [x], [*head, *types, info_type], config, aliases={0: 0}, batch=len(batch),
            row_major=m < n)  # fmt: skip
        return (s, second, first, info) if m < n else (s, first, second, info)
    v_type = ((*batch, n, columns), aval.dtype)
    _, s, u, v, info = _call(
        ctx,
        _solver(ctx, routine),
        [x],
        [*head, u_type, v_type, info_type],
        config,
        aliases={0: 0},
        batch=len(batch),
    )
    vh = ctx.lower_fun(p.adjoint, v, avals=[_aval(ctx, v)])
    if full and not full_matrices:
        lead = (0,) * len(batch)
        u = ctx.slice(u, (*lead, 0, 0), (*batch, m, k))
        vh = ctx.slice(vh, (*lead, 0, 0), (*batch, k, n))
    return s, u, vh, info


@_kernel_rule(p.svd_p, "cpu", "gpu")
def _svd(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    aval, batch = ctx.avals_in[0], _batch(ctx)
    kernel = _svd_kernel_cpu if ctx.platform == "cpu" else _svd_kernel_gpu
    s, u, vh, info = kernel(ctx, x, aval, batch, full_matrices, compute_uv, algorithm)
    out = _nan_where_failed(ctx, info, [s, u, vh] if compute_uv else [s])
    if subset_by_index is None:
        return out
    out[:2] = [_columns(ctx, v, subset_by_index) for v in out[:2]]
    if compute_uv:
        start, end = subset_by_index
        shape = ctx.shape(out[2])
        out[2] = ctx.slice(out[2], (0,) * len(batch) + (start, 0), (*shape[:-2], end, shape[-1]))
    return out


lowering_rules.absent(p.svd_p, why="singular values are implemented for CPU and GPU only")


# ---- systems of equations and products --------------------------------------------------------------------


def _conjugated(ctx, a, conjugate_a: bool):
    return ctx.lower_fun(elementwise.conj, a, avals=ctx.avals_in[:1]) if conjugate_a else a


@lowering_rules.rule(p.triangular_solve_p)
def _triangular_solve(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    a = _conjugated(ctx, a, conjugate_a and not transpose_a)
    kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    return ctx.emit(
        "stablehlo.triangular_solve", [a, b], left_side=left_side, lower=lower, unit_diagonal=unit_diagonal,
        transpose_a=ctx.parse(f"#stablehlo<transpose {kind}>"))  # fmt: skip


@platform_rule(p.triangular_solve_p, "cpu")
def _triangular_solve_cpu(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    aval = ctx.avals_out[0]
    if ctx.is_static(aval.shape) and 0 in aval.shape:
        return b
    batch = aval.shape[:-2]
    a = _conjugated(ctx, a, conjugate_a and not transpose_a)
    config = {
        "side": _letter("L" if left_side else "R"), "uplo": _letter("L" if lower else "U"),
        "trans_x": _letter("N" if not transpose_a else "C" if conjugate_a else "T"),
        "diag": _letter("U" if unit_diagonal else "N"),
    }  # fmt: skip
    return _call(ctx, _lapack(ctx, "trsm"), [a, b], _results(ctx), config, aliases={0: 1}, batch=len(batch))[
        0
    ]


def _tridiagonal_by_scan(dl, d, du, b, *, perturb_singular):
    """Thomas's algorithm, without pivoting: two linear recurrences."""
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: perturb_singular is implemented for CPU and GPU only")
    rank = len(b.shape)
    front = lambda x, r: shaping.transpose(x, (r - 1, *range(r - 1)))
    dl, d, du = (front(v, rank - 1) for v in (dl, d, du))
    rows = shaping.transpose(b, (rank - 2, *range(rank - 2), rank - 1))
    across = lambda v, like: shaping.broadcast_in_dim(v, like.shape, tuple(range(rank - 2)))

    def forward(carry, step):
        ratio, y = carry
        low, diagonal, up, right = step
        pivot = elementwise.sub(diagonal, elementwise.mul(low, ratio))
        y = elementwise.div(elementwise.sub(right, elementwise.mul(across(low, y), y)), across(pivot, y))
        ratio = elementwise.div(up, pivot)
        return (ratio, y), (ratio, y)

    def backward(x, step):
        ratio, y = step
        x = elementwise.sub(y, elementwise.mul(across(ratio, y), x))
        return x, x

    start = shaping.full(b.shape[:-2], 0, b.dtype)
    zeros = shaping.full((*b.shape[:-2], b.shape[-1]), 0, b.dtype)
    _, steps = control_flow.scan(forward, (start, zeros), (dl, d, du, rows))
    _, out = control_flow.scan(backward, zeros, steps, reverse=True)
    return shaping.transpose(out, (*range(1, rank - 1), 0, rank - 1))


lower_fun(p.tridiagonal_solve_p, _tridiagonal_by_scan)


@platform_rule(p.tridiagonal_solve_p, "cpu", "cuda")
def _tridiagonal_solve(ctx, dl, d, du, b, *, perturb_singular):
    aval = ctx.avals_out[0]
    if ctx.is_static(aval.shape) and 0 in aval.shape:
        return b
    _check_dtype(ctx)
    batch = aval.shape[:-2]
    operands = [dl, d, du, b]
    if perturb_singular:
        name = (
            "tridiagonal_solve_perturbed_ffi" if ctx.platform == "cpu" else "cu_tridiagonal_solve_perturbed"
        )
        return _call(ctx, name, operands, _results(ctx), batch=len(batch))[0]
    if ctx.platform == "cuda":
        return _call(ctx, "cusparse_gtsv2_ffi", operands, _results(ctx), aliases={0: 3}, batch=len(batch))[0]
    diagonal = ctx.avals_in[1]
    results = [(diagonal.shape, aval.dtype)] * 3 + [(aval.shape, aval.dtype), (batch, _INT)]
    *_, out, info = _call(
        ctx, _lapack(ctx, "gtsv"), operands, results, aliases={i: i for i in range(4)}, batch=len(batch)
    )
    return _nan_where_failed(ctx, info, [out])[0]


def _symmetric_product(a, c, *, alpha, beta):
    out = p.matmul(a, p.transposed(a))
    if alpha != 1:
        out = elementwise.mul(out, np.array(alpha, a.dtype))
    return elementwise.add(out, elementwise.mul(c, np.array(beta, c.dtype))) if beta else out


lower_fun(p.symmetric_product_p, _symmetric_product)
