"""Profiles: what was recorded is written, read back, and has the names that were given."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.xla_backend import profiler


def test_a_trace_has_the_names(tmp_path):
    f = profiler.annotate_function(jit(lambda x: lax.sin(x)), name="my_annotated_call")
    with profiler.trace(tmp_path), profiler.StepTraceAnnotation("my_step", step_num=3):
        with profiler.TraceAnnotation("my_block"):
            f(np.ones(3, np.float32)).block_until_ready()
        with pytest.raises(RuntimeError, match="recorded already"):
            profiler.start_trace(tmp_path)
    (written,) = tmp_path.rglob("*.xplane.pb")
    content = profiler.ProfileData.from_file(str(written))
    names = {e.name for plane in content.planes for line in plane.lines for e in line.events}
    assert {"my_step", "my_block", "my_annotated_call"} <= names
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_memory(tmp_path):
    kept = jit(lambda x: x + 1)(np.ones(3, np.float32))
    assert gzip.decompress(profiler.device_memory_profile())
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size > 50
    assert np.asarray(kept)[0] == 2


def test_what_is_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="Perfetto"):
        profiler.start_trace(tmp_path, create_perfetto_trace=True)
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
