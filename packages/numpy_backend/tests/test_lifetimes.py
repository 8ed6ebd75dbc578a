"""What is traced is forgotten with the function that was traced."""

import gc
import weakref

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import jit


@pytest.mark.parametrize(
    "use",
    [
        lambda f: jit(f)(1.0),
        lambda f: lax.scan(f, np.float32(0), np.ones(3, np.float32)),
        lambda f: lax.while_loop(lambda x: lax.lt(x, np.float32(3)), f, np.float32(0)),
        lambda f: lax.cond(True, f, f, 1.0),
    ],
    ids=["jit", "scan", "while_loop", "cond"],
)
def test_functions_are_not_kept_alive(use):
    def f(c, x=None):
        moved = lax.add(c, np.float32(1)) if not isinstance(c, float) else c
        return moved if x is None else (moved, x)

    use(f)
    reference = weakref.ref(f)
    del f
    gc.collect()
    assert reference() is None
