"""Operations that hold programs with references: the programs derived from theirs are made once."""

import numpy as np
import pytest

import bedrax.numpy as jnp
import bedrax.numpy.methods  # noqa: F401
from bedrax import lax, state
from bedrax.core import executors
from bedrax.core.jitting import jit
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p

ref = state.new_ref(jnp.zeros(2))
XS = np.ones((3, 2), np.float32)


def _add_row(carry, x):
    ref[...] += x
    return carry, None


def _small(_):
    return ref[0] < 3


def _add_one(n):
    ref[...] += 1.0
    return n + 1


def _double(x):
    ref[...] *= 2.0
    return x


def _nothing(x):
    return x


RUNS = {
    "scan": (lambda: lax.scan(_add_row, 0, XS), [3, 3]),
    "while": (lambda: lax.while_loop(_small, _add_one, 0), [3, 3]),
    "cond": (lambda: lax.cond(True, _double, _nothing, 1.0), [0, 0]),
    "other branch": (lambda: lax.cond(False, _double, _nothing, 1.0), [0, 0]),
    "jit": (jit(lambda: _add_one(0)), [1, 1]),
}


@pytest.mark.parametrize("name", RUNS)
def test_programs_are_derived_once(name, monkeypatch):
    run, wanted = RUNS[name]
    found = []
    active = executors.get()
    apply = active.apply
    noted = lambda prim, args, params: found.append((prim, params)) or apply(prim, args, params)
    monkeypatch.setattr(active, "apply", noted, raising=False)
    for _ in range(2):
        found.append("again")
        ref[...] = jnp.zeros(2)
        run()
        np.testing.assert_array_equal(ref[...], wanted)
    half = len(found) // 2
    held = [
        [p for p in part if p != "again" and p[0] in (scan_p, while_p, cond_p)] for part in (found[:half], found[half:])
    ]
    assert len(held[0]) == len(held[1]) == (name != "jit")
    for (_, first), (_, second) in zip(*held, strict=True):
        assert all(first[k] is second[k] or first[k] == second[k] for k in first)
