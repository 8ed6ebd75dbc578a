"""Policies that keep values in another memory: the memory of each value, and unchanged results."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, checkpoint_name, checkpoint_policies, grad
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.core.passes import programs_in
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr

W = np.arange(4, dtype=np.float32).reshape(2, 2) / 4
BY_NAME = checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["kept"],
    names_which_can_be_offloaded=["away"],
    offload_src="device",
    offload_dst="pinned_host",
)
DOTS = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")


def layers(w):
    x = checkpoint_name(lax.sin(lax.dot(w, w)), "kept")
    y = checkpoint_name(lax.cos(lax.dot(x, w)), "away")
    return lax.reduce_sum(lax.sin(lax.tanh(y)), axes=(0, 1))


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in programs_in(eqn):
            yield from equations(inner)


@pytest.mark.parametrize("policy, moved", [(BY_NAME, 1), (DOTS, 2)], ids=["names", "dots"])
@pytest.mark.parametrize("prevent_cse", [True, False])
def test_residuals_are_moved_to_the_host_and_back(policy, moved, prevent_cse):
    g = grad(checkpoint(layers, policy=policy, prevent_cse=prevent_cse))
    program = make_jaxpr(g)(W)
    check_jaxpr(program)
    kinds = [e.params["to"].kind for e in equations(program.jaxpr) if e.primitive.name == "reshard"]
    assert kinds == ["pinned_host"] * moved + ["device"] * moved
    expected = grad(layers)(W)
    np.testing.assert_allclose(g(W), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(g)(W), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(vmap(g)(np.stack([W, W])))[1], expected, rtol=1e-5)


def test_in_the_body_of_a_loop():
    def body(c, _):
        return lax.mul(checkpoint_name(lax.sin(c), "away"), c), None

    def f(body):
        return lambda w: lax.reduce_sum(lax.scan(body, w, None, length=3)[0], axes=(0, 1))

    np.testing.assert_allclose(grad(f(checkpoint(body, policy=BY_NAME)))(W), grad(f(body))(W), rtol=1e-6)
