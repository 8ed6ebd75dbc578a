"""The Pythons in the metadata, the lock and README are those of the table, and the table has only checks that ran."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import pythons

LOCK = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", pythons.PYPROJECTS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_metadata_name_the_pythons_of_the_table(path):
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    assert project["classifiers"] == pythons.classifiers(project), "run tools/pythons.py write"
    assert project["requires-python"] == f">={next(iter(pythons.table()))}"


def test_packages_that_need_tensorflow_name_only_the_pythons_of_its_wheels():
    projects = {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in pythons.PYPROJECTS
    }
    ends = {name: end for name, project in projects.items() if (end := pythons.without_wheels(project))}
    assert ends == dict.fromkeys(("call_tf", "jax2tf", "tf"), (3, 14))
    newest = {
        name: [each for each in projects[name]["classifiers"] if ":: Python :: 3." in each][-1].rpartition(" ")[2]
        for name in ("jax", "jax2tf")
    }
    assert newest == {"jax": [*pythons.table()][-1], "jax2tf": "3.13"}


def test_the_readme_shows_the_table():
    shown = f"{pythons.MARK}\n\n{pythons.rows()}\n\n{pythons.MARK}"
    assert shown in (ROOT / "README.md").read_text(encoding="utf-8"), "run tools/pythons.py write"


def test_each_python_has_a_recorded_smoke_test():
    # `nox -s pythons -- --record` adds these entries.
    for python, row in pythons.table().items():
        assert {"smoke"} <= set(row["passed"]), f"not recorded for Python {python}"


def test_the_lock_has_the_jaxlib_of_each_row():
    locked = {package["version"]: package for package in LOCK["package"] if package["name"] == "jaxlib"}
    for python, row in pythons.table().items():
        tag = "cp" + python.replace(".", "")
        wheels = locked[row["jaxlib"]]["wheels"]
        assert [wheel for wheel in wheels if f"-{tag}-{tag}-" in wheel["url"]], f"no wheel of the lock is for {python}"


def test_a_command_that_does_not_run_is_not_a_python(tmp_path):
    def command(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    shim = command("python3.14", "echo 'python3.14: command not found' >&2; exit 127")
    foreign = command("pypy", "echo PyPy 3.11")
    older = command("python3.9", "echo CPython 3.9")
    newer = command("python3.12", "echo CPython 3.12")
    again = command("python3.12-again", "echo CPython 3.12")
    candidates = [str(tmp_path / "not there"), shim, foreign, older, newer, again, sys.executable]
    here = "{}.{}".format(*sys.version_info)
    assert pythons.found(candidates) == {"3.12": newer, **({here: sys.executable} if here != "3.12" else {})}
    commands = pythons.named({"NEWER_PYTHON": os.pathsep.join((shim, newer)), "UV_PYTHON": again, "PATH": "/a:/b"})
    assert commands[1:4] == [shim, newer, again] and commands[4:6] == [
        f"{f}/python{[*pythons.table()][-1]}" for f in ("/a", "/b")
    ]


def test_a_record_is_kept_for_one_jaxlib(tmp_path):
    """A record with another jaxlib replaces the row; unknown checks are an error."""
    command = [sys.executable, PROGRAMS / "record_of_pythons.py", ROOT / "tools", tmp_path / "table.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second, third, refused = done.stdout.splitlines()
    assert (first, second, third) == ("0.4.1:smoke 1:demo", "0.4.1:smoke 1:tests+demo", "0.4.1:smoke 2:smoke")
    assert re.match("expected some of tests, .*; got everything", refused)


def test_a_sample_is_a_share_of_the_tests_and_some_of_every_file():
    def collected(*options):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            "packages/pytree/tests",
            *options,
        ]
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"
        }  # it may change the output
        lines = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True).stdout.splitlines()
        return [line for line in lines if "::" in line]

    whole, sample = collected(), collected("--sample=6")
    assert sorted(sample) == sorted(collected("--sample=6"))
    assert set(sample) <= set(whole)
    assert {name.partition("::")[0] for name in sample} == {name.partition("::")[0] for name in whole}
    assert len(whole) / 12 < len(sample) < len(whole) / 3
