"""Arrays of 2^31 + 10 elements: needs 10 GB of memory. `nox -s huge` runs this, with XLA and with NumPy."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bedrax.core import executors
from bedrax.numpy_backend.executor import executor

N = 2**31 + 10


def check(name, found, wanted):
    assert np.array_equal(np.asarray(found), wanted), (name, found, wanted)
    print("right:", name, flush=True)


def refused(name, function, x):
    try:
        function(x)
    except OverflowError as error:
        print("refused:", str(error)[:60], flush=True)
    else:
        raise AssertionError(f"{name} is not refused")


x = np.zeros(N, np.int8)
x[-5:] = [1, 2, 3, 9, 5]
if "numpy" in sys.argv:
    executors.install(executor)
x = jnp.asarray(x)

check("x[-3]", x[-3], 3)
check("x[n - 3]", x[N - 3], 3)
check("x[n - 5:]", x[N - 5 :], [1, 2, 3, 9, 5])
check("reshape", x.reshape(-1)[-1], 5)
check("index array", x[-1 - jnp.arange(3)], [5, 9, 3])
check("take", jnp.take(x, np.array([N - 2])), [9])
check("dynamic_slice", lax.dynamic_slice(x, (N - 4,), (2,)), [2, 3])
for name in ("argmax", "argmin", "count_nonzero"):
    refused(name, getattr(jnp, name), x)
with jax.enable_x64(True):
    check("argmax", jnp.argmax(x), N - 2)
    check("argmin", jnp.argmin(x), 0)
y = x.at[N - 3].set(7)
check("at[n - 3].set", y[-4:], [2, 7, 9, 5])
del y
y = x.at[-1 - jnp.arange(2)].add(1)
check("at[indices].add", y[-3:], [3, 10, 6])
