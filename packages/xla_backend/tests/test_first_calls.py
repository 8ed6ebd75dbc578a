"""First calls of eager operations by NumPy: bits equal to XLA's, and the rules of placement, order and errors."""

import ml_dtypes
import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import config, dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit
from bedrax.lax import operators
from bedrax.lax.primitives import indexing
from bedrax.numpy_backend import exactness
from bedrax.numpy_backend.tables import Exactness, exact_rules
from bedrax.testing.records import case_params
from bedrax.testing.typing import as_list, x64_if_needed
from bedrax.xla_backend import first_calls, flags, placement, running
from bedrax.xla_backend.door.arrays import is_committed

jnp = pytest.importorskip("bedrax.numpy")  # above this package
random = pytest.importorskip("bedrax.random")

LARGEST = 1 << 20


def bits(x):
    """The elements as unsigned integers."""
    x = np.ascontiguousarray(x).reshape(np.shape(x))
    return x if x.dtype.kind == "b" else x.view(f"u{x.real.dtype.itemsize}")


def assert_equal_bits(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(bits(actual), bits(expected))


def special(dtype, rng, size):
    """Extreme values, values of every exponent, and random bits."""
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind == "c":
        return (special(np.zeros((), dtype).real.dtype, rng, size) + 0j).astype(dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    any_bits = rng.integers(0, np.iinfo(word).max, size, dtype=word, endpoint=True).view(dtype)
    if dtypes.is_integer(dtype):
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7, 8, 15, 31, 32, 33, 63, 64]
        edges = np.array([v for v in edges if v <= info.max], dtype)
    else:
        info = ml_dtypes.finfo(dtype)
        smallest, largest = float(info.smallest_normal), float(info.max)
        edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 127.5, 128.0, 255.0, 256.0, -129.0, 32768.0, 65504.0]
        edges += [np.inf, -np.inf, np.nan, -np.nan, largest, -largest, smallest, 2 * smallest, smallest / 2]
        edges += [2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1 / 3]
        with np.errstate(all="ignore"):
            edges = np.array(edges, np.float64).astype(dtype)
    near = rng.uniform(-4, 4, size) if dtypes.is_floating(dtype) else rng.integers(0, 8, size)
    choice = rng.integers(0, 3, size)
    return np.where(choice == 0, rng.choice(edges, size), np.where(choice == 1, any_bits, near.astype(dtype)))


def operands_of(case, rng, draw):
    """The operands of a record with other values; normal ones in half of the draws, so that NumPy evaluates them."""
    given = []
    for x in case.make_args():
        if x.dtype not in exactness._DTYPES or (case.primitive.family == "indexing" and dtypes.is_integer(x.dtype)):
            given.append(x)  # positions
            continue
        value = special(x.dtype, rng, x.shape) if x.shape else special(x.dtype, rng, (1,))[0]
        value = np.asarray(value, x.dtype)
        if draw % 2 and not exactness._is_normal(value):
            value = np.asarray(rng.uniform(-9, 9, x.shape)).astype(x.dtype)
        given.append(value)
    return given


CASES = [p for p in case_params() if exact_rules.find(p.values[0].primitive) is not None]


@pytest.mark.parametrize("case", CASES)
def test_exact_rules_give_the_bits_of_xla(case):
    if case.xla is not True:
        pytest.skip(f"XLA does not run it: {case.xla}")
    rng = case.rng()
    with x64_if_needed(case):
        compiled = jit(case.fun)
        for draw in range(4):
            args = operands_of(case, rng, draw)
            program = staging.program_of(lambda *xs: as_list(case.fun(*xs)), [aval_of(a) for a in args])
            found = exactness.parts(program, LARGEST)
            if found.rest:
                return
            values = exactness.evaluate(found, args)
            if values is not None:
                for v, expected in zip(found.program.outvars, as_list(compiled(*args)), strict=True):
                    assert_equal_bits(values.read(v), expected)


REALS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OF_TWO = (
    *("add sub mul div max min eq ne lt le gt ge rem bitwise_and bitwise_or bitwise_xor".split()),
    *("shift_left shift_right_logical shift_right_arithmetic mulhi nextafter atan2 pow".split()),
)
OF_ONE = "neg abs sign floor ceil round sqrt square is_finite bitwise_not clz population_count copy exp sin".split()


def both_ways(fun, *args):
    """Compare the exact part with XLA, if there is one. Returns whether NumPy evaluated the program."""
    program = staging.program_of(lambda *xs: [fun(*xs)], [aval_of(a) for a in args])
    found = exactness.parts(program, LARGEST)
    values = None if found.rest else exactness.evaluate(found, args)
    if values is not None:
        assert_equal_bits(values.read(found.program.outvars[0]), jit(fun)(*args))
    return values is not None


@pytest.mark.parametrize("dtype", [*REALS, *INTEGERS, "bool"])
@pytest.mark.parametrize("name", [*OF_TWO, *OF_ONE])
def test_elementwise_operations_give_the_bits_of_xla(name, dtype):
    fun = getattr(lax, name, None) or getattr(lax, f"{name}_p").bind
    rng = np.random.default_rng(0)
    dtype = dtypes.as_dtype(dtype)
    with config.enable_x64(True):
        for scalar in (False, True):
            for normal in (False, True):
                args = [special(dtype, rng, (257,)) for _ in range(2 if name in OF_TWO else 1)]
                if scalar and len(args) == 2:
                    args[1] = args[1][0]
                if normal and dtype.kind in "fV":
                    with np.errstate(all="ignore"):
                        args = [np.asarray(rng.uniform(-9, 9, np.shape(x))).astype(dtype) for x in args]
                try:
                    staging.program_of(lambda *xs: [fun(*xs)], [aval_of(a) for a in args])
                except TypeError:
                    return  # not an operation of this dtype
                both_ways(fun, *args)


@pytest.mark.parametrize("old", [*REALS, *INTEGERS, "bool"])
def test_conversions_give_the_bits_of_xla(old):
    rng = np.random.default_rng(1)
    with config.enable_x64(True):
        for new in (*REALS, *INTEGERS, "bool"):
            for x in (special(dtypes.as_dtype(old), rng, (513,)), rng.uniform(-300, 300, 99).astype(old)):
                both_ways(lambda x, new=new: lax.convert_element_type(x, new), x)


def test_arithmetic_on_normal_floats_is_evaluated_by_numpy():
    x = np.linspace(1, 2, 8, dtype=np.float32)
    assert both_ways(lax.add, x, x)
    assert not both_ways(lax.add, x * np.float32(1e-40), x)  # XLA flushes subnormal operands to zero
    assert not both_ways(lax.mul, x * np.float32(1e-30), x * np.float32(1e-10))  # ... and results
    assert not both_ways(lax.sub, x * np.float32(np.inf), x * np.float32(np.inf))  # NaN has other bits
    assert not both_ways(lambda x, y: lax.add(lax.mul(x, y), x), x, x)  # XLA contracts it to one operation
    assert not both_ways(lambda x: lax.add(x, 0.0), x)  # XLA removes it, and -0 stays


def test_a_program_with_an_inexact_operation_is_split():
    program = staging.program_of(lambda k: [random.normal(k, (3, 5))], [aval_of(random.key(0))])
    found = exactness.parts(program, LARGEST)
    assert "threefry2x32" in {eqn.primitive.name for eqn in found.exact}
    assert "erf_inv" in {eqn.primitive.name for eqn in found.rest}


# ---- in the executor ------------------------------------------------------------------------------


@pytest.fixture
def compiled_names(monkeypatch):
    """The names of the programs that are compiled during a test."""
    names = []
    load = running.compile_module.load

    def recorded(jaxpr, name, *args):
        names.append(name)
        return load(jaxpr, name, *args)

    monkeypatch.setattr(running.compile_module, "load", recorded)
    return names


@pytest.fixture(autouse=True)
def nothing_known():
    xla.clear_caches()


def test_exact_operations_are_not_compiled_at_first_and_then_are(compiled_names):
    x = jnp.arange(6, dtype=jnp.float32)
    y = jnp.concatenate([x.reshape(2, 3).T, jnp.zeros((1, 2), jnp.float32)])[1:]
    assert_equal_bits(jnp.where(y > 2, y + y, -y), np.array([[-1, 8], [-2, 10], [-0.0, -0.0]], np.float32))
    assert not compiled_names
    for _ in range(20000):
        x * x
        if compiled_names:
            break
    assert compiled_names == ["jit_mul"]


def test_an_operator_of_several_types_is_one_program(compiled_names):
    x, i = jnp.arange(6.0).reshape(2, 3), jnp.arange(3)
    flag = jnp.asarray([[True], [False]])
    with flags.first_calls_by_numpy(False):
        compiled_names.clear()
        for fun, name in ((operators.add, "add"), (operators.true_divide, "true_divide"), (operators.less, "less")):
            for y in (i, flag, x[:, :1]):
                out = fun(x, y)
                assert compiled_names.pop() == f"jit_{name}"
                with config.disable_jit(True):
                    expected = fun(x, y)
                assert out.aval == expected.aval
                np.testing.assert_allclose(out, expected, rtol=1e-6)
                compiled_names.clear()
        assert_equal_bits(list(x), np.arange(6, dtype=np.float32).reshape(2, 3))
        assert compiled_names == ["jit_unstack"]


@pytest.mark.parametrize("draw", [random.normal, lambda k, s: random.truncated_normal(k, -2.0, 2.0, s), random.gumbel])
def test_a_sampler_is_compiled_once_for_all_shapes_with_the_bits_of_its_program(draw, compiled_names):
    key = random.key(3)
    drawn = {shape: draw(key, shape) for shape in [(7,), (3, 5), (2, 2, 2), (5000,), (64, 130)]}
    assert len(compiled_names) == 1
    for shape, x in drawn.items():
        assert_equal_bits(x, jit(draw, static_argnums=1)(key, shape))


@pytest.mark.parametrize("fun", [jnp.exp, jnp.sin, jnp.tanh, jnp.log1p, lax.rsqrt, lax.logistic, lax.erf])
def test_an_elementwise_function_is_compiled_for_one_shape_and_for_all_others(fun, compiled_names):
    x = np.random.default_rng(0).uniform(0.1, 3, 9000).astype(np.float32)
    outs = [
        (shape, fun(jnp.asarray(x[: int(np.prod(shape))].reshape(shape)))) for shape in [(3,), (5, 3), (9000,), (77,)]
    ]
    assert len(compiled_names) == 2
    for shape, out in outs:
        assert_equal_bits(out, jit(lambda x: fun(x))(x[: int(np.prod(shape))].reshape(shape)))


def test_placement_commitment_and_weak_types_are_those_of_a_program():
    device = xla.devices()[0]
    x, placed = jnp.arange(4.0), placement.device_put(np.arange(4.0, dtype=np.float32), device)
    for arg in (x, placed, jnp.asarray(2.0), 2.0):
        first = lax.mul(arg, arg)
        with flags.first_calls_by_numpy(False):
            xla.clear_caches()
            compiled = lax.mul(arg, arg)
        assert first.aval == compiled.aval
        assert is_committed(first) == is_committed(compiled)
        assert first.sharding == compiled.sharding
        assert first.sharding.memory_kind == compiled.sharding.memory_kind


def test_each_result_has_its_own_memory():
    x = jnp.arange(4.0)
    y = x.reshape(2, 2)
    double = jit(lambda x: x + 1, donate_argnums=0)
    z = double(x)
    assert x.is_deleted()
    assert_equal_bits(y, np.arange(4, dtype=np.float32).reshape(2, 2))
    again = double(y)
    assert y.is_deleted()
    assert_equal_bits(again, np.arange(1, 5, dtype=np.float32).reshape(2, 2))
    assert_equal_bits(z, np.arange(1, 5, dtype=np.float32))


def test_an_operation_does_not_wait_for_its_operands(compiled_names, monkeypatch):
    x = jnp.arange(3.0)
    monkeypatch.setattr(first_calls.ArrayImpl, "is_ready", lambda self: False)
    x.reshape(3, 1)  # XLA runs it when the operand is computed
    assert compiled_names == ["jit_reshape"]


def test_errors_are_those_of_a_program():
    x = jnp.arange(3.0)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        lax.neg(x)
    with config.debug_nans(True), pytest.raises(FloatingPointError, match="div"):
        lax.div(jnp.zeros(3), jnp.zeros(3))


def test_a_first_call_triggers_no_transfer_guard():
    x = jnp.arange(4.0)
    with flags.transfer_guard("disallow_explicit"):
        assert lax.neg(x.reshape(2, 2)).shape == (2, 2)


def test_a_scatter_whose_positions_are_equal_is_not_exact():
    case = lambda i: staging.program_of(
        lambda x: [jnp.asarray(x).at[np.array(i)].set(jnp.arange(2.0))], [aval_of(np.zeros(3, np.float32))]
    )
    assert exactness.parts(case([1, 1]), LARGEST).rest
    assert exact_rules[indexing.gather_p]([]) is Exactness.BITS
