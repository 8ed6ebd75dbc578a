"""Linear algebra compiled: several platforms, failures, matrices that share a batch with bad ones."""

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import config
from bedrax.lax.primitives import linalg as p
from bedrax.xla_backend import export

X = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
S = X[:, :4] + 4 * np.eye(4, dtype=np.float32)
V = np.ones((2, 4), np.float32)


def _module(f, *args, platform):
    return xla.jit(f).trace(*args).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize(
    "f, args, cuda, rocm, tpu",
    [
        (lax.cholesky, (S,), "cusolver_potrf_ffi", "hipsolver_potrf_ffi", "stablehlo.cholesky"),
        (lax.lu, (X,), "cusolver_getrf_ffi", "hipsolver_getrf_ffi", "LuDecomposition"),
        (
            lax.qr,
            (X,),
            "cusolver_geqrf_ffi",
            "hipsolver_orgqr_ffi",
            "ProductOfElementaryHouseholderReflectors",
        ),
        (lambda x: lax.qr(x, pivoting=True), (X,), "cuhybrid_geqp3", "hiphybrid_geqp3", None),
        (lax.eigh, (S,), "cusolver_syevd_ffi", "hipsolver_syevd_ffi", "Eigh"),
        (lax.eig, (S,), "cuhybrid_eig_real", "hiphybrid_eig_real", None),
        (lax.svd, (X,), "cusolver_gesvdj_ffi", "hipsolver_gesvdj_ffi", None),
        (
            lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.QR),
            (X,),
            "cusolver_gesvd_ffi",
            "hipsolver_gesvd_ffi",
            None,
        ),
        (lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.POLAR), (X,), "cusolver_gesvdp_ffi", None, None),
        (lax.schur, (S,), None, None, None),
        (lax.tridiagonal, (S,), "cusolver_sytrd_ffi", "hipsolver_sytrd_ffi", None),
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
    np.testing.assert_array_equal(
        xla.jit(lax.cholesky)(-np.eye(2, dtype=np.float32)), [[np.nan, 0], [np.nan, np.nan]]
    )


def test_composed_forms_equal_the_kernels():
    """What TPU and ROCm compile where they have no kernel gives the same numbers."""
    from bedrax.xla_backend.lowering import linalg as lowering

    with config.enable_x64(True):
        rng = np.random.default_rng(1)
        packed, taus = map(
            np.asarray, lax.geqrf(rng.standard_normal((2, 5, 3)) + 1j * rng.standard_normal((2, 5, 3)))
        )
        for left in (True, False):
            c = rng.standard_normal((2, 5, 4) if left else (2, 4, 5)) + 0j
            for transpose in (True, False):
                composed = lowering._multiplied(packed, taus, c, left=left, transpose=transpose)
                np.testing.assert_allclose(
                    composed, lax.ormqr(packed, taus, c, left=left, transpose=transpose), atol=1e-12
                )
        dl, du = rng.standard_normal((2, 2, 4))
        d, b = 5 + rng.random((2, 4)), rng.standard_normal((2, 4, 3))
        composed = lowering._tridiagonal_by_scan(dl, d, du, b, perturb_singular=False)
        np.testing.assert_allclose(composed, lax.tridiagonal_solve(dl, d, du, b), atol=1e-12)


def test_algorithms_that_the_cpu_lacks():
    with pytest.raises(NotImplementedError, match="not available on CPU"):
        xla.jit(lambda x: lax.svd(x, algorithm=p.SvdAlgorithm.JACOBI))(X)
    with pytest.raises(NotImplementedError, match="not available on cpu"):
        xla.jit(lambda x: lax.eigh(x, implementation=p.EighImplementation.QDWH))(S)
    with pytest.raises(NotImplementedError, match="float16"):
        xla.jit(lax.lu)(X.astype(np.float16))


def test_a_branch_for_each_platform():
    """The branch of another platform may hold what this one cannot compile."""

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
