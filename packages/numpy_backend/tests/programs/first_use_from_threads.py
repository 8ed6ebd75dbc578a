"""The first use of the NumPy backend, from eight threads."""

import sys
import threading

sys.modules["jaxlib"] = None
import numpy as np

import bedrax.numpy_backend  # noqa: F401  the executor
from bedrax import lax
from bedrax.core import offers

offers.name_all({})  # as if nothing else were installed

errors, start = [], threading.Barrier(8)


def work(i):
    try:
        start.wait()
        x = np.full(3, i, np.float32)
        y = lax.scan(lambda c, _: (lax.sin(c), None), lax.add(lax.tanh(x), x), None, length=3)[0]
        want = np.tanh(x) + x
        for _ in range(3):
            want = np.sin(want)
        np.testing.assert_allclose(np.asarray(y), want, rtol=1e-5)
    except BaseException as e:
        errors.append(repr(e))


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("errors", errors)
