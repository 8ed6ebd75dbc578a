"""Annotations of shapes and dtypes are checked at calls, of arrays and of tracers."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, Key, PyTree, TypeCheckError, jaxtyped


@jaxtyped(typechecker=beartype)
def matmul(a: Float[Array, "n m"], b: Float[Array, "m k"]) -> Float[Array, "n k"]:  # noqa: F722
    return a @ b


assert jax.jit(matmul)(jnp.ones((2, 3)), jnp.ones((3, 4))).shape == (2, 4)
try:
    matmul(jnp.ones((2, 3)), jnp.ones((2, 4)))
except TypeCheckError:
    pass
else:
    raise SystemExit("a wrong shape was accepted")
assert isinstance(jnp.arange(3), Int[Array, "3"]) and not isinstance(jnp.ones(3), Int[Array, "3"])
assert isinstance(jax.random.key(0), Key[Array, ""])
assert isinstance({"a": jnp.ones(2)}, PyTree[Float[Array, "_"]])
