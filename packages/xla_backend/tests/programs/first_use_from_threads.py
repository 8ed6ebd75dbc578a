"""The first use of the backend, from eight threads: python first_use_from_threads.py imported|offered"""

import sys
import threading

import numpy as np

if sys.argv[1] == "imported":
    import bedrax.xla_backend
else:
    import bedrax.numpy_backend  # noqa: F401  offers the backend of NumPy
    from bedrax.core import executors

    executors.offer("bedrax.xla_backend", rank=1)
from bedrax import lax
from bedrax.core.jitting import jit

errors, start = [], threading.Barrier(8)


def work(i):
    try:
        start.wait()
        x = np.full(3, i, np.float32)
        y = lax.add(lax.tanh(x), x)
        z = jit(lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=3)[0])(y)
        want = np.sin(np.sin(np.sin(np.tanh(x) + x)))
        np.testing.assert_allclose(np.asarray(z), want, rtol=1e-5)
    except BaseException as e:
        errors.append(repr(e))


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
from bedrax.core import executors

print("executor", executors.get().name, "errors", errors)
