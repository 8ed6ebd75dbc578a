"""Compiled linear algebra: several platforms, failures, batches of good and bad matrices."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import dtypes
from bedrax.lax.primitives import linalg as p
from bedrax.lax.tables import decompositions
from bedrax.testing import checks
from bedrax.testing.records import all_cases, case_params
from bedrax.xla_backend import export
from bedrax.xla_backend.lowering import linalg as lowering

PROGRAMS = Path(__file__).with_name("programs")

X = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
S = X[:, :4] + 4 * np.eye(4, dtype=np.float32)
V = np.ones((2, 4), np.float32)


def _module(f, *args, platform):
    return xla.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e3m4"])
def test_triangular_systems_of_narrow_floats(name):
    dtype = dtypes.as_dtype(name)
    a = np.tril(np.array([[2, 1, 1], [1, 4, 1], [-1, 0.5, 1]])).astype(dtype)
    b = (a.astype(np.float32) @ np.array([[1, -2], [0.5, 1], [0, 3]], np.float32)).astype(dtype)
    found = xla.jit(lambda a, b: lax.triangular_solve(a, b, left_side=True, lower=True))(a, b)
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found).astype(np.float32), [[1, -2], [0.5, 1], [0, 3]])


@pytest.mark.parametrize(
    "f, args, cuda, rocm, tpu",
    [
        (lax.cholesky, (S,), "cusolver_potrf_ffi", "hipsolver_potrf_ffi", "stablehlo.cholesky"),
        (lax.lu, (X,), "cusolver_getrf_ffi", "hipsolver_getrf_ffi", "LuDecomposition"),
        (lax.qr, (X,), "cusolver_geqrf_ffi", "hipsolver_orgqr_ffi", "ProductOfElementaryHouseholderReflectors"),
        (lambda x: lax.qr(x, pivoting=True), (X,), "cuhybrid_geqp3", "hiphybrid_geqp3", "stablehlo.while"),
        (lax.eigh, (S,), "cusolver_syevd_ffi", "hipsolver_syevd_ffi", "Eigh"),
        (lax.eig, (S,), "cuhybrid_eig_real", "hiphybrid_eig_real", "stablehlo.while"),
        (lax.svd, (X,), "cusolver_gesvdj_ffi", "hipsolver_gesvdj_ffi", "stablehlo.while"),
        (lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.QR), (X,), "cusolver_gesvd_ffi", "hipsolver_gesvd_ffi", None),
        (lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.POLAR), (X,), "cusolver_gesvdp_ffi", None, None),
        (lax.schur, (S,), *["stablehlo.while"] * 3),
        (lax.hessenberg, (S,), *["stablehlo.while"] * 3),
        (lax.tridiagonal, (S,), "cusolver_sytrd_ffi", "hipsolver_sytrd_ffi", "stablehlo.while"),
        (lax.tridiagonal_solve, (V, V, V, S), "cusparse_gtsv2_ffi", "stablehlo.while", "stablehlo.while"),
        (lax.triangular_solve, (S, S), *["stablehlo.triangular_solve"] * 3),
    ],
)
def test_names_of_other_platforms(f, args, cuda, rocm, tpu):
    for platform, name in (("cuda", cuda), ("rocm", rocm), ("tpu", tpu)):
        if name is None:
            with pytest.raises(NotImplementedError):
                _module(f, *args, platform=platform)
        else:
            assert name in _module(f, *args, platform=platform)


def test_one_bad_matrix_of_a_batch():
    bad = S.copy()
    bad[1] = np.nan
    for f in (lax.eigh, lax.svd, lax.schur, lax.eig):
        for r in map(np.asarray, xla.jit(f)(bad)):
            assert np.isnan(r[1]).all() and np.isfinite(r[0]).all()
    np.testing.assert_array_equal(xla.jit(lax.cholesky)(-np.eye(2, dtype=np.float32)), [[np.nan, 0], [np.nan, np.nan]])


CASES = [c for c in all_cases() if c.primitive.family == "linalg"]
# Primitives that a platform lacks, with an error.
LACKING = {("linalg-svd-qr_algorithm", "tpu"): "not available"}


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
@pytest.mark.parametrize("case", case_params(CASES))
def test_every_record_lowers_for_every_platform(case, platform):
    with checks.x64_if_needed(case):
        args = case.make_args()
        if (case.id, platform) in LACKING:
            with pytest.raises(NotImplementedError, match=LACKING[case.id, platform]):
                _module(case.fun, *args, platform=platform)
        else:
            assert "func.func" in _module(case.fun, *args, platform=platform)


def test_every_kernel_of_the_table_is_used():
    """The name of each kernel is in the program of a record of its primitive."""
    for (prim, platform), kernel in lowering.kernels.items():
        pattern = re.sub(r"\{\w\}", r"\\w+", kernel.target.replace("lapack ", "lapack_[sdcz]"))
        texts = []
        for case in CASES:
            if case.primitive is prim:
                with checks.x64_if_needed(case):
                    texts.append(_module(case.fun, *case.make_args(), platform=platform))
        assert any(re.search(pattern, text) for text in texts), (
            f"{prim} on {platform}: no program calls {kernel.target}"
        )


@pytest.mark.parametrize(
    "prim, params, args",
    [
        (p.schur_p, dict(compute_schur_vectors=True, sort_eig_vals=False, select_callable=None), (S,)),
        (p.schur_p, dict(compute_schur_vectors=True, sort_eig_vals=False, select_callable=None), (S + 0j,)),
        (p.svd_p, dict(full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None), (X,)),
        (p.geqrf_p, {}, (X,)),
        (p.lu_p, {}, (X,)),
    ],
)
def test_composed_forms_compiled(prim, params, args):
    """The forms for platforms without a kernel, compiled on this platform: the factors multiply to the matrix."""
    out = list(map(np.asarray, xla.jit(lambda *xs: decompositions[prim](*xs, **params))(*args)))
    (a,) = args
    if prim is p.schur_p:
        u, q = out
        made = q @ u @ np.swapaxes(q, -1, -2).conj()
    elif prim is p.svd_p:
        s, u, vh = out
        made = (u[..., : s.shape[-1]] * s[..., None, :]) @ vh
    else:
        for mine, kernels in zip(out, prim.bind(a, **params), strict=True):
            np.testing.assert_allclose(mine, kernels, atol=1e-4)
        return
    np.testing.assert_allclose(made, a, atol=1e-4)


def _composed(prim, *args, **params):
    return list(map(np.asarray, xla.jit(lambda *xs: decompositions[prim](*xs, **params))(*args)))


@pytest.mark.parametrize("scale", [2.0**100, 2.0**-100])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_composed_forms_of_large_and_small_elements(dtype, scale):
    """Squares of the elements overflow or vanish."""
    a, scale = np.random.default_rng(1).standard_normal((2, 6, 6)).astype(dtype), dtype(scale)
    t, q = _composed(p.schur_p, a * scale, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)
    np.testing.assert_allclose(q @ (t / scale) @ np.swapaxes(q, -1, -2).conj(), a, atol=1e-4)
    marks = np.zeros((2, 6), np.int32)
    large, unit = _composed(p.geqp3_p, a * scale, marks), _composed(p.geqp3_p, a, marks)
    np.testing.assert_array_equal(large[1], unit[1])
    np.testing.assert_allclose(np.triu(large[0]) / scale, np.triu(unit[0]), atol=1e-4)


def test_composed_eigenvectors_of_matrices_that_lack_some():
    """Those of equal eigenvalues are nearly parallel; the numbers in the substitution grow by 1 / eps each time."""
    shift = np.eye(8, k=1, dtype=np.float32)
    a = np.stack([shift, shift + np.eye(8, dtype=np.float32), 0 * shift])
    w, left, right = _composed(p.eig_p, a, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    for vectors, m in ((right, a), (left, np.swapaxes(a, -1, -2))):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
        np.testing.assert_allclose(m @ vectors, vectors * w[:, None], atol=1e-5)


def test_algorithms_that_the_cpu_lacks():
    with pytest.raises(NotImplementedError, match="not available on cpu"):
        xla.jit(lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.JACOBI))(X)
    with pytest.raises(NotImplementedError, match="not available on cpu"):
        xla.jit(lambda x: lax.eigh(x, implementation=p.EighImplementation.QDWH))(S)
    with pytest.raises(NotImplementedError, match="float16"):
        xla.jit(lax.lu)(X.astype(np.float16))


def test_a_branch_for_each_platform():
    """The branch of another platform may be invalid on this platform."""

    def f(x):
        return lax.platform_dependent(x, cpu=lambda x: lax.schur(x)[0], default=lambda x: x)

    np.testing.assert_allclose(xla.jit(f)(np.eye(2, dtype=np.float32)), np.eye(2))
    for platform in ("cpu", "tpu"):
        assert ("gees" in _module(f, S, platform=platform)) == (platform == "cpu")
    exported = export.export(xla.jit(f), platforms=("tpu", "cpu"))(S)
    assert "gees" in exported.mlir_module()
    np.testing.assert_allclose(exported.call(S), lax.schur(S)[0])


def test_complex_constants_survive_export():
    exported = export.export(xla.jit(lambda x: lax.eig(x)[0]))(S)
    np.testing.assert_array_equal(exported.call(S), lax.eig(S)[0])


FIRST_USE = PROGRAMS / "first_linalg_from_threads.py"


def test_kernels_are_ready_before_any_thread_calls_them():
    done = subprocess.run([sys.executable, FIRST_USE], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_a_kernel_is_marked_as_ready_after_it_is_loaded(monkeypatch):
    from bedrax.xla_backend.door import kernels

    monkeypatch.setattr(kernels, "_ready", set())
    seen = []
    load = kernels._load
    monkeypatch.setattr(kernels, "_load", lambda library: (seen.append("lapack" in kernels._ready), load(library)))
    kernels.require("lapack_sgetrf_ffi")
    assert seen == [False] and "lapack" in kernels._ready


def test_the_compiler_finds_its_dialect_loaded():
    """The compiler's dialect is loaded: loading it while other threads use the context would end the process."""
    from bedrax.xla_backend.door import mlir

    assert mlir.load().context.is_registered_operation("mhlo.add")
