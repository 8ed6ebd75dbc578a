"""Dropped functions free their programs and arrays immediately; `clear_caches` frees the rest."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import context


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def array():
    return lax.add(xla.device_put(np.arange(1000, dtype=np.float32)), np.float32(1))


def called():
    closed_over = array()
    f = xla.jit(lambda x: lax.add(closed_over, x))
    f(np.ones(1000, np.float32))
    return closed_over, f._jitted


def called_with_a_static_argument():
    closed_over = array()
    f = xla.jit(lambda n, x: lax.mul(lax.add(closed_over, x), np.float32(n)), static_argnums=0)
    for n in (2, 1, True, (1, 2)[0]):
        f(n, np.ones(1000, np.float32))
    return closed_over, f._jitted


def compiled():
    closed_over = array()
    f = xla.jit(lambda x: lax.add(closed_over, x)).lower(np.ones(1000, np.float32)).compile()
    f(np.ones(1000, np.float32))
    return closed_over, f


def failed():
    closed_over = array()

    def f(x):
        raise ValueError(str(lax.add(closed_over, x)))

    with pytest.raises(ValueError, match="Traced"):
        xla.jit(f)(np.ones(1000, np.float32))
    return (closed_over,)


@pytest.mark.parametrize("use", [called, called_with_a_static_argument, compiled, failed])
def test_a_dropped_program_frees_what_it_holds_immediately(use, no_collector):
    alive = [weakref.ref(x) for x in use()]
    assert [ref() for ref in alive] == [None] * len(alive)


def test_an_executable_is_freed_with_its_program(no_collector):
    f = xla.jit(lambda x: lax.sin(x))
    f(np.ones(3, np.float32))
    programs = [f._jitted.cache.get(key).jaxpr for key in f._jitted.cache]
    loaded = [weakref.ref(x) for key, x in programs.pop().cache.items() if key[0] == "xla"]
    assert len(loaded) == 1 and loaded[0]() is not None
    del f
    assert loaded[0]() is None


def test_clear_caches_frees_meshes():
    program = Path(__file__).parent / "programs/forgotten_meshes.py"
    subprocess.run([sys.executable, program], check=True, timeout=100)


def test_an_open_block_keeps_its_context_when_caches_are_cleared():
    variable = context.Variable("lifetimes", None, keyed=True)
    with variable("outer"):
        inside = context.trace_context()
        xla.clear_caches()
        assert context.trace_context() is inside
        with variable("inner"):
            assert dict(context.trace_context())["lifetimes"] == "inner"
        assert context.trace_context() is inside


def test_tables_of_types_and_attributes_are_bounded(monkeypatch):
    from bedrax.xla_backend.lowering import types

    tables = ("_ranked", "_tensors", "_parsed", "_converted", "_scalars")
    for name in tables:
        monkeypatch.setattr(types, name, {})
    monkeypatch.setattr(types, "_MOST", 4)
    f32 = np.dtype(np.float32)
    for n in range(10):
        assert str(types.tensor_type((n,), f32)) == f"tensor<{n}xf32>"
        assert str(types.parse(f"{n} : i64")) == f"{n} : i64" == str(types.attribute(n))
        assert str(types.splat(n, f32, ())).startswith(f"dense<{n}.0")
    assert all(0 < len(getattr(types, name)) <= 4 for name in tables)
