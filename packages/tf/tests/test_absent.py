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
def test_the_error_of_the_import_names_tensorflow(statement):
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
    assert ("and this is Python" in result.stdout) == new, result
    for name in ("'bedrax[tf]', which has tensorflow-cpu", "'bedrax[tensorflow]', which has tensorflow"):
        assert (name in result.stdout) != new, result


def test_pythons_are_those_that_the_package_declares():
    requirements = importlib.metadata.requires("bedrax-tf")
    both = {r.partition(">")[0]: r for r in requirements if r.startswith("tensorflow")}
    assert both.keys() == {"tensorflow-cpu", "tensorflow"} and all("extra ==" in r for r in both.values())
    (bound,) = {re.search(r">=([\d.]+)", r)[1] for r in both.values()}
    (marker,) = {re.search(r"python_(?:full_)?version < '[\d.]+'", r)[0] for r in both.values()}
    source = importlib.util.find_spec("bedrax.tf").origin
    with open(source, encoding="utf-8") as file:  # read, not imported: it is refused where TensorFlow is absent
        text = file.read()
    newest = re.search(r"^NEWEST_PYTHON = \((\d+), (\d+)\)$", text, re.MULTILINE)
    oldest = re.search(r"^OLDEST_TENSORFLOW = \((\d+), (\d+)\)", text, re.MULTILINE)
    assert marker.partition("< ")[2] == f"'{newest[1]}.{int(newest[2]) + 1}'"
    assert bound == ".".join(oldest.groups())


def test_a_tensorflow_that_is_too_old_is_an_error(tmp_path):
    package = tmp_path / "tensorflow"
    package.mkdir()
    package.joinpath("__init__.py").write_text("__version__ = '2.19.1'\nfloat32 = 1\n", encoding="utf-8")
    program = "import sys; sys.path.insert(0, sys.argv[1]); from bedrax.tf import tensorflow as tf; tf.float32"
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, timeout=120)
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: TensorFlow 2.19.1 is installed; 2.21 or later is needed: install 'tensorflow-cpu>=2.21' or"
        " 'tensorflow>=2.21'"
    )


def test_options_are_found_without_the_bridge():
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("bedrax.jax2tf") is None:
        pytest.skip("needs the interface and the bridge")
    program = "import jax; assert 'jax_enable_x64' in dir(jax.config) and not hasattr(jax.experimental, 'jax2tf')"
    result = run("without_tensorflow.py", program)
    assert result.returncode == 0, result.stderr
