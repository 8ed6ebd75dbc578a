"""Flax NNX with variables in references, and with hijax variables."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

nnx = pytest.importorskip("flax.nnx", reason="comes with the group `ecosystem`")
errors = pytest.importorskip("flax.errors")


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.last = nnx.Linear(8, 1, rngs=rngs)
        self.count = nnx.BatchStat(jnp.zeros((), int))

    def __call__(self, x):
        self.count[...] += 1
        return self.last(nnx.relu(self.norm(self.first(x))))


@pytest.fixture
def x():
    return jax.random.normal(jax.random.key(0), (16, 2))


def test_variables_in_references(x):
    expected = Model(nnx.Rngs(0))
    wanted = expected(x)
    with nnx.var_defaults(ref=True):
        model = Model(nnx.Rngs(0))
        np.testing.assert_allclose(nnx.jit(lambda m, x: m(x))(model, x), wanted, rtol=1e-5)
        graphdef, state = nnx.split(model)
        assert all(isinstance(leaf, jax.Ref) for leaf in jax.tree.leaves(state))
        jax.jit(lambda state, x: nnx.merge(graphdef, state)(x))(state, x)
        assert model.count[...] == 2
        expected(x)
        np.testing.assert_allclose(model.norm.mean[...], expected.norm.mean[...], rtol=1e-5)

        stack = nnx.vmap(lambda k: nnx.Linear(2, 2, rngs=nnx.Rngs(k)), in_axes=0, out_axes=0)(
            jax.random.split(jax.random.key(0), 3)
        )
        scanned = nnx.scan(lambda c, m: c @ m.kernel[...], in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        out = scanned(jnp.ones((1, 2)), stack)
    loop = jnp.ones((1, 2))
    for kernel in stack.kernel[...]:
        loop = loop @ kernel
    np.testing.assert_allclose(out, loop, rtol=1e-5)


# From Flax 0.12.12 on, a transformation can write to a hijax variable only if a reference keeps it.
KEPT_IN_REFERENCES = hasattr(nnx.variablelib, "HiPrim")
WRITABLE = {"hijax": True, "ref": True} if KEPT_IN_REFERENCES else {"hijax": True}


def test_hijax_variables(x):
    expected = Model(nnx.Rngs(0))
    wanted = expected(x)
    with nnx.var_defaults(**WRITABLE):
        model = Model(nnx.Rngs(0))
        np.testing.assert_allclose(jax.jit(lambda m, x: m(x))(model, x), wanted, rtol=1e-5)
        assert model.count[...] == 1
        np.testing.assert_allclose(model.norm.mean[...], expected.norm.mean[...], rtol=1e-5)

        total = nnx.Variable(jnp.zeros(()))

        @jax.jit
        def add(values):
            jax.lax.scan(lambda c, v: (c, total.set_value(total[...] + v)), None, values)

        add(jnp.arange(4.0))
        assert total[...] == 6


@pytest.mark.skipif(KEPT_IN_REFERENCES, reason="this Flax keeps arrays only in hijax variables that are written to")
def test_hijax_variables_of_a_growing_dict(x):
    with nnx.var_defaults(hijax=True):
        metrics = nnx.Variable({})

        @jax.jit
        def measure(x, metrics):
            metrics["mean"] = x.mean()

        for scale in (1, 2):
            measure(x * scale, metrics)
            np.testing.assert_allclose(metrics["mean"], x.mean() * scale, rtol=1e-5)


@pytest.mark.skipif(not KEPT_IN_REFERENCES, reason="this Flax writes to all hijax variables")
def test_hijax_variables_without_references_are_read(x):
    with nnx.var_defaults(hijax=True):
        layer, total = nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.Variable(jnp.zeros(()))
        plain = x @ layer.kernel[...] + layer.bias[...]
        np.testing.assert_allclose(jax.jit(lambda m, x: m(x))(layer, x), plain, rtol=1e-5)
        total[...] += 2
        assert total[...] == 2
        with pytest.raises(errors.ImmutableVariableError, match="ref=True"):
            jax.jit(lambda v: v.set_value(v[...] + 1))(total)
        assert total[...] == 2


@pytest.mark.skipif(not KEPT_IN_REFERENCES, reason="this Flax writes to all hijax variables")
def test_hijax_variables_without_references_are_values_of_programs(x):
    with nnx.var_defaults(hijax=True):
        graph, state = nnx.split(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
        kernel, bias = state["kernel"][...], state["bias"][...]
    kept = jax.jit(lambda s: s)(state)["kernel"]
    assert type(kept) is type(state["kernel"])
    np.testing.assert_array_equal(kept[...], kernel)

    def loss(state, x):
        return (nnx.merge(graph, state)(x) ** 2).mean() + (state["bias"][...] * state["bias"][...]).sum()

    def plain(kernel, bias, x):
        return ((x @ kernel + bias) ** 2).mean() + (bias * bias).sum()

    def step(state, x):
        return jax.tree.map(lambda v, g: nnx.Param(v[...] - 0.1 * g[...], hijax=True), state, jax.grad(loss)(state, x))

    def arrays(state):
        return state["kernel"][...], state["bias"][...]

    wanted = jax.grad(plain, (0, 1))(kernel, bias, x)
    for f in (loss, jax.jit(loss), jax.checkpoint(loss), jax.jit(jax.checkpoint(loss))):
        for derivative in (jax.grad(f), jax.jit(jax.grad(f))):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), arrays(derivative(state, x)), wanted)
    one = plain(kernel, bias, x)
    mesh = jax.make_mesh((1,), ("i",))
    closed = lambda x: loss(state, x)
    for mapped in (
        jax.vmap(loss, (None, 0)),
        jax.vmap(jax.jit(loss), (None, 0)),
        jax.pmap(loss, in_axes=(None, 0)),
        lambda state, xs: jax.pmap(closed)(xs),
        lambda state, xs: jax.shard_map(jax.vmap(closed), mesh=mesh, in_specs=jax.P(), out_specs=jax.P())(xs),
        lambda state, xs: jax.export.export(jax.jit(jax.vmap(closed)))(xs).call(xs),
    ):
        np.testing.assert_allclose(mapped(state, x[None]), [one], rtol=1e-5)
    by_hand = state
    for _ in range(3):
        by_hand = step(by_hand, x)
    scanned = lambda s: jax.lax.scan(lambda s, x: (step(s, x), None), s, jnp.stack([x] * 3))[0]
    looped = lambda s: jax.lax.fori_loop(0, 3, lambda i, s: step(s, x), s)
    for f in (scanned, jax.jit(scanned), looped):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), arrays(f(state)), arrays(by_hand)
        )
