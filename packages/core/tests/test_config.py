"""Options: values, overrides per thread, the trace context, the command line."""

import os
import pickle
import subprocess
import sys
import threading

import pytest

from bedrax.core import config as options
from bedrax.core import offers
from bedrax.core.config import config
from bedrax.core.context import UNSET, Variable, global_trace_context, trace_context

# One flag of each kind, declared once.
some_bytes = options.flag("test_bytes", 32, "a number of bytes")
some_effort = options.flag("test_effort", 0.0, "a number")
some_object = options.flag("test_object", None, "text", kind=object, check=lambda x: isinstance(x, str))
some_inert = options.flag("test_inert", False, "nothing", inert="it is there for this test")
some_choice = options.flag("test_choice", None, "a word, keyed", choices=("float32", "highest", "high"), keyed=True)


@pytest.fixture
def restored():
    """Restore the global values."""
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
    with pytest.raises(AttributeError, match=r"no option jax_enable_x46 .*jax_enable_x64"):
        config.update("jax_enable_x46", True)
    with pytest.raises(AttributeError, match="no option jax_nothing"):
        _ = config.jax_nothing
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.jax_enable_x64 = True


@pytest.mark.parametrize(
    "name, value",
    [
        ("jax_enable_x64", "maybe"),
        ("jax_enable_x64", 2),
        ("jax_enable_x64", None),
        ("jax_numpy_dtype_promotion", "float99"),
        ("jax_numpy_dtype_promotion", None),
        ("jax_debug_log_modules", 3),
        ("test_bytes", "many"),
        ("test_bytes", True),
        ("test_effort", "x"),
        ("test_object", 3.5),
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


def test_nested_overrides_restore_the_outer_value():
    x64 = options.enable_x64
    with x64(True):
        assert x64.value is True and x64.global_value is False and x64.local_value is True
        with x64(False):
            assert x64.value is False
        assert x64.value is True
    assert x64.value is False and x64.local_value is UNSET


def test_override_ends_when_an_error_leaves():
    with pytest.raises(ZeroDivisionError), options.debug_nans(True):
        1 / 0
    assert options.debug_nans.value is False


def test_override_as_decorator_and_entered_twice():
    @some_choice("float32")
    def read(depth=1):
        if depth:
            assert read(depth - 1) == "float32"
        return config.test_choice

    assert read() == "float32"
    assert config.test_choice is None
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
        options.numpy_dtype_promotion()
    with pytest.raises(TypeError, match="one argument"):
        options.enable_x64(value=True)


def test_a_flag_has_no_boolean_value():
    with pytest.raises(TypeError, match="value"):
        bool(options.enable_x64)


def test_overrides_are_of_one_thread(restored):
    seen = {}

    def other():
        seen["before"] = options.enable_x64.value
        config.update("jax_enable_x64", True)
        with options.enable_x64(False):
            seen["context"] = trace_context()
            inside.set()
            go_on.wait(5)

    inside, go_on = threading.Event(), threading.Event()
    with options.enable_x64(False):
        mine = trace_context()
        t = threading.Thread(target=other)
        t.start()
        assert inside.wait(5)
        assert options.enable_x64.value is False
        assert trace_context() is seen["context"] is mine
        go_on.set()
        t.join()
    assert seen["before"] is False
    assert options.enable_x64.value is True  # the global value that the other thread set


def test_trace_context_is_one_object_per_combination(restored):
    base = trace_context()
    assert trace_context() is base
    with options.enable_x64(True):
        x64 = trace_context()
        assert x64 is not base and x64 != base and hash(x64) != hash(base)
        with some_choice("highest"):
            assert trace_context() not in (base, x64)
        assert trace_context() is x64
    assert trace_context() is base
    with options.no_tracing(True):  # not part of it
        assert trace_context() is base
    config.update("jax_enable_x64", True)
    assert trace_context() is x64
    assert x64 == global_trace_context() and dict(x64) == {"jax_enable_x64": True}
    late = options.flag(f"test_late_{id(x64)}", 1, "declared when programs are cached already", keyed=True)
    assert trace_context() is x64  # nothing is traced again
    with late(2):
        assert dict(trace_context()) == {"jax_enable_x64": True, late.name: 2}


def test_trace_context_when_overrides_end_out_of_order():
    base = trace_context()
    a, b = options.enable_x64(True), options.debug_nans(True)
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    with options.debug_nans(True):
        expected = trace_context()
    assert trace_context() is expected
    b.__exit__(None, None, None)
    assert trace_context() is base


def test_listeners_are_called_for_changes(restored):
    seen = []

    @options.on_change(options.debug_infs)
    def note(flag):
        seen.append((flag.name, flag.global_value, flag.value))

    try:
        config.update("jax_debug_infs", True)
        with options.debug_infs(False), options.debug_nans(True):
            pass
    finally:
        options.debug_infs.listeners.remove(note)
    assert seen == [("jax_debug_infs", True, True), ("jax_debug_infs", True, False), ("jax_debug_infs", True, True)]


def test_a_listener_that_raises_leaves_the_former_value(restored):
    seen = []

    @options.on_change(options.debug_infs)
    def note(flag):
        seen.append(flag.value)

    @options.on_change(options.debug_infs)
    def refuse(flag):
        if flag.value:
            raise RuntimeError("not now")

    key, origin = global_trace_context(), options.debug_infs.origin
    try:
        with pytest.raises(RuntimeError, match="not now"):
            config.update("jax_debug_infs", True)
        assert not options.debug_infs.value and options.debug_infs.origin == origin
        assert global_trace_context() is key and seen == [True, False]
    finally:
        options.debug_infs.listeners.remove(note)
        options.debug_infs.listeners.remove(refuse)


def test_an_enum_member_sets_its_value(restored):
    import enum

    class Mode(enum.Enum):
        STRICT = "strict"

    config.update("jax_numpy_dtype_promotion", Mode.STRICT)
    assert config.jax_numpy_dtype_promotion == "strict"


def test_a_variable_of_the_context_is_no_option(monkeypatch):
    name = "variable_of_this_test"
    monkeypatch.setenv(name.upper(), "1")
    mine = Variable(name, ())
    before = trace_context()
    mine.set_local((1, 2))
    assert mine.value == (1, 2) and trace_context() is not before
    mine.set_local(UNSET)
    assert mine.value == () and trace_context() is before
    assert mine not in options.all_flags() and pickle.loads(pickle.dumps(mine)) is mine
    with pytest.raises(AttributeError, match="there is no option"):
        config.update(name, (3,))
    with pytest.raises(ValueError, match="is declared already"):
        options.flag(name, 1, "again")
    with pytest.raises(ValueError, match="which have no text form"):
        options.flag("test_tuple", (), "a tuple")


def test_flags_without_effect_say_so(restored):
    with pytest.warns(UserWarning, match="test_inert has no effect: it is there"):
        config.update("test_inert", True)
    config.update("test_inert", False)


def test_a_flag_is_declared_once():
    with pytest.raises(ValueError, match="declared already"):
        options.flag("jax_enable_x64", False, "again")


def test_an_option_without_effect_cannot_be_keyed():
    with pytest.raises(ValueError, match="cannot be part of the trace context"):
        options.flag("test_inert_and_keyed", False, "nothing", inert="a test", keyed=True)


def test_flags_of_offered_modules_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "package_with_flags"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    declaration = "from bedrax.core.config import flag\nmine = flag('test_offered', 3, 'a number')\n"
    (folder / "flags.py").write_text(declaration, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("package_that_is_not_installed", "package_with_flags"):
        monkeypatch.setitem(offers._targets, f"options of {name}", f"{name}.flags")
    assert config.jax_enable_x64 is False and "package_with_flags" not in sys.modules
    assert config.test_offered == 3 and "package_with_flags" in sys.modules


def test_flags_of_a_package_that_lacks_a_library_are_left_out(tmp_path, monkeypatch):
    for package, line in ("lacks_a_library", "import library_of_another\n"), ("has_a_fault", "import bedrax.no_such\n"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").write_text(line, encoding="utf-8")
        (folder / "flags.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(offers._targets, "options of lacks_a_library", "lacks_a_library.flags")
    assert config.jax_enable_x64 is False and not hasattr(config, "no_such_option")
    monkeypatch.setitem(offers._targets, "options of has_a_fault", "has_a_fault.flags")
    with pytest.raises(ModuleNotFoundError, match=r"bedrax\.no_such"):
        hasattr(config, "no_such_option")


def test_logging(restored, capsys):
    import logging

    config.update("jax_logging_level", "ERROR")
    assert logging.getLogger("jax").level == logging.ERROR
    config.update("jax_debug_log_modules", "jax.some,jax.other")
    logging.getLogger("jax.some").debug("a word")
    assert "a word" in capsys.readouterr().err
    config.update("jax_debug_log_modules", "")
    assert not logging.getLogger("jax.some").handlers


def test_the_end_of_a_debug_log_restores_the_level_unless_it_was_set_since(restored):
    import logging

    some, other = logging.getLogger("jax.some"), logging.getLogger("jax.other")
    some.setLevel(logging.INFO)
    try:
        config.update("jax_debug_log_modules", "jax.some,jax.other")
        assert some.level == other.level == logging.DEBUG
        other.setLevel(logging.ERROR)
        config.update("jax_debug_log_modules", "")
        assert (some.level, other.level) == (logging.INFO, logging.ERROR)
    finally:
        some.setLevel(logging.NOTSET)
        other.setLevel(logging.NOTSET)


def test_several_options_are_overridden_together():
    with options.overriding(jax_enable_x64=True, jax_debug_nans=True):
        assert options.enable_x64.value and options.debug_nans.value
    assert not options.enable_x64.value and not options.debug_nans.value


def _run(code, *args, **env):
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
    )


def test_the_origin_of_a_value():
    code = "from bedrax.core import config as c; f = c.debug_nans; print(f.origin, c.debug_infs.origin); f.set(False); print(f.origin)"
    assert _run(code, JAX_DEBUG_NANS="1").stdout.split() == ["environment", "default", "code"]
    assert some_effort.origin == "default"
    with some_effort(0.5):
        assert some_effort.origin == "code"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(some_effort.origin))
        thread.start()
        thread.join()
    assert seen == [some_effort.origin] == ["default"]


def test_environment():
    code = "from bedrax.core.config import config as c; print(c.jax_enable_x64, c.jax_numpy_dtype_promotion, c.jax_debug_log_modules)"
    result = _run(code, JAX_ENABLE_X64="1", JAX_NUMPY_DTYPE_PROMOTION="strict", JAX_DEBUG_LOG_MODULES="a.b")
    assert result.stdout.split() == ["True", "strict", "a.b"], result.stderr
    result = _run(code, JAX_NUMPY_DTYPE_PROMOTION="four")
    assert result.returncode != 0
    assert "JAX_NUMPY_DTYPE_PROMOTION" in result.stderr and "'four'" in result.stderr


def test_command_line():
    pytest.importorskip("absl")
    code = (
        "import sys; from bedrax.core.config import flag, config as c; flag('bytes', 3, 'a number'); c.parse_flags_with_absl();"
        "print(c.jax_enable_x64, c.jax_numpy_dtype_promotion, c.bytes, c.jax_debug_nans)"
    )
    result = _run(
        code, "--jax_enable_x64", "--jax_numpy_dtype_promotion=strict", "--other=1", "--bytes=5", JAX_DEBUG_NANS="true"
    )
    assert result.stdout.split() == ["True", "strict", "5", "True"], result.stderr


def in_thread(function):
    """Return the result of `function` in a new thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_one_override_entered_by_two_threads_restores_the_value_of_each():
    shared = some_choice("highest")
    entered, may_leave = threading.Event(), threading.Event()
    after = []

    def other():
        with some_choice("high"):
            with shared:
                entered.set()
                assert may_leave.wait(10)
                after.append(some_choice.value)
            after.append(some_choice.value)
        after.append(some_choice.local_value)

    thread = threading.Thread(target=other)
    with some_choice("float32"):
        with shared:
            thread.start()
            assert entered.wait(10)
        assert some_choice.value == "float32"
        may_leave.set()
        thread.join()
    assert some_choice.local_value is UNSET
    assert after == ["highest", "high", UNSET]


def test_an_override_entered_again_while_active_restores_from_the_inside_out():
    shared = some_choice("highest")
    with shared, some_choice("high"), shared:
        assert some_choice.value == "highest"
    assert some_choice.local_value is UNSET


def test_blocks_may_end_in_another_order_than_they_began():
    first, second = some_choice("high"), some_bytes(7)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (some_choice.local_value, some_bytes.value) == (UNSET, 7)
    second.__exit__(None, None, None)
    assert some_bytes.value == 32


def test_a_thread_exits_only_overrides_that_it_entered():
    shared = some_choice("highest")

    def leave():
        with pytest.raises(RuntimeError, match="has not entered"):
            shared.__exit__(None, None, None)
        return some_choice.local_value

    with shared:
        assert in_thread(leave) is UNSET
        assert some_choice.value == "highest"


def test_concurrent_threads_find_each_offered_option_once(tmp_path, monkeypatch):
    for i in range(8):
        (tmp_path / f"package_in_race_{i}").mkdir()
        (tmp_path / f"package_in_race_{i}" / "__init__.py").write_text("", encoding="utf-8")
        (tmp_path / f"package_in_race_{i}" / "flags.py").write_text(
            "import time\ntime.sleep(0.002)\n", encoding="utf-8"
        )
    monkeypatch.syspath_prepend(tmp_path)

    for i in range(8):
        monkeypatch.setitem(offers._targets, f"options of package_in_race_{i}", f"package_in_race_{i}.flags")
    errors = []

    def load():
        try:
            options._load_offered()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert {f"package_in_race_{i}.flags" for i in range(8)} <= options._searched & sys.modules.keys()
