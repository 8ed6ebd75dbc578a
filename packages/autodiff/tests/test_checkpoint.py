"""`checkpoint`: the kept values, the recomputed values, and unchanged results."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, checkpoint_name, checkpoint_policies, grad, jvp, value_and_grad
from bedrax.autodiff.checkpointing import print_saved_residuals, saved_residuals
from bedrax.batching import vmap
from bedrax.core.errors import TracerBoolConversionError
from bedrax.core.jitting import jit
from bedrax.core.passes import programs_in
from bedrax.core.staging import make_jaxpr
from bedrax.lax.primitives.calls import name_p

f32 = np.float32
W = np.arange(4, dtype=f32).reshape(2, 2) / 4


def count(jaxpr, name):
    """The number of equations of a primitive, including those in inner programs."""
    own = sum(e.primitive.name == name for e in jaxpr.eqns)
    return own + sum(count(inner, name) for e in jaxpr.eqns for inner in programs_in(e))


def operations(f, *args, policy=None, of="sin"):
    return count(make_jaxpr(grad(checkpoint(f, policy=policy)))(*args), of)


def three_sines(x):
    return lax.sin(lax.sin(lax.sin(x)))


def layer(w):
    product = lax.dot_general(w, w, (((1,), (0,)), ((), ())))
    return lax.reduce_sum(lax.sin(product), axes=(0, 1))


def test_everything_is_computed_again_by_default():
    assert count(make_jaxpr(grad(three_sines))(1.0), "sin") == 3
    assert operations(three_sines, 1.0) == 5  # three forward, and two of them recomputed


def test_policies():
    p = checkpoint_policies
    assert operations(three_sines, 1.0, policy=p.everything_saveable) == 3
    assert operations(three_sines, 1.0, policy=p.nothing_saveable) == 5
    # a forward product, two for its two gradients, and possibly one recomputed
    assert operations(layer, W, policy=p.dots_saveable, of="dot_general") == 3
    assert operations(layer, W, policy=p.nothing_saveable, of="dot_general") == 4
    assert operations(layer, W, policy=p.dots_with_no_batch_dims_saveable, of="dot_general") == 3


def test_policies_apply_inside_calls():
    p = checkpoint_policies
    assert operations(jit(layer), W, policy=p.dots_saveable, of="dot_general") == 3
    assert operations(lambda w: jit(jit(layer))(w), W, policy=p.dots_saveable, of="dot_general") == 3


def test_policies_by_name():
    def f(x):
        return lax.mul(checkpoint_name(lax.sin(x), "a"), checkpoint_name(lax.atan(x), "b"))

    p = checkpoint_policies
    for policy, kept in (
        (p.save_only_these_names("a"), "a"),
        (p.save_any_names_but_these("b"), "a"),
        (p.save_only_these_names("a", "b"), "ab"),
        (p.save_from_both_policies(p.save_only_these_names("a"), p.save_only_these_names("b")), "ab"),
        (p.save_only_these_names("c"), ""),
    ):
        assert operations(f, 1.0, policy=policy, of="sin") == (1 if "a" in kept else 2), kept
        assert operations(f, 1.0, policy=policy, of="atan") == (1 if "b" in kept else 2), kept


def test_names_are_either_saved_or_offloaded():
    with pytest.raises(ValueError, match="are both saved and offloaded"):
        checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_saved_residuals_say_where_they_come_from(capsys):
    def f(x, y):
        return lax.reduce_sum(lax.sin(lax.mul(lax.sin(x), y)), axes=(0,))

    x = np.ones(3, f32)
    plain = [str(r) for r in saved_residuals(f, x, x)]
    cosines = [r.partition(" from ")[2] for r in plain if r.startswith("f32[3] output of cos from ")]
    assert len(set(cosines)) == 2  # on one line, by their columns
    assert all(re.search(r"test_checkpoint\.py:\d+:\d+ \(.*f\)$", c) for c in cosines)
    assert "f32[3] from the argument y" in plain and "argument" in plain[0]  # arguments come first
    assert {str(r) for r in saved_residuals(checkpoint(f), x, x)} == {
        "f32[3] from the argument x",
        "f32[3] from the argument y",
    }
    named = checkpoint(
        lambda x: lax.sin(checkpoint_name(lax.sin(x), "inner")),
        policy=checkpoint_policies.save_only_these_names("inner"),
    )
    print_saved_residuals(lambda x: named(x), x)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_values_and_derivatives_do_not_change():
    f = checkpoint(lambda x: lax.mul(lax.sin(x), x))
    value, g = value_and_grad(f)(2.0)
    np.testing.assert_allclose([float(value), float(g)], [2 * np.sin(2), np.sin(2) + 2 * np.cos(2)], rtol=1e-6)
    np.testing.assert_allclose(float(grad(grad(f))(2.0)), 2 * np.cos(2) - 2 * np.sin(2), rtol=1e-6)
    np.testing.assert_allclose(float(jvp(f, (2.0,), (1.0,))[1]), float(g), rtol=1e-6)
    xs = np.arange(3, dtype=f32)
    np.testing.assert_allclose(np.asarray(vmap(grad(f))(xs)), np.sin(xs) + xs * np.cos(xs), rtol=1e-5)


def test_a_checkpointed_step_keeps_only_the_carry():
    def loop(step):
        def f(x):
            return lax.scan(lambda c, _: (step(c), None), x, None, length=10)[0]

        forward = next(e for e in make_jaxpr(grad(f))(f32(1)).eqns if e.primitive.name == "scan")
        return len(forward.outvars) - forward.params["num_carry"]

    assert loop(three_sines) == 3  # the three cosines of each step
    assert loop(checkpoint(three_sines)) == 1  # the carry


def test_static_arguments():
    f = lambda x, negate: lax.neg(x) if negate else x
    assert float(grad(checkpoint(f, static_argnums=1))(2.0, True)) == -1
    assert float(grad(checkpoint(f, static_argnums=(-1,)))(2.0, False)) == 1
    with pytest.raises(TracerBoolConversionError, match="depends on the value of the argument negate"):
        checkpoint(f)(2.0, True)


def test_a_barrier_keeps_the_recomputation_apart():
    for prevent_cse, barriers in ((True, 1), (False, 0)):
        f = checkpoint(three_sines, prevent_cse=prevent_cse)
        assert count(make_jaxpr(grad(f))(1.0), "optimization_barrier") == barriers


def test_as_a_decorator_with_options():
    @checkpoint
    def f(x):
        """Doc."""
        return lax.sin(x)

    assert f.__doc__ == "Doc." and float(f(0.0)) == 0
    assert float(checkpoint(prevent_cse=False)(lax.sin)(0.0)) == 0
    with pytest.raises(NotImplementedError, match="static_argnums"):
        checkpoint(lax.sin, concrete=True)


def test_policies_of_names_have_types_and_compare_by_value():
    p = checkpoint_policies
    kept = p.save_only_these_names("a", "b")
    assert isinstance(kept, p.SaveOnlyTheseNames) and kept == p.SaveOnlyTheseNames("b", "a") != p.SaveOnlyTheseNames(
        "a"
    )
    assert hash(kept) == hash(p.SaveOnlyTheseNames("b", "a")) and repr(kept) == "SaveOnlyTheseNames('a', 'b')"
    others = p.save_any_names_but_these("a"), p.save_anything_except_these_names("a")
    assert isinstance(others[0], p.SaveAnyNamesButThese) and len({*others, p.save_any_names_but_these("a")}) == 2
    how = dict(names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"], offload_src="x", offload_dst="y")
    moved = p.save_and_offload_only_these_names(**how)
    assert isinstance(moved, p.SaveAndOffloadOnlyTheseNames) and moved == p.SaveAndOffloadOnlyTheseNames(**how)
    assert moved != p.SaveAndOffloadOnlyTheseNames(**{**how, "offload_dst": "z"})
    assert [policy(name_p, name="b") for policy in (kept, *others, moved)] == [True, True, True, ("x", "y")]
    with pytest.raises(ValueError, match=r"\['a'\] are both"):
        p.SaveAndOffloadOnlyTheseNames(**{**how, "names_which_can_be_offloaded": ["a"]})
