"""The pages of errors: each wrong program raises the error of its page, each right one runs."""

import functools
import importlib.metadata
import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bedrax import inspect
from bedrax.core.codes import TITLES
from bedrax.inspect import explaining

PAGES = Path(str(importlib.resources.files("bedrax.inspect"))) / "errors"
PROGRAMS = Path(__file__).with_name("programs")


@functools.cache
def outcomes():
    """Run the programs of all pages in one process, which has two devices: code -> outcomes."""
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(PROGRAMS / "pages.py"), str(PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_code_has_a_page_and_every_page_a_code():
    assert {page.stem for page in PAGES.glob("*.md")} == set(TITLES)


@pytest.mark.parametrize("code", TITLES)
def test_a_page_has_its_parts(code):
    text = inspect.explanation(code)
    assert text.startswith(f"# {code}: {TITLES[code]}\n")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Wrong", "Why", "Right"]


@pytest.mark.parametrize("code", TITLES)
def test_the_wrong_program_raises_the_error(code):
    error, raised, _ = outcomes()[code]
    assert raised == code, error
    assert "wrong.py:" in error.splitlines()[-1]  # the user's line


@pytest.mark.parametrize("code", TITLES)
def test_the_right_program_runs(code):
    assert outcomes()[code][2] is None


def test_an_unknown_code_is_an_error_with_similar_ones(capsys):
    with pytest.raises(ValueError, match="similar codes are BX-CARRY-TYPES"):
        inspect.explanation("BX-CARY-TYPES")
    assert explaining.main(["BX-CARY-TYPES"]) == 2
    assert "BX-CARRY-TYPES" in capsys.readouterr().err


def test_the_command_prints_pages_and_the_list(capsys):
    assert explaining.main(["carry-types", "BX-KEY"]) == 0
    assert capsys.readouterr().out == inspect.explanation("BX-CARRY-TYPES") + "\n" + inspect.explanation("BX-KEY")
    assert explaining.main([]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert listed == TITLES == inspect.codes()
    assert explaining.main(["--help"]) == 0
    assert "usage:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["explain", "inspect"])
def test_the_commands_are_registered(name, capsys):
    (entry,) = importlib.metadata.entry_points(group="bedrax.commands", name=name)
    main = entry.load()
    try:
        assert main(["--help"]) == 0
    except SystemExit as ended:  # argparse
        assert ended.code == 0
    assert "usage:" in capsys.readouterr().out


def test_the_command_of_the_face():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "jax.explain", "BX-KEY"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == inspect.explanation("BX-KEY")


def test_the_command_without_the_interface():
    """The module that messages name where `jax` is absent."""
    command = [sys.executable, "-W", "error", "-m", "bedrax.inspect.explaining"]
    shown = subprocess.run([*command, "BX-KEY"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("# BX-KEY: ") and not shown.stderr
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("usage: python -m ")
