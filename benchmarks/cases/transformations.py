"""Transformations of functions that are not compiled: every operation runs eagerly."""

from ..case import Case

SETUP = """
import jax, jax.numpy as jnp
key = jax.random.key(0)
w1, w2 = jax.random.normal(key, (4, 16)), jax.random.normal(key, (16, 3))
b1, b2 = jnp.zeros(16), jnp.zeros(3)
params = [(w1, b1), (w2, b2)]
x, y = jnp.ones((8, 4)), jnp.ones((8, 3))

def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b

def loss(params, x, y):
    return ((predict(params, x) - y) ** 2).mean()

def poly(x):
    return x * x * x + jnp.sin(x) * 2.0

tangents = jax.tree_util.tree_map(jnp.ones_like, params)
grad, value_and_grad = jax.grad(loss), jax.value_and_grad(loss)
"""
STATEMENTS = {
    "grad of a small MLP": "grad(params, x, y)",
    "value_and_grad of a small MLP": "value_and_grad(params, x, y)",
    "jvp of a small MLP": "jax.jvp(lambda p: loss(p, x, y), (params,), (tangents,))",
    "vjp of a small MLP": "jax.vjp(lambda p: predict(p, x), params)[1](y)",
    "vmap of a small MLP": "jax.vmap(predict, (None, 0))(params, x)",
    "vmap of grad of a small MLP": "jax.vmap(grad, (None, 0, 0))(params, x, y)",
    "grad of a polynomial": "jax.grad(poly)(2.0)",
    "third derivative of a polynomial": "jax.grad(jax.grad(jax.grad(poly)))(2.0)",
    "hessian of a polynomial's sum": "jax.hessian(lambda x: poly(x).sum())(b2)",
}

CASES = [Case(f"eager transformations/{name}", statement, SETUP, target=0.3) for name, statement in STATEMENTS.items()]
