"""Reading and writing, against the same steps on a NumPy buffer."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax import lax, state
from bedrax.autodiff import grad, jvp, vjp
from bedrax.autodiff.linear_maps import VJP
from bedrax.batching import vmap
from bedrax.core import dead_code, passes, staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit, jit_p
from bedrax.core.staging import make_jaxpr

INDICES = [
    ...,
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (slice(1, 3), slice(None, None, 2)),
    (slice(None, None, -1), 0),
    (np.array([2, 0, 2]),),
    (np.array([[0, 1], [2, 0]]), 1),
    (np.array([0, 2]), np.array([3, 1])),
    np.array([True, False, True]),
    (None, 1),
    (..., None, 2),
    (slice(0, 2), np.array([1, 3])),
]


def start():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def as_index(idx):
    return tuple(jnp.asarray(i) if isinstance(i, np.ndarray) else i for i in idx) if isinstance(idx, tuple) else idx


@pytest.mark.parametrize("idx", INDICES, ids=str)
@pytest.mark.parametrize("way", ["eager", "jit"])
def test_every_index_reads_writes_and_adds_as_numpy(idx, way):
    wrap = jit if way == "jit" else lambda f: f
    model = start()
    part = model[idx].copy()
    new = np.linspace(1, 2, max(part.size, 1), dtype=np.float32)[: part.size].reshape(part.shape)

    ref = state.new_ref(jnp.asarray(model))
    np.testing.assert_array_equal(wrap(lambda r: r[as_index(idx)])(ref), part)
    old = wrap(lambda r, x: state.swap(r, as_index(idx), x))(ref, new)
    np.testing.assert_array_equal(old, part)
    written = model.copy()
    written[idx] = new
    if not (isinstance(idx, tuple) and any(isinstance(i, np.ndarray) and i.size == 3 for i in idx)):
        np.testing.assert_array_equal(ref[...], written)  # of values for one place, any may win

    ref = state.new_ref(jnp.asarray(model))
    wrap(lambda r, x: state.addupdate(r, as_index(idx), x))(ref, new)
    added = model.copy()
    np.add.at(added, idx, new)
    np.testing.assert_allclose(ref[...], added, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint32, np.float16, np.float32, np.complex64])
def test_any_dtype_and_rank_zero(dtype):
    ref = state.new_ref(np.ones((), dtype))
    ref[...] = np.zeros((), dtype)
    assert ref.dtype == dtype and ref[...].dtype == dtype and ref.shape == () and not ref[...]


def test_python_scalars_take_the_dtype():
    ref = state.new_ref(jnp.zeros(3, np.float16))
    ref[0] = 2
    ref[1] += 0.5
    np.testing.assert_array_equal(ref[...], np.float16([2, 0.5, 0]))
    assert state.new_ref(0.0)[...].weak_type  # and stays so: it does not decide the dtype of what is computed with it
    weak = state.new_ref(0.0)
    weak[...] = jnp.zeros(()) + jnp.float32(2)
    assert (weak[...] * jnp.ones(2, np.float16)).dtype == np.float16
    assert (state.freeze(weak) * jnp.ones(2, np.float16)).dtype == np.float16
    carried = state.new_ref(1.0)
    jit(lambda: lax.fori_loop(0, 3, lambda i, _: carried.set(carried[...] * jnp.float32(2)), None))()
    assert carried[...] == 8 and carried[...].weak_type
    carried[...] = 4.0
    assert carried[...] / 2 == 2 and isinstance(carried[...], type(ref[0]))
    for refused in (2.5, 1j, jnp.asarray(2.5)):
        counts = state.new_ref(jnp.zeros(2, int))
        with pytest.raises(ValueError, match="to a reference to int32"):
            counts[0] = refused
        with pytest.raises(ValueError, match="to a reference to int32"):
            counts[0] += refused
    counts[0] = True
    assert counts[...].tolist() == [1, 0]


def test_a_reference_holds_a_copy_and_hands_out_values():
    given = np.arange(3.0, dtype=np.float32)
    ref = state.new_ref(given)
    given[0] = 9
    before = ref[...]
    ref[0] = 5.0
    np.testing.assert_array_equal(before, [0, 1, 2])
    np.testing.assert_array_equal(ref[...], [5, 1, 2])
    other = copy.deepcopy(ref)
    other[0] = 7.0
    np.testing.assert_array_equal(ref[...], [5, 1, 2])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ref))[...], [5, 1, 2])
    assert ref == ref and ref != other and len({ref, other}) == 2
    assert [float(x) for x in ref] == [5, 1, 2]


def test_views_are_written_through():
    model = start()
    ref = state.new_ref(jnp.asarray(model))
    view = ref.at[1:].at[:, 1]
    np.testing.assert_array_equal(view[...], model[1:, 1])
    view[0] = 50.0
    model[1, 1] = 50
    view.addupdate(np.ones(2, np.float32))
    model[1:, 1] += 1
    ref.at[0].reshape(2, 2)[1] = np.float32([7, 8])
    model[0, 2:] = [7, 8]
    ref.at[...].transpose(1, 0)[3] += np.float32([1, 2, 3])
    model[:, 3] += [1, 2, 3]
    np.testing.assert_array_equal(ref[...], model)
    bits = state.new_ref(np.float32([1.0, 2.0])).at[...].bitcast(np.int32)
    np.testing.assert_array_equal(bits[...], np.float32([1.0, 2.0]).view(np.int32))


def test_views_are_given_to_functions():
    model = start()
    ref = state.new_ref(jnp.asarray(model))

    @jit
    def double(part):
        part[...] = part[...] * 2

    double(ref.at[1])
    jit(lambda r, i: double(r.at[i]))(ref, 2)
    vmap(lambda part: part.set(part[...] + 1))(ref.at[:, :2])
    model[1:] *= 2
    model[:, :2] += 1
    np.testing.assert_array_equal(ref[...], model)
    assert isinstance(ref.at[0], state.Ref) and ref.at[0].aval.short() == "Ref{f32[4]}"
    with pytest.raises(ValueError, match="twice"):
        jit(lambda a, b: None)(ref.at[0], ref.at[1])
    with pytest.raises(TypeError, match="view"):
        state.freeze(ref.at[0])


def test_freeze_free_and_empty():
    ref = state.new_ref(jnp.arange(3.0))
    ref[1] = 9.0
    np.testing.assert_array_equal(state.freeze(ref), [0, 9, 2])
    for use in (lambda: ref[...], lambda: ref.set(1.0, 0), lambda: state.freeze(ref), lambda: jit(lambda r: r[0])(ref)):
        with pytest.raises(ValueError, match="after"):
            use()
    assert "freed" in repr(ref)
    empty = state.empty_ref(jnp.ones((2, 3), np.int32))
    assert empty.shape == (2, 3) and empty.dtype == np.int32
    empty[...] = np.ones((2, 3), np.int32)
    state.free_ref(empty)
    with pytest.raises(ValueError, match="after"):
        empty[0]
    with pytest.raises(ValueError, match="after"):

        @jit
        def f(x):
            r = state.new_ref(x)
            state.freeze(r)
            return r[...]

        f(1.0)


def test_the_program_names_references_and_effects():
    def f(r, x):
        r[0] = x
        r[1] += x
        return r[2]

    ref = state.new_ref(jnp.zeros(3))
    program = make_jaxpr(f)(ref, jnp.float32(1))
    lines = [line.strip() for line in str(program).splitlines()]
    assert lines == [
        "{ lambda ; a:Ref{f32[3]} b:f32[]. let",
        "a[0] <- b",
        "c:f32[] <- a[1]",
        "d:f32[] = add c b",
        "a[1] <- d",
        "e:f32[] <- a[2]",
        "in (e,) }",
    ]
    views = make_jaxpr(lambda r, i: (r.swap(jnp.ones(2), slice(1, 3)), state.addupdate(r, i, 1.0), r[...], r[::2]))(
        state.new_ref(jnp.zeros(3)), 0
    )
    assert [w in str(views) for w in ("a[1:3] <- a[1:3], ", "a[b] += 1.0:f32[]", "<- a[...]", "<- a[0:4:2]")] == [
        True
    ] * 4
    assert {type(e).__name__ for e in program.effects} == {"WriteEffect", "ReadEffect"}
    assert {e.input_index for e in program.effects} == {0}
    inside = make_jaxpr(lambda r: lax.fori_loop(0, 3, lambda i, _: state.addupdate(r, 0, 1.0), None))(ref)
    assert {(type(e).__name__, e.position) for e in inside.effects} == {("AccumEffect", 0)}
    pure = make_jaxpr(lambda x: state.freeze(state.new_ref(x)))(1.0)
    assert not pure.effects and [e.primitive.name for e in pure.eqns] == ["new_ref", "freeze"]
    assert not make_jaxpr(jit(lambda x: state.freeze(state.new_ref(x))))(jnp.ones(2)).eqns[0].params["jaxpr"].eqns
    np.testing.assert_array_equal(ref[...], 0)


REFUSED = {
    "an index out of bounds": (lambda r: r[7], IndexError, "out of bounds"),
    "another shape": (lambda r: r.set(1.0), ValueError, "shape"),
    "another dtype": (lambda r: r.set(np.int32(1), 0), ValueError, "dtype"),
    "a reference to a reference": (lambda r: state.new_ref(r), TypeError, "references to references"),
    "a reference in a reference": (lambda r: r.set(state.new_ref(1.0), 0), TypeError, "what it holds"),
    "arithmetic": (lambda r: r + 1, TypeError, "unsupported operand"),
    "a function of arrays": (lambda r: lax.sin(r), TypeError, "read it first"),
    "a function of arrays, traced": (jit(lambda r: lax.sin(r)), TypeError, "read it first"),
    "a boolean": (bool, TypeError, "read it first"),
    "given twice": (lambda r: jit(lambda a, b: None)(r, r), ValueError, "twice"),
    "given and closed over": (lambda r: jit(lambda a: a[0] + r[0])(r), ValueError, "twice"),
    "given and closed over, vmap": (lambda r: vmap(lambda a: r[0])(r), ValueError, "a function has it as an argument"),
    "returned": (jit(lambda r: r), ValueError, "returned"),
    "returned by a loop": (lambda r: lax.scan(lambda c, _: (c, r), 0.0, length=2), ValueError, "returned"),
    "carried": (lambda r: lax.scan(lambda c, _: (c, None), r, length=2), ValueError, "returned"),
    "frozen elsewhere": (jit(state.freeze), ValueError, "where it was made"),
    "closed over under vmap": (lambda r: vmap(lambda x: r.set(x, 0))(jnp.ones(2)), ValueError, "closes over"),
    "closed over under grad": (lambda r: grad(lambda x: (r.set(x, 0), x)[1])(1.0), ValueError, "closes over"),
    "the condition writes": (
        lambda r: lax.while_loop(lambda c: (r.set(1.0, 0), c < 1)[1], lambda c: c + 1, 0),
        ValueError,
        "condition",
    ),
    "an unknown kind": (lambda r: state.new_ref(1.0, kind="x"), ValueError, "kind"),
    "a pinned buffer": (lambda r: state.new_ref(1.0, pin=True), NotImplementedError, "new_ref: pin=True"),
    "a pinned empty buffer": (lambda r: state.empty_ref(r[...], pin=True), NotImplementedError, "empty_ref: pin=True"),
    "a copy": (copy.copy, TypeError, "two names"),
    "the class": (lambda r: state.Ref(), TypeError, "new_ref"),
    "no reference": (lambda r: state.get(np.ones(2), 0), TypeError, "is needed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_uses_of_references_are_refused(what):
    use, error, words = REFUSED[what]
    ref = state.new_ref(jnp.arange(3.0))
    with pytest.raises(error, match=words):
        use(ref)
    np.testing.assert_array_equal(ref[...], [0, 1, 2])


def test_a_loop_over_references_writes_to_their_rows():
    rows = state.new_ref(jnp.asarray(start()))

    def step(total, row):
        ref, x = row
        ref[0] = x
        return total + ref[1], ref[...]

    run = jit(lambda r: lax.scan(step, jnp.zeros(()), (r, jnp.arange(3.0)), reverse=True))
    total, seen = run(rows)
    expected = start()
    expected[:, 0] = [0, 1, 2]
    assert total == expected[:, 1].sum()
    np.testing.assert_array_equal(seen, expected)
    np.testing.assert_array_equal(rows[...], expected)


def test_a_reference_does_not_leave_its_transformation():
    kept = []
    vmap(lambda x: kept.append(state.new_ref(x)))(jnp.arange(3.0))
    grad(lambda x: (kept.append(state.new_ref(x)), x)[1])(1.0)
    jit(lambda x: kept.append(state.new_ref(x)))(1.0)
    for ref in kept:
        with pytest.raises(Exception, match="leak|escape|outside|transform"):
            ref[...]


# ---- random programs, run on a reference and on a NumPy buffer


STEP = st.tuples(
    st.sampled_from(["set", "add", "swap", "read", "loop", "branch", "copy"]),
    st.integers(0, 1),
    st.integers(-4, 3),
    st.integers(-3, 3),
)


def run_program(steps, refs, x):
    """The program on references (or on NumPy arrays, which have the same syntax), as a function of x."""
    total = x * 0
    for what, which, i, c in steps:
        ref, other = refs[which], refs[1 - which]
        if what == "set":
            ref[i] = x * c
        elif what == "add":
            ref[i] += x + c
        elif what == "swap":
            old = ref[i] + 0
            ref[i] = total + c
            total = total + old
        elif what == "read":
            total = total + ref[i] * c
        elif what == "copy":
            ref[...] = other[...] + ref[::-1]
        elif what == "loop":
            loop(3, ref, other, i, c)
        else:
            branch(total < c, ref, i, x)
    return total


def loop(n, ref, other, i, c):
    if isinstance(ref, np.ndarray):
        for k in range(n):
            ref[i] += other[k] * c
    else:

        def step(k, _):
            ref[i] += other[k] * c

        lax.fori_loop(0, n, step, None)


def branch(pred, ref, i, x):
    if isinstance(ref, np.ndarray):
        if pred:
            ref[i] = x
        else:
            ref[0] += x
    else:
        lax.cond(pred, lambda: ref.__setitem__(i, x), lambda: ref.__setitem__(0, ref[0] + x))


def model(steps, x):
    refs = [np.arange(4, dtype=np.float64), np.ones(4)]
    return run_program(steps, refs, np.float64(x)), refs


def with_refs(steps):
    def f(x):
        refs = [state.new_ref(jnp.arange(4, dtype=np.float32)), state.new_ref(jnp.ones(4, np.float32))]
        total = run_program(steps, refs, x)
        return total, [state.freeze(r) for r in refs]

    return f


@given(st.lists(STEP, max_size=6), st.sampled_from([-1.5, 0.5, 2.0]))
def test_random_programs(steps, x):
    expected, buffers = model(steps, x)
    x = jnp.float32(x)
    f = with_refs(steps)
    for run in (f, jit(f)):
        total, values = run(x)
        np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-3)
        for value, buffer in zip(values, buffers, strict=True):
            np.testing.assert_allclose(value, buffer, rtol=1e-4, atol=1e-3)
    points = np.float32([float(x), 1.25])
    batch, _ = vmap(f)(jnp.asarray(points))
    np.testing.assert_allclose(batch, [model(steps, p)[0] for p in points], rtol=1e-4, atol=1e-3)
    given = [state.new_ref(jnp.arange(4, dtype=np.float32)), state.new_ref(jnp.ones(4, np.float32))]
    jit(lambda a, b, x: run_program(steps, [a, b], x))(*given, x)  # references as arguments
    for ref, buffer in zip(given, buffers, strict=True):
        np.testing.assert_allclose(ref[...], buffer, rtol=1e-4, atol=1e-3)


@given(st.lists(STEP, max_size=5))
def test_random_gradients(steps):
    x = 0.7
    if "branch" in [s[0] for s in steps]:
        steps = [s for s in steps if s[0] != "branch"]  # jumps have no derivative
    at = lambda v: model(steps, v)[0] + sum(b.sum() for b in model(steps, v)[1])
    expected = (at(x + 1e-4) - at(x - 1e-4)) / 2e-4

    def loss(v):
        total, values = with_refs(steps)(v)
        return total + sum(jnp.sum(b) for b in values)

    for g in (grad(loss), jit(grad(loss)), grad(jit(loss))):
        np.testing.assert_allclose(g(jnp.float32(x)), expected, rtol=2e-3, atol=2e-2)


def test_a_reference_prints_a_written_number_as_an_array():
    ref = state.new_ref(np.int32(5))
    assert state.swap(ref, ..., 10) == 5 and repr(ref) == "Ref(10, dtype=int32)"


def test_a_call_makes_its_references_also_if_it_takes_none():
    def inner(unused, x):
        total = state.new_ref(x)
        total[...] += 1
        return total[...]

    def outer(x):
        return jit(inner)(state.new_ref(x), x)

    program = staging.trace_to_jaxpr(lambda x: ([outer(x)], None), [aval_of(np.zeros(3, np.float32))])[0]
    call = next(e for e in program.eqns if e.primitive is jit_p)
    smaller = dead_code.dce_for(call.params["jaxpr"], (True,))[0]
    assert passes.primitive_of_references(smaller) is not None
    params = {**call.params, "jaxpr": smaller, "donated_invars": (False,)}
    x = np.ones(3, np.float32)
    for run in (lambda x: jit_p.bind(x, **params)[0], jit(lambda x: jit_p.bind(x, **params)[0])):
        np.testing.assert_array_equal(run(x), 2 * x)
    np.testing.assert_array_equal(
        vmap(lambda x: jit_p.bind(x, **params)[0])(np.ones((2, 3), np.float32)), np.full((2, 3), 2)
    )


def test_a_written_numpy_array_is_copied_and_has_the_dtype_of_the_reference():
    ref, array = state.new_ref(jnp.zeros(3)), np.full(3, 1 / 3)
    ref[...] = array
    array[0] = 7
    np.testing.assert_array_equal(ref[...], np.full(3, 1 / 3, np.float32))
    assert ref[...].dtype == np.float32
    one = state.new_ref(jnp.zeros(()))
    one[...] = np.float64(1 / 3)
    assert one[...].dtype == np.float32


@pytest.mark.parametrize(
    "read",
    [
        lambda ref: ref.at[:].reshape(3)[...],
        lambda ref: vmap(lambda r: r[...])(ref),
        lambda ref: jvp(lambda r: r[...], (ref,), (state.new_ref(jnp.ones(3)),))[0],
        lambda ref: vjp(lambda r: (r[...] * r[...]).sum(), ref)[1],
        lambda ref: vjp(lambda y: jit(lambda y: (ref[...] * y).sum())(y), jnp.ones(3))[1],
    ],
    ids=["view", "vmap", "jvp", "vjp", "vjp of jit"],
)
def test_what_was_read_outlives_a_write_in_place(read):
    ref, total = state.new_ref(jnp.arange(3.0)), state.new_ref(jnp.zeros(3))

    @jit
    def step():
        ref[...] += 1

    step()
    assert ref._owned  # else the next line is true without the rule
    found = read(ref)
    assert not ref._owned
    step()
    if isinstance(found, VJP):
        found.with_refs(total)(1.0)
        assert total[...].sum() in (6, 12)
    else:
        np.testing.assert_array_equal(found, [1, 2, 3])


def test_a_reference_that_a_call_only_reads_is_still_written_in_place():
    ref = state.new_ref(jnp.arange(3.0))
    step = jit(lambda: state.addupdate(ref, ..., jnp.ones(3)))
    step()
    jit(lambda: ref[...])()
    assert ref._owned


def test_a_list_that_would_lose_a_part_is_refused_like_a_scalar():
    ref = state.new_ref(jnp.zeros(2, int))
    with pytest.raises(ValueError, match="would lose a part"):
        ref[...] = [1.5, 2.5]
    ref[...] = [1, 2]
    np.testing.assert_array_equal(ref[...], [1, 2])


@pytest.mark.parametrize("i", [3, np.int64(3), np.uint8(200), -4, np.int32(-4)])
def test_a_known_index_out_of_bounds_is_refused(i):
    ref = state.new_ref(jnp.zeros(3))
    with pytest.raises(IndexError, match=r"out of bounds for a reference of shape \(3,\)"):
        ref[i]
    with pytest.raises(IndexError, match="out of bounds"):
        ref[i] = 1.0
