"""Plugins of platforms that are found, and that do not start: the messages for users."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bedrax.xla_backend import clients

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "plugin_failures.py"


def run(folder, **environment):
    return subprocess.run(
        [sys.executable, PROGRAM],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
    )


@pytest.fixture
def plugins(tmp_path):
    """A folder with a CUDA plugin without its library, and a plugin of another maker that raises at import."""
    for name, text in {"xla_cuda13": "raise SystemExit('it was imported')", "other": "import nobody_has_this"}.items():
        (tmp_path / "jax_plugins" / name).mkdir(parents=True)
        (tmp_path / "jax_plugins" / name / "__init__.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_plugin_that_fails_is_reported_and_not_fatal(plugins):
    done = run(plugins)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "['cpu']"
    assert "xla_cuda_plugin.so is missing from the CUDA plugin" in done.stdout
    assert "No module named 'nobody_has_this'" in done.stdout
    assert (
        "'gpu' stands for cuda or rocm" in done.stdout.splitlines()[-1]
        and "failed to load" in done.stdout.splitlines()[-1]
    )


def test_the_cuda_plugin_is_not_imported(plugins):
    """Its module imports internals of another implementation, which are not installed."""
    assert "it was imported" not in run(plugins).stderr


def test_a_requested_platform_that_fails_is_an_error(plugins):
    done = run(plugins, JAX_PLATFORMS="cuda")
    assert done.returncode != 0
    assert "jax_platforms='cuda'" in done.stderr and "xla_cuda_plugin.so is missing" in done.stderr


def test_the_cpu_platform_loads_no_plugin(plugins):
    done = run(plugins, JAX_PLATFORMS="cpu")
    assert done.stdout.splitlines()[0] == "['cpu']" and "nobody_has_this" not in done.stdout


def test_an_entry_point_of_a_distribution_is_found_anywhere_on_the_path(tmp_path):
    found = tmp_path / "with one"
    for folder, name, text in (
        (found, "maker-1.0.dist-info", "[jax_plugins]\nmaker = nobody_has_that_either\n"),
        (tmp_path / "without", "other-1.0.dist-info", "[console_scripts]\nother = other:main\n"),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "METADATA").write_text("Metadata-Version: 2.1\nName: maker\nVersion: 1.0\n", encoding="utf-8")
        (folder / name / "entry_points.txt").write_text(text, encoding="utf-8")
    assert "No module named 'nobody_has_that_either'" in run(f"{tmp_path}/nowhere:{found}").stdout
    assert "nobody_has" not in run(tmp_path / "without").stdout


def test_entry_points_of_other_finders_are_found(tmp_path):
    """A distribution may come from an archive, or from a finder that the user installs."""
    import zipfile

    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("maker-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: maker\nVersion: 1.0\n")
        archive.writestr("maker-1.0.dist-info/entry_points.txt", "[jax_plugins]\nmaker = nobody_has_a_third\n")
    assert "No module named 'nobody_has_a_third'" in run(tmp_path / "all.zip").stdout


def test_plugins_are_searched_for_again_after_an_interrupt(monkeypatch):
    calls = []

    def interrupted():
        calls.append(None)
        raise KeyboardInterrupt

    monkeypatch.setattr(clients, "_discovered", False)
    monkeypatch.setattr(clients, "_register_plugins", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            clients._discover()
    assert len(calls) == 2
    monkeypatch.setattr(clients, "_register_plugins", lambda: calls.append(None))
    clients._discover()
    clients._discover()
    assert len(calls) == 3
