"""A package that is installed alone can compute: its import offers an executor from its requirements."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PATHS = sorted((Path(__file__).parents[1] / "packages").glob("*/pyproject.toml"))
NAMES = [
    path.parent.name
    for path in PATHS
    if any(
        name.startswith(("bedrax-numpy-backend", "bedrax-xla-backend"))
        for name in tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    )
]


BRIDGES = {"tf", "jax2tf", "call_tf"}
MARKS = {name: pytest.mark.needs("tensorflow") if name in BRIDGES else () for name in NAMES}
# The face is not a package of the namespace.
ALL = [pytest.param(name, marks=MARKS[name]) for name in NAMES if name != "jax"]


@pytest.mark.parametrize("name", ALL)
def test_importing_a_package_offers_an_executor(name):
    program = f"import bedrax.{name}\nfrom bedrax.core import executors\nassert executors.any_offered()"
    subprocess.run([sys.executable, "-c", program], check=True)
