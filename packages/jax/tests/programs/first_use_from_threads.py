"""A first use by 24 threads at the same time: python first_use_from_threads.py NAME

Prints the number of errors, and two of them.
"""

import importlib
import sys
import threading
import traceback


def importing():
    def use(i):
        import jax.numpy as jnp

        assert jnp.sin(jnp.zeros(3)).sum() == 0

    return use


def operations():
    import jax
    import jax.numpy as jnp

    x = jnp.arange(3.0)
    functions = [
        jnp.sin,
        jnp.cumsum,
        jnp.sort,
        jnp.fft.fft,
        jnp.median,
        jax.vmap(jnp.cos),
        jax.jit(jnp.tanh),
        jax.grad(lambda y: (y**2).sum()),
        lambda x: x.at[0].set(1.0),
        lambda x: jax.random.normal(jax.random.key(0), (3,)),
        jax.nn.softmax,
        jax.hessian(lambda y: (y**3).sum()),
    ]
    return lambda i: jax.block_until_ready(functions[i % 12](x))


def linear_algebra():
    import jax
    import jax.numpy as jnp

    la = jnp.linalg
    functions = [la.cholesky, la.eigh, la.svd, la.qr, la.inv, la.det]
    return lambda i: jax.block_until_ready(functions[i % 6](jnp.eye(3) * (i + 1)))


def names():
    import jax

    modules = [jax.numpy, jax.lax, jax.nn, jax.random, jax.scipy.special, jax.scipy.stats]
    return lambda i: [getattr(m, n, None) for m in modules for n in dir(m)[i % 5 :: 5]]


def modules():
    paths = (
        "jax.scipy.linalg jax.scipy.signal jax.experimental.sparse jax.export jax.image jax.example_libraries.stax"
        " jax.experimental.ode jax.interpreters.ad jax.sharding jax.profiler"
    ).split()

    def use(i):
        importlib.import_module("jax")
        for k in range(10):
            importlib.import_module(paths[(k + i) % 10])

    return use


USES = {
    "import": importing,
    "operations": operations,
    "linear algebra": linear_algebra,
    "names": names,
    "modules": modules,
}
use = USES[sys.argv[1]]()
start, errors = threading.Barrier(24), []


def work(i):
    start.wait()
    try:
        use(i)
    except BaseException:
        errors.append(traceback.format_exc())


threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(errors), *errors[:2])
