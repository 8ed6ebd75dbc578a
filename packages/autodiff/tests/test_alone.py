"""Differentiation needs nothing but what it declares: NumPy evaluates, whatever is imported first."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("first", ["from bedrax.autodiff import grad", "from bedrax.batching import vmap"])
def test_importing_one_name_is_enough_to_evaluate(first):
    code = f"""
{first}
from bedrax import lax
from bedrax.core import executors
import numpy as np
assert float(lax.sin(np.float32(0))) == 0
assert executors.get().name == "numpy"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
