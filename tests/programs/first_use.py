"""The traces of calls of public functions, each as the first action of a process; see `tests/surface/test_first.py`.

``first_use.py CALLS``: a pickle of ``[(module, name, args, kwargs)]``. Prints per call: module, name, result of
`outcome`.
"""

import importlib
import os
import pickle
import sys
import warnings

import jax
import numpy as np


def outcome(module, name, args, kwargs):
    """The program of a call with its arrays as arguments, or the class of its error."""
    leaves, tree = jax.tree.flatten((args, kwargs), is_leaf=lambda x: x is None)
    arrays = [i for i, x in enumerate(leaves) if isinstance(x, (np.ndarray, np.generic))]

    def call(*given):
        now = dict(zip(arrays, given))
        args, kwargs = jax.tree.unflatten(tree, [now.get(i, x) for i, x in enumerate(leaves)])
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    try:
        return str(jax.make_jaxpr(call)(*[leaves[i] for i in arrays])).replace("\n", " ")
    except Exception as error:
        return type(error).__name__


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        calls = pickle.load(file)
    for each in calls:
        child = os.fork()  # no loaded module has started threads
        if not child:
            warnings.simplefilter("ignore")
            print(*each[:2], outcome(*each), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
