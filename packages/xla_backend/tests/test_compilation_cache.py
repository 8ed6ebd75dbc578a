"""Compiled programs on disk."""

import os

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.xla_backend import compilation_cache, flags
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.door import runtime


@pytest.fixture(autouse=True)
def switched_on():
    with flags.enable_compilation_cache(True):  # all other tests run without it
        yield


@pytest.fixture
def compilations(monkeypatch):
    seen = []
    original = compile_module.backend_compile_and_load

    def spy(*args, **kwargs):
        seen.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(compile_module, "backend_compile_and_load", spy)
    return seen


def test_a_program_is_compiled_once_for_all_processes(tmp_path, compilations):
    x = np.arange(3, dtype=np.float32)

    def run(scale):
        return xla.jit(lambda x: lax.mul(lax.sin(x), np.float32(scale)))(x)

    with flags.compilation_cache_dir(str(tmp_path)), flags.persistent_cache_min_compile_time_secs(0.0):
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(run(2)), 2 * np.sin(x), rtol=1e-6)
        assert len(compilations) == 1
        (entry,) = tmp_path.iterdir()
        np.testing.assert_allclose(np.asarray(run(3)), 3 * np.sin(x), rtol=1e-6)
        assert len(compilations) == 2
        whole = entry.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) * 2 // 3] ^= 8  # XLA itself would end the process here, or compute other values
        for n, damaged in enumerate((b"no executable", b"", whole[:-1], bytes(flipped), whole + b"x")):
            entry.write_bytes(damaged)
            with pytest.warns(UserWarning, match="persistent compilation cache entry"):
                np.testing.assert_allclose(np.asarray(run(2)), 2 * np.sin(x), rtol=1e-6)
            assert len(compilations) == 3 + n


def test_an_entry_is_compared_with_a_new_compilation(tmp_path, compilations):
    x = np.arange(3, dtype=np.float32)

    def run(function):
        return np.asarray(xla.jit(lambda x: function(x))(x))

    with flags.compilation_cache_dir(str(tmp_path)), flags.persistent_cache_min_compile_time_secs(0.0):
        run(lax.sin)
        (sines,) = tmp_path.iterdir()
        run(lax.cos)
        (cosines,) = set(tmp_path.iterdir()) - {sines}
        with flags.compilation_cache_check_contents(True):
            run(lax.sin)
            assert len(compilations) == 3  # it was found, and compiled again with the same result
            cosines.write_bytes(sines.read_bytes())
            with pytest.warns(UserWarning, match="another program"):
                np.testing.assert_allclose(run(lax.cos), np.cos(x), rtol=1e-6)
            np.testing.assert_allclose(run(lax.cos), np.cos(x), rtol=1e-6)  # it was replaced


def test_an_entry_of_another_version_of_jaxlib_is_not_found(tmp_path, compilations, monkeypatch):
    x = np.arange(3, dtype=np.float32)
    with flags.compilation_cache_dir(str(tmp_path)), flags.persistent_cache_min_compile_time_secs(0.0):
        for count, version in enumerate(("0.10.2", "0.11.2", "0.12.0.1"), 1):
            monkeypatch.setattr(runtime, "jaxlib_version", version)
            for _ in range(2):
                np.testing.assert_allclose(np.asarray(xla.jit(lambda x: lax.tan(x))(x)), np.tan(x), rtol=1e-6)
            assert len(compilations) == len(list(tmp_path.iterdir())) == count


def test_fast_compilations_are_not_kept(tmp_path):
    with flags.compilation_cache_dir(str(tmp_path)), flags.persistent_cache_min_compile_time_secs(1000.0):
        xla.jit(lambda x: lax.cos(x))(1.0)
    assert not list(tmp_path.iterdir())


def test_the_state_of_the_folder(tmp_path):
    folder = tmp_path / "cache"
    with flags.compilation_cache_dir(str(folder)), flags.persistent_cache_min_compile_time_secs(0.0):
        assert compilation_cache.state() == (str(folder), True, 0, 0, None, None)
        xla.jit(lambda x: lax.mul(x, np.float32(7)))(np.ones(3, np.float32))
        (entry,) = folder.iterdir()
        with flags.compilation_cache_max_size(5000):
            assert compilation_cache.state() == (str(folder), True, 1, entry.stat().st_size, 5000, None)
    with flags.compilation_cache_dir(str(entry / "inside")):
        assert compilation_cache.state().problem.startswith("NotADirectoryError: ")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no modes of users there")
@pytest.mark.parametrize(("named", "mode"), [(True, 0o640), (False, 0o600)])
def test_other_users_read_the_entries_of_a_folder_that_the_user_named(named, mode, tmp_path):
    before = os.umask(0o027)
    try:
        store = compilation_cache.Store(tmp_path, named)
        store.write("x", b"code")
    finally:
        os.umask(before)
    assert store.entry("x").stat().st_mode & 0o777 == mode
    assert store.read("x") == b"code"
    assert [*tmp_path.iterdir()] == [store.entry("x")]


def test_what_compilers_read_from_the_environment_is_in_the_name_of_an_entry(monkeypatch, tmp_path):
    devices = runtime.DeviceList(tuple(xla.devices()[:1]))
    options = compile_module.compile_options(1, list(devices))
    name = lambda: compilation_cache.name_of(b"program", xla.devices()[0].client, devices, options)
    names = [name()]
    for variable in compilation_cache.COMPILER_VARIABLES:
        monkeypatch.setenv(variable, "1")
        names.append(name())
    file = tmp_path / "flags"  # XLA_FLAGS may name one
    monkeypatch.setenv("XLA_FLAGS", str(file))
    for text in ("", "--xla_cpu_max_isa=SSE4_2", "--xla_cpu_parallel_codegen_split_count=3"):
        file.write_text(text, encoding="utf-8")
        names.append(name())
    assert len({*names}) == len(names) and name() == names[-1]
    assert "LIBTPU_INIT_ARGS" in compilation_cache.COMPILER_VARIABLES
    chosen = compile_module.compile_options(1, list(devices))  # the number of parts in the file stays
    assert len(chosen.env_option_overrides) == len(options.env_option_overrides) - 1
