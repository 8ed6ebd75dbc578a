"""Compiled programs are kept on disk by default, and found by their equations."""

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core.staging import make_jaxpr
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend import compilation_cache, flags, program_key

PROGRAM = Path(__file__).parent / "programs" / "keep_programs.py"
CASES = {case.primitive.name: case for case in all_cases() if case.xla is True and case.needs is None}


def run(home, *args, before=(), **environment):
    """The lines and the events of the program, in a process whose caches are in `home`."""
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("JAX_")},
        "XDG_CACHE_HOME": str(home),
        **environment,
    }
    command = [*before, sys.executable, "-W", "error", PROGRAM, *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    *lines, events = done.stdout.splitlines()
    return lines, ast.literal_eval(events)


def entries(home):
    return sorted((home / "bedrax" / "compiled").glob("*-cache"))


linux = pytest.mark.skipif(sys.platform != "linux", reason="the folder of caches is named by XDG_CACHE_HOME on Linux")


@linux
def test_a_second_process_compiles_nothing(tmp_path):
    first, events = run(tmp_path)
    assert events == {"cache_misses": 4} and len(entries(tmp_path)) == 4
    second, events = run(tmp_path, PYTHONHASHSEED="7")
    assert second == first and events == {"cache_hits": 4}
    assert stat.S_IMODE((tmp_path / "bedrax" / "compiled").stat().st_mode) == 0o700


@linux
def test_the_cache_can_be_switched_off(tmp_path):
    assert run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="0")[1] == {} and not entries(tmp_path)


@linux
@pytest.mark.parametrize("change", ["XLA_FLAGS", "JAX_ENABLE_X64", "JAX_DISABLE_MOST_OPTIMIZATIONS"])
def test_flags_and_options_are_part_of_the_key(tmp_path, change):
    values = {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "JAX_ENABLE_X64": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    run(tmp_path)
    assert run(tmp_path, **{change: values[change]})[1] == {"cache_misses": 4}


@linux
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    run(tmp_path)
    folder = tmp_path / "bedrax" / "compiled"
    folder.chmod(0o770)
    assert run(tmp_path)[1] == {}
    folder.chmod(0o700)
    assert run(tmp_path)[1] == {"cache_hits": 4}
    if os.getuid() == 0:
        os.chown(folder, 1, 1)
        assert run(tmp_path)[1] == {}


@linux
def test_a_missing_folder_or_a_full_disk_disables_only_the_cache(tmp_path):
    (tmp_path / "file").touch()
    assert run(tmp_path / "file")[1] == {}

    no_room = ("bash", "-c", 'ulimit -f 1; exec "$@"', "bash")  # no file is larger than 1 KiB
    lines, events = run(tmp_path, before=no_room)
    assert len(lines) == 4 and events == {"cache_misses": 1}  # after the first error nothing is looked up
    assert not entries(tmp_path) and not [*(tmp_path / "bedrax" / "compiled").iterdir()]


@linux
def test_damaged_entries_are_compiled_again(tmp_path):
    lines, _ = run(tmp_path)
    for n, path in enumerate(entries(tmp_path)):
        data = bytearray(path.read_bytes())
        data[len(data) * n // 4] ^= 1
        path.write_bytes(data)
    again, events = run(tmp_path)
    assert again == lines and events == {"cache_misses": 4}
    assert run(tmp_path)[1] == {"cache_hits": 4}


@linux
def test_a_process_that_is_killed_leaves_no_partial_entry(tmp_path):
    lines, _ = run(tmp_path / "whole")
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("JAX_")}, "XDG_CACHE_HOME": str(tmp_path)}
    for delay in np.linspace(0.5, 1.5, 64 if os.environ.get("BEDRAX_FAULTS") == "whole" else 4):
        process = subprocess.Popen([sys.executable, PROGRAM], env=env, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    again, events = run(tmp_path)
    assert again == lines and set(events) <= {"cache_hits", "cache_misses"}


@linux
def test_many_processes_share_the_folder(tmp_path):
    lines, _ = run(tmp_path / "whole")
    count = 64 if os.environ.get("BEDRAX_FAULTS") == "whole" else 6
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("JAX_")}, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "error", PROGRAM]
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    for process in processes:
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0 and out.splitlines()[:-1] == lines
    assert len(entries(tmp_path)) == 4


def test_the_entries_that_were_not_used_for_longest_are_removed(tmp_path):
    store = compilation_cache.Store(tmp_path, named=True)
    with flags.compilation_cache_max_size(3 * 132):
        for n in range(3):
            store.write(str(n), bytes(100))
            os.utime(store.entry(str(n)), (n, n))
        abandoned = tmp_path / "x.tmp"
        abandoned.touch()
        os.utime(abandoned, (0, 0))
        assert store.read("0") == bytes(100)  # now the latest
        store.write("3", bytes(100))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0-cache", "2-cache", "3-cache"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_primitive_is_found_again(name, tmp_path, monkeypatch):
    """The program of a record has the same key when it is traced again, and its kept executable the same results."""
    case = CASES[name]
    found = []
    monkeypatch.setattr(
        compilation_cache, "find", lambda *a, f=compilation_cache.find: found.append(f(*a)) or found[-1]
    )
    with flags.enable_compilation_cache(True), flags.compilation_cache_dir(str(tmp_path)), checks.x64_if_needed(case):
        results = []
        for _ in range(2):
            args = case.make_args()
            results.append(checks.as_list(xla.jit(lambda *xs: case.fun(*xs))(*args)))
    for first, second in zip(*results, strict=True):
        checks.assert_same(second, np.asarray(first), 0, 0, True, what=name)
    assert not found or found[-1] is not None or not list(tmp_path.iterdir())


def key(fun, *args):
    return program_key.of(make_jaxpr(fun)(*args), "cpu", ())


def test_programs_that_differ_have_other_keys():
    x = np.ones((2, 3), np.float32)
    functions = [
        (lambda x: lax.mul(x, 0.0), x),
        (lambda x: lax.mul(x, -0.0), x),
        (lambda x: lax.mul(x, float("nan")), x),
        (lambda x: lax.mul(x, 1.0), x),
        (lambda x: lax.mul(lax.sin(x), x), x),
        (lambda x: lax.mul(x, lax.sin(x)), x),
        (lambda x: lax.reduce_sum(x, (0,)), x),
        (lambda x: lax.reduce_sum(x, (1,)), x),
        (lambda x: lax.add(x, np.zeros((2, 3), np.float32)), x),
        (lambda x: lax.add(x, np.full((2, 3), -0.0, np.float32)), x),
        (lambda x: lax.add(x, x), x.astype(np.int32)),
        (lambda x: lax.add(x, x), x),
        (lambda x: lax.add(x, x), x.T),
        (lambda x: lax.fori_loop(0, 3, lambda _, y: lax.neg(y), x), x),
        (lambda x: lax.fori_loop(0, 4, lambda _, y: lax.neg(y), x), x),
    ]
    keys = [key(fun, x) for fun, x in functions]
    assert None not in keys and len(set(keys)) == len(functions)
    assert keys == [key(fun, x) for fun, x in functions]


def test_programs_with_foreign_code_have_no_key():
    from bedrax.core.tracing import Primitive
    from bedrax.lax.primitives.callbacks import debug_callback, pure_callback
    from bedrax.xla_backend.tables import lowering_rules

    foreign = Primitive("foreign", "elementwise")
    foreign.abstract(lambda x: x)
    lowering_rules.add(foreign, lambda ctx, x: x)
    x = np.ones(3, np.float32)
    assert foreign.home == __name__ or not foreign.home.startswith("bedrax.")
    assert key(lambda x: foreign.bind(x), x) is None
    assert key(lambda x: lax.fori_loop(0, 3, lambda _, y: foreign.bind(y), x), x) is None
    assert key(lambda x: pure_callback(lambda x: x, x, x), x) is None
    assert key(lambda x: (debug_callback(print, x), x)[1], x) is None


def test_a_function_without_a_module_is_foreign():
    """`exec` makes such functions in a namespace without a name."""
    from bedrax.parallel.partitioning import custom_partitioning
    from bedrax.xla_backend.export import export

    def doubled(x):
        return lax.mul(x, 2.0)

    doubled.__qualname__, doubled.__module__ = "doubled", None
    whole = custom_partitioning(doubled)
    whole.def_partition(doubled, sharding_rule="i -> i")
    assert key(whole, np.ones(3, np.float32)) is None
    with pytest.raises(ValueError, match="export needs a function made by jit"):
        export(doubled)


def test_a_change_of_a_file_changes_the_fingerprint(tmp_path, monkeypatch):
    (tmp_path / "lax").mkdir()
    file = tmp_path / "lax" / "module.py"
    file.write_text("x = 1", encoding="utf-8")
    monkeypatch.setattr(sys.modules["bedrax"], "__path__", [str(tmp_path)])
    seen = set()
    for text, when in (("x = 1", 1), ("x = 2", 2), ("x = 22", 2)):
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(when, when))
        program_key._fingerprints.clear()
        seen.add(program_key.fingerprint())
    program_key._fingerprints.clear()
    assert len(seen) == 3


def test_a_kept_program_warns_of_donation_as_a_new_one_does(tmp_path):
    x = np.ones(3, np.float32)
    with flags.enable_compilation_cache(True), flags.compilation_cache_dir(str(tmp_path)):
        for _ in range(2):
            with pytest.warns(UserWarning, match="donated"):
                xla.jit(lambda x: lax.reduce_sum(x, (0,)), donate_argnums=0)(x)
    assert len(list(tmp_path.iterdir())) == 1
