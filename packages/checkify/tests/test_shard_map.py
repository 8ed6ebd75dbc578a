"""Checks inside of programs on blocks: any device may fail, and the message names the device."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.checkify import all_checks, check, checkify, user_checks
from bedrax.core.jitting import jit
from bedrax.parallel import AbstractMesh, PartitionSpec, shard_map

MESH = AbstractMesh((2, 2), ("x", "y"))
P = PartitionSpec
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")


def positive(x):
    check(lax.gt(lax.reduce_min(x, (0, 1)), np.float32(0)), "least is {}", lax.reduce_min(x, (0, 1)))
    return lax.psum(lax.log(x), "x")


@pytest.mark.parametrize("check_vma", [False, True])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_every_device_reports(compiled, check_vma):
    f = shard_map(positive, mesh=MESH, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=check_vma)
    run = checkify(f, errors=all_checks)
    run = jit(run) if compiled else run
    x = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    error, y = run(x)
    assert error.get() is None
    np.testing.assert_allclose(y, np.log(x[:2]) + np.log(x[2:]), rtol=1e-6)
    x[3, 1] = -5
    message = run(x)[0].get()
    assert "least is -5.0" in message and "at mapped index 1,0" in message and __file__ in message
    message = checkify(f, errors=all_checks - user_checks)(x)[0].get()
    assert "primitive: log" in message and "at mapped index 1,0" in message


def test_loops_inside():
    def body(x):
        return lax.fori_loop(0, 2, lambda i, y: lax.sqrt(lax.sub(y, np.float32(1))), x)

    f = checkify(shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x")), errors=all_checks)
    assert f(np.full((2, 3), 5, np.float32))[0].get() is None
    assert "sqrt" in f(np.array([[5] * 3, [1] * 3], np.float32))[0].get()
