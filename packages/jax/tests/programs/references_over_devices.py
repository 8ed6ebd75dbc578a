"""Compiled programs of references whose values lie over eight devices; prints `done`."""

import jax
import jax.numpy as jnp
import numpy as np

for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit):
    mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
    sharding = jax.NamedSharding(mesh, jax.P("x"))
    ref = jax.new_ref(jax.device_put(jnp.arange(8.0), sharding))

    @jax.jit
    def double(ref):
        ref[...] = 2 * ref[...]
        return ref[...] + 1

    compiled = double.lower(ref).compile()
    assert compiled.input_shardings[0][0].is_equivalent_to(sharding, 1)
    assert compiled.output_shardings == compiled.output_formats.sharding and compiled.output_formats.layout is not None
    assert compiled.output_shardings.is_equivalent_to(sharding, 1)
    for factor in (2, 4):
        np.testing.assert_array_equal(compiled(ref), factor * np.arange(8) + 1)
    assert ref[...].sharding.is_equivalent_to(sharding, 1)

    def with_tokens(token, x):
        return jax.lax.after_all(token), x + 1, jax.lax.create_token()

    token, x = jax.lax.create_token(), jax.device_put(jnp.arange(8.0), sharding)
    for options in ({}, {"keep_unused": True}, {"in_shardings": (None, sharding), "out_shardings": sharding}):
        begin, y, end = jax.jit(with_tokens, **options)(token, x)
        assert y.sharding.is_equivalent_to(sharding, 1) and jax.typeof(begin) == jax.typeof(end) == jax.typeof(token)
        np.testing.assert_array_equal(y, np.arange(8) + 1)
print("done")
