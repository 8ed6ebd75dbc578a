"""Commitment of arrays to eight CPU devices, as the FAQ describes it."""

import jax
import numpy as np
import pytest
from jax import device_put, jit
from jax import numpy as jnp

devices = jax.devices()
assert len(devices) == 8 and jax.default_backend() == "cpu"
first, third = devices[0], devices[2]
on = lambda x: (x.devices(), x.committed)

# Arrays are placed, uncommitted, on the first device.
assert (
    on(jnp.ones(3))
    == on(jnp.arange(3))
    == on(jnp.asarray(np.ones(3)))
    == on(jax.random.normal(jax.random.key(0)))
    == ({first}, False)
)
# A context overrides it for a time, also for functions that were compiled before.
add = jit(lambda a, b: a + b)
assert on(add(1.0, 2.0)) == ({first}, False)
with jax.default_device(third):
    assert on(jnp.ones(3)) == on(add(1.0, 2.0)) == on(device_put(1.0)) == ({third}, False)
    with jax.default_device(devices[5]):
        assert on(jnp.ones(3)) == ({devices[5]}, False)
    assert jnp.ones(3).devices() == {third}
assert on(jnp.ones(3)) == on(add(1.0, 2.0)) == ({first}, False)
# Computations with uncommitted data: on the default device, and uncommitted.
a = jnp.ones(3)
assert on(a + 1) == on(add(a, a)) == on(jnp.sin(a)) == ({first}, False)
with jax.default_device(third):
    assert on(a + 1) == ({third}, False)
# device_put with a device commits; of an array that is somewhere, too.
assert (
    on(device_put(1, third))
    == on(device_put(a, third))
    == on(device_put(device_put(a, devices[1]), third))
    == ({third}, True)
)
# With some committed inputs: there, and committed, whatever the default device.
c = device_put(a, third)
for default in (first, devices[6]):
    with jax.default_device(default):
        for y in (
            c + a,
            a + c,
            c * 2,
            add(c, a),
            add(1.0, c),
            jnp.concatenate([a, c]),
            jax.grad(lambda v: (v * v).sum())(c),
            jax.vmap(jnp.sin)(c),
            jnp.zeros_like(c) + c,
        ):
            assert on(y) == ({third}, True), y
# Committed to two devices: an error, of operations and of jitted functions.
d = device_put(a, devices[3])
for wrong in (lambda: c + d, lambda: add(c, d), lambda: jnp.stack([c, d]), lambda: jit(lambda v: v + d)(c)):
    with pytest.raises(ValueError, match=r"(?s)ids? \[2\].*\[3\]|\[3\].*\[2\]"):
        wrong()
# device_put without a device leaves alone what is somewhere, and places the rest uncommitted on the default device.
assert device_put(c) is c and device_put(a) is a
assert on(device_put(1)) == on(device_put(np.ones(3))) == ({first}, False)
assert on(device_put({"a": c, "b": 1})["b"]) == ({first}, False)
# What is made and then moved was made on the default device.
assert on(device_put(jnp.zeros((2, 2)), devices[1])) == ({devices[1]}, True)
