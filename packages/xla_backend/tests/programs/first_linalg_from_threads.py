"""The first calls of the linear algebra, from sixteen threads."""

import threading

import numpy as np

import bedrax.xla_backend  # noqa: F401  the executor
from bedrax.lax.primitives import linalg

A = np.eye(40, dtype=np.float32) * 3 + np.ones((40, 40), np.float32)
calls = (linalg.cholesky, linalg.qr, linalg.lu, linalg.svd, linalg.eigh, linalg.eig, linalg.schur, linalg.hessenberg)
start, failures = threading.Barrier(16), []


def run(fun):
    start.wait()
    try:
        out = fun(A)
        [np.asarray(x) for x in (out if isinstance(out, (list, tuple)) else [out])]
    except Exception as error:
        failures.append(error)


threads = [threading.Thread(target=run, args=(fun,)) for fun in calls * 2]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not failures, failures
