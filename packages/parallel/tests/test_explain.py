"""`explain` reads the text of a compiled program: what is exchanged, along which axes, how often."""

from types import SimpleNamespace

import numpy as np
import pytest

from bedrax import lax
from bedrax.parallel import AbstractMesh, explain

MESH = AbstractMesh((4, 2), ("x", "y"))
TEXT = """HloModule jit_f, num_partitions=8

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.0 = f32[] add(%a, %b)
}

%body (p: (s32[], f32[16,64])) -> (s32[], f32[16,64]) {
  %p = (s32[], f32[16,64]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[16,64]{1,0} get-tuple-element(%p), index=1
  %r = f32[16,64]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,2,4,6},{1,3,5,7}}, to_apply=%sum
  ROOT %t = (s32[], f32[16,64]{1,0}) tuple(%i, %r)
}

%cond (p: (s32[], f32[16,64])) -> pred[] {
  %p = (s32[], f32[16,64]{1,0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

ENTRY %main (a: f32[16,64]) -> f32[32,64] {
  %a = f32[16,64]{1,0} parameter(0)
  %n = s32[] constant(0)
  %t = (s32[], f32[16,64]{1,0}) tuple(%n, %a)
  %w = (s32[], f32[16,64]{1,0}) while(%t), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %v = (s32[], f32[16,64]{1,0}) while(%w), condition=%cond, body=%body
  %x = f32[16,64]{1,0} get-tuple-element(%v), index=1
  %p = bf16[16,64]{1,0} collective-permute(%x), channel_id=2, source_target_pairs={{0,2},{2,0},{1,3},{3,1}}
  %s = s4[10]{0} all-reduce(%n), channel_id=4, replica_groups={{0,3},{1,2},{4,5},{6,7}}, to_apply=%sum
  ROOT %g = f32[32,64]{1,0} all-gather(%x), channel_id=3, replica_groups=[4,2]<=[8], dimensions={0}
}
"""


def compiled(text):
    stats = dict.fromkeys(("argument", "output", "temp", "alias"), 7)
    memory = SimpleNamespace(**{f"{k}_size_in_bytes": v for k, v in stats.items()})
    program = SimpleNamespace(as_text=lambda: text, memory_analysis=lambda: memory)
    return SimpleNamespace(lower=lambda *args: SimpleNamespace(compile=lambda: program))


def test_exchanges_are_counted():
    found = explain(compiled(TEXT), mesh=MESH, link=1e9, latency=0.0, memory=1e9)
    rows = {(c.kind, c.axes): c for c in found.collectives}
    reduce = rows["all-reduce", ("x",)]
    assert (reduce.group, reduce.bytes, reduce.count) == (
        4,
        4096,
        6,
    )  # five rounds, and one of a loop of unknown length
    assert reduce.sent == 6 * 2 * 4096 * 3 / 4 and reduce.seconds == reduce.sent / 1e9
    gather = rows["all-gather", ("y",)]
    assert (gather.group, gather.bytes, gather.count, gather.sent) == (2, 8192, 1, 4096)
    assert rows["collective-permute", ("x",)].bytes == 4096
    assert rows["all-reduce", None].group == 2  # these groups follow no axis
    assert found.open_loops == 1 and found.memory["temporaries"] == 7 and found.devices == 8
    # permutation, two reductions (one of them six times), gather: what they read and write
    assert found.moved == (4096 + 2048) + (5 + 4) + 6 * 2 * 4096 + (4096 + 8192)


def test_groups_of_several_lengths_take_as_long_as_the_longest():
    text = TEXT.replace("{{0,2,4,6},{1,3,5,7}}", "{{0,2,4,6,1},{3,5},{7}}")
    found = explain(compiled(text), mesh=MESH).collectives
    assert {c.group for c in found if c.kind == "all-reduce" and c.axes is None} == {5, 2}


def test_an_explanation_is_printed_and_drawn():
    found = explain(compiled(TEXT), mesh=MESH)
    text = str(found)
    assert (
        "all-reduce          x" in text
        and "unknown number of rounds" in text
        and text.splitlines()[2].startswith("all-reduce")
    )
    assert found.svg().count("<rect") == len(found.collectives) + 1
    assert found.seconds == pytest.approx(sum(c.seconds for c in found.collectives))


def test_explain_needs_a_compiled_program():
    with pytest.raises(NotImplementedError, match="reads compiled programs"):
        explain(lax.sin, np.ones(3), mesh=MESH)
