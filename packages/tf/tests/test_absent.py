"""Without TensorFlow, an import of the bridges raises an error with the reason."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")


def run(program, *arguments):
    command = [sys.executable, PROGRAMS / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "statement",
    [
        "import bedrax.tf",
        "import bedrax.jax2tf",
        "import bedrax.call_tf",
        "import jax.experimental.jax2tf",
        "from jax.experimental import jax2tf",
        "from jax.experimental.jax2tf import call_tf",
    ],
)
def test_the_import_says_what_is_missing(statement):
    owner = statement.split()[1]
    if importlib.util.find_spec(".".join(owner.split(".")[: 1 + owner.startswith("bedrax.")])) is None:
        pytest.skip(f"{owner} stands above this package")
    if "jax2tf" in statement and importlib.util.find_spec("bedrax.jax2tf") is None:
        pytest.skip("comes with the extra `tf`")
    result = run("without_tensorflow.py", statement)
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1, result.stderr
    assert re.fullmatch(r"ModuleNotFoundError: TensorFlow is not installed: .* Python 3\.11 to 3\.13.*", last), last


def test_the_reason_is_that_of_the_python():
    result = run("reason_for_absence.py")
    new = sys.version_info[:2] > (3, 13)
    assert ("and this is Python" in result.stdout) == new and ("jax[tf]" in result.stdout) != new, result


def test_pythons_are_those_that_the_package_declares():
    requirements = importlib.metadata.requires("bedrax-tf")
    (marker,) = (r.partition(";")[2] for r in requirements if r.startswith("tensorflow"))
    source = importlib.util.find_spec("bedrax.tf").origin
    with open(source, encoding="utf-8") as file:  # read, not imported: it is refused where TensorFlow is absent
        newest = re.search(r"^NEWEST_PYTHON = \((\d+), (\d+)\)$", file.read(), re.MULTILINE)
    assert re.search(r"python_(?:full_)?version < '([\d.]+)'", marker)[1] == f"{newest[1]}.{int(newest[2]) + 1}"


def test_options_are_found_without_the_bridge():
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("bedrax.jax2tf") is None:
        pytest.skip("needs the interface and the bridge")
    program = "import jax; assert 'jax_enable_x64' in dir(jax.config) and not hasattr(jax.experimental, 'jax2tf')"
    result = run("without_tensorflow.py", program)
    assert result.returncode == 0, result.stderr
