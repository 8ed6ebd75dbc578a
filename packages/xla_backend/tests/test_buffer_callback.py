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
    with pytest.raises(NotImplementedError, match="command_buffer"):
        buffer_callback(double, ONES, command_buffer_compatible=True)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(Buffer(np.ones(2), False).__array__(copy=False))[...] = 0
