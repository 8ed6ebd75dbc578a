"""Conflicts of installed distributions: each test makes a folder of distributions as installers leave them."""

import base64
import hashlib
import sys
from pathlib import Path

import packaging.requirements  # noqa: F401  (before the tests change the path)
import pytest

from bedrax.doctor import installation


class Folder:
    """A folder of the path that distributions are installed into."""

    def __init__(self, path):
        self.path = path

    def install(self, name, version, files=None, requires=()):
        """Write the files of a distribution and its metadata."""
        info = self.path / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Requires-Dist: {each}" for each in requires]
        text = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, ""])
        info.joinpath("METADATA").write_text(text, encoding="utf-8")
        record = []
        for file, content in (files or {}).items():
            path = self.path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
            record.append(f"{file},sha256={digest},{path.stat().st_size}")
        info.joinpath("RECORD").write_text("\n".join([*record, f"{info.name}/METADATA,,"]) + "\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A path with one empty folder besides the standard library."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    keep = [place for place in sys.path if "site-packages" not in place and "packages/" not in place.replace("\\", "/")]
    monkeypatch.setattr(sys, "path", [str(folder), *keep])
    for name in installation.PLACED:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Folder(folder)


def errors(result):
    return {finding.code: finding.message for finding in result.findings if finding.level == "error"}


OURS = "0.12.0.1+bedrax.0.1.0"
FACE = {"jax/__init__.py": "ours = 1\n", "jax/numpy/__init__.py": ""}


def test_a_clean_installation_has_no_errors(site):
    site.install("jax", OURS, FACE)
    result = installation.installation()
    assert errors(result) == {}
    assert result.facts == {"jax is imported from": str(site.path / "jax/__init__.py")}


def test_upstream_over_ours(site):
    site.install("jax", OURS, FACE)
    site.install("jax", "0.10.2", {"jax/__init__.py": "theirs = 1\n", "jax/_src/api.py": ""})
    found = errors(installation.installation())
    assert found.keys() == {"two-distributions", "changed-files", "foreign-files"}
    assert "2 distributions are named jax: " in found["two-distributions"]
    assert "1 file (jax/__init__.py) of the distribution jax 0.12.0.1+bedrax.0.1.0" in found["changed-files"]
    assert found["foreign-files"].startswith("1 file (jax/_src/api.py)")


def test_two_folders_with_one_distribution(site, tmp_path, monkeypatch):
    site.install("jax", OURS, FACE)
    other = Folder(tmp_path / "other")
    other.install("jax", "0.10.2", {"jax/__init__.py": ""})
    monkeypatch.setattr(sys, "path", [*sys.path, str(other.path)])
    assert errors(installation.installation()).keys() == {"two-distributions"}


def test_a_folder_that_hides_the_installed_package(site, tmp_path, monkeypatch):
    site.install("jax", OURS, FACE)
    near = tmp_path / "here" / "jax.py"
    near.parent.mkdir()
    near.write_text("", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(near.parent), *sys.path])
    (message,) = errors(installation.installation()).values()
    assert message == f"`import jax` takes {near}, which does not belong to the installed distribution in {site.path}."


@pytest.mark.parametrize("file", ["jax/__init__.py", "bedrax/__init__.py", "numpy.py"])
def test_a_module_in_the_current_folder(site, tmp_path, file):
    site.install("jax", OURS, FACE)
    site.install("numpy", "2.4.0", {"numpy/__init__.py": ""})
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("", encoding="utf-8")
    (message,) = errors(installation.installation()).values()
    assert message.startswith(f"The current folder has {path}: ")


def test_a_build_of_another_name_is_a_distribution(site):
    site.install("tf-nightly", "2.22.0", {"tensorflow/__init__.py": ""})
    assert errors(installation.installation()) == {}


def test_a_module_of_no_distribution(site):
    site.path.joinpath("jax.py").write_text("", encoding="utf-8")
    (message,) = errors(installation.installation()).values()
    assert message.endswith("jax.py, which does not belong to an installed distribution.")


def test_a_folder_without_init_hides_nothing(site, tmp_path):
    site.install("jax", OURS, FACE)
    tmp_path.joinpath("jax").mkdir()
    assert errors(installation.installation()) == {}


@pytest.mark.parametrize("version", ["0.9.2", "0.13.0"])
def test_a_jaxlib_out_of_bounds(site, version):
    bound = "jaxlib>=0.10.2,<=0.12.0.1"
    site.install("bedrax-xla-backend", "0.1.0", {"x.py": ""}, [bound])
    site.install("bedrax-pytree", "0.1.0", {"y.py": ""}, [f"{bound}; extra == 'fast'"])
    site.install("jaxlib", version, {"jaxlib/__init__.py": ""})
    (finding,) = [f for f in installation.installation().findings if f.level == "error"]
    assert finding.message.startswith(f"jaxlib {version} is installed, but bedrax-xla-backend 0.1.0 needs jaxlib")
    assert finding.remedy == 'Run `pip install "jaxlib<=0.12.0.1,>=0.10.2"`.'


def test_remedies_of_our_packages_name_their_index(site):
    site.install("bedrax-jax2tf", "0.1.0", {"x.py": ""}, ["bedrax-core>=0.1,<0.2", "numpy>=2"])
    remedies = {f.message.split(" ")[1]: f.remedy for f in installation.installation().findings if f.level == "error"}
    assert remedies["numpy"] == 'Run `pip install "numpy>=2"`.'
    start = 'Run `pip install --extra-index-url INDEX "bedrax-core<0.2,>=0.1"`. INDEX is the address of the index of Bedrax: '
    assert remedies["bedrax-core"].startswith(start)
    (found,) = [f.remedy for f in installation.installation().findings if f.code == "no-tensorflow"]
    assert '--extra-index-url INDEX "bedrax[tf]"' in found and '"bedrax[tensorflow]"' in found
    page = Path(__file__).parents[3] / "docs/install.md"
    name = installation.INSTALL_PAGE.rpartition("/")[2]
    assert page.name == name and (
        not page.exists() or "You get the address from the person or company" in page.read_text("utf-8")
    )


def test_a_requirement_that_is_absent(site):
    site.install("bedrax-numpy", "0.1.0", {"x.py": ""}, ["opt-einsum>=3", "other>=1; python_version < '3'"])
    assert errors(installation.installation()) == {
        "requirement": "no opt-einsum is installed, but bedrax-numpy 0.1.0 needs opt-einsum>=3."
    }
    site.install("bedrax-core", "0.1.0", {"y.py": ""}, ["opt-einsum>=3"])
    assert " and 1 more package need opt-einsum>=3." in errors(installation.installation())["requirement"]


def test_a_missing_file(site):
    site.install("bedrax-core", "0.1.0", {"bedrax/core/__init__.py": "", "bedrax/core/ir.py": ""})
    site.path.joinpath("bedrax/core/ir.py").unlink()
    assert "1 file (bedrax/core/ir.py)" in errors(installation.installation())["changed-files"]


def test_a_plugin_of_another_version(site):
    site.install("jaxlib", "0.10.2", {"jaxlib/__init__.py": ""})
    site.install("jax-cuda13-plugin", "0.12.0.1")
    assert (
        "jax-cuda13-plugin 0.12.0.1 is installed with jaxlib 0.10.2"
        in errors(installation.installation())["plugin-version"]
    )


def test_both_tensorflows_and_none(site):
    site.install("bedrax-jax2tf", "0.1.0", {"x.py": ""})
    codes = [finding.code for finding in installation.installation().findings if "tensorflow" in finding.message]
    assert codes == ["no-tensorflow"]
    site.install("tensorflow", "2.21.0", {"tensorflow/__init__.py": ""})
    assert errors(installation.installation()) == {}
    site.install("tensorflow-cpu", "2.21.0", {"tensorflow/__init__.py": ""})
    found = errors(installation.installation())
    assert found["two-distributions"].startswith("tensorflow-cpu 2.21.0 and tensorflow 2.21.0 are installed.")


def test_extras_list_their_missing_requirements(site):
    site.install("bedrax-core", "0.1.0", {"x.py": ""}, ["numpy>=2", "absl-py>=2; extra == 'absl'"])
    info = next(site.path.glob("*.dist-info")) / "METADATA"
    info.write_text(info.read_text(encoding="utf-8") + "Provides-Extra: absl\n", encoding="utf-8")
    assert installation.extras().facts == {"bedrax-core[absl]": {"missing": ["absl-py>=2"]}}
    site.install("absl-py", "2.1", {"absl/__init__.py": ""})
    assert installation.extras().facts == {"bedrax-core[absl]": "installed"}


def test_extras_of_extras_are_missing_too(site):
    for name, requirement in (("bedrax-jax2tf", "tensorflow-cpu>=2.21"), ("jax", "bedrax-jax2tf[tf]")):
        version = "0.12.0.1+bedrax.0.1.0" if name == "jax" else "0.1.0"
        site.install(name, version, {f"{name}.py": ""}, [f"{requirement}; extra == 'tf'"])
    for info in site.path.glob("*.dist-info"):
        file = info / "METADATA"
        file.write_text(file.read_text(encoding="utf-8") + "Provides-Extra: tf\n", encoding="utf-8")
    lack = {"missing": ["tensorflow-cpu>=2.21"]}
    assert installation.extras().facts == {"bedrax-jax2tf[tf]": lack, "jax[tf]": lack}


def test_an_old_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(installation.platform, "machine", lambda: "x86_64")
    file = tmp_path / "cpuinfo"
    file.write_text("model name\t: old\nflags\t\t: sse2 avx f16c\n", encoding="utf-8")
    (finding,) = installation._processor(str(file))
    assert "this one lacks avx2" in finding.message
    file.write_text("flags\t\t: sse2 avx avx2 f16c\n", encoding="utf-8")
    assert [*installation._processor(str(file))] == []
