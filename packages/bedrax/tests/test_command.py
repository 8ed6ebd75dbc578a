"""The command `bedrax`: its subcommands are entry points, and a wrong or broken one is an error with its reason."""

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bedrax import command

CODE = """
def main(argv):
    print("hello", *argv)
    return 3
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A folder of the path with a distribution that has two commands; the module of one is missing."""
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", encoding="utf-8")
    entries = f"[{command.GROUP}]\ngreet = greeting_of_test:main\nbroken = greeting_that_is_missing:main\n"
    info.joinpath("entry_points.txt").write_text(entries, encoding="utf-8")
    tmp_path.joinpath("greeting_of_test.py").write_text(CODE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_package_adds_a_command(plugin, capsys):
    assert command.main(["greet", "a", "--b"]) == 3
    assert capsys.readouterr().out == "hello a --b\n"
    assert command.main(["--help"]) == 0
    assert "  greet        of greeting\n" in capsys.readouterr().out


def test_a_command_that_cannot_be_imported_names_its_distribution(plugin, capsys):
    assert command.main(["broken"]) == 2
    assert (
        capsys.readouterr().err
        == "bedrax: the command 'broken' of greeting 1.0 cannot be imported: ModuleNotFoundError: No module named"
        " 'greeting_that_is_missing'\n"
    )


def test_an_unknown_command_names_a_near_one(plugin, capsys):
    assert command.main(["gret"]) == 2
    assert "there is no command 'gret'. Did you mean greet?" in capsys.readouterr().err


def test_without_arguments_the_commands_are_listed_and_the_status_is_two(capsys):
    assert command.main([]) == 2
    assert capsys.readouterr().out.startswith("usage: bedrax ")


def test_the_script_runs_the_command():
    script = Path(sysconfig.get_path("scripts"), "bedrax")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"bedrax {importlib.metadata.version('bedrax')}\n" and done.returncode == 0
    done = subprocess.run([script, "doctor", "--help"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("usage: bedrax doctor") and done.returncode == 0


def test_the_import_loads_only_the_standard_library():
    # The command has to start in a damaged installation.
    code = "import sys; before = set(sys.modules); import bedrax.command; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert names <= {"bedrax", *sys.stdlib_module_names}
