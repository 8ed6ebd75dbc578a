"""The index: pip and uv install from it, later libraries keep this `jax`, and upstream's can replace it.

The index is served on the loopback address. All other packages come from the index that pip is configured with. `nox -s
index` names this file, because it needs the network and makes environments of several gigabytes. The variables
BEDRAX_INDEX (the folder) and BEDRAX_PYTHONS (the commands of the Pythons) choose what is tested.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

FOLDER = Path(os.environ["BEDRAX_INDEX"])
PYTHONS = os.environ.get("BEDRAX_PYTHONS", sys.executable).split(os.pathsep)
PROGRAM = Path(__file__).with_name("program.py")
LOCAL = "+bedrax."
JSON = "application/vnd.pypi.simple.v1+json"
PUBLIC = "https://pypi.org/simple"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")}
ENVIRONMENT |= {"NO_PROXY": "127.0.0.1", "TF_CPP_MIN_LOG_LEVEL": "3", "UV_PYTHON_DOWNLOADS": "never"}


class Handler(SimpleHTTPRequestHandler):
    """A static server. The one with `negotiates` answers by the header `Accept`, as PEP 691 describes."""

    negotiates = False

    def send_head(self):
        if self.negotiates and self.path.endswith("/") and JSON in self.headers.get("Accept", ""):
            self.path += "index.json"
        return super().send_head()

    def guess_type(self, path):
        return JSON if str(path).endswith("index.json") else super().guess_type(path)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def addresses():
    """The addresses of the index on servers of two kinds."""
    servers = {}
    for kind in ("HTML", "JSON"):
        handler = type("H", (Handler,), {"negotiates": kind == "JSON"})
        servers[kind] = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(FOLDER)))
        threading.Thread(target=servers[kind].serve_forever, daemon=True).start()
    yield {kind: f"http://127.0.0.1:{server.server_port}/simple/" for kind, server in servers.items()}
    for server in servers.values():
        server.shutdown()
        server.server_close()


def run(*command, cwd=None, status=0, **variables):
    """The output of a command, which must end with a status."""
    done = subprocess.run(
        [str(each) for each in command],
        env=ENVIRONMENT | variables,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == status, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@functools.cache
def public():
    """The index that pip is configured with."""
    ask = subprocess.run(
        [shutil.which("pip") or "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    return os.environ.get("PIP_INDEX_URL") or ask.stdout.strip() or PUBLIC


class Pip:
    """pip in a new environment. Every installation names the index as one that is searched besides the public one."""

    def __init__(self, folder, python, address):
        self.folder, self.python = folder, folder / "bin/python"
        self.options = ["--index-url", public(), "--extra-index-url", address]
        run("uv", "venv", "-q", "--seed", "--python", python, folder)

    def add(self, *requirements, options=None):
        options = self.options if options is None else options
        run(self.python, "-m", "pip", "install", "-q", *options, *requirements)

    def add_from_public(self, *requirements):
        """Install without this project's index."""
        self.add(*requirements, options=["--index-url", public()])

    def remove(self, *names):
        run(self.python, "-m", "pip", "uninstall", "-q", "-y", *names)

    def check(self):
        assert "No broken requirements found" in run(self.python, "-m", "pip", "check")


class PipFirst(Pip):
    """pip with this project's index as the main one, and the public one besides."""

    def __init__(self, folder, python, address):
        super().__init__(folder, python, address)
        self.options = ["--index-url", address, "--extra-index-url", public()]


class PipConfigured(Pip):
    """pip whose configuration has the index, by the commands of the page `Install`."""

    def __init__(self, folder, python, address):
        super().__init__(folder, python, address)
        self.address, self.options = address, []
        self.variables = {"XDG_CONFIG_HOME": str(folder / "configuration"), "PIP_INDEX_URL": public()}
        self.configure()

    def pip(self, *arguments):
        return run(self.python, "-m", "pip", *arguments, **self.variables)

    def configure(self):
        self.pip("config", "set", "global.extra-index-url", self.address)

    def forget(self):
        self.pip("config", "unset", "global.extra-index-url")

    def add(self, *requirements):
        self.pip("install", "-q", *requirements)


class UvConfigured(PipConfigured):
    """`uv pip`, with the index in the file `uv.toml` of the user."""

    def configure(self):
        file = self.folder / "configuration/uv/uv.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'[[index]]\nurl = "{self.address}"\n', encoding="utf-8")

    def forget(self):
        self.folder.joinpath("configuration/uv/uv.toml").write_text("", encoding="utf-8")

    def add(self, *requirements):
        variables = self.variables | {"UV_DEFAULT_INDEX": public()}
        run("uv", "pip", "install", "-q", "--python", self.python, *requirements, **variables)


class Uv:
    """A project of uv whose pyproject.toml names the index, and it as the source of `jax` and `bedrax`."""

    SOURCES = """
[[tool.uv.index]]
name = "bedrax"
url = "{}"

[tool.uv.sources]
bedrax = {{ index = "bedrax" }}
jax = {{ index = "bedrax" }}
"""

    def __init__(self, folder, python, address):
        folder.mkdir()
        self.folder, self.python, self.address = folder, folder / ".venv/bin/python", address
        self.requirements, self.base = [], python
        self.version = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()

    def sync(self, ours=True):
        text = f'[project]\nname = "program"\nversion = "0"\nrequires-python = "=={self.version}.*"\n'
        text += f"dependencies = {json.dumps(self.requirements)}\n" + (
            self.SOURCES.format(self.address) if ours else ""
        )
        self.folder.joinpath("pyproject.toml").write_text(text, encoding="utf-8")
        self.uv("sync", "-q", "--python", self.base)

    def uv(self, *arguments):
        return run("uv", *arguments, cwd=self.folder, UV_DEFAULT_INDEX=public())

    def add(self, *requirements):
        self.requirements += requirements
        self.sync()

    def add_from_public(self, *requirements):
        self.requirements += requirements
        self.sync(ours=any(each.startswith("bedrax") for each in self.requirements))

    def remove(self, *names):
        self.requirements = [each for each in self.requirements if each.split("[")[0] not in names]

    def check(self):
        run("uv", "pip", "check", "-q", "--python", self.python)
        self.uv("lock", "--check", "-q", "--python", self.base)


def installed(installer):
    """The installed distributions: name, with hyphens and in lower case -> version."""
    code = "import importlib.metadata as m; print(*(f'{d.name.lower()} {d.version}' for d in m.distributions()), sep='\\n')"
    found = (line.replace("_", "-").split(" ") for line in run(installer.python, "-c", code).splitlines())
    return {name: version for name, version in found}


def assert_ours(installer):
    installer.check()
    assert LOCAL in installed(installer)["jax"]
    report = json.loads(run(installer.folder / installer.python.parent / "bedrax", "doctor", "--json"))
    assert report["ok"], report["findings"]


def on_each_python(*kinds):
    """Parametrize a test with installers and servers."""
    cases = [(python, kind, server) for python in PYTHONS for kind, server in kinds]
    names = [f"{Path(python).name}-{kind.__name__}-{server}" for python, kind, server in cases]
    return pytest.mark.parametrize("installer", cases, ids=names, indirect=True)


@pytest.fixture
def installer(request, tmp_path, addresses):
    python, kind, server = request.param
    made = kind(tmp_path / "environment", python, addresses[server])
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)  # gigabytes, which pytest would keep


@on_each_python((Pip, "HTML"), (PipFirst, "JSON"), (Uv, "HTML"))
def test_bedrax_and_its_dependents_are_installed_removed_and_replaced(installer):
    installer.add("bedrax")
    assert_ours(installer)
    before = installed(installer)
    assert "tensorflow-cpu" not in before
    installer.add_from_public("flax", "equinox", "orbax-checkpoint")
    after = installed(installer)
    assert_ours(installer)
    assert {name: after[name] for name in before} == before
    run(installer.python, "-W", "ignore", "-P", PROGRAM, "bedrax", cwd=installer.folder)

    installer.remove("bedrax", "jax")
    installer.add_from_public("jax")
    installer.check()
    assert LOCAL not in installed(installer)["jax"]
    run(installer.python, "-W", "ignore", "-P", PROGRAM, "upstream", cwd=installer.folder)

    installer.remove("jax")
    installer.add("bedrax")
    assert_ours(installer)
    run(installer.python, "-W", "ignore", "-P", PROGRAM, "bedrax", cwd=installer.folder)


@on_each_python((PipConfigured, "HTML"), (UvConfigured, "JSON"))
def test_back_to_upstream_with_a_configured_index(installer):
    installer.add("bedrax")
    assert_ours(installer)
    installer.remove("bedrax", "jax")
    installer.add("jax==0.12.0.1")  # a local version matches it
    assert LOCAL in installed(installer)["jax"]

    installer.remove("jax")
    installer.forget()
    installer.add("jax")
    installer.check()
    assert LOCAL not in installed(installer)["jax"]
    run(installer.python, "-W", "ignore", "-P", PROGRAM, "upstream_alone", cwd=installer.folder)

    installer.remove("jax")
    installer.configure()
    installer.add("bedrax")
    assert_ours(installer)


@on_each_python((Pip, "HTML"), (Uv, "JSON"))
@pytest.mark.parametrize("extra", ["tf", "tensorflow"])
def test_with_tensorflow(installer, extra):
    installer.add(f"bedrax[{extra}]")
    assert_ours(installer)
    found = installed(installer).keys() & {"tensorflow-cpu", "tensorflow"}
    assert found == {"tensorflow-cpu" if extra == "tf" else "tensorflow"}
    run(installer.python, "-W", "ignore", "-P", PROGRAM, "tensorflow", cwd=installer.folder)


@on_each_python((Pip, "JSON"), (Uv, "HTML"))
def test_one_layer(installer):
    installer.add("bedrax-autodiff")
    installer.check()
    assert not {"jax", "jaxlib", "scipy", "bedrax"} & installed(installer).keys()
    run(installer.python, "-P", PROGRAM, "autodiff", cwd=installer.folder)


@on_each_python((Pip, "HTML"), (Uv, "JSON"))
def test_the_lowest_layer_installs_alone(installer):
    installer.add("bedrax-pytree")
    installer.check()
    seeds = {"pip", "setuptools", "wheel", "packaging"}  # of an environment with pip
    assert installed(installer).keys() - seeds == {"bedrax-pytree"}
    run(installer.python, "-P", PROGRAM, "pytree", cwd=installer.folder)
