"""Loads a compiled program of another process and calls it: python load_executable.py FILE"""

import pickle
import sys

import numpy as np

from bedrax import pytree
from bedrax.xla_backend.executables import deserialize_and_load

data = pickle.loads(open(sys.argv[1], "rb").read())
x = np.ones(3, np.float32)
f = deserialize_and_load(data, pytree.tree_structure(((x,), {})), pytree.tree_structure(x))
np.testing.assert_allclose(f(x), np.sin(x), rtol=1e-6)
