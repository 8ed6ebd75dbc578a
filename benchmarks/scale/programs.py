"""Programs of any size. This module runs inside the compared environments.

`PROGRAMS[name](size)` prepares a program of that size, and returns the function whose run is measured.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = {}
REPEATABLE = set()  # the programs that do the same work at each run


def program(name, repeatable=False):
    """Register a function as `PROGRAMS[name]`."""

    def register(function):
        PROGRAMS[name] = function
        if repeatable:
            REPEATABLE.add(name)
        return function

    return register


# ---- a chain of operations ----


def chain(n):
    """A function of `n` successive operations, new each time."""

    def function(x):
        for _ in range(n // 5):
            x = jnp.sin(x)
            x = x * 2.0
            x = x + x
            x = jnp.maximum(x, 0.5)
            x = x - 1.0
        return x[0]

    return function


VECTOR = jax.ShapeDtypeStruct((8,), jnp.float32)


@program("chain, trace")
def _(n):
    f = chain(n)
    return lambda: jax.jit(f).trace(VECTOR)


@program("chain, lower")
def _(n):
    traced = jax.jit(chain(n)).trace(VECTOR)
    return lambda: traced.lower()


@program("chain, trace of the gradient")
def _(n):
    f = chain(n)
    return lambda: jax.jit(jax.grad(f)).trace(VECTOR)


@program("chain, lower the gradient")
def _(n):
    traced = jax.jit(jax.grad(chain(n))).trace(VECTOR)
    return lambda: traced.lower()


@program("chain, compile")
def _(n):
    lowered = jax.jit(chain(n)).trace(VECTOR).lower()
    return lambda: lowered.compile()


# ---- many parameters ----


def parameters(n):
    """`n` small arrays in a nest of dictionaries."""
    return {f"layer{i}": {"kernel": np.ones((2, 2), np.float32), "bias": np.ones(2, np.float32)} for i in range(n // 2)}


def network(params, x):
    """A network whose layers are `params`."""
    for layer in params.values():
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x.sum()


@program("parameters, flatten and unflatten", repeatable=True)
def _(n):
    params = parameters(n)

    def run():
        leaves, tree = jax.tree.flatten(params)
        return jax.tree.unflatten(tree, leaves)

    return run


@program("parameters, trace of the gradient")
def _(n):
    params, x = parameters(n), np.ones(2, np.float32)
    new = lambda params, x: network(params, x)
    return lambda: jax.jit(jax.grad(new)).trace(params, x)


@program("parameters, lower the gradient")
def _(n):
    params, x = parameters(n), np.ones(2, np.float32)
    traced = jax.jit(jax.grad(lambda params, x: network(params, x))).trace(params, x)
    return lambda: traced.lower()


@program("parameters, call a compiled function", repeatable=True)
def _(n):
    params = jax.tree.map(jnp.asarray, parameters(n))
    f = jax.jit(lambda params: params["layer0"]["bias"] + 1)
    f(params)
    return lambda: jax.block_until_ready(f(params))


@program("parameters, call a compiled update", repeatable=True)
def _(n):
    params = jax.tree.map(jnp.asarray, parameters(n))
    f = jax.jit(lambda params: params)
    f(params)
    return lambda: jax.block_until_ready(f(params))


# ---- nested programs ----


def nested_jit(depth):
    """`jit` in `jit`, with an operation on each level."""
    f = jnp.sin
    for _ in range(depth):
        f = jax.jit(lambda x, f=f: f(x) * 2.0 + 1.0)
    return f


def nested_scan(depth):
    """A loop in a loop."""
    f = jnp.sin
    for _ in range(depth):
        f = lambda x, f=f: lax.scan(lambda c, _: (f(c) * 0.5, None), x, None, length=2)[0]
    return f


def nested_cond(depth):
    """A condition in the branch of a condition."""
    f = jnp.sin
    for _ in range(depth):
        f = lambda x, f=f: lax.cond(x.sum() > 0.0, f, lambda x: x * 0.5, x)
    return f


def nested_while(depth):
    """A `while` loop in a `while` loop."""
    f = jnp.sin
    for _ in range(depth):
        f = lambda x, f=f: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]
    return f


def nested_vmap(depth):
    """`vmap` of `vmap`: an axis for each."""
    f = lambda x: jnp.sin(x) * 2.0 + x
    for _ in range(depth):
        f = jax.vmap(f)
    return lambda x: f(jnp.broadcast_to(x[:1], (1,) * depth + (8,)))


def nested_checkpoint(depth):
    """`checkpoint` in `checkpoint`."""
    f = jnp.sin
    for _ in range(depth):
        f = jax.checkpoint(lambda x, f=f: jnp.sin(f(x)) * 2.0)
    return f


def nested_mix(depth):
    """`jit`, `scan`, `vmap`, `cond`, `checkpoint` in turn."""
    f = jnp.sin
    kinds = itertools.cycle(
        (
            lambda f: jax.jit(lambda x: f(x) * 2.0),
            lambda f: lambda x: lax.scan(lambda c, _: (f(c) * 0.5, None), x, None, length=2)[0],
            lambda f: lambda x: jax.vmap(f)(x[None])[0],
            lambda f: lambda x: lax.cond(x.sum() > 0.0, f, lambda x: x * 0.5, x),
            lambda f: jax.checkpoint(lambda x: jnp.sin(f(x))),
        )
    )
    for make in itertools.islice(kinds, depth):
        f = make(f)
    return f


NESTS = {
    "jit": nested_jit,
    "scan": nested_scan,
    "cond": nested_cond,
    "vmap": nested_vmap,
    "checkpoint": nested_checkpoint,
    "all in turn": nested_mix,
}


def _of_nest(name, make):
    @program(f"nested {name}, trace and lower the gradient")
    def _(depth):
        f = make(depth)
        new = lambda x: f(x).sum()
        return lambda: jax.jit(jax.grad(new)).trace(VECTOR).lower()


for _name, _make in NESTS.items():
    _of_nest(_name, _make)


@program("nested while, trace and lower")  # it has no reverse mode
def _(depth):
    f = nested_while(depth)
    new = lambda x: f(x)
    return lambda: jax.jit(new).trace(VECTOR).lower()


@program("nested grad, trace")
def _(depth):
    f = lambda x: jnp.sin(x) * x
    for _ in range(depth):
        f = jax.grad(f)
    return lambda: jax.jit(f).trace(jax.ShapeDtypeStruct((), jnp.float32))


# ---- many shapes ----


def many_shapes(n):
    """`n` vectors, each of its own length."""
    return [np.ones(i + 1, np.float32) for i in range(n)]


@program("shapes, first calls")
def _(n):
    arrays = [jnp.asarray(x) for x in many_shapes(n)]
    f = jax.jit(lambda x: jnp.sin(x) * 2.0 + 1.0)

    def run():
        for x in arrays:
            f(x)

    return run


@program("shapes, further calls", repeatable=True)
def _(n):
    arrays = [jnp.asarray(x) for x in many_shapes(n)]
    f = jax.jit(lambda x: jnp.sin(x) * 2.0 + 1.0)
    for x in arrays:
        f(x)

    def run():
        for x in arrays:
            f(x)

    return run


@program("shapes, eager operations")
def _(n):
    arrays = [jnp.asarray(x) for x in many_shapes(n)]

    def run():
        for x in arrays:
            jnp.tanh(x)

    return run


# ---- many devices ----


def over_devices(n):
    """A step of a network whose batch is over `n` devices, and its arguments."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:n]), ("batch",))
    rows = NamedSharding(mesh, PartitionSpec("batch"))
    everywhere = NamedSharding(mesh, PartitionSpec())

    def loss(w, x):
        for _ in range(4):
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))
    return step, (
        jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=everywhere),
        jax.ShapeDtypeStruct((2 * n, 16), jnp.float32, sharding=rows),
    )


@program("devices, trace and lower")
def _(n):
    step, args = over_devices(n)
    return lambda: step.trace(*args).lower()


@program("devices, compile")
def _(n):
    step, args = over_devices(n)
    lowered = step.trace(*args).lower()
    return lambda: lowered.compile()


@program("devices, trace and lower shard_map")
def _(n):
    from jax.sharding import Mesh, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:n]), ("batch",))
    body = lambda x: lax.psum(jnp.sin(x), "batch") + x
    f = jax.shard_map(body, mesh=mesh, in_specs=PartitionSpec("batch"), out_specs=PartitionSpec("batch"))
    return lambda: jax.jit(f).trace(jax.ShapeDtypeStruct((2 * n, 16), jnp.float32)).lower()


@program("devices, put an array", repeatable=True)
def _(n):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:n]), ("batch",))
    rows = NamedSharding(mesh, PartitionSpec("batch"))
    x = np.ones((2 * n, 16), np.float32)
    return lambda: jax.block_until_ready(jax.device_put(x, rows))


@program("devices, call a compiled function", repeatable=True)
def _(n):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:n]), ("batch",))
    x = jax.device_put(np.ones((2 * n, 16), np.float32), NamedSharding(mesh, PartitionSpec("batch")))
    f = jax.jit(lambda x: x + 1)
    f(x)
    return lambda: jax.block_until_ready(f(x))
