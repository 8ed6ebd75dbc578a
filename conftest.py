"""Settings of all tests: the number of drawn examples, the executor, and the libraries that a test needs.

Two test runs of one commit must give the same result. So property tests draw few examples from a fixed
seed; the `fuzz` session draws many new ones.

The packages below `xla_backend` are tested on NumPy. Their own environments have no other executor. In
an environment with all packages the XLA backend is the executor, whatever a test imports. So hooks choose NumPy
for the tests of these packages, and for the top level of their files.

Some libraries have no wheels for the newest Pythons. `LIBRARIES` names them and the files of tests that need
them; a single test is marked with `needs(library)`. These tests are skipped on those Pythons. On the other
Pythons they fail if the library is missing, unless the environment leaves the library out on purpose.
"""

import importlib.util
import os
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

# Tests compile what they test: an entry that another run kept would be tested instead. It holds for child processes, too.
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")

settings.register_profile("tests", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fuzz", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("tests")  # pytest's --hypothesis-profile loads another one after this

HAS_NUMPY = importlib.util.find_spec("bedrax") and importlib.util.find_spec("bedrax.numpy_backend")
ROOT = Path(__file__).parent
PACKAGES = ROOT / "packages"
ON_NUMPY = tuple(
    PACKAGES / name
    for name in (
        "core",
        "lax",
        "numpy_backend",
        "batching",
        "shape_poly",
        "autodiff",
        "parallel",
        "checkify",
        "numpy",
        "state",
        "pallas",
        "random",
        "nn",
        "image",
        "sparse",
        "scipy",
    )
)


def pytest_addoption(parser):
    parser.addoption(
        "--sample", type=int, metavar="N", help="run one of N tests, the same ones every time, and some of every file"
    )


def pytest_collection_modifyitems(config, items):
    """Keeps the tests whose names have a checksum that N divides, and the first of a file that would have none."""
    if (n := config.getoption("--sample")) is None:
        return
    kept = {item for item in items if zlib.crc32(item.nodeid.encode()) % n == 0}
    files = {item.path for item in kept}
    for item in items:
        if item.path not in files:
            files.add(item.path)
            kept.add(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@contextmanager
def executor_of(path):
    if not HAS_NUMPY or not any(path.is_relative_to(package) for package in ON_NUMPY):
        yield
        return
    from bedrax.core import executors
    from bedrax.numpy_backend.executor import executor

    executors.install(executor)
    try:
        yield
    finally:
        executors.install(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    with executor_of(item.path):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with executor_of(collector.path):  # a module's top level may compute, too
        return (yield)


# ---- the same random numbers in any order of tests ----

_STATES = {}  # a module's generators, and their states after its import


def _generators(module):
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return []
    found = [x for x in vars(module).values() if isinstance(x, (numpy.random.Generator, numpy.random.RandomState))]
    return [x.bit_generator if isinstance(x, numpy.random.Generator) else x._bit_generator for x in found]


def restore_generators(item):
    """A test draws from the generators of its module as if it were the first one."""
    module = getattr(item, "module", None)
    if module is None:
        return
    states = _STATES.setdefault(module, [(g, g.state) for g in _generators(module)])
    for generator, state in states:
        generator.state = state


# ---- libraries that not every Python has ----


class Library(NamedTuple):
    """A library, and the tests that need it."""

    newest: tuple[int, int]  # the newest Python that it has wheels for
    companion: str  # a module: if it is installed, this library should be, too
    files: tuple[str, ...] = ()  # files of tests that need it, or folders of them


LIBRARIES = {
    "tensorflow": Library(
        (3, 13),
        "bedrax.tf",
        (
            "examples/digits/tests/test_web.py",
            "tests/zoo/tests",
            "packages/call_tf/tests",
            "packages/jax2tf/tests",
            "packages/jax/tests/test_round_trip.py",
            "packages/tf/tests/test_tables.py",
            "packages/tf/tests/test_types.py",
            "tests/integration/test_symbolic_shapes.py",
        ),
    ),
    "tensorstore": Library((3, 14), "flax", ("packages/processes/tests/test_checkpoints.py",)),  # Orbax needs it
}


def absence(name):
    """The reason why a library is absent; None if it is installed. Fails the test if it belongs to the environment."""
    if importlib.util.find_spec(name) is not None:
        return None
    library, version = LIBRARIES[name], sys.version_info[:2]
    if version > library.newest:
        return f"{name} has no wheels for Python {version[0]}.{version[1]}"
    package = library.companion.partition(".")[0]  # the parent of a name with a dot must exist for a search
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(library.companion) is None:
        return f"{name} comes with an extra or a group that this environment leaves out"
    pytest.fail(
        f"{name} is not installed, but {library.companion} is, and Python {version[0]}.{version[1]} has wheels of it;"
        " make the environment with the commands of README.md",
        pytrace=False,
    )


def skip_without(names):
    for name in names:
        if why := absence(name):
            pytest.skip(why)


class WithoutLibrary(pytest.File):
    """Replaces a file of tests whose library is absent: one test, which is skipped with the reason."""

    def collect(self):
        yield Missing.from_parent(self, name="needs")


class Missing(pytest.Item):
    def runtest(self):
        skip_without(libraries_of(self.path))

    def reportinfo(self):
        return self.path, None, f"{self.path.relative_to(ROOT)} needs {', '.join(libraries_of(self.path))}"


def libraries_of(path):
    """The libraries that a file of tests needs."""
    return [n for n, library in LIBRARIES.items() if any(path.is_relative_to(ROOT / file) for file in library.files)]


def pytest_pycollect_makemodule(module_path, parent):
    if any(importlib.util.find_spec(name) is None for name in libraries_of(module_path)):
        return WithoutLibrary.from_parent(parent, path=module_path)


def pytest_configure(config):
    config.addinivalue_line("markers", f"needs(library): runs only with it, one of {', '.join(LIBRARIES)}")


def pytest_runtest_setup(item):
    restore_generators(item)
    skip_without(name for mark in item.iter_markers("needs") for name in mark.args)
