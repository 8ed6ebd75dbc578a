"""Errors of the runtime are of the type that `jax.errors` exports."""

import jax
import jax.numpy as jnp
import pytest


def test_a_failure_of_the_runtime_is_caught_by_name():
    def fail(x):
        raise ValueError("the callback failed")

    with pytest.raises(jax.errors.JaxRuntimeError, match="the callback failed"):
        jax.jit(lambda x: jax.pure_callback(fail, x, x))(jnp.ones(3)).block_until_ready()
