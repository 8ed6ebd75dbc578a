"""The executor protocol: a new backend is a subclass, one `provide`, and a column of rules."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import array, config, executors, one_program
from bedrax.core.columns import Column
from bedrax.core.jitting import jit
from bedrax.numpy_backend.executor import NumpyExecutor
from bedrax.numpy_backend.host_array import HostArray

AT_THE_TOP = lax.sin(1.0)
PROGRAMS = Path(__file__).with_name("programs")


class LoggedArray:
    """An array type that does not derive from `Array`; the executor provides it."""

    def __init__(self, inner):
        self.inner, self.aval = inner, inner.aval

    def __array__(self, dtype=None, copy=None):
        return self.inner.__array__(dtype, copy)


logged_rules = Column(
    "logging", signature="rule(*arrays, **params) -> text", otherwise=lambda prim: lambda *_, **__: str(prim)
)
logged_rules.add(lax.add_p, lambda x, y: "a sum", "rule")


class LoggingExecutor(executors.Executor):
    """Evaluates with NumPy, and records the operations."""

    array_types = (LoggedArray,)
    name = "logging"
    rank = -1  # offered below NumPy: it evaluates only where it is installed
    compiles = True

    def __init__(self):
        self.log = []
        self.options = []
        self.option_changed = lambda flag: self.options.append(flag.name)
        self.context_changed = lambda context: self.options.append(dict(context.values))
        self.numpy = NumpyExecutor()

    def _inner(self, args):
        return [x.inner if type(x) is LoggedArray else x for x in args]

    def apply(self, prim, args, params):
        self.log.append(logged_rules[prim](*args, **params))
        out = self.numpy.apply(prim, self._inner(args), params)
        return [LoggedArray(x) for x in out] if prim.multiple_results else LoggedArray(out)

    def run_program(self, jaxpr, args):
        self.log.append(f"program of {len(jaxpr.eqns)}")
        return [LoggedArray(x) for x in self.numpy.run_program(jaxpr, self._inner(args))]

    def asarray(self, x):
        return x if type(x) is LoggedArray else LoggedArray(self.numpy.asarray(x))


@pytest.fixture(scope="module")
def provided():
    executor = LoggingExecutor()
    executors.provide(executor)
    return executor


@pytest.fixture
def logging(provided):
    before = executors.active
    executors.install(provided)
    provided.log.clear()
    yield provided
    executors.install(before)


def test_providing_installs_only_the_highest(provided):
    assert executors.get() is not provided and executors.get().name == "numpy"


def test_this_folder_is_tested_on_numpy():
    """Also in an environment with XLA, and also where the top level of a file computes (`conftest.py`)."""
    assert type(AT_THE_TOP) is HostArray and type(lax.sin(1.0)) is HostArray


def test_eager_operations(logging):
    x = lax.asarray(np.arange(3.0, dtype=np.float32))
    y = lax.add(lax.sin(x), x)
    assert type(y) is LoggedArray and isinstance(y, array.Array)
    assert logging.log == ["sin", "a sum"]
    np.testing.assert_allclose(np.asarray(y), np.sin(np.arange(3)) + np.arange(3), rtol=1e-6)


def test_arrays_have_the_installed_methods(logging):
    x = lax.asarray(np.arange(3.0, dtype=np.float32))
    assert type(x) is LoggedArray
    np.testing.assert_array_equal(np.asarray(x + x), [0, 2, 4])


def test_programs(logging):
    f = jit(lambda x: lax.add(lax.sin(x), x))
    y = f(np.float32(1))
    assert type(y) is LoggedArray and logging.log == ["program of 2"]


def test_a_function_of_several_operations_is_one_program(logging):
    @one_program.one_program
    def f(x):
        return lax.add(lax.sin(x), x)

    f(lax.asarray(np.float32(1)))
    assert logging.log == ["program of 2"]


def test_an_executor_is_notified_of_changed_options_and_contexts(provided):
    provided.options.clear()
    with config.enable_x64(True), config.debug_nans(True):
        pass
    x64 = {"jax_enable_x64": True}
    assert provided.options == [x64, x64 | {"jax_debug_nans": True}, x64, {}]
    provided.options.clear()
    config.config.update("jax_debug_nans", False)
    assert provided.options == ["jax_debug_nans"]


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (lambda e: e.apply(lax.sin_p, (), {}), "does not evaluate 'sin'"),
        (lambda e: e.run_program(None, ()), "does not run programs"),
        (lambda e: e.asarray(1), "does not make arrays"),
        (lambda e: e.resolve("there", "device", None), "placing an array on there needs devices"),
    ],
)
def test_a_missing_method_of_an_executor_is_named(question, error):
    class Empty(executors.Executor):
        name = "empty"

    with pytest.raises(NotImplementedError, match=error):
        question(Empty())
    assert Empty().devices() == [] and Empty().reshard(3, "there") == 3


def test_first_use_from_many_threads():
    """In a fresh process: later threads wait until the modules are loaded."""
    program = PROGRAMS / "first_use_from_threads.py"
    out = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "errors []", out.stdout + out.stderr


def test_evaluation_without_a_backend_is_an_error():
    program = "from bedrax.core import executors, offers; offers.name_all({}); executors.get()"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "install bedrax-numpy-backend, or a package above it" in out.stderr


def test_the_numpy_executor_refuses_shardings():
    with pytest.raises(NotImplementedError, match="sharding: placing an array on here needs devices"):
        lax.full((2,), 1.0, sharding="here")
