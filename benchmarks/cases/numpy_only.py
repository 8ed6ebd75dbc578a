"""An installation without jaxlib: gradients compared with autograd's, their memory with that of a program of NumPy
functions, pytrees with optree's."""

from ..case import Case
from . import pytrees

OURS = """
import sys
sys.modules["jaxlib"] = None  # an import of it fails
import numpy as onp
import bedrax.numpy as np
from bedrax.autodiff import grad
from bedrax.core import offers
from bedrax.core.jitting import jit
offers.name_all({})  # as if the packages that need jaxlib were not installed
"""
AUTOGRAD = """
import numpy as onp
import autograd.numpy as np
from autograd import grad
jit = lambda f: f
"""
PROGRAMS = """
rng = onp.random.default_rng(0)
w1, w2, b1, b2 = rng.normal(size=(64, 32)), rng.normal(size=(32, 10)), onp.zeros(32), onp.zeros(10)
images, targets = rng.normal(size=(128, 64)), onp.eye(10)[rng.integers(10, size=128)]
params = [(w1, b1), (w2, b2)]
vector = rng.normal(size=1000)
weights, inputs, outputs = onp.zeros(64), rng.normal(size=(128, 64)), rng.integers(2, size=128) * 1.0

def mlp(params, x, y):
    for w, b in params[:-1]:
        x = np.tanh(np.dot(x, w) + b)
    w, b = params[-1]
    logits = np.dot(x, w) + b
    logits = logits - np.max(logits, axis=1, keepdims=True)
    return -np.mean(np.sum(y * (logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))), axis=1))

def scalar(x):
    for _ in range(20):
        x = np.sin(x) * x + 1.0
    return x

def elementwise(x):
    return np.sum(np.exp(-(x**2)) * np.tanh(x) / (1.0 + x**2))

def logistic(w, x, y):
    return np.mean(np.log(1.0 + np.exp(-(2.0 * y - 1.0) * np.dot(x, w))))

def recurrent(w, x):
    h = np.zeros(32)
    for row in x:
        h = np.tanh(np.dot(row, w) + h)
    return np.sum(h)

def indexing(x):
    return np.sum(x[1:] * x[:-1]) + np.sum(np.where(x > 0, x, 0.1 * x)) + np.sum(x.reshape(10, 100)[3])

d_mlp, d_scalar, d_elementwise = grad(mlp), grad(scalar), grad(elementwise)
d_logistic, d_recurrent, d_indexing, d2_scalar = grad(logistic), grad(recurrent), grad(indexing), grad(grad(scalar))
"""
STATEMENTS = {
    "MLP": "d_mlp(params, images, targets)",
    "scalar chain": "d_scalar(0.5)",
    "scalar chain, twice": "d2_scalar(0.5)",
    "elementwise": "d_elementwise(vector)",
    "logistic regression": "d_logistic(weights, inputs, outputs)",
    "recurrent network, 20 steps": "d_recurrent(w1, images[:20])",
    "slices and where": "d_indexing(vector)",
}
JITTED = (
    PROGRAMS
    + """
d_mlp, d_scalar, d_elementwise, d2_scalar = jit(d_mlp), jit(d_scalar), jit(d_elementwise), jit(d2_scalar)
d_logistic, d_recurrent, d_indexing = jit(d_logistic), jit(d_recurrent), jit(d_indexing)
"""
)
# The gradient of `elementwise`, as one writes it: a forward pass that keeps what the backward pass reads.
MEMORY = """
import tracemalloc

large = onp.random.default_rng(0).normal(size=1_000_000).astype(onp.float32)

def by_hand(x):
    square = x * x
    e, t, d = onp.exp(-square), onp.tanh(x), 1 + square
    ratio = e * t / d
    value = onp.sum(ratio)
    d_product, d_d = 1 / d, -ratio / d
    d_e, d_t = d_product * t, d_product * e
    return -2 * x * e * d_e + (1 - t * t) * d_t + 2 * x * d_d

def peak(function, *args):
    "The most memory that NumPy has allocated in a call, in MiB. Caches are filled before."
    for _ in range(50):
        function(*args)
    tracemalloc.start()
    function(*args)
    found = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return found
"""
PYTREE = """
import sys
sys.modules["jaxlib"] = None
from bedrax.pytree import (
    tree_flatten, tree_flatten_with_path, tree_leaves, tree_map, tree_structure, tree_unflatten
)
"""

CASES = (
    [
        Case(
            f"NumPy-only gradients/{name}",
            statement,
            {"ours": OURS + PROGRAMS, "autograd": AUTOGRAD + PROGRAMS},
            peers=("autograd",),
            target=1.0,
        )
        for name, statement in STATEMENTS.items()
    ]
    + [
        Case(
            f"NumPy-only jitted gradients/{name}",
            statement,
            {"ours": OURS + JITTED, "autograd": AUTOGRAD + JITTED},
            peers=("autograd",),
            target=0.35,
        )
        for name, statement in STATEMENTS.items()
    ]
    + [
        Case(
            f"NumPy-only memory/elementwise gradient, {name}",
            {"ours": statement, "autograd": "peak(by_hand, large)"},
            {"ours": OURS + PROGRAMS + MEMORY, "autograd": AUTOGRAD + MEMORY},
            peers=("autograd",),
            target=1.0,
            unit="MiB",
        )
        for name, statement in (
            ("by grad", "peak(d_elementwise, large)"),
            ("by jit(grad)", "peak(jit(d_elementwise), large)"),
        )
    ]
    + [
        Case(
            f"NumPy-only pytrees/{name}",
            statement,
            {"ours": PYTREE + pytrees.TREES, "optree": pytrees.OPTREE + pytrees.TREES},
            peers=("optree",),
            target=1.5,
        )
        for name, statement in pytrees.STATEMENTS.items()
    ]
)
