"""Elementwise functions, dtypes and operators against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
from bedrax.core import config, dtypes
from bedrax.core.jitting import jit
from bedrax.lax import flags, lattice

FLOATS = np.array([-3.5, -2.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.5, 7.0], np.float32)
SMALL = FLOATS / 8
INTS = np.array([-7, -2, -1, 0, 1, 3, 6], np.int32)
BOOLS = np.array([True, False, True])

UNARY = {
    "exp exp2 expm1 sin cos tan arctan sinh cosh tanh arcsinh floor ceil trunc rint sign abs absolute fabs negative"
    " positive square isnan isinf isfinite isposinf isneginf signbit deg2rad rad2deg radians degrees sinc cbrt logical_not"
    " conj real imag angle spacing iscomplex isreal round nan_to_num": FLOATS,
    "sqrt log log2 log10 log1p reciprocal arccosh acosh": np.abs(FLOATS) + 1,
    "arcsin arccos arctanh asin acos atanh": SMALL,
    "bitwise_not invert bitwise_count sign abs square floor isnan logical_not": INTS,
}
UNARY_CASES = [(name, x) for names, x in UNARY.items() for name in names.split()]


def same(got, expected, rtol=2e-6):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.astype(expected.dtype), expected, rtol=rtol, atol=2e-6)


@pytest.mark.parametrize(("name", "x"), UNARY_CASES, ids=[f"{n}-{x.dtype}" for n, x in UNARY_CASES])
def test_unary_is_numpys_eager_jitted_and_mapped(name, x):
    f = getattr(jnp, name)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    for run in (f, jit(f), vmap(f)):
        same(run(x), expected)


ARITHMETIC = (
    "add subtract multiply divide true_divide floor_divide mod remainder fmod maximum minimum fmax fmin equal not_equal"
    " less less_equal greater greater_equal arctan2 hypot copysign logaddexp heaviside logical_and logical_or logical_xor"
).split()
INTEGER = (
    "add subtract multiply floor_divide mod fmod maximum bitwise_and bitwise_or bitwise_xor gcd lcm less equal".split()
)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_binary_of_floats_is_numpys(name):
    x, y = np.meshgrid(FLOATS, FLOATS)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    f = getattr(jnp, name)
    for run in (f, jit(f)):
        same(run(x, y), expected)
        same(run(x[0], y[:, :1]), expected)


@pytest.mark.parametrize("name", INTEGER)
def test_binary_of_integers_is_numpys(name):
    x, y = np.meshgrid(INTS, INTS[INTS != 0])
    np.testing.assert_array_equal(np.asarray(getattr(jnp, name)(x, y)), getattr(np, name)(x, y))


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(lambda v: v != 0))
def test_floor_division_and_remainder_are_consistent(a, b):
    if (a, b) == (-(2**31), -1):
        return
    x, y = np.int32(a), np.int32(b)
    assert int(jnp.floor_divide(x, y)) == a // b
    assert int(jnp.remainder(x, y)) == a % b


@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e3, 1e3, width=32).filter(lambda v: abs(v) > 1e-3))
def test_floor_division_of_floats(a, b):
    q, r = jnp.divmod(np.float32(a), np.float32(b))
    eq, er = np.divmod(np.float32(a), np.float32(b))
    assert float(q) == float(eq)
    np.testing.assert_allclose(float(r), float(er), rtol=1e-6, atol=abs(b) * 1e-6)


def test_the_derivative_of_a_rounded_quotient_is_zero_also_of_one_by_zero():
    for x, y in ((1, 0), (-1, 0), (0, 0), (1, 2)):
        slopes = grad(jnp.floor_divide, argnums=(0, 1))(np.float32(x), np.float32(y))
        assert [float(s) for s in slopes] == [0, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_integer_powers_wrap_around(dtype):
    x, y = np.meshgrid(np.arange(0, 9).astype(dtype), np.arange(0, 12).astype(dtype))
    np.testing.assert_array_equal(np.asarray(jnp.power(x, y)), np.power(x, y))
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x) ** 3), x**3)


def test_powers_of_floats():
    x = jnp.asarray(np.abs(FLOATS) + 0.5)
    for exponent in (0, 1, 2, -3, 0.5, 2.0):
        same(x**exponent, np.asarray(x) ** np.float32(exponent), rtol=1e-5)
    with pytest.raises(TypeError, match="negative power"):
        jnp.arange(3) ** -1
    assert float(grad(lambda v: v**2)(3.0)) == 6.0
    assert float(grad(lambda v: v**0)(0.0)) == 0.0


# The published lattice, row by row: the promotion of the first type with the types of the header.
HEADER = "bool uint8 uint16 uint32 int8 int16 int32 bfloat16 float16 float32 complex64".split()


@pytest.mark.parametrize("a", HEADER)
@pytest.mark.parametrize("b", HEADER)
def test_operators_promote_by_the_lattice(a, b):
    x, y = jnp.ones(2, a), jnp.ones(2, b)
    assert (x * y).dtype == lattice.promote_types(a, b) == (y * x).dtype
    assert jnp.add(x, y).dtype == (x + y).dtype


@pytest.mark.parametrize("dtype", HEADER)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j])
def test_products_with_python_scalars_have_the_type_of_the_lattice(dtype, scalar):
    out = jnp.ones(2, dtype) * scalar
    assert out.dtype == lattice.result_type(jnp.ones(2, dtype), scalar)
    assert (scalar * jnp.ones(2, dtype)).dtype == out.dtype


def test_weak_types_survive_only_among_themselves():
    assert (jnp.asarray(1) + 2).weak_type
    assert jnp.sin(1).weak_type
    assert not (jnp.asarray(1) + np.int32(2)).weak_type
    assert not jnp.sum(jnp.asarray(1.0)).weak_type
    assert not jnp.asarray(True).weak_type
    for update in ("divide", "power"):
        for number in (2, 2.0):
            assert getattr(jnp.asarray(number).at[...], update)(np.float32(3)).weak_type
            assert not getattr(jnp.float32(number).at[...], update)(3.0).weak_type
    row = jnp.stack([jnp.asarray(1.5)] * 4)
    assert row.at[1:3].set(2.0).weak_type and row.at[-1].set(2.0).weak_type
    assert jnp.linalg.tensorsolve(2.0, 3).weak_type and not jnp.linalg.tensorsolve(np.float32(2), 3.0).weak_type


def test_integers_become_floats_where_they_must():
    assert jnp.sqrt(np.int8(4)).dtype == np.float32
    assert jnp.divide(np.int32(1), np.int32(2)).dtype == np.float32
    with config.enable_x64(True):
        for dtype, wanted in {"bool": "float32", "int8": "float32", "uint32": "float32", "int64": "float64"}.items():
            x = jnp.ones(3, dtype)
            results = jnp.sqrt(x), jnp.mean(x), jnp.true_divide(x, x), jnp.trapezoid(x), jnp.linalg.norm(x)
            assert {r.dtype.name for r in results} == {wanted}
        assert jnp.sqrt(4).dtype == np.float64
        assert (jnp.ones(2, jnp.float32) * 2.0).dtype == np.float32


def test_narrow_types_need_casts():
    with pytest.raises(dtypes.TypePromotionError):
        jnp.ones(2, jnp.int4) + jnp.ones(2, jnp.int8)
    assert (jnp.ones(2, jnp.int4) + 1).dtype == jnp.int4


REFUSED = {
    "add": lambda: jnp.add([1], 2),
    "sin": lambda: jnp.sin([1.0]),
    "sum": lambda: jnp.sum([1]),
    "where": lambda: jnp.where([True], 1, 2),
    "reshape": lambda: jnp.reshape([1], (1,)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lists_are_refused_by_name(name):
    with pytest.raises(TypeError, match=rf"{name}: an array or a number is needed at position 0, got <class 'list'>"):
        REFUSED[name]()


def test_shapes_that_do_not_fit():
    with pytest.raises(TypeError, match=r"incompatible shapes for broadcasting: \(3,\), \(4,\)"):
        jnp.ones(3) + jnp.ones(4)


def test_rank_promotion_can_be_refused():
    with flags.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 3)) + jnp.ones(3)
    with flags.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
        jnp.ones((2, 3)) + jnp.ones(3)
    with flags.numpy_rank_promotion("raise"):
        jnp.ones((2, 3)) + 1


class Other:
    def __radd__(self, x):
        return "theirs"

    def __eq__(self, x):
        return "theirs"

    __hash__ = None


class Wrapper:
    def __jax_array__(self):
        return jnp.arange(3)


def test_operators_defer_to_types_they_do_not_know():
    assert jnp.ones(3) + Other() == "theirs"
    assert (jnp.ones(3) == Other()) == "theirs"
    assert (jnp.ones(3) == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        jnp.ones(3) + [1, 2, 3]
    np.testing.assert_array_equal(np.asarray(jnp.ones(3) + Wrapper()), [1, 2, 3])
    np.testing.assert_array_equal(np.asarray(jnp.sin(Wrapper())), np.sin(np.arange(3, dtype=np.float32)))


def test_methods_of_ufuncs():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(jnp.add.reduce(x)), np.add.reduce(x))
    np.testing.assert_array_equal(np.asarray(jnp.subtract.reduce(x, axis=1)), np.subtract.reduce(x, axis=1))
    np.testing.assert_array_equal(np.asarray(jnp.subtract.accumulate(x, axis=1)), np.subtract.accumulate(x, axis=1))
    np.testing.assert_array_equal(np.asarray(jnp.multiply.outer(x, x)), np.multiply.outer(x, x))
    np.testing.assert_array_equal(
        np.asarray(jnp.add.reduceat(x[1], np.array([0, 2, 1]))), np.add.reduceat(x[1], [0, 2, 1])
    )
    expected = x.copy()
    np.add.at(expected, (np.array([0, 0]), 1), 5)
    np.testing.assert_array_equal(np.asarray(jnp.add.at(x, (np.array([0, 0]), 1), 5, inplace=False)), expected)
    with pytest.raises(NotImplementedError, match="inplace"):
        jnp.add.at(x, 0, 1)
    twice = jnp.frompyfunc(lambda a, b: a + 2 * b, 2, 1)
    np.testing.assert_array_equal(np.asarray(twice.reduce(x[0])), (0 + 2 * 1) + 2 * 2)


SMOOTH = ["sin", "tanh", "exp", "sinc", "square", "arctan", "sqrt", "log1p", "cbrt", "reciprocal", "log2", "expm1"]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_difference_quotients(name):
    f = getattr(jnp, name)
    with config.enable_x64(True):
        for x in (0.7, 1.9):
            step = 1e-6
            expected = (float(f(np.float64(x + step))) - float(f(np.float64(x - step)))) / (2 * step)
            assert float(grad(f)(np.float64(x))) == pytest.approx(expected, rel=1e-6)


def test_second_derivatives_where_formulas_change():
    with config.enable_x64(True):
        assert float(grad(grad(jnp.sinc))(np.float64(0.0))) == pytest.approx(-(np.pi**2) / 3)
        second = grad(grad(lambda v: jnp.logaddexp(v, np.float64(1.0))))(np.float64(1.0))
        assert float(second) == pytest.approx(0.25)
    assert float(grad(lambda v: jnp.logaddexp(v, -np.inf))(1.0)) == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False, width=32, allow_subnormal=False))
def test_frexp_and_ldexp_are_inverse(x):
    m, e = jnp.frexp(np.float32(x))
    assert x == 0 or 0.5 <= abs(float(m)) < 1
    assert float(jnp.ldexp(m, e)) == x


def test_the_significand_has_a_derivative():
    x = np.float32([0.75, 2, -3, 1e30, 0, np.inf])
    m, moved = jvp(lambda x: jnp.frexp(x)[0], (x,), (np.ones_like(x),))
    np.testing.assert_array_equal(m, np.frexp(x)[0])
    np.testing.assert_array_equal(moved, [1, 0.25, 0.25, 2.0**-100, 1, 1])


@pytest.mark.parametrize("decimals", [-1, 0, 1, 2])
def test_rounding(decimals):
    x = np.array([0.5, 1.5, -2.25, 12.345, 17.0], np.float32)
    same(jnp.round(x, decimals), np.round(x, decimals))


def test_scalar_types():
    assert jnp.float32(3).dtype == np.float32
    assert jnp.float32 == np.float32 and jnp.float32 == np.dtype("float32")
    assert np.dtype(jnp.bfloat16).name == "bfloat16"
    assert isinstance(np.float32(1), jnp.float32)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating) and not jnp.issubdtype(jnp.int8, jnp.floating)
    assert jnp.int_ is jnp.int64 and jnp.double is jnp.float64


def test_weak_types_of_isnan_isinf_and_heaviside():
    assert jnp.isnan(6).weak_type and not jnp.isinf(np.inf).weak_type
    assert jnp.heaviside(1.0, 2.0).weak_type and not jnp.heaviside(jnp.array([-2, 0]), 0.5).weak_type


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "hypot", "arctan2", "copysign", "divide", "float_power"])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_booleans_beside_half_precision_are_floats(name, dtype):
    f, x = getattr(jnp, name), jnp.ones(2, dtype)
    expected = getattr(np, name)(np.ones(2), 1.0)
    for other in (True, np.True_, jnp.array(True), np.array([True, True])):
        for call in (f, jit(f), vmap(f, (0, 0 if np.ndim(other) else None))):
            found = call(x, other)
            assert found.dtype == dtype
            np.testing.assert_allclose(np.asarray(found, np.float32), expected, rtol=1e-2)
        np.testing.assert_allclose(np.asarray(f(other, x), np.float32), expected, rtol=1e-2)


def test_logarithms_and_powers_of_complex_numbers_keep_infinite_parts():
    inf = np.inf
    x = np.array([0, complex(0, -inf), complex(-inf, 1), complex(inf, 0), 100 + 100j], np.complex64)
    for name in ("log10", "log2"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        same(getattr(jnp, name)(x), expected)
    found = jnp.logaddexp2(x[2:4], np.complex64([1, 2]))
    np.testing.assert_array_equal(np.asarray(found), np.array([1, complex(inf, 0)], np.complex64))
    np.testing.assert_array_equal(np.asarray(jnp.exp2(x[3:4])), x[3:4])
