"""Profiles: a recording is written and read back with the given names."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.xla_backend import profiler
from bedrax.xla_backend.door import versions


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


def names_of(data) -> set[str]:
    return {e.name for plane in data.planes for line in plane.lines for e in line.events}


def test_a_session_in_memory(tmp_path):
    with profiler.trace() as session:
        assert session.is_running and session.profile_data is None
        with profiler.TraceAnnotation("first_block"):
            lax.sin(np.float32(1))
        for begin in (session.start, profiler.ProfileSession().start):
            with pytest.raises(RuntimeError, match="recorded already"):
                begin()
    data = session.profile_data
    assert not session.is_running and data is session.profile_data and "first_block" in names_of(data)
    assert any(isinstance(line, profiler.ProfileLine) for plane in data.planes for line in plane.lines)
    # both the session and its data can be written
    for what, name in ((session, "a"), (data, "b")):
        profiler.export_profile_data(what, tmp_path, create_perfetto_trace=True, session_id=name)
        (written,) = (tmp_path / "plugins" / "profile" / name).glob("*.xplane.pb")
        assert "first_block" in names_of(profiler.ProfileData.from_file(str(written)))
        events = json.loads(gzip.decompress((written.parent / "perfetto_trace.json.gz").read_bytes()))["traceEvents"]
        assert any(e.get("name") == "first_block" for e in events)
    assert {p.name for p in tmp_path.iterdir()} == {"plugins"}
    with session, profiler.TraceAnnotation("second_block"):  # a second recording
        pass
    assert {"first_block", "second_block"} & names_of(session.profile_data) == {"second_block"}


@pytest.mark.skipif(not versions.has("export of profile data"), reason=str(versions.missing("export of profile data")))
def test_data_of_a_file_is_written(tmp_path):
    with profiler.trace(tmp_path / "one"), profiler.TraceAnnotation("my_block"):
        pass
    (written,) = (tmp_path / "one").rglob("*.xplane.pb")
    profiler.export_profile_data(profiler.ProfileData.from_file(str(written)), tmp_path / "two")
    (again,) = (tmp_path / "two").rglob("*.xplane.pb")
    assert "my_block" in names_of(profiler.ProfileData.from_file(str(again)))


def test_the_trace_for_perfetto_is_valid(tmp_path):
    """The format of Chrome's traces, which Perfetto reads: phases, times in microseconds, names of processes."""
    double = jit(lambda x: lax.dot(x, x) + x)
    double(np.ones((200, 200), np.float32))
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        with profiler.TraceAnnotation("outer"), profiler.TraceAnnotation("inner"):
            double(np.ones((200, 200), np.float32)).block_until_ready()
    (path,) = tmp_path.rglob("perfetto_trace.json.gz")
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert trace["displayTimeUnit"] in ("ns", "ms")
    events = trace["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X"}
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert all(e["ts"] >= 0 and e["dur"] >= 0 and {"pid", "tid"} <= e.keys() for e in spans.values())
    outer, inner = spans["outer"], spans["inner"]
    assert (outer["pid"], outer["tid"]) == (inner["pid"], inner["tid"])
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    named = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert {e["pid"] for e in spans.values()} <= named


def test_memory(tmp_path):
    kept = jit(lambda x: x + 1)(np.ones(3, np.float32))
    assert gzip.decompress(profiler.device_memory_profile())
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size > 50
    assert np.asarray(kept)[0] == 2


def test_wrong_uses_of_the_profiler_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="create_perfetto_link"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    with pytest.raises(TypeError, match="takes a ProfileSession or a ProfileData"):
        profiler.export_profile_data(3, tmp_path)
    with pytest.raises(RuntimeError, match="has not ended"):
        profiler.export_profile_data(profiler.ProfileSession(), tmp_path)
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.ProfileSession().stop()
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
