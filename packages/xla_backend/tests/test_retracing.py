"""The reasons for which functions are traced again, and the warnings about known traps."""

import inspect
import logging
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

from bedrax import lax
from bedrax import xla_backend as xla
from bedrax.core import config, retracing
from bedrax.core.jitting import jit

HERE = __file__


@pytest.fixture
def warned(caplog):
    """Forget earlier traces; the warnings of the doctor."""
    retracing._made.clear()
    retracing._warned.clear()
    with caplog.at_level(logging.WARNING, "jax.doctor"):
        yield lambda: [r.getMessage() for r in caplog.records if r.name == "jax.doctor"]


def changes_of(function):
    return [list(r.changes) for r in retracing.of(function)]


def test_each_kind_of_change_is_named():
    def f(params, scale=1.0, *, n=1):
        return params["w"] * scale * n

    jitted = jit(f, static_argnames="n")
    jitted({"w": np.ones(3, "f")})
    jitted({"w": np.ones(4, "f")})
    jitted({"w": np.ones(4, "i")})
    jitted({"w": np.ones(4, "i")}, np.float32(1))
    jitted({"w": np.ones(4, "i")}, 1.0)
    jitted({"w": np.ones(4, "i")}, 1.0, n=2)
    jitted({"w": np.ones(4, "i")}, 1.0, n=3)
    jitted({"w": np.ones(4, "i"), "b": 1})
    with config.overriding(jax_enable_x64=True):
        jitted({"w": np.ones(4, "i")})
    found = changes_of(f)
    assert found[0] == []
    assert found[1] == ["new types: params['w'] is float32[4], was float32[3] (shape)"]
    assert found[2] == ["new types: params['w'] is int32[4], was float32[4] (dtype)"]
    assert found[3][0].startswith("new structure of the arguments: ")
    assert found[4] == ["new types: scale is float32[] (weak), was float32[] (weak type)"]
    assert found[5] == ["new static arguments: n is 2, was not given"]
    assert found[6] == ["new static arguments: n is 3, was 2"]
    assert found[7][0].startswith("new structure of the arguments: ")
    assert found[8] == ["new options and context managers: jax_enable_x64 is True, was at its default"]


def test_a_split_type_is_another_placement():
    class Type:
        shape, dtype, weak_type, vma = (2,), np.dtype("f"), False, frozenset()

        def __init__(self, split):
            self.split = split

    assert retracing._aspects(Type(None), Type("data")) == "placement"


def test_the_reason_names_the_line_and_the_definition(caplog):
    def f(x):
        return x + 1

    jitted = jit(f)
    with config.overriding(jax_explain_cache_misses=True), caplog.at_level(logging.WARNING, "jax.jit"):
        jitted(np.ones(2, "f"))
        jitted(np.ones(3, "f"))
    first, second = [r.getMessage() for r in caplog.records if r.name == "jax.jit"]
    line = f.__code__.co_firstlineno
    assert first.startswith(f"jit traces f at {HERE}:{line}, called at {HERE}:{line + 5} ")
    assert "has not been traced before" in first
    assert f"called at {HERE}:{line + 6} " in second and second.endswith("x is float32[3], was float32[2] (shape)")


def test_a_known_signature_is_no_retrace():
    def f(x):
        return x + 1

    jitted = jit(f)
    for _ in range(5):
        jitted(np.ones(2, "f"))
    assert changes_of(f) == [[]]


def loop(count=30):
    for _ in range(count):
        jit(lambda x: x + 1)(np.ones(2, "f"))


def test_jit_in_a_loop_warns_once(warned):
    loop()
    loop()
    (text,) = warned()
    assert text.startswith("<lambda> at ") and "jit got a new function object" in text and HERE in text
    assert "jax_warn_jit_in_loop=False" in text


def test_jit_for_other_types_does_not_warn(warned):
    for i in range(30):
        jit(lambda x: x + 1)(np.ones(i, "f"))
    assert warned() == []


def test_growing_shapes_warn_once(warned):
    def f(x, y):
        return lax.reduce_sum(x, (0, 1)) + y

    jitted = jit(f)
    for i in range(30):
        jitted(np.ones((2, i), "f"), 1.0)
    (text,) = warned()
    assert "for 8 lengths of axis 1 of x (0, 1, 2, 3, 4, ...)" in text and "jax_warn_growing_shapes=False" in text


def test_other_signatures_are_no_growing_shapes(warned):
    jitted = jit(lambda x: x)
    for rank in range(10):
        jitted(np.ones((2,) * rank, "f"))
    assert warned() == []


def grow():
    x = lax.full((1,), 0.0)
    for _ in range(40):
        x = lax.concatenate([x, lax.slice_in_dim(x, 0, 1)], 0)
    return x


def test_an_eager_loop_warns_once(warned):
    grow()
    (text,) = [w for w in warned() if "concatenate" in w]
    assert "jax_warn_eager_loop=False" in text and HERE in text


def test_loops_of_installed_libraries_do_not_warn(warned, tmp_path):
    file = tmp_path / "site-packages" / "library.py"
    program = f"{inspect.getsource(grow)}\n{inspect.getsource(loop)}"
    library = {"lax": lax, "jit": jit, "np": np}
    exec(compile(program, file, "exec"), library)
    library["grow"]()
    library["loop"]()
    assert warned() == []


def test_a_compiled_loop_does_not_warn(warned):
    jit(grow)()
    assert warned() == []


def test_each_warning_can_be_switched_off(warned):
    options = dict(jax_warn_jit_in_loop=False, jax_warn_growing_shapes=False, jax_warn_eager_loop=False)
    with config.overriding(**options):
        loop()
        jitted = jit(lambda x: x)
        for i in range(30):
            jitted(np.ones(i, "f"))
        x = lax.full((1,), 0.0)
        for _ in range(40):
            x = lax.concatenate([x, lax.slice_in_dim(x, 0, min(2, x.size))], 0)
    assert warned() == []


def test_the_large_constant_warns_and_can_be_switched_off():
    big = np.ones(1000, "f")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with config.overriding(jax_captured_constants_warn_bytes=100):
            jit(lambda x: x + big)(np.ones(1000, "f"))
        with config.overriding(jax_captured_constants_warn_bytes=-1):
            jit(lambda x: x - big)(np.ones(1000, "f"))
    assert len(found) == 1


def test_decompositions_have_the_line_of_their_equation():
    def power(x):
        return x**3

    line = power.__code__.co_firstlineno + 1
    for _ in range(2):  # the second module takes the decomposition from a cache
        text = xla.jit(power).lower(np.float32(2)).as_text(debug_info=True)
        assert f'{HERE}":{line}:' in text and f'{HERE}":{line + 5}' not in text


def test_another_placement_is_named():
    """Two CPU devices need a new process."""
    program = pathlib.Path(HERE).with_name("programs") / "another_placement.py"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
