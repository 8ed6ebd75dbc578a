"""Each first call in a process of its own: prints its name and result."""

import os
import sys

import jax
import numpy as np

ONES = np.ones(3, np.float32)
MESH = lambda: jax.make_mesh((1,), ("i",))
# Each is the first call of a process of its own.
FIRST = {
    "jit": lambda f: jax.jit(f)(2.0),
    "make_jaxpr": lambda f: jax.core.eval_jaxpr(program := jax.make_jaxpr(f)(2.0), program.consts, 2.0)[0],
    "eval_shape": lambda f: jax.eval_shape(f, 2.0).shape == () and 9,
    "grad": lambda f: jax.grad(f)(2.0) + 3,
    "value_and_grad": lambda f: jax.value_and_grad(f)(2.0)[0],
    "jvp": lambda f: jax.jvp(f, (2.0,), (1.0,))[0],
    "vjp": lambda f: jax.vjp(f, 2.0)[0],
    "linearize": lambda f: jax.linearize(f, 2.0)[0],
    "hessian": lambda f: jax.hessian(f)(2.0) + 7,
    "jacfwd": lambda f: jax.jacfwd(f)(2.0) + 3,
    "vmap": lambda f: jax.vmap(f)(2 * ONES)[0],
    "pmap": lambda f: jax.pmap(f)(2 * ONES[:1])[0],
    "checkpoint": lambda f: jax.checkpoint(f)(2.0),
    "shard_map": lambda f: jax.shard_map(f, mesh=MESH(), in_specs=jax.P(), out_specs=jax.P())(2.0),
    "lower": lambda f: jax.jit(f).lower(2.0).compile()(2.0),
    "trace": lambda f: len(jax.jit(f).trace(2.0).jaxpr.eqns) > 3 and 9,
    "export": lambda f: jax.export.export(jax.jit(f))(np.float32(2)).call(np.float32(2)),
    "device_put": lambda f: f(jax.device_put(2.0)),
    "lax": lambda f: f(jax.lax.add(1.0, 1.0)),
    "scan": lambda f: jax.lax.scan(lambda c, x: (f(c + x), c), 1.0, ONES[:1])[0],
    "while_loop": lambda f: jax.lax.while_loop(lambda c: c < 9, f, 2.0),
    "cond": lambda f: jax.lax.cond(True, f, lambda x: -x, 2.0),
    "switch": lambda f: jax.lax.switch(1, [lambda x: -x, f], 2.0),
    "map": lambda f: jax.lax.map(f, 2 * ONES)[0],
    "tree": lambda f: jax.tree.map(f, [jax.device_put(2.0)])[0],
    "custom_jvp": lambda f: (g := jax.custom_jvp(f), g.defjvps(lambda t, y, x: t * y)) and jax.grad(g)(np.float32(2)),
    "new_ref": lambda f: f(jax.new_ref(2.0)[...]),
    "callback": lambda f: f(jax.pure_callback(lambda: np.float32(2), jax.ShapeDtypeStruct((), "float32"))),
    "closure_convert": lambda f: jax.closure_convert(f, 2.0)[0](2.0),
    "random": lambda f: f(jax.random.key_data(jax.random.key(2))[1] + 0.0),
    "keys in a lowered program": lambda f: f(
        2.0 + 0 * jax.jit(lambda x: jax.random.uniform(jax.random.key(0), x.shape)).lower(ONES).compile()(ONES)[0]
    ),
    "abstract evaluation": lambda f: jax.jit(f).eval_shape(2.0).shape == () and 9,
}
# 9 at 2, where its derivatives are 6 and 2
F = lambda x: x * x + 3 * x.sum() - abs(x[None])[0] + (x < 3) - (x != 0) + 0 * -x + 2 - 2**0

for name, first in FIRST.items():
    sys.stdout.flush()
    child = os.fork()
    if not child:  # nothing is loaded yet that minds
        try:
            got = float(first(F))
            print(name, "returned", got)
        except BaseException as error:
            print(name, "fails:", type(error).__name__, error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
