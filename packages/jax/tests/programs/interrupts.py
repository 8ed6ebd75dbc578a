"""Interrupts at random times: prints how many there were, and how many left a state: python interrupts.py COUNT"""

import random
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from bedrax.core import context, executors, tracing
from bedrax.xla_backend.door import runtime

mesh = jax.make_mesh((1,), ("i",))


def work(k):
    with jax.enable_x64(True):
        jax.jit(lambda x: jnp.sin(x) * k)(np.float64(1.0))
    with jax.numpy_rank_promotion("raise"), jax.debug_nans(True):
        jax.grad(lambda x: jnp.sum(x**3) * k)(jnp.arange(3.0))
    jax.vmap(lambda x: lax.psum(x, "i") * k, axis_name="i")(jnp.arange(3.0))
    with jax.disable_jit():
        jax.jit(lambda x: x * k)(2.0)
    lax.scan(lambda c, x: (c * x + k, c), 1.0, jnp.arange(3.0))
    with jax.set_mesh(mesh), jax.sharding.use_abstract_mesh(mesh.abstract_mesh), set_xla_metadata(a="1"):
        pass
    with jax.named_scope("a"), jax.default_device(jax.devices()[0]):
        jax.linearize(lambda x: x * x * k, 1.0)[1](1.0)


class Interrupt(KeyboardInterrupt):
    pass


def interrupt(*_):
    raise Interrupt


def state():
    return (
        context.trace_context(),
        context.thread.context,
        tracing.current.trace,
        len(context.thread.entered),
        dict(tracing.current.axes),
        tracing.current.names,
        runtime.must_see_calls(),
        runtime._x64.value,
        runtime._disable_jit.value,
    )


work(0), work(1)
began = time.monotonic()
work(2)
took, clean, hits, left = time.monotonic() - began, state(), 0, 0
signal.signal(signal.SIGALRM, interrupt)
for k in range(int(sys.argv[1])):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * took + 1e-4)
        work(k + 3)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        hits += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    if state() != clean:
        left += 1
        context._install(clean[1])
        context.thread.entered.clear()
        tracing.current.trace, tracing.current.axes, tracing.current.names = clean[2], clean[4], clean[5]
        executors.must_see_calls(None)
    assert jax.jit(lambda x, k=k: jnp.sin(x) + k)(0.0) == k and jnp.sin(1.0).dtype == np.float32
print(hits, left)
