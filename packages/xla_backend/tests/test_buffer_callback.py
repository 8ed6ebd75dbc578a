"""Callbacks that write their results into buffers."""

import numpy as np
import pytest

from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.xla_backend.buffer_callback import Buffer, ExecutionStage, buffer_callback

ONES = np.ones(3, np.float32)


def test_callbacks_fill_buffers():
    seen = []

    def double(context, out, x):
        seen.append((context.stage, x.writeable, out.writeable, x.shape, repr(x)))
        np.asarray(out)[...] = 2 * np.asarray(x)

    f = buffer_callback(double, ONES, vmap_method="broadcast_all")
    for run in (f, jit(f)):
        np.testing.assert_array_equal(run(ONES), 2 * ONES)
    assert seen[0] == (ExecutionStage.EXECUTE, False, True, (3,), "Buffer(float32[3], writeable=False)")
    np.testing.assert_array_equal(vmap(f)(np.stack([ONES, 2 * ONES])), [2 * ONES, 4 * ONES])
    keeps = buffer_callback(lambda context, out, x: None, ONES, has_side_effect=True, input_output_aliases={0: 0})
    np.testing.assert_array_equal(keeps(3 * ONES), 3 * ONES)
    recorded = buffer_callback(double, ONES, command_buffer_compatible=True)
    np.testing.assert_array_equal(jit(recorded)(ONES), 2 * ONES)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(Buffer(np.ones(2), False).__array__(copy=False))[...] = 0


@pytest.mark.parametrize(
    ("aliases", "text"),
    [({1: 0}, "no operand 1"), ({0: 1}, "no result 1"), ({0: 0}, "need one type"), ({-1: 0}, "no operand")],
)
def test_aliases_that_do_not_fit(aliases, text):
    f = buffer_callback(lambda *_: None, np.ones(4, np.float32), input_output_aliases=aliases)
    for run in (f, jit(f)):
        with pytest.raises(ValueError, match=text):
            run(ONES)


def test_a_callback_returns_nothing():
    f = buffer_callback(lambda context, out, x: np.asarray(x), ONES)
    with pytest.raises(Exception, match="writes its results into buffers"):
        np.asarray(f(ONES))
