"""The tables of offers and hooks in docs/architecture.md are complete, and the metadata of packages have all offers."""

import fnmatch
import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
TABLES = {p.parent.name: tomllib.loads(p.read_text(encoding="utf-8")) for p in ROOT.glob("packages/*/pyproject.toml")}
METADATA = {name: table["project"].get("entry-points", {}).get("bedrax", {}) for name, table in TABLES.items()}
OFFERS = {purpose: target for offers in METADATA.values() for purpose, target in offers.items()}
# From the lowest to the highest, as README.md lists them from the top down.
LAYERS = re.findall(r"^\| \[`(?:bedrax-)?([\w-]+)`\]", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
BRIDGES = ("tf", "call-tf", "jax2tf") if importlib.util.find_spec("tensorflow") is None else ()
# What the import of a package registers for its own modules only.
OWN = {"text of programs", "text of equations", "NumPy rule of what is composed"}


def rows(title):
    """The first cells of the table after a title."""
    table = PAGE[PAGE.index(title) :].partition("\n|---")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def output(*args):
    out = subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout.splitlines()


def test_every_hook_is_listed():
    order = [name.replace("-", "_") for name in reversed(LAYERS) if name not in BRIDGES]
    found = [name.removeprefix("bedrax.") for name in output(ROOT / "tests/programs/hooks.py", *order)]
    listed = rows("**Hooks**")
    assert len(listed) > 25 and len(set(listed)) == len(listed)
    new = [name for name in found if not any(fnmatch.fnmatchcase(name, pattern) for pattern in listed)]
    assert not new, "hooks that docs/architecture.md does not list: say there what happens before they are filled"
    idle = [pattern for pattern in listed if not fnmatch.filter(found, pattern)]
    assert not idle, "docs/architecture.md lists hooks that nothing fills"


def test_every_purpose_is_listed():
    listed = [re.sub(r" <\w+>$", " *", purpose) for purpose in rows("**Offers.**")]
    assert [p for p in OFFERS if not any(fnmatch.fnmatchcase(p, pattern) for pattern in listed)] == []
    assert [pattern for pattern in listed if not fnmatch.filter(OFFERS, pattern)] == []


def test_targets_exist_in_their_packages():
    for package, offers in METADATA.items():
        for purpose, target in offers.items():
            module, _, function = target.partition(":")
            own = "jax" if package == "jax" else f"bedrax.{package}"
            assert module == own or module.startswith(own + "."), f"{package} offers {target} of another package"
            if package not in ("jax2tf", "tf", "call_tf") or not BRIDGES:
                found = importlib.import_module(module)
                assert not function or hasattr(found, function), (purpose, target)


@pytest.mark.parametrize("package", [n for n in METADATA if n != "testing" and n.replace("_", "-") not in BRIDGES])
def test_offers_of_an_import_are_in_the_metadata(package):
    """The import of a package and of those below it registers nothing else; the face registers everything."""
    name = TABLES[package]["tool"]["uv"]["build-backend"]["module-name"]
    program = f"import {name}\nfrom bedrax.core import offers\nfor o in offers._targets.items(): print(*o, sep=' = ')"
    registered = dict(line.split(" = ") for line in output("-c", program))
    assert {p: t for p, t in registered.items() if p not in OWN} == {p: OFFERS[p] for p in registered.keys() - OWN}


def test_the_face_registers_all_offers():
    import jax

    from bedrax.core import offers

    assert jax and offers.installed() == OFFERS


def test_the_environment_has_the_metadata():
    from bedrax.core import offers

    found = {p: t for p, t in offers._in_metadata().items() if p in OFFERS}
    assert found == OFFERS, "the environment is older than a pyproject.toml: uv sync"
