"""A script of some sixty calls of `jax.numpy`, without `jit`."""

import jax.numpy as jnp
from jax import random

key = random.key(0)
x = random.normal(key, (200, 5))
y = x @ jnp.arange(1.0, 6.0) + 0.1 * random.normal(random.fold_in(key, 1), (200,))
print(x.mean(0), x.std(0), jnp.median(x, 0), x.var())
print(jnp.quantile(y, jnp.array([0.1, 0.5, 0.9])), jnp.percentile(y, 25.0))
print(jnp.corrcoef(x.T).shape, jnp.cov(x.T).trace())
values, vectors = jnp.linalg.eigh(jnp.cov(x.T))
print(values[::-1], (vectors.T @ vectors).round(3)[0])
counts, edges = jnp.histogram(y, bins=10)
print(counts, edges[:3], counts.sum())
print(jnp.sort(y)[:5], jnp.argsort(y)[:5], jnp.argmax(y), jnp.argmin(y))
labels = jnp.where(y > 0, 1, 0)
print(jnp.unique(labels), jnp.bincount(labels, length=2), labels.mean())
centered = x - x.mean(0)
solution, residuals, rank, singular = jnp.linalg.lstsq(x, y)
print(solution, rank, singular.max())
print(jnp.linalg.norm(centered), jnp.linalg.det(jnp.cov(x.T)), jnp.linalg.inv(jnp.cov(x.T)).shape)
print(jnp.cumsum(y)[-1], jnp.diff(y)[:3], jnp.clip(y, -1, 1).sum(), jnp.abs(y).max(), jnp.ptp(y))
print(jnp.concatenate([x, x]).shape, jnp.stack([y, y]).shape, x.reshape(20, 50).sum(1)[:3], jnp.tile(y, 2).shape)
print(jnp.polyfit(x[:, 0], y, 1), jnp.interp(jnp.array([0.5]), jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0])))
print(jnp.exp(y).mean(), jnp.log1p(jnp.abs(y)).mean(), jnp.sqrt(jnp.abs(y)).sum(), jnp.sign(y).sum())
print(jnp.searchsorted(jnp.sort(y), jnp.array([0.0, 1.0])), jnp.nonzero(labels)[0][:4], jnp.isnan(y).any())
print(jnp.einsum("ij,ij->j", x, x), jnp.outer(y[:2], y[:3]), jnp.dot(y, y), jnp.trapezoid(y[:10]))
