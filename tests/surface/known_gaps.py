"""The modes in which a function of the surface does not hold, with reasons. The test fails for an entry that holds."""

import methods

_BETAINC = "the regularized incomplete beta function has no derivative in its parameters, as upstream"

_QUANTIZED = "its operands are quantized: no derivative, and no dtype in TensorFlow"
_FREE = "a factor of each vector is free, and LAPACK chooses different ones for the two precisions"
_WHILE = "a loop of unknown length has forward-mode derivatives only"
_PRODUCTS = "a scattered product has a derivative only for distinct indices"
_APPLY = "a function of one element at a time has no derivative here, as upstream"
_ARRAYS = ("array", "pair", "outer", "apart", "mixed", "mask", "whole mask")  # forms with arrays of indices

KNOWN_GAPS: dict[tuple[str, str], str] = {
    **{(f"scipy.stats.beta.{name}", "grad"): _BETAINC for name in ("cdf", "logcdf", "sf", "logsf")},
    ("scipy.special.betainc", "grad"): _BETAINC,
    ("lax.while_loop", "grad"): _WHILE,
    ("lax.linalg.qdwh", "grad"): _WHILE,
    ("scipy.linalg.solve_sylvester", "grad"): "eigenvectors of general matrices have derivatives only with an option",
    ("scipy.special.zeta", "grad"): "zeta has a derivative in q only, as upstream",
    ("lax.zeta", "grad"): "zeta has a derivative in q only, as upstream",
    ("lax.polygamma", "grad"): "polygamma has a derivative in x only: its order is an integer",
    ("scipy.linalg.sqrtm", "grad"): "Schur forms have no derivatives, as upstream",
    ("scipy.linalg.funm", "grad"): "Schur forms have no derivatives, as upstream",
    ("lax.linalg.cholesky_update", "grad"): "the derivative is that of cholesky of the updated matrix",
    ("ops.segment_prod", "grad"): "a product of segments has a derivative only for distinct indices",
    ("lax.scatter_apply", "grad"): _APPLY,
    ("lax.igamma_grad_a", "grad"): "igamma has one derivative in a, as upstream",
    ("lax.scatter_mul", "grad"): _PRODUCTS,
    ("scipy.linalg.polar", "grad"): _WHILE,
    ("scipy.optimize.minimize", "grad"): _WHILE,
    **{
        (f"{m}.hessenberg", "grad"): "Hessenberg forms have no derivatives, as upstream"
        for m in ("lax.linalg", "scipy.linalg")
    },
    ("lax.linalg.householder_product", "grad"): "Householder reflectors have no derivatives; qr has",
    ("lax.scaled_dot", "grad"): _QUANTIZED,
    ("lax.scaled_dot", "TF"): _QUANTIZED,
    ("lax.betainc", "grad"): _BETAINC,
    ("lax.linalg.tridiagonal", "grad"): "the reduction to tridiagonal form has no derivative, as upstream",
    **{(f"Array.at[{form}].apply", "grad"): _APPLY for form in methods.FORMS},
    **{
        (f"Array.at[{form}].{name}", "grad"): _PRODUCTS
        for form in _ARRAYS
        for name in ("multiply", "mul", "divide", "power")
    },
    ("Array.view", "x64"): "a view of wider elements has more of them",
    ("lax.bitcast_convert_type", "x64"): "the bits of wider elements are more integers",
    **{
        (name, "x64"): _FREE
        for name in ("numpy.linalg.eig", "lax.linalg.eig", "lax.linalg.schur", "scipy.linalg.schur")
    },
    ("lax.linalg.ormqr", "grad"): "Householder reflectors have no derivatives; qr has",
}
