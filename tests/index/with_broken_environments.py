"""`bedrax doctor` in environments that are broken as users' are: each names the fault, and the status is 1.

The environments are made of the wheels in the folder BEDRAX_INDEX and of packages from the public index. `nox -s index` names this
file.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("with_index", Path(__file__).with_name("with_index.py"))
index = importlib.util.module_from_spec(spec)
spec.loader.exec_module(index)
PYTHON = index.PYTHONS[-1]


class Environment:
    """A new environment with everything, without TensorFlow."""

    def __init__(self, folder):
        self.folder, self.python = folder, folder / "bin/python"
        index.run("uv", "venv", "-q", "--seed", "--python", PYTHON, folder)
        self.install("bedrax", "--find-links", index.FOLDER / "files")

    def install(self, *arguments):
        # Copies: tests damage files, and links would damage the cache of uv and every environment that shares it.
        variables = {"UV_DEFAULT_INDEX": index.public(), "UV_LINK_MODE": "copy"}
        index.run("uv", "pip", "install", "-q", "--python", self.python, *arguments, **variables)

    def pip(self, *arguments):
        index.run(self.python, "-m", "pip", "install", "-q", "--index-url", index.public(), *arguments)

    def site(self):
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return Path(index.run(self.python, "-c", code).strip())

    def doctor(self, cwd=None, **variables):
        """The status and the errors: code -> message."""
        done = subprocess.run(
            [self.folder / "bin/bedrax", "doctor", "--json"],
            env=index.ENVIRONMENT | {"JAX_ENABLE_COMPILATION_CACHE": "1"} | variables,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=600,
        )
        report = json.loads(done.stdout)
        found = {f["code"]: f["message"] for f in report["findings"] if f["level"] == "error"}
        assert (done.returncode == 0) == report["ok"] == (not found), (done.returncode, found)
        return found


@pytest.fixture
def environment(tmp_path):
    made = Environment(tmp_path / "environment")
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)


def test_the_doctor_finds_faults_of_variables_and_folders(environment, tmp_path):
    assert environment.doctor() == {}
    assert environment.doctor(JAX_ENABEL_X64="1").keys() == {"misspelt-variable"}
    assert environment.doctor(JAX_ENABLE_X64="perhaps").keys() >= {"options"}
    assert environment.doctor(JAX_COMPILATION_CACHE_DIR="/dev/null/cache").keys() == {"cache"}
    assert "xla_no_such_flag" in environment.doctor(XLA_FLAGS="--xla_no_such_flag=1")["ended"]
    assert "no-device" in environment.doctor(JAX_PLATFORMS="cuda")
    tmp_path.joinpath("jax.py").touch()
    found = environment.doctor(cwd=tmp_path)
    assert found.keys() == {"hidden"} and str(tmp_path / "jax.py") in found["hidden"]
    assert environment.doctor(PYTHONPATH=str(tmp_path)).keys() >= {"hidden"}


def test_upstream_over_ours(environment):
    environment.pip("--ignore-installed", "--no-deps", "jax==0.10.2")
    found = environment.doctor()
    assert found.keys() >= {"two-distributions", "changed-files", "foreign-files"}
    assert "2 distributions are named jax" in found["two-distributions"]
    done = subprocess.run([environment.python, "-m", "jax", "--json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1  # upstream's package may not be importable here


def test_upstream_in_place_of_ours(environment):
    environment.install("--no-deps", "--reinstall", "jax==0.10.2")
    assert "needs jax==" in environment.doctor()["requirement"]


def test_a_jaxlib_that_is_too_old(environment):
    environment.install("--no-deps", "jaxlib==0.9.2")
    found = environment.doctor()
    assert found["requirement"].startswith("jaxlib 0.9.2 is installed, but ")


def test_a_jaxlib_that_is_too_new(environment):
    # No such release exists yet: the installed one gets another version.
    site = environment.site()
    assert (site / "jaxlib/version.py").stat().st_nlink == 1
    (info,) = site.glob("jaxlib-*.dist-info")
    metadata = info / "METADATA"
    metadata.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.99.0", metadata.read_text("utf-8")), "utf-8")
    version = site / "jaxlib/version.py"
    version.write_text(re.sub(r"(?m)^_version = .*$", '_version = "0.99.0"', version.read_text("utf-8")), "utf-8")
    assert environment.doctor()["requirement"].startswith("jaxlib 0.99.0 is installed, but ")


def test_missing_and_damaged_libraries(environment):
    site = environment.site()
    (library,) = site.glob("jaxlib/libjax_common*")
    assert library.stat().st_nlink == 1
    os.truncate(library, library.stat().st_size // 2)
    found = environment.doctor()
    assert found.keys() & {"ended", "broken"}
    index.run("uv", "pip", "uninstall", "-q", "--python", environment.python, "jaxlib", "opt-einsum")
    found = environment.doctor()
    assert "requirement" in found and found.keys() & {"ended", "broken"}
