"""Flags that restrict users' code do not restrict ours: calls that work without them work with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

x = np.float32([[1, 2, 5], [3, 4, 9]])
row, key = x[0], 0
ints, bits = np.int32([3, 1, 2]), np.uint8([1, 0, 1, 1, 0, 1, 1, 1])
square = x @ x.T

CALLS = {
    "isin": lambda: jnp.isin(ints, ints),
    "setdiff1d": lambda: jnp.setdiff1d(row, x[1]),
    "packbits": lambda: jnp.packbits(bits),
    "unpackbits": lambda: jnp.unpackbits(bits, count=9, bitorder="little"),
    "outer": lambda: jnp.add.outer(row, x[1]),
    "cov": lambda: jnp.cov(x, aweights=row, fweights=ints),
    "percentile": lambda: jnp.percentile(x, 50, axis=0),
    "nanmedian": lambda: jnp.nanmedian(x, 1),
    "nanquantile": lambda: jnp.nanquantile(x, np.float32([0.1, 0.2]), 1),
    "inverted_cdf": lambda: jnp.quantile(x, 0.5, 1, method="inverted_cdf", weights=x),
    "polyfit": lambda: jnp.polyfit(row, x[1], 1),
    "linspace": lambda: jnp.linspace(0, 1, 5),
    "vander": lambda: jnp.vander(row),
    "while": lambda: lax.while_loop(lambda c: c < 3, lambda c: c * 2.0, 1.0),
    "scan": lambda: lax.scan(lambda c, a: (c + a, c), 0.0, row),
    "cumsum": lambda: jnp.cumsum(x, 1),
    "unique": lambda: jnp.unique(ints),
    "multigammaln": lambda: jax.scipy.special.multigammaln(x + 3, 2),
    "logsumexp": lambda: jax.scipy.special.logsumexp(x, b=row[None], axis=1),
    "normal": lambda: jax.scipy.stats.multivariate_normal.logpdf(x, row[None], np.eye(3, dtype="f")),
    "kde": lambda: jax.scipy.stats.gaussian_kde(row).pdf(row),
    "welch": lambda: jax.scipy.signal.welch(x, nperseg=2),
    "stft": lambda: jax.scipy.signal.stft(x, nperseg=2),
    "detrend": lambda: jax.scipy.signal.detrend(x),
    "dct": lambda: jax.scipy.fft.dct(x, norm="ortho"),
    "idct": lambda: jax.scipy.fft.idct(x, norm="ortho"),
    "sqrtm": lambda: jax.scipy.linalg.sqrtm(square),
    "random": lambda: (jax.random.gamma(jax.random.key(0), 2.0), jax.random.poisson(jax.random.key(0), 3.0, (2,))),
    "grad of sort": lambda: jax.grad(lambda v: jnp.sort(v)[0])(row),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "flag, value",
    [("jax_numpy_rank_promotion", "raise"), ("jax_numpy_dtype_promotion", "strict"), ("jax_disable_jit", True)],
)
def test_options_do_not_affect_our_own_code(flag, value, name):
    expected = CALLS[name]()
    before = getattr(jax.config, flag)
    jax.config.update(flag, value)
    try:
        found = CALLS[name]()
    finally:
        jax.config.update(flag, before)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_promotion_options_still_apply_to_users():
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="different ranks"):
        jnp.add(x, row)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="int32"):
        jnp.add(row, ints)


def test_strict_types_under_x64():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        carry, _ = lax.scan(lambda c, a: (c + a, c), 0.0, row)
        assert carry.dtype == np.float32
