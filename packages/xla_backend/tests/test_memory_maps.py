"""A process has a limited number of memory mappings. Executables are dropped before the limit is reached."""

import warnings

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.xla_backend import memory_maps

pytestmark = pytest.mark.skipif(memory_maps.limit() is None, reason="the system has no such limit")


def compiled(count):
    """`count` functions, each compiled."""
    functions = [jit(lambda x, k=k: lax.add(lax.mul(lax.sin(x), np.float32(k)), np.float32(1))) for k in range(count)]
    for f in functions:
        f(np.float32(0))
    return functions


def test_executables_are_dropped_before_the_limit_of_memory_maps(monkeypatch):
    compiled(1)
    monkeypatch.setattr(memory_maps, "EVERY", 8)
    start = memory_maps.taken()
    held = compiled(32)
    grown = memory_maps.taken() - start  # the mappings of 32 programs
    del held
    monkeypatch.setattr(memory_maps, "limit", lambda: (start + grown) / memory_maps.SHARE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = compiled(96)
    assert memory_maps.taken() - start < 2 * grown
    for k, f in enumerate(held):  # dropped ones are compiled again
        if k % 16 == 0:
            assert f(np.float32(0)) == 1


def test_a_warning_reports_the_limit_of_memory_maps(monkeypatch):
    monkeypatch.setattr(memory_maps, "EVERY", 1)
    monkeypatch.setattr(memory_maps, "limit", lambda: 10)
    with pytest.warns(RuntimeWarning, match="vm.max_map_count"):
        compiled(1)
