"""Arrays are values: writes to other memory do not change them, and they are read-only."""

import copy
import pickle

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import executors
from bedrax.core.jitting import jit
from bedrax.lax.primitives.callbacks import pure_callback
from bedrax.numpy_backend.host_array import HostArray, is_frozen


def ones():
    return np.ones((2, 3), np.float32)


ALIASING = {
    "asarray": lax.asarray,
    "reshape": lambda x: lax.reshape(x, (6,)),
    "transpose": lambda x: lax.transpose(x, (1, 0)),
    "squeeze of expand_dims": lambda x: lax.squeeze(lax.expand_dims(x, (0,)), (0,)),
    "slice": lambda x: lax.slice(x, (0, 1), (2, 3)),
    "broadcast": lambda x: lax.broadcast(x, (300,)),
    "rev": lambda x: lax.rev(x, (0,)),
    "stop_gradient": lax.stop_gradient,
    "scan": lambda x: lax.scan(lambda c, _: (c, c), x, None, length=3)[0],
    "scan of no steps": lambda x: lax.scan(lambda c, _: (c, None), x, None, length=0)[0],
    "while of no steps": lambda x: lax.while_loop(lambda c: False, lambda c: c, x),
    "cond": lambda x: lax.cond(True, lambda a: a, lambda a: -a, x),
    "real view": lambda x: lax.bitcast_convert_type(x, np.int32),
    "split": lambda x: lax.split(x, (1, 1), axis=0)[1],
}


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("name", ALIASING)
def test_results_do_not_change_with_their_operands(name, way):
    given = ones()
    fun = ALIASING[name] if way == "eager" else jit(ALIASING[name])
    result = fun(given)
    before = np.array(result)
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(result), before)
    assert given.flags.writeable  # the array of the user is unchanged


def test_later_writes_do_not_change_the_constants_of_a_program():
    given = ones()
    f = jit(lambda x: lax.add(x, given))
    first = np.array(f(ones()))
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(f(ones())), first)


def test_arrays_are_read_only():
    x = lax.sin(ones())
    view = np.asarray(x)
    for a in (view, np.asarray(lax.reshape(x, (6,))), np.asarray(jit(lax.exp)(x)), np.array(x, copy=None)):
        assert not a.flags.writeable
        with pytest.raises(ValueError):
            a[...] = 7
        with pytest.raises(ValueError):
            a.flags.writeable = True
    own = np.array(x)
    own[:] = 7  # a copy is the user's
    np.testing.assert_array_equal(view, np.sin(ones()))


def test_the_result_of_a_callback_is_copied():
    buffer = np.zeros(3, np.float32)
    result = jit(lambda: pure_callback(lambda: buffer, buffer))()
    buffer[:] = 7
    np.testing.assert_array_equal(np.asarray(result), np.zeros(3, np.float32))
    assert buffer.flags.writeable


def test_read_only_memory_is_shared():
    x = lax.asarray(np.arange(1000.0, dtype=np.float32))
    again = lax.asarray(np.asarray(x))
    assert np.shares_memory(np.asarray(again), np.asarray(x))
    assert is_frozen(np.asarray(x)) and not is_frozen(ones())
    hidden = ones()
    view = hidden[:]
    view.flags.writeable = False
    assert not is_frozen(view)  # its owner may write


def test_copies_are_values_too():
    x = lax.asarray(ones())
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is HostArray and not np.asarray(y).flags.writeable
        np.testing.assert_array_equal(np.asarray(y), ones())


def test_dlpack_copies():
    given = ones()
    x = executors.get().from_dlpack(given)
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(x), ones())
    with pytest.raises(ValueError, match="always copies"):
        executors.get().from_dlpack(given, copy=False)
