"""Options: values, overrides per thread, the trace context, the command line."""

import os
import subprocess
import sys
import threading

import pytest

from bedrax.core import config as options
from bedrax.core.config import config


@pytest.fixture
def restored():
    """Global values are put back."""
    before = {name: flag.global_value for name, flag in options._flags.items()}
    yield
    for name, value in before.items():
        if options._flags[name].global_value != value:
            config.update(name, value)


def test_update_and_read(restored):
    assert config.jax_enable_x64 is False
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True
    assert config.read("jax_enable_x64") is True
    assert config.values["jax_enable_x64"] is True
    assert options.enable_x64.value is True and config.x64_enabled


def test_unknown_option_names_itself_and_a_neighbour():
    with pytest.raises(AttributeError, match=r"Unrecognized config option: jax_enable_x46.*jax_enable_x64"):
        config.update("jax_enable_x46", True)
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_nothing"):
        _ = config.jax_nothing
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.jax_enable_x64 = True


@pytest.mark.parametrize(
    "name, value",
    [
        ("jax_enable_x64", "maybe"),
        ("jax_enable_x64", 2),
        ("jax_enable_x64", None),
        ("jax_default_matmul_precision", "float99"),
        ("jax_numpy_rank_promotion", None),
        ("jax_compilation_cache_dir", 3),
        ("jax_captured_constants_warn_bytes", "many"),
        ("jax_captured_constants_warn_bytes", True),
        ("jax_exec_time_optimization_effort", "x"),
        ("jax_default_device", 3.5),
    ],
)
def test_bad_values_are_refused(name, value):
    before = config.read(name)
    with pytest.raises(ValueError, match=f"{name} must be"):
        config.update(name, value)
    with pytest.raises(ValueError, match=f"{name} must be"):
        options._flags[name](value)
    assert config.read(name) == before


def test_every_default_is_a_valid_value():
    for flag in options._flags.values():
        assert flag.validate(flag.default) == flag.default, flag.name


def test_nested_overrides_come_back():
    x64 = options.enable_x64
    with x64(True):
        assert x64.value is True and x64.global_value is False and x64.local_value is True
        with x64(False):
            assert x64.value is False
        assert x64.value is True
    assert x64.value is False and x64.local_value is options.UNSET


def test_override_ends_when_an_error_leaves():
    with pytest.raises(ZeroDivisionError), options.debug_nans(True):
        1 / 0
    assert options.debug_nans.value is False


def test_override_as_decorator_and_entered_twice():
    @options.default_matmul_precision("float32")
    def read(depth=1):
        if depth:
            assert read(depth - 1) == "float32"
        return config.jax_default_matmul_precision

    assert read() == "float32"
    assert config.jax_default_matmul_precision is None
    manager = options.enable_x64(True)
    with manager, manager:
        assert options.enable_x64.value
    assert not options.enable_x64.value


def test_bool_flags_default_to_true_others_need_a_value():
    with options.enable_x64():
        assert options.enable_x64.value
    with options.enable_x64(new_val=True):
        assert options.enable_x64.value
    with pytest.raises(TypeError, match="needs the value"):
        options.numpy_rank_promotion()
    with pytest.raises(TypeError, match="one argument"):
        options.enable_x64(value=True)


def test_a_flag_is_not_its_value():
    with pytest.raises(TypeError, match="value"):
        bool(options.enable_x64)


def test_overrides_are_of_one_thread(restored):
    seen = {}

    def other():
        seen["before"] = options.enable_x64.value
        config.update("jax_enable_x64", True)
        with options.enable_x64(False):
            seen["context"] = options.trace_context()
            inside.set()
            go_on.wait(5)

    inside, go_on = threading.Event(), threading.Event()
    with options.enable_x64(False):
        mine = options.trace_context()
        t = threading.Thread(target=other)
        t.start()
        assert inside.wait(5)
        assert options.enable_x64.value is False
        assert options.trace_context() is seen["context"] is mine
        go_on.set()
        t.join()
    assert seen["before"] is False
    assert options.enable_x64.value is True  # what the other thread set for all


def test_trace_context_is_one_object_per_combination(restored):
    base = options.trace_context()
    assert options.trace_context() is base
    with options.enable_x64(True):
        x64 = options.trace_context()
        assert x64 is not base and x64 != base and hash(x64) != hash(base)
        with options.default_matmul_precision("highest"):
            assert options.trace_context() not in (base, x64)
        assert options.trace_context() is x64
    assert options.trace_context() is base
    with options.log_compiles(True):  # not part of it
        assert options.trace_context() is base
    config.update("jax_enable_x64", True)
    assert options.trace_context() is x64
    assert len(x64) == len(options.keyed_flags())
    assert [f.value for f in options.keyed_flags()] == list(x64)


def test_trace_context_when_overrides_end_out_of_order():
    base = options.trace_context()
    a, b = options.enable_x64(True), options.debug_nans(True)
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    with options.debug_nans(True):
        expected = options.trace_context()
    assert options.trace_context() is expected
    b.__exit__(None, None, None)
    assert options.trace_context() is base


def test_listeners_see_changes(restored):
    seen = []

    def note(name, flag):
        seen.append((name, flag.global_value, flag.value))

    options.on_change(note)
    try:
        config.update("jax_debug_infs", True)
        with options.debug_infs(False):
            pass
    finally:
        options._listeners.remove(note)
    assert seen == [
        ("jax_debug_infs", True, True),
        ("jax_debug_infs", True, False),
        ("jax_debug_infs", True, True),
    ]


def test_enum_members_stand_for_their_values(restored):
    import enum

    class Mode(enum.Enum):
        STRICT = "strict"

    config.update("jax_numpy_dtype_promotion", Mode.STRICT)
    assert config.jax_numpy_dtype_promotion == "strict"


def test_flags_without_effect_say_so(restored):
    with pytest.warns(UserWarning, match="jax_pallas_poison_buffers has no effect"):
        config.update("jax_pallas_poison_buffers", True)
    config.update("jax_pallas_poison_buffers", False)


def test_a_flag_is_declared_once():
    with pytest.raises(ValueError, match="declared already"):
        options.flag("jax_enable_x64", False, "again")


def test_several_at_once():
    with options.overriding(jax_enable_x64=True, jax_debug_nans=True):
        assert options.enable_x64.value and options.debug_nans.value
    assert not options.enable_x64.value and not options.debug_nans.value


def _run(code, *args, **env):
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env})  # fmt: skip


def test_environment():
    code = "from bedrax.core.config import config as c; print(c.jax_enable_x64, c.jax_platforms, c.jax_num_cpu_devices)"
    result = _run(code, JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="4")
    assert result.stdout.split() == ["True", "cpu", "4"], result.stderr
    result = _run(code, JAX_NUM_CPU_DEVICES="four")
    assert result.returncode != 0
    assert "JAX_NUM_CPU_DEVICES" in result.stderr and "'four'" in result.stderr


def test_command_line():
    pytest.importorskip("absl")
    code = (
        "import sys; from bedrax.core.config import config as c; c.parse_flags_with_absl();"
        "print(c.jax_enable_x64, c.jax_default_matmul_precision, c.jax_captured_constants_warn_bytes, c.jax_debug_nans)"
    )
    result = _run(
        code, "--jax_enable_x64", "--jax_default_matmul_precision=highest", "--other=1",
        "--jax_captured_constants_warn_bytes=5", JAX_DEBUG_NANS="true")  # fmt: skip
    assert result.stdout.split() == ["True", "highest", "5", "True"], result.stderr
