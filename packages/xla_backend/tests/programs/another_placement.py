"""A program that is compiled again, because its argument is on another device; on two CPU devices."""

import logging

import numpy as np

from bedrax import xla_backend as xla
from bedrax.core import config, retracing

one, two = xla.devices()[:2]


def f(x):
    return x + 1


jitted = xla.jit(f)
messages = []
logging.getLogger("jax.jit").addHandler(handler := logging.Handler())
handler.emit = lambda record: messages.append(record.getMessage())
with config.overriding(jax_explain_cache_misses=True):
    jitted(xla.device_put(np.ones(4, "f"), one))
    jitted(xla.device_put(np.ones(4, "f"), one))
    jitted(xla.device_put(np.ones(4, "f"), two))
    jitted(xla.device_put(np.ones(4, "f"), two))
assert len(messages) == 2, messages
assert messages[0].startswith("jit traces f at "), messages
assert messages[1].startswith("jit compiles f at ") and "another_placement.py:" in messages[1], messages
assert f"new placement: the arguments are on {two}, were on {one}" in messages[1], messages
assert [list(r.changes) for r in retracing.of(f)][1] == [f"new placement: the arguments are on {two}, were on {one}"]
