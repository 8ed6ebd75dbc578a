"""Where a function of the surface does not hold in a mode, and why. The test fails for a hole that holds."""

_BETAINC = "the regularized incomplete beta function has no derivative in its parameters, as upstream"

_QUANTIZED = "its operands are quantized, which has no derivative and which TensorFlow has no dtype for"
_WHILE = "a loop whose number of rounds is not known has derivatives of forward mode alone"

HOLES: dict[tuple[str, str], str] = {
    **{(f"scipy.stats.beta.{name}", "grad"): _BETAINC for name in ("cdf", "logcdf", "sf", "logsf")},
    ("scipy.special.betainc", "grad"): _BETAINC,
    ("lax.while_loop", "grad"): _WHILE,
    ("lax.linalg.qdwh", "grad"): _WHILE,
    ("scipy.linalg.solve_sylvester", "grad"): "eigenvectors of general matrices have derivatives only on request",
    ("scipy.special.zeta", "grad"): "zeta has a derivative in q alone, as upstream",
    ("lax.zeta", "grad"): "zeta has a derivative in q alone, as upstream",
    ("lax.polygamma", "grad"): "polygamma has a derivative in x alone: its order is a whole number",
    ("scipy.linalg.sqrtm", "grad"): "Schur forms have no derivatives, as upstream",
    ("scipy.linalg.funm", "grad"): "Schur forms have no derivatives, as upstream",
    ("lax.linalg.cholesky_update", "grad"): "the derivative is that of cholesky of the updated matrix",
    ("ops.segment_prod", "grad"): "products of segments have derivatives where no index is met twice",
    ("lax.scatter_apply", "grad"): "a function of one element at a time has no derivative here, as upstream",
    ("lax.igamma_grad_a", "grad"): "igamma has one derivative in a, as upstream",
    ("lax.scatter_mul", "grad"): "products of what is scattered have derivatives where no index is met twice",
    ("scipy.linalg.polar", "grad"): _WHILE,
    ("scipy.optimize.minimize", "grad"): _WHILE,
    **{
        (f"{m}.hessenberg", "grad"): "Hessenberg forms have no derivatives, as upstream"
        for m in ("lax.linalg", "scipy.linalg")
    },
    ("lax.linalg.householder_product", "grad"): "Householder reflectors have no derivatives; those of qr have",
    ("lax.scaled_dot", "grad"): _QUANTIZED,
    ("lax.scaled_dot", "TF"): _QUANTIZED,
    ("lax.betainc", "grad"): _BETAINC,
    ("lax.linalg.tridiagonal", "grad"): "the reduction to tridiagonal form has no derivative, as upstream",
    ("lax.linalg.ormqr", "grad"): "Householder reflectors have no derivatives; those of qr have",
}
