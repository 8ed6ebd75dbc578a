"""Without TensorFlow, an import of the bridges raises an error with the reason."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys

import pytest

# Hides TensorFlow from `find_spec` and from `import`, on a machine that has it and on one that has not.
HIDE = """
import importlib.machinery, sys

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "tensorflow" else super().find_spec(name, path, target)

sys.meta_path[:] = [Finder if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
"""


def run(program):
    return subprocess.run([sys.executable, "-c", HIDE + program], capture_output=True, text=True, timeout=120)


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
    result = run(statement)
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1, result.stderr
    assert re.fullmatch(r"ModuleNotFoundError: TensorFlow is not installed: .* Python 3\.11 to 3\.13.*", last), last


def test_the_reason_is_that_of_the_python():
    result = run(
        "import sys\n"
        "try: import bedrax.tf\n"
        "except ImportError: pass\n"
        "try: import bedrax.tf as t\n"
        "except ImportError as error: assert error.name == 'tensorflow'; text = str(error)\n"
        "print(text)"
    )
    new = sys.version_info[:2] > (3, 13)
    assert ("and this is Python" in result.stdout) == new and ("jax[tf]" in result.stdout) != new, result


def test_pythons_are_those_that_the_package_declares():
    requirements = importlib.metadata.requires("bedrax-tf")
    (marker,) = (r.partition(";")[2] for r in requirements if r.startswith("tensorflow"))
    source = importlib.util.find_spec("bedrax.tf").origin
    with open(source) as file:  # read, not imported: it is refused where TensorFlow is absent
        newest = re.search(r"^NEWEST_PYTHON = \((\d+), (\d+)\)$", file.read(), re.MULTILINE)
    assert re.search(r"python_(?:full_)?version < '([\d.]+)'", marker)[1] == f"{newest[1]}.{int(newest[2]) + 1}"


def test_options_are_found_without_the_bridge():
    if importlib.util.find_spec("jax") is None or importlib.util.find_spec("bedrax.jax2tf") is None:
        pytest.skip("needs the interface and the bridge")
    result = run(
        "import jax; assert 'jax_enable_x64' in dir(jax.config)\nassert not hasattr(jax.experimental, 'jax2tf')"
    )
    assert result.returncode == 0, result.stderr
