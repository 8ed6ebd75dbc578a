"""References with the whole system: donated buffers, backward rules that write, gradients that are accumulated."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_jit_writes_in_place_to_a_reference_with_one_owner():
    @jax.jit
    def sin_inplace(ref):
        ref[...] = jnp.sin(ref[...])

    ref = jax.new_ref(jnp.arange(3.0))
    place = ref.unsafe_buffer_pointer()
    sin_inplace(ref)
    sin_inplace(ref)
    assert ref.unsafe_buffer_pointer() == place
    held = ref[...]
    sin_inplace(ref)
    np.testing.assert_allclose(held, np.sin(np.sin(np.arange(3.0))), rtol=1e-6)
    np.testing.assert_allclose(ref[...], np.sin(held), rtol=1e-6)
    assert repr(jax.new_ref(jnp.arange(2))) == "Ref([0, 1], dtype=int32)"


def test_a_reference_that_is_closed_over_is_traced_once():
    ref = jax.new_ref(jnp.zeros(3))
    traces = []

    @jax.jit
    def f(i):
        traces.append(i)
        ref[i] += 1.0

    for i in (0, 2, 2):
        f(i)
    np.testing.assert_array_equal(ref[...], [1, 0, 2])
    assert len(traces) == 1


@jax.custom_vjp
def stash(grads, x):
    return x


stash.defvjp(lambda grads, x: (x, grads), lambda grads, g: (grads.set(g), (None, g))[1])


@pytest.mark.parametrize("wrap", [jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f))])
def test_a_backward_rule_writes_to_a_reference(wrap):
    grads = jax.new_ref(0.0)
    wrap(lambda x, r: jnp.sin(stash(r, x * 2)))(1.0, grads)
    np.testing.assert_allclose(grads[...], np.cos(2), rtol=1e-6)
    wrap(lambda x, r: jax.lax.scan(lambda c, _: (3 * stash(r, c), None), x, length=3)[0])(1.0, grads)
    assert grads[...] == 27  # in the first step, which runs last


def test_gradients_are_added_to_references():
    grads = jax.new_ref(jnp.zeros(10))
    take = jax.jit(lambda x, i: x[i])
    for i in (3, 5, 3):
        _, back = jax.vjp(take, jnp.arange(10.0), i)
        assert back.with_refs(grads, jax.ad.GradValue())(1.0)[0] == jax.ad.GradRef()
    np.testing.assert_array_equal(grads[...], [0, 0, 0, 2, 0, 1, 0, 0, 0, 0])
    _, back = jax.vjp(lambda a, b: a["w"] * b, {"w": 2.0}, 3.0)
    kept, left = back.with_refs(jax.ad.DontWant(), jax.ad.GradValue())(1.0)
    assert kept["w"] == jax.ad.DidntWant() and left == 2
    assert jax.tree.leaves(kept) == []  # so that a traced function may return it
    program = jax.make_jaxpr(lambda: back.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(1.0))()
    assert str(program).count(" mul ") == 1
    with pytest.raises(TypeError, match="with_refs takes"):
        back.with_refs(1.0, 2.0)


def test_a_reference_is_differentiated_with_vjp():
    def g(ref):
        ref[...] = jnp.sin(ref[...])
        return ref[...] ** 2

    ref, grad = jax.new_ref(2.0), jax.new_ref(100.0)
    _, back = jax.vjp(g, ref)
    back.with_refs(grad)(1.0)
    np.testing.assert_allclose([ref[...], grad[...] - 100], [np.sin(2), 2 * np.sin(2) * np.cos(2)], rtol=1e-4)
    for wrong in (lambda: back(1.0), lambda: jax.grad(g)(ref), lambda: jax.linearize(g, ref)):
        with pytest.raises((ValueError, TypeError), match="with_refs"):
            wrong()


def test_gradients_are_accumulated_over_microbatches():
    def loss(ws, xs):
        return jnp.mean(jax.lax.scan(lambda x, w: (jnp.dot(x, w), None), xs, ws)[0])

    @jax.jit
    def accumulated(ws, batches):
        total = jax.new_ref(jnp.zeros_like(ws))

        def one(_, xs):
            value, back = jax.vjp(lambda w: loss(w, xs), ws)
            back.with_refs(total)(jnp.ones_like(value))
            return (), value

        return jax.lax.scan(one, (), batches)[1], jax.freeze(total)

    ws = jnp.linspace(0.5, 1, 48).reshape(3, 4, 4)
    batches = jnp.linspace(-1, 1, 5 * 2 * 4).reshape(5, 2, 4)
    expected = jax.grad(lambda w: sum(loss(w, b) for b in batches))(ws)
    np.testing.assert_allclose(accumulated(ws, batches)[1], expected, rtol=1e-5)


def test_keys_and_debugging():
    keys = jax.new_ref(jax.random.split(jax.random.key(0), 3))
    key = keys[1]
    keys[0] = key
    assert jnp.all(jax.random.key_data(keys[0]) == jax.random.key_data(key))

    @jax.jit
    def draws(key, n):
        state = jax.new_ref(key)

        def step(_, __):
            new, own = jax.random.split(state[...])
            state[...] = new
            return None, jax.random.normal(own)

        return jax.lax.scan(step, None, length=3)[1]

    assert len(np.unique(draws(key, 3))) == 3
    with jax.disable_jit():
        ref = jax.new_ref(jnp.zeros(2))
        jax.jit(lambda r: r.set(1.0, 0))(ref)
        assert ref[0] == 1


def test_references_that_are_made_inside_leave_a_vmap():
    def make(x):
        ref = jax.new_ref(jnp.zeros(2))
        ref[1] = x
        return ref

    made = jax.vmap(make, out_axes=1)(jnp.arange(3.0))
    assert isinstance(made, jax.Ref) and not isinstance(made, jax.Array)
    np.testing.assert_array_equal(made[...], [[0, 0, 0], [0, 1, 2]])
    made[0] += 1.0
    with pytest.raises(ValueError, match="return ref"):
        jax.vmap(lambda r: r)(made)


def test_stages_and_export():
    def f(ref, x):
        ref[0] = x
        return ref[1]

    ref = jax.new_ref(jnp.arange(2.0))
    lowered = jax.jit(f).lower(ref, 5.0)
    assert "stablehlo" in lowered.as_text()
    compiled = lowered.compile()
    for x in (5.0, 7.0):
        assert compiled(ref, x) == 1 and ref[0] == x
    assert compiled.output_shardings == compiled.output_formats.sharding == ref.sharding
    assert compiled.input_shardings[0][0] == ref.sharding and compiled.out_info.shape == ()
    assert jax.jit(f).eval_shape(ref, 5.0).shape == () and jax.eval_shape(f, ref, 5.0).dtype == jnp.float32
    with pytest.raises(NotImplementedError, match="reference"):
        jax.export.export(jax.jit(f))(ref, 5.0)
    with pytest.raises(ValueError, match="closes over references"):
        jax.jit(lambda: f(ref, 1.0)).lower()
    pure = jax.jit(lambda x: f(jax.new_ref(x), 1.0))
    assert jax.export.export(pure)(jnp.arange(2.0)).call(jnp.arange(2.0)) == 1


def test_a_struct_describes_a_reference():
    def f(ref, x):
        ref[...] += x
        return 2 * ref[...]

    ref, x = jax.new_ref(jnp.arange(3.0)), jax.ShapeDtypeStruct((3,), jnp.float32)
    spec = jax.ShapeDtypeStruct((3,), jnp.float32, is_ref=True)
    assert spec.is_ref and spec != x and repr(spec) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"
    assert spec.update(shape=(4,)).is_ref and spec.update(is_ref=False) == x
    assert jax.typeof(spec) == jax.typeof(ref) and jax.ShapeDtypeStruct.like(ref).is_ref
    assert jax.eval_shape(f, spec, x) == jax.eval_shape(jax.jit(f), spec, x) == x
    assert str(jax.make_jaxpr(f)(spec, x)) == str(jax.make_jaxpr(f)(ref, jnp.ones(3)))
    wide = jax.ShapeDtypeStruct((3,), np.float64, is_ref=True)  # of 32 bits without x64, as other structs
    symbolic = jax.export.symbolic_args_specs((spec, x), "n")
    assert jax.make_jaxpr(f)(*symbolic).in_avals[0].mutable
    for described in (spec, wide):
        lowered = jax.jit(f).lower(described, x)
        assert lowered.in_avals == ((jax.typeof(ref), jax.typeof(jnp.ones(3))), {})
        np.testing.assert_array_equal(lowered.compile()(ref, jnp.ones(3)), 2 * ref[...])
    np.testing.assert_array_equal(ref[...], np.arange(3.0) + 2)
    consts, with_consts = jax.jit(lambda ref, x: f(ref, x) + np.ones(3)).trace(spec, x).with_consts_as_arg()
    assert [a.mutable for a in jax.tree.leaves(with_consts.in_avals)] == [False] * len(consts) + [True, False]


def test_a_compiled_program_tells_arrays_from_references():
    compiled = jax.jit(lambda ref, x: (ref[...], x)).lower(jax.new_ref(jnp.ones(3)), jnp.ones(3)).compile()
    for args in ((jnp.ones(3), jnp.ones(3)), (jax.new_ref(jnp.ones(3)), jax.new_ref(jnp.ones(3)))):
        with pytest.raises(TypeError, match=r"expected (Ref\{float32\[3\]\}, got float32|float32\[3\], got Ref\{)"):
            compiled(*args)


def stashed():
    @jax.custom_vjp
    def f(ref, x):
        return x

    f.defvjp(lambda ref, x: (x, ref), lambda ref, g: (ref.__setitem__(..., g), (None, g))[1])
    ref = jax.new_ref(np.float32(0))
    return lambda x: jnp.sin(f(ref, x)) * x, [ref]


def counted(write_between=False):
    """The backward rule reads and writes a residual reference; the forward rule keeps its value, too."""

    @jax.custom_vjp
    def f(ref, x):
        return x * ref[...]

    def backward(residuals, g):
        ref, before = residuals
        now = ref[...]
        ref[...] += 1
        return None, g * (before + 100 * now)

    f.defvjp(lambda ref, x: (x * ref[...], (ref, ref[...])), backward)
    ref = jax.new_ref(np.float32(3))

    def h(x):
        y = f(ref, x)
        if write_between:
            ref[...] += 7
        return y * x

    return h, [ref]


def closed_over():
    ref = jax.new_ref(np.float32(3))

    @jax.custom_vjp
    def f(x):
        return x * ref[...]

    def forward(x):
        ref[...] += 1
        return x * ref[...], ref[...]

    def backward(value, g):
        ref[...] += 10
        return (g * (value + 100 * ref[...]),)

    f.defvjp(forward, backward)
    return lambda x: f(x) * x, [ref]


# The program -> (its derivative at 2, the value of its reference afterwards), by hand.
WITH_REFERENCES = {
    "stashed": (stashed, np.sin(2) + 2 * np.cos(2), 2 * np.cos(2)),
    "counted": (counted, 6 + 2 * (3 + 100 * 3), 4),
    "written between": (lambda: counted(True), 6 + 2 * (3 + 100 * 10), 11),
    "closed over": (closed_over, 8 + 2 * (4 + 100 * 14), 14),
}
WAYS = {
    "grad": jax.grad,
    "jit of grad": lambda h: jax.jit(jax.grad(h)),
    "grad of jit": lambda h: jax.grad(jax.jit(h)),
    "value_and_grad": lambda h: lambda x: jax.value_and_grad(h)(x)[1],
    "vjp": lambda h: lambda x: jax.vjp(h, x)[1](jnp.float32(1))[0],
    "checkpoint": lambda h: jax.grad(jax.checkpoint(h)),
    "jit of checkpoint": lambda h: jax.jit(jax.grad(jax.checkpoint(h))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_gradients_through_rules_with_references(name, way):
    make, gradient, after = WITH_REFERENCES[name]
    h, (ref,) = make()
    np.testing.assert_allclose(WAYS[way](h)(2.0), gradient, rtol=1e-6)
    np.testing.assert_allclose(ref[...], after, rtol=1e-6)


def test_a_forward_rule_does_not_return_a_new_reference():
    f = jax.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, jax.new_ref(x)), lambda ref, g: (g * ref[...],))
    for way in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
        with pytest.raises(ValueError, match="reference"):
            way(1.0)


def test_a_loop_that_reads_and_writes_its_rows_and_the_whole():
    @jax.jit
    def f():
        ref = jax.new_ref(jnp.zeros(3))

        def step(c, row):
            ref[0] += 1
            row[...] += 1
            return c, ref[0]

        _, seen = jax.lax.scan(step, 0.0, ref)
        return ref[...], seen

    whole, seen = f()
    assert whole.tolist() == [4, 1, 1] and seen.tolist() == [2, 3, 4]


def test_a_checkpoint_that_writes_to_a_differentiated_reference():
    def h(x):
        ref = jax.new_ref(x)
        jax.checkpoint(lambda x: ref.__setitem__(..., ref[...] * jnp.sin(x)))(x)
        return ref[...] ** 2

    expected = 2 * np.sin(1) * (np.sin(1) + np.cos(1))  # of (x sin x)**2
    for way in (jax.grad(h), jax.jit(jax.grad(h)), jax.grad(jax.jit(h))):
        np.testing.assert_allclose(way(1.0), expected, rtol=1e-6)


def test_a_compiled_program_of_a_reference_over_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    program = Path(__file__).parent / "programs" / "references_over_devices.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_compiled_program_that_takes_a_reference_is_not_serialized():
    from jax.experimental.serialize_executable import serialize

    compiled = jax.jit(lambda ref, x: ref[...] + x).lower(jax.new_ref(jnp.ones(3)), jnp.ones(3)).compile()
    with pytest.raises(ValueError, match="takes a reference"):
        serialize(compiled)
