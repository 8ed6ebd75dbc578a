"""Values in other memories than the device's own."""

import numpy as np
import pytest

pytest.importorskip("jaxlib")

import bedrax.xla_backend  # noqa: F401  the executor
from bedrax import lax, pytree
from bedrax.autodiff import checkpoint, checkpoint_name, checkpoint_policies, grad, vjp
from bedrax.core.jitting import jit
from bedrax.xla_backend import export

AWAY = checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["away"], offload_src="device", offload_dst="pinned_host"
)  # fmt: skip
X = np.arange(3, dtype=np.float32)


def f(x):
    return lax.sin(checkpoint_name(lax.sin(x), "away"))


def test_what_reverse_mode_keeps_is_on_the_host():
    _, pullback = vjp(checkpoint(f, policy=AWAY), X)
    kept = [x for x in pytree.tree_leaves(pullback) if hasattr(x, "sharding")]
    assert {x.sharding.memory_kind for x in kept} == {"device", "pinned_host"}
    (ct,) = pullback(np.ones_like(X))
    assert ct.sharding.memory_kind == "device"
    np.testing.assert_allclose(ct, np.cos(np.sin(X)) * np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("platform, count", [("cpu", 0), ("cuda", 2), ("tpu", 2)])
def test_compiled_programs_say_where(platform, count):
    g = jit(grad(lambda x: lax.reduce_sum(checkpoint(f, policy=AWAY)(x), axes=(0,))))
    text = export.export(g, platforms=[platform])(X).mlir_module()
    placed = [line for line in text.splitlines() if "@annotate_device_placement" in line]
    assert len(placed) == count
    if count:
        assert '_xla_buffer_placement = "pinned_host"' in placed[0]
        assert '_xla_buffer_placement = "device"' in placed[1]
