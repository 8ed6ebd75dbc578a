"""Corners of the interface that programs use: each of these once differed from upstream, or failed."""

import io
import logging
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

A = jnp.arange(3.0) + 1


def times(w, kind):
    """A function with a rule of its own that closes over `w`."""
    if kind == "vjp":
        f = jax.custom_vjp(lambda x: x * w)
        f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w,))
    else:
        f = jax.custom_jvp(lambda x: x * w)
        f.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
    return f


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_may_close_over_values_that_enclosing_vmaps_map(kind):
    table = np.outer(A, A)
    np.testing.assert_allclose(jax.vmap(lambda w: jax.vmap(lambda x: times(w, kind)(x))(A))(A), table)
    np.testing.assert_allclose(jax.vmap(lambda w: jax.vmap(lambda x: times(w * x, kind)(x))(A))(A), table * A)
    slopes = jax.vmap(lambda w: jax.vmap(lambda x: jax.grad(times(w * x, kind))(x))(A))(A)
    np.testing.assert_allclose(slopes, table)
    assert jax.vmap(lambda x: times(2.0, kind)(3.0), out_axes=None)(A) == 6.0  # a result that is not mapped stays so


def test_a_rule_with_a_collective_inside_is_not_mapped():
    @jax.custom_vjp
    def total(x):
        return lax.psum(x, "i")

    total.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (2 * ct,))

    @jax.custom_jvp
    def sums(x):
        return lax.psum(x, "i"), x

    sums.defjvp(lambda p, t: ((lax.psum(p[0], "i"), p[0]), (lax.psum(t[0], "i"), t[0])))
    mapped = jax.vmap(total, axis_name="i", out_axes=None)
    assert mapped(A) == 6.0
    np.testing.assert_allclose(jax.grad(mapped)(A), [2.0, 2.0, 2.0])
    mapped = jax.vmap(sums, axis_name="i", out_axes=(None, 0))
    (whole, each), (d_whole, d_each) = jax.jvp(mapped, (A,), (A,))
    assert whole == d_whole == 6.0
    np.testing.assert_allclose(each, A)
    np.testing.assert_allclose(d_each, A)


def test_checkpoint_with_static_arguments_traces_once():
    calls = []

    def f(x, k, *, how=None):
        calls.append((k, how))
        return x * k

    g = jax.checkpoint(f, static_argnums=1, static_argnames="how")
    assert [float(g(2.0, 3)), float(g(3.0, 3)), float(jax.grad(g)(1.0, 3))] == [6.0, 9.0, 3.0]
    assert calls == [(3, None)]
    assert g(2.0, 4) == 8.0 and g(2.0, 4, how="a") == 8.0
    assert calls == [(3, None), (4, None), (4, "a")]


def test_indices_into_nothing():
    nothing, nowhere = jnp.zeros((0, 3)), jnp.array([], int)
    for take in (lambda x, i: x[i], jax.jit(lambda x, i: x[i]), lambda x, i: jnp.take(x, i, axis=0)):
        assert take(nothing, nowhere).shape == (0, 3)
        with pytest.raises(IndexError, match="it is empty"):
            take(nothing, jnp.array([0]))
    with pytest.raises(IndexError, match="it is empty"):
        jax.jit(lambda x, i: x[i])(nothing, 0)
    assert jax.grad(lambda x: x[nowhere].sum())(nothing).shape == (0, 3)
    np.testing.assert_array_equal(jnp.insert(jnp.ones(1), nowhere, jnp.array([])), [1.0])


def test_loops_that_end_at_different_times_take_no_io():
    def rounds(n):
        one = lambda: jax.experimental.io_callback(lambda: np.int32(1), jax.ShapeDtypeStruct((), jnp.int32))
        return lax.while_loop(lambda c: c < n, lambda c: c + one(), 0)

    assert rounds(2) == 2
    with pytest.raises(NotImplementedError, match="io_callback"):
        jax.make_jaxpr(jax.vmap(rounds))(jnp.array([1, 2]))


def test_convolutions_of_no_examples():
    f = lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID")
    assert jax.vmap(f)(jnp.ones((0, 1, 2, 5)), jnp.ones((0, 3, 2, 2))).shape == (0, 1, 3, 4)


def test_ints_that_no_default_type_holds_are_converted():
    assert lax.convert_element_type(2**40 + 5, jnp.int32) == 5
    assert lax.convert_element_type(-(2**40) - 1, jnp.int8) == -1
    assert lax.convert_element_type(2**40, jnp.float32) == 2.0**40


def test_spacing_of_small_numbers():
    for dtype in (np.float32, np.float16):
        tiny = np.finfo(dtype).smallest_normal
        x = np.array([0, tiny / 2, tiny, 3 * tiny, 1, 100, 1000], dtype)
        bits = f"i{x.itemsize}"  # as floats, the smallest numbers equal zero on some processors
        np.testing.assert_array_equal(np.asarray(jnp.spacing(x)).view(bits), np.spacing(x).view(bits))
        np.testing.assert_array_equal(jnp.spacing(-x[1:]), -jnp.spacing(x[1:]))
        assert np.isnan(jnp.spacing(np.array([np.inf, np.nan], dtype))).all()


def test_roots_with_leading_zeros_kept():
    found = jax.jit(lambda p: jnp.roots(p, strip_zeros=False))(jnp.array([0.0, 2.0, -6.0, 4.0, 0.0]))
    np.testing.assert_allclose(np.sort(found[:3].real), [0.0, 1.0, 2.0], atol=1e-6)
    assert np.isnan(found[3])
    assert jnp.roots(jnp.zeros(3)).shape == (0,)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_rows_and_columns_by_name():
    for way in ("r", "c"):
        for parts in ((1, 2, 3), ([1, 2], [3]), ([[1, 2]], [[3, 4]])):
            np.testing.assert_array_equal(jnp.r_[(way, *parts)], np.asarray(np.r_[(way, *parts)]))


def test_weak_types_of_common_divisors():
    assert jnp.gcd(4, 6).weak_type and jnp.lcm(4, 6).weak_type
    assert not jnp.gcd(jnp.int32(4), 6).weak_type


def test_masked_arrays_are_refused_everywhere():
    for f in (jnp.asarray, jnp.array, jnp.sin):
        with pytest.raises(ValueError, match="masked"):
            f(np.ma.masked_array([1.0, 2.0], [0, 1]))


def test_objects_that_are_arrays_on_demand():
    class Held:
        def __jax_array__(self):
            return A

    np.testing.assert_allclose(jax.vmap(lambda x: x + 1)(Held()), A + 1)
    np.testing.assert_allclose(jax.jit(lambda x: x + 1)(Held()), A + 1)
    np.testing.assert_allclose(jax.grad(lambda x: (x * x).sum())(Held()), 2 * A)


def test_compilations_are_logged_to_the_logger_jax():
    text, logger = io.StringIO(), logging.getLogger("jax")
    handler = logging.StreamHandler(text)
    logger.addHandler(handler)
    try:
        with jax.log_compiles(True):
            jax.jit(lambda x: x * 7 - 3)(1.0)
    finally:
        logger.removeHandler(handler)
    assert "compiled" in text.getvalue()


def test_a_linear_map_has_the_attributes_of_a_partial():
    _, push = jax.linearize(lambda x, y: jnp.sin(x) * y, 2.0, 3.0)
    np.testing.assert_allclose(push.func(*push.args, 1.0, 0.5, **push.keywords), push(1.0, 0.5))


def test_slices_of_references_by_start_and_size():
    np.testing.assert_array_equal(jax.new_ref(jnp.arange(5))[jax.ds(1, 2)], [1, 2])


def test_derivatives_have_the_weak_types_of_their_primals():
    for f in (lambda x: jnp.where(x > 0, x, 2.0), lambda x: jnp.stack([x, x]).sum(), lambda x: jax.nn.relu(x)):
        weak, strong = 3.0, jnp.float32(3)
        out = f(weak).weak_type
        for g in (jax.grad(f), jax.grad(jax.grad(f)), lambda x, f=f: jax.vjp(f, x)[1](f(x))[0], jax.jit(jax.grad(f))):
            assert g(weak).weak_type and not g(strong).weak_type
        assert jax.jvp(f, (weak,), (1.0,))[1].weak_type == jax.linearize(f, weak)[1](1.0).weak_type == out
        assert jax.jacfwd(f)(weak).weak_type == out


@pytest.mark.parametrize("outer", [lambda f: f, jax.jit])
@pytest.mark.parametrize("index", [10, -11, (1, 10), (slice(1), -11)])
def test_checks_of_indices_include_known_indices(index, outer):
    x = jnp.ones((3, 5) if isinstance(index, tuple) else 5)
    error, value = checkify.checkify(outer(lambda x: x[index]), errors=checkify.index_checks)(x)
    given = index[1] if isinstance(index, tuple) else index
    assert f"index {given + 5 if given < 0 else given} is out of bounds for axis" in error.get()
    assert (value == 1).all()
    assert checkify.checkify(lambda x: x[-3], errors=checkify.index_checks)(x)[0].get() is None


def test_derived_operations_have_the_lines_of_their_program():
    """A batched, differentiated or split operation has the location of the user's line that made it, not the call's."""

    def inner(x):
        return jnp.sin(x)

    def f(x):
        return jax.jit(inner)(x)

    line = f"test_corners.py:{inner.__code__.co_firstlineno + 1} (inner)"
    for g in (jax.vmap(f), jax.jacfwd(f), jax.jacrev(f), jax.checkpoint(f)):
        text = jax.make_jaxpr(g)(jnp.ones(3)).jaxpr.pretty_print(source_info=True)
        assert all(line in row for row in text.splitlines() if " = sin " in row or " = cos " in row), text


@pytest.mark.parametrize("predicate", [jnp.isreal, jnp.iscomplex, jnp.logical_not, lambda x: jnp.logical_and(x, x)])
def test_predicates_of_python_numbers_are_weakly_typed(predicate):
    assert predicate(1.0).aval.weak_type and predicate(2).aval.weak_type
    assert not predicate(np.float32(1)).aval.weak_type


def test_equality_of_arrays_is_strongly_typed():
    for whether in (jnp.array_equal, jnp.array_equiv):
        assert not whether(1.0, 1.0).aval.weak_type


def test_an_update_keeps_how_strong_the_type_is():
    weak = jnp.asarray(1.0)
    assert weak.at[...].set(2.0).aval.weak_type and weak.at[...].set(np.float32(2)).aval.weak_type
    assert not jnp.float32(1).at[...].set(weak).aval.weak_type


def test_special_functions_of_python_numbers_are_weakly_typed():
    for value in (jax.scipy.special.factorial(3), jax.scipy.special.polygamma(1, 2.0)):
        assert value.aval.weak_type
    assert not jax.scipy.special.polygamma(1, np.float32(2)).aval.weak_type


def test_an_axis_out_of_bounds_is_a_value_and_an_index_error():
    for wrong in (lambda: jnp.split(1.0, 2), lambda: jnp.swapaxes(A, 0, 1), lambda: jnp.sum(A, axis=1)):
        for kind in (ValueError, IndexError):
            with pytest.raises(kind, match="out of bounds for array of dimension"):
                wrong()


def test_an_update_at_a_number_of_an_empty_axis_is_an_error():
    nothing = jnp.zeros((0, 4))
    with pytest.raises(IndexError, match="it is empty"):
        nothing.at[0].set(1)
    with pytest.raises(IndexError, match="it is empty"):
        jax.jit(lambda i: nothing.at[i].add(1))(0)
    assert nothing.at[jnp.array([0])].set(1).shape == (0, 4)


def test_round_without_digits_gives_integers():
    for dtype in (np.int8, np.uint32, bool, np.float32, jnp.bfloat16):
        rounded = round(jnp.ones(2, dtype))
        assert rounded.dtype == np.int32 and rounded.tolist() == [1, 1]
    assert not round(jnp.asarray(2)).aval.weak_type
    assert round(jnp.float32(1.25), 1).dtype == np.float32


def test_products_from_the_front_keep_the_dtype():
    assert jnp.cumulative_prod(np.int8([1, 2, 3])).dtype == np.int8
    assert jnp.cumulative_sum(np.int8([1, 2, 3])).dtype == np.int32


def test_relu_orders_complex_numbers_by_real_and_then_imaginary_part():
    x = np.array([1 - 1j, -1 + 1j, 0j, 1j, -1j], np.complex64)
    np.testing.assert_array_equal(jax.nn.relu(x), [1 - 1j, 0, 0, 1j, 0])
    assert jax.grad(lambda r: jax.nn.relu(r * (1 + 2j)).imag)(3.0) == 2


def test_tensordot_of_the_array_api_takes_its_axes_by_name():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(jnp.linalg.tensordot(x, y, axes=1), np.tensordot(x, y, 1))
    with pytest.raises(TypeError):
        jnp.linalg.tensordot(x, y, 1)


def test_a_carry_that_starts_as_a_python_number_takes_the_type_of_the_body():
    halved = [
        lax.scan(lambda c, _: (c * 0.5, None), 2, None, length=3)[0],
        lax.fori_loop(0, 3, lambda _, c: c * 0.5, 2),
        lax.while_loop(lambda c: c > 0.25, lambda c: c * 0.5, 2),
    ]
    assert [float(c) for c in halved] == [0.25] * 3
    assert not any(c.aval.weak_type for c in halved)
    assert lax.scan(lambda c, _: (c * 1j, None), 2.0, None, length=3)[0] == -2j
    for start, becomes in ((jnp.int32(2), 0.5), (2.0, 1)):
        with pytest.raises(TypeError, match="carry of other types"):
            lax.scan(lambda c, _, y=becomes: (c * y if y != 1 else y, None), start, None, length=3)


MISTAKES_AT_ENTRIES = {
    "operator": lambda: jnp.zeros(3) + jnp.zeros(4),
    "reflected": lambda: np.zeros(3) - jnp.zeros(4),
    "function": lambda: jnp.dot(jnp.zeros(3), jnp.zeros(4)),
    "scan": lambda: jax.lax.scan(lambda c, x: (jnp.ones(2), x), 0.0, jnp.ones(3)),
    "while_loop": lambda: jax.lax.while_loop(lambda c: c < 3, lambda c: jnp.ones(2), 0.0),
    "fori_loop": lambda: jax.lax.fori_loop(0, 3, lambda i, c: jnp.ones(2), 0.0),
    "cond": lambda: jax.lax.cond(True, lambda: 1.0, lambda: jnp.ones(2)),
    "switch": lambda: jax.lax.switch(0, [lambda: 1.0, lambda: jnp.ones(2)]),
    "map": lambda: jax.lax.map(lambda x: x, 1.0),
    "grad": lambda: jax.grad(lambda x: x)(jnp.ones(3)),
    "jit": lambda: jax.jit(lambda x: x + jnp.ones(4))(jnp.ones(3)),
}


@pytest.mark.parametrize("name", MISTAKES_AT_ENTRIES)
def test_errors_show_only_frames_of_users(name):
    files = lambda error: {f.filename for f in traceback.extract_tb(error.__traceback__)}
    saved = jax.config.jax_traceback_filtering
    try:
        for mode in ("quiet_remove_frames", "remove_frames"):
            jax.config.update("jax_traceback_filtering", mode)
            with pytest.raises((TypeError, ValueError)) as caught:
                MISTAKES_AT_ENTRIES[name]()
            assert files(caught.value) == {__file__}
            whole = caught.value.__cause__ if mode == "remove_frames" else None
            assert (whole is None) == (mode != "remove_frames") and (whole is None or len(files(whole)) > 1)
    finally:
        jax.config.update("jax_traceback_filtering", saved)


def test_an_array_of_keys_is_made_of_parts_and_has_the_memory_of_its_numbers():
    where = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"), memory_kind="pinned_host")
    keys = jax.random.split(jax.random.key(0), 4)
    part = jax.device_put(keys, jax.devices()[0])
    for made in (
        jax.make_array_from_single_device_arrays((4,), where.with_memory_kind("device"), [part]),
        jax.make_array_from_callback((4,), where.with_memory_kind("device"), lambda index: keys[index]),
        jax.device_put(keys, where),
    ):
        assert made.dtype == keys.dtype and made.shape == (4,)
        assert bool((made == keys).all())
        assert made.sharding.memory_kind == jax.random.key_data(made).sharding.memory_kind
    with pytest.raises(ValueError, match=r"arrays\[1\] is of"):
        jax.make_array_from_single_device_arrays((4,), where, [part, jnp.arange(4)])


@pytest.mark.parametrize("version", [5, 11])
def test_a_calling_convention_that_no_reader_supports_is_refused(version):
    with pytest.raises(ValueError, match="one of 9, 10, got"):
        jax.config.update("jax_export_calling_convention_version", version)
