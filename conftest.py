"""What holds for every test of the repository: how many examples are drawn, and who evaluates.

A test run must say the same thing twice about the same commit, so property tests draw few examples
from a fixed seed; the `fuzz` session is the place for many new ones.

The packages below `xla_backend` are tested on NumPy. In an environment of their own nothing else is
there; but when one process runs the tests of all packages, some other test has imported the XLA
backend, which takes over as the executor. So for the tests of these packages it is set back.
"""

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tests", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("fuzz", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("tests")  # pytest's --hypothesis-profile loads another one after this

HAS_NUMPY = importlib.util.find_spec("bedrax") and importlib.util.find_spec("bedrax.numpy_backend")
PACKAGES = Path(__file__).parent / "packages"
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


@contextmanager
def executor_of(path):
    executors = sys.modules.get("bedrax.core.executors")
    if executors is None or not HAS_NUMPY or not any(path.is_relative_to(package) for package in ON_NUMPY):
        yield
        return
    from bedrax.numpy_backend.executor import executor

    before = executors.active
    executors.install(executor)
    try:
        yield
    finally:
        executors.install(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    with executor_of(item.path):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    with executor_of(collector.path):  # a module's top level may compute, too
        return (yield)
