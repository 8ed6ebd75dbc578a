"""`jax.default_device` on two CPU devices."""

import jax
import jax.numpy as jnp

first, second = jax.devices()
f = jax.jit(lambda x: x + 1)
assert f(1.0).devices() == jnp.ones(2).devices() == {first}
with jax.default_device(second):
    assert jnp.ones(2).device == second
    assert jnp.ones(2).devices() == f(1.0).devices() == (jnp.ones(2) + 1).devices() == {second}
    assert (jax.device_put(1.0, first) + jnp.ones(2)).devices() == {first}  # committed data decides
assert f(1.0).devices() == jnp.ones(2).devices() == {first}
