"""Stops of running programs: the printed frames, and the commands."""

import io

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.jitting import jit
from bedrax.xla_backend import device_put
from bedrax.xla_backend.compile import effects_barrier
from bedrax.xla_backend.debugging import debugger


def stopped(run, *commands):
    """The output of the debugger: one entry per command; the first one shows the position."""
    out = io.StringIO()
    run(dict(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out))
    effects_barrier()
    return out.getvalue().split("(jdb) ")


def outer(x, files):
    label = "outer"

    def inner(y):
        z = {"double": lax.mul(y, np.float32(2))}
        debugger.breakpoint(**files)
        return z["double"]

    return inner(lax.add(x, np.float32(1))), label


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_values_are_those_of_the_run(transform):
    shown = stopped(
        lambda files: transform(lambda x: outer(x, files)[0])(np.float32(3)),
        "p y",
        "z['double'] + 1",
        "up",
        "p label",
        "p x",
        "p missing",
        "down",
        "down",
        "w",
        "l",
        "",
        "c",
    )
    assert "Entering jdb" in shown[0] and __file__ in shown[0] and "inner" in shown[0]
    assert "4." in shown[1] and "9." in shown[2] and "outer()" in shown[3] and "'outer'" in shown[4]
    assert "3." in shown[5] and "NameError" in shown[6] and "inner" in shown[7] and "innermost" in shown[8]
    assert shown[9].index("outer()") < shown[9].index("> ") and "debugger.breakpoint(**files)" in shown[10]


def test_transformations():
    x = np.arange(3, dtype=np.float32)
    shown = stopped(lambda files: vmap(lambda x: outer(x, files)[0])(x), *["p y", "c"] * 3)
    seen = "".join(shown)
    assert seen.count("Entering jdb") == 3 and all(f"{v}." in seen for v in (1, 2, 3))
    shown = stopped(lambda files: grad(lambda x: outer(x, files)[0])(np.float32(1)), "p y", "c")
    assert "2." in shown[1]


def test_leaving_and_misuse():
    with pytest.raises(Exception, match="quit"):
        stopped(lambda files: outer(np.float32(1), files), "q")
    with pytest.raises(NotImplementedError, match="terminal"):
        debugger.breakpoint(backend="colab")
    shown = stopped(lambda files: debugger.breakpoint(num_frames=1, **files), "up", "c")
    assert "outermost" in shown[1]
    with pytest.raises(ValueError, match="num_frames=0"):
        debugger.breakpoint(num_frames=0)


def holds_itself():
    found = []
    found.append(found)
    return found


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_every_variable_is_shown_as_it_is(transform):
    def function(x, files):
        unsorted, itself, struct = {1: "one", "b": 2}, holds_itself(), ShapeDtypeStruct((2,), np.float32)  # noqa: F841
        large, mixed = np.array([1 << 40]), {"x": lax.neg(x), "name": "n", "large": 1 << 40}  # noqa: F841
        debugger.breakpoint(num_frames=1, **files)
        return x

    shown = stopped(
        lambda files: transform(lambda x: function(x, files))(np.ones(2, np.float32)),
        *("unsorted", "itself", "struct", "large", "mixed", "sum(x[i] + x[0] for i in range(2))", "c"),
    )
    assert "{1: 'one', 'b': 2}" in shown[1] and "[[...]]" in shown[2] and "ShapeDtypeStruct" in shown[3]
    assert "1099511627776" in shown[4] and "'name': 'n'" in shown[5] and "-1." in shown[5] and "4.0" in shown[6]


def test_a_deleted_array_does_not_prevent_a_stop():
    def caller(files):
        deleted, donated = device_put(np.ones(3, np.float32)), device_put(np.ones(2, np.float32))
        deleted.delete()
        step = lambda x: (debugger.breakpoint(**files), lax.neg(x))[1]
        return jit(step, donate_argnums=0)(donated)

    assert "1." in stopped(caller, "p x", "up", "p deleted", "c")[1]
