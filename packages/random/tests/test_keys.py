"""Keys: making, splitting, reading them, and arrays of them under operations and transformations."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.autodiff import custom_linear_solve, grad, jvp, vjp
from bedrax.batching import custom_vmap, vmap
from bedrax.core import config, dtypes, executors, staging
from bedrax.core.array import Array
from bedrax.core.jitting import jit
from bedrax.numpy import segments
from bedrax.random import block_ciphers, defining, flags

PROGRAMS = Path(__file__).with_name("programs")

data = lambda keys: np.asarray(random.key_data(keys))


def threefry(key, x0, x1):
    """The hash as the paper states it, on NumPy arrays: rotations of table 2, key injected every four rounds."""
    key = [np.uint32(k) for k in key]
    key.append(key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x0, x1 = (np.asarray(x, np.uint64) for x in (x0, x1))
    low = np.uint64(0xFFFFFFFF)
    x0, x1 = (x0 + np.uint64(key[0])) & low, (x1 + np.uint64(key[1])) & low
    for i in range(20):
        r = np.uint64(((13, 15, 26, 6), (17, 29, 16, 24))[i // 4 % 2][i % 4])
        x0 = (x0 + x1) & low
        x1 = ((x1 << r) | (x1 >> (np.uint64(32) - r))) & low ^ x0
        if i % 4 == 3:
            n = i // 4 + 1
            x0 = (x0 + np.uint64(key[n % 3])) & low
            x1 = (x1 + np.uint64(key[(n + 1) % 3]) + np.uint64(n)) & low
    return x0.astype(np.uint32), x1.astype(np.uint32)


def test_the_hash_of_the_papers_authors():
    # known answers that come with the authors' Random123 library (threefry2x32, 20 rounds)
    assert [int(x) for x in threefry((0, 0), 0, 0)] == [0x6B200159, 0x99BA4EFE]
    ones = 0xFFFFFFFF
    assert [int(x) for x in threefry((ones, ones), ones, ones)] == [0x1CB996FC, 0xBB002BE7]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
def test_split_and_fold_in_hash_counts(seed, number):
    key = random.key(seed)
    base = data(key)
    assert base.tolist() == [0, seed % 2**32]
    assert (data(random.split(key, 3)) == np.stack(threefry(base, np.zeros(3), np.arange(3)), -1)).all()
    assert (data(random.fold_in(key, number)) == np.stack(threefry(base, 0, number))).all()


@pytest.mark.parametrize("number", [np.int64(-1), np.int32(-1), np.int64(2**33 + 1)])
def test_fold_in_takes_the_low_32_bits_of_a_number_of_numpy(number):
    """As of an array with that number. A Python integer out of range is an OverflowError."""
    key = random.key(7)
    assert (data(random.fold_in(key, number)) == data(random.fold_in(key, int(number) % 2**32))).all()
    with pytest.raises(OverflowError):
        random.fold_in(key, int(number))


@pytest.mark.parametrize("width", [8, 16, 32])
def test_bits_are_hashes_of_indices(width):
    key = random.key(3)
    high, low = threefry(data(key), np.zeros(6), np.arange(6))
    expected = (high ^ low).astype(f"uint{width}").reshape(2, 3)
    assert (np.asarray(random.bits(key, (2, 3), f"uint{width}")) == expected).all()


def test_bits_of_64_and_seeds_of_64():
    with config.enable_x64(True):
        key = random.key(2**40 + 9)
        assert data(key).tolist() == [2**8, 9]
        assert data(random.key(-7)).tolist() == [2**32 - 1, 2**32 - 7]
        high, low = threefry(data(key), np.zeros(4), np.arange(4))
        assert (np.asarray(random.bits(key, (4,), "uint64")) == (high.astype(np.uint64) << np.uint64(32) | low)).all()


def test_bits_of_an_element_do_not_depend_on_the_array():
    key = random.key(5)
    assert (np.asarray(random.bits(key, (7,))) == np.asarray(random.bits(key, (100,)))[:7]).all()


def test_the_older_scheme():
    # golden values: what the reference system computes with jax_threefry_partitionable off
    with flags.threefry_partitionable(False):
        key = random.key(0)
        assert data(random.split(key)).tolist() == [[4146024105, 967050713], [2718843009, 1272950319]]
        assert np.asarray(random.bits(key, (3,))).tolist() == [4146024105, 1351547692, 2718843009]


def test_typed_keys_as_arrays():
    key = random.key(7)
    assert isinstance(key, Array) and key.shape == () and key.ndim == 0 and key.size == 1
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key) and str(key.dtype) == "key<fry>" and key.itemsize == 8
    assert repr(random.split(key)).startswith("Array((2,), dtype=key<fry>) overlaying:\n[[")
    assert key.dtype == random.key_dtype() == random.key_dtype("threefry2x32")
    assert random.key_impl(key) == "threefry2x32" == random.key_impl(random.PRNGKey(0))
    again = pickle.loads(pickle.dumps(key))
    assert again.dtype is key.dtype and (data(again) == data(key)).all()
    assert (data(copy.deepcopy(key)) == data(key)).all()
    assert bool(key == random.key(7)) and not bool(key == random.key(8)) and bool(key != random.key(8))
    with pytest.raises(TypeError, match="cannot be converted to a NumPy array"):
        np.asarray(key)
    with pytest.raises(TypeError, match="unhashable"):
        hash(key)
    for wrong in (lambda: key + 1, lambda: lax.sin(key), lambda: key < key, lambda: -key):
        with pytest.raises((TypeError, ValueError), match="key<fry>"):
            wrong()


def test_keys_of_a_generator_from_integers():
    three = np.arange(3)
    expected = [random.key(n, impl="rbg") for n in three]
    for made in (
        defining.random_seed(three, defining.rbg_prng_impl),
        defining.seed_with_impl(defining.rbg_prng_impl, three),
    ):
        assert made.shape == (3,) and all(bool(a == b) for a, b in zip(made, expected, strict=True))
    assert bool(defining.seed_with_impl(defining.threefry_prng_impl, 2) == random.key(2))


def test_untyped_keys_give_untyped_keys():
    raw = random.PRNGKey(7)
    assert raw.dtype == np.uint32 and raw.shape == (2,)
    assert (np.asarray(random.split(raw)) == data(random.split(random.key(7)))).all()
    assert (np.asarray(random.fold_in(raw, 3)) == data(random.fold_in(random.key(7), 3))).all()
    assert (np.asarray(random.normal(raw, (4,))) == np.asarray(random.normal(random.key(7), (4,)))).all()
    assert (data(random.wrap_key_data(raw)) == np.asarray(raw)).all()
    with flags.legacy_prng_key("error"), pytest.raises(ValueError, match=r"random\.key"):
        random.split(raw)
    with flags.enable_custom_prng(True):
        assert dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)


KEYS = random.split(random.key(1), 4)
BASE = data(KEYS)
MOVES = [
    ("slice", lambda x: lax.slice_in_dim(x, 1, 4, 2), BASE[1:4:2]),
    ("reshape", lambda x: lax.reshape(x, (2, 2)), BASE.reshape(2, 2, 2)),
    ("transpose", lambda x: lax.transpose(lax.reshape(x, (2, 2)), (1, 0)), BASE.reshape(2, 2, 2).swapaxes(0, 1)),
    ("broadcast", lambda x: lax.broadcast(x, (3,)), np.broadcast_to(BASE, (3, 4, 2))),
    ("concatenate", lambda x: lax.concatenate([x, x], 0), np.concatenate([BASE, BASE])),
    ("rev", lambda x: lax.rev(x, (0,)), BASE[::-1]),
    ("squeeze", lambda x: lax.squeeze(lax.reshape(x, (4, 1)), (1,)), BASE),
    ("dynamic_slice", lambda x: lax.dynamic_slice(x, (2,), (2,)), BASE[2:]),
    ("dynamic_update_slice", lambda x: lax.dynamic_update_slice(x, lax.rev(x, (0,)), (0,)), BASE[::-1]),
    (
        "select",
        lambda x: lax.select(np.array([True, False, True, False]), x, lax.rev(x, (0,))),
        np.where([[True], [False], [True], [False]], BASE, BASE[::-1]),
    ),
    ("select_scalar", lambda x: lax.select(False, x, lax.rev(x, (0,))), BASE[::-1]),
    (
        "while",
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.rev(s[1], (0,))), (0, x))[1],
        BASE[::-1],
    ),
    ("cond", lambda x: lax.cond(True, lambda x: lax.rev(x, (0,)), lambda x: x, x), BASE[::-1]),
    ("scan", lambda x: lax.scan(lambda c, k: (c, k), 0, x, reverse=True)[1], BASE),
    ("full", lambda x: lax.full((2,), lax.index_in_dim(x, 0, 0, False)), np.stack([BASE[0]] * 2)),
]


@pytest.mark.parametrize("name, move, expected", MOVES, ids=[m[0] for m in MOVES])
@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
def test_operations_move_keys_as_they_move_their_bases(name, move, expected, how):
    out = how(move)(KEYS)
    assert dtypes.issubdtype(out.dtype, dtypes.prng_key)
    assert (data(out) == expected).all()


def test_vmap_is_a_loop_over_keys():
    for f in (random.split, lambda k: random.fold_in(k, 3), lambda k: lax.broadcast(k, (2,)), random.clone):
        expected = np.stack([data(f(k)) for k in KEYS])
        assert (data(vmap(f)(KEYS)) == expected).all()
    expected = np.stack([np.asarray(random.bits(k, (3,))) for k in KEYS])
    assert (np.asarray(vmap(lambda k: random.bits(k, (3,)))(KEYS)) == expected).all()
    assert (np.asarray(vmap(lambda k: random.bits(k, (3,)), out_axes=1)(KEYS)) == expected.T).all()
    assert (data(vmap(random.key)(np.arange(3))) == [[0, 0], [0, 1], [0, 2]]).all()
    raw = np.asarray(BASE)
    assert (np.asarray(vmap(random.split)(raw)) == np.stack([data(random.split(k)) for k in KEYS])).all()


def test_vmap_of_fold_in_over_either_argument():
    numbers = np.arange(3, dtype=np.uint32)
    expected = np.stack([[data(random.fold_in(k, int(n))) for n in numbers] for k in KEYS])
    over_numbers = vmap(random.fold_in, in_axes=(None, 0))
    over_keys = vmap(random.fold_in, in_axes=(0, None))
    assert (data(vmap(over_numbers, in_axes=(0, None))(KEYS, numbers)) == expected).all()
    assert (data(vmap(over_keys, in_axes=(None, 0), out_axes=1)(KEYS, numbers)) == expected).all()
    assert (data(vmap(random.fold_in)(lax.slice_in_dim(KEYS, 0, 3), numbers)) == expected[range(3), range(3)]).all()


def test_keys_flow_through_jit_scan_and_derivatives():
    def walk(key, x):
        def step(carry, _):
            key, x = carry
            key, sub = (lax.index_in_dim(random.split(key), i, 0, False) for i in range(2))
            return (key, x * random.normal(sub)), key

        return lax.scan(step, (key, x), None, length=3)

    key = random.key(2)
    (last, x), seen = jit(walk)(key, 2.0)
    loop, y = key, 2.0
    for i in range(3):
        loop, sub = random.split(loop)
        y = y * float(random.normal(sub))
        assert (data(loop) == data(seen)[i]).all()
    assert (data(last) == data(loop)).all()
    np.testing.assert_allclose(float(x), y, rtol=1e-6)
    np.testing.assert_allclose(float(grad(lambda x: walk(key, x)[0][1])(2.0)), y / 2, rtol=1e-6)
    out, pull = vjp(lambda k, x: x * random.normal(k), key, 2.0)
    bar = pull(1.0)
    assert np.asarray(bar[0]).dtype == dtypes.float0 and float(bar[1]) == float(out) / 2
    assert float(jvp(lambda x: x * random.normal(key), (2.0,), (1.0,))[1]) == float(random.normal(key))


def test_programs_of_solvers_and_batching_rules_take_keys():
    """Every primitive that holds programs takes keys, in programs and under `vmap`."""
    keys, b = lax.slice_in_dim(KEYS, 0, 3), jnp.arange(3.0)

    def scaled(key, b):
        scale = lambda x: x * (1 + random.uniform(key))
        return custom_linear_solve(scale, b, lambda mv, b: b / (1 + random.uniform(key)), symmetric=True)

    @custom_vmap
    def pair(key, b):
        return key, b * random.uniform(key)

    pair.def_vmap(lambda n, batched, keys, b: (vmap(lambda k: (k, b * random.uniform(k)))(keys), (True, True)))
    pairs = zip(*vmap(pair, (0, None))(keys, b))
    total = lambda b, key: jnp.sum(scaled(key, b))
    for key, solved, (same, product) in zip(keys, vmap(scaled, (0, None))(keys, b), pairs):
        np.testing.assert_allclose(solved, b / (1 + random.uniform(key)), rtol=1e-6)
        np.testing.assert_allclose(jit(scaled)(key, b), solved, rtol=1e-6)
        np.testing.assert_allclose(grad(total)(b, key), 1 / (1 + random.uniform(key)), rtol=1e-6)
        for result in ((same, product), jit(pair)(key, b)):
            assert (data(result[0]) == data(key)).all()
            np.testing.assert_allclose(result[1], b * random.uniform(key), rtol=1e-6)


def test_jaxprs_print_keys():
    text = str(staging.make_jaxpr(random.split)(random.key(0)))
    assert "a:key<fry>[]" in text and "b:key<fry>[2] = random_split[shape=(2,)] a" in text
    assert staging.eval_shape(random.key, 0).dtype == random.key_dtype()


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_xla_generators(impl):
    key = random.key(3, impl=impl)
    assert data(key).tolist() == [0, 3, 0, 3] and random.key_impl(key) == impl
    keys = random.split(key, 5)
    assert keys.shape == (5,) and len({tuple(row) for row in data(keys)}) == 5
    assert (data(random.fold_in(key, 1)) != data(random.fold_in(key, 2))).any()
    assert random.normal(key, (3,)).shape == (3,) and random.bits(key, (3,), "uint8").dtype == np.uint8
    with flags.default_prng_impl(impl):
        assert random.PRNGKey(0).shape == (4,)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda k: random.normal(random.split(k)), ValueError, "normal takes one key.*vmap"),
        (lambda k: random.normal(np.zeros((4, 2), np.uint32)), ValueError, r"normal takes one key, got shape"),
        (
            lambda k: random.normal(np.zeros(3, np.uint32)),
            TypeError,
            r"uint32 numbers of shape \(\.\.\., 2\), got uint32 of shape \(3,\)",
        ),
        (lambda k: random.normal(np.zeros(2, np.float32)), TypeError, "made of uint32 numbers .* got float32"),
        (lambda k: random.normal(0), TypeError, "a key is needed, made by (jax|bedrax).random.key, got 0"),
        (lambda k: random.normal(None), TypeError, "a key is needed, made by (jax|bedrax).random.key, got None"),
        (lambda k: random.key(1.5), TypeError, "a seed is an integer, got 1.5"),
        (lambda k: random.key(np.arange(3)), TypeError, "^key takes one seed"),
        (lambda k: random.PRNGKey(np.arange(3)), TypeError, "PRNGKey takes one seed"),
        (lambda k: random.key(2**64), OverflowError, "64 bits"),
        (lambda k: random.key(0, impl="foo"), ValueError, "no implementation of keys is named 'foo'"),
        (lambda k: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, "made of uint32 numbers"),
        (lambda k: random.fold_in(k, np.arange(2)), TypeError, "fold_in takes one integer"),
        (lambda k: random.fold_in(k, -1), OverflowError, "uint32"),
        (lambda k: random.split(k, -1), ValueError, "negative"),
        (lambda k: random.bits(k, (), np.int32), ValueError, "unsigned integer dtype"),
        (lambda k: random.uniform(k, (), int), ValueError, "dtype is a float dtype, got int"),
        (lambda k: random.uniform(k, (-1,)), ValueError, "negative"),
        (lambda k: random.randint(k, (), 0, 3, float), TypeError, "dtype is an integer dtype, got float"),
        (lambda k: random.randint(k, (3,), np.arange(2), 5), ValueError, "broadcast"),
        (lambda k: random.bernoulli(k, 2), TypeError, "p holds floats, got int"),
        (lambda k: random.bernoulli(k, 0.5, mode="foo"), ValueError, "mode is one of"),
        (lambda k: random.gumbel(k, mode="foo"), ValueError, "mode is .low. or .high., got .foo."),
        (lambda k: random.permutation(k, 5.0), TypeError, "permutation takes an int or an array with an axis, got"),
        (lambda k: random.permutation(k, np.zeros((2, 3)), axis=5), ValueError, "out of bounds"),
        (lambda k: random.choice(k, 5.0), TypeError, "choice takes an int or an array with an axis, got 5.0"),
        (lambda k: random.choice(k, np.array(True)), TypeError, "choice takes an int or an array with an axis, got"),
        (lambda k: random.choice(k, 2, (3,), False), ValueError, "3 samples without replacement"),
        (lambda k: random.choice(k, 0, (3,)), ValueError, "there is nothing to draw from"),
        (lambda k: random.choice(k, 3, (3,), p=np.ones(2, np.float32)), ValueError, "one probability per member"),
        (
            lambda k: random.categorical(k, np.zeros(3, np.float32), replace=False, shape=(4,)),
            ValueError,
            "4 samples without replacement",
        ),
        (lambda k: random.poisson(random.key(0, impl="rbg"), 1.0), NotImplementedError, "threefry2x32"),
        (
            lambda k: random.dirichlet(k, np.float32(1)),
            ValueError,
            "alpha has an axis at least, that of the categories",
        ),
        (lambda k: random.multivariate_normal(k, np.zeros(2), np.eye(3)), ValueError, "multivariate_normal"),
        (lambda k: random.gamma(k, np.ones(3, np.float32), (2,)), ValueError, "broadcast"),
    ],
)
def test_errors_say_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(random.key(0))


def test_a_first_program_may_use_only_keys():
    program = PROGRAMS / "keys_without_xla.py"
    subprocess.run([sys.executable, program], check=True)


@pytest.mark.parametrize(
    "name,key,block,answer",
    [  # the known answers of Random123
        ("threefry4x32", "0 0 0 0", "0 0 0 0", "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
        ("threefry4x32", "f f f f", "f f f f", "2a881696 57012287 f6c7446e a16a6732"),
        (
            "threefry4x32",
            "a4093822 299f31d0 082efa98 ec4e6c89",
            "243f6a88 85a308d3 13198a2e 03707344",
            "59cd1dbb b8879579 86b5d00c ac8b6d84",
        ),
        ("philox4x32", "0 0", "0 0 0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("philox4x32", "f f", "f f f f", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            "philox4x32",
            "a4093822 299f31d0",
            "243f6a88 85a308d3 13198a2e 03707344",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
        ("philox2x32", "0", "0 0", "ff1dae59 6cd10df2"),
        ("philox2x32", "f", "f f", "2c3f628b ab4fd7ad"),
        ("philox2x32", "13198a2e", "243f6a88 85a308d3", "dd7ce038 f62a4c12"),
    ],
)
def test_known_answers_of_block_ciphers(name, key, block, answer):
    words = lambda text: [np.uint32(0xFFFFFFFF if w == "f" else int(w, 16)) for w in text.split()]
    found = getattr(block_ciphers, name)(words(key), [np.array([w]) for w in words(block)])
    assert [int(x[0]) for x in found] == [int(w) for w in words(answer)]


@pytest.mark.parametrize(
    "name,seed,bits,split,folded",
    [  # as `jax` 0.10.2 draws them
        (
            "threefry4x32",
            [2624366954, 3783175782, 4228967636, 1381410776],
            [72491679, 3548597643, 4240196204],
            [2620041511, 3911596001, 3582370902, 1450177348],
            [2620041511, 3911596001, 3582370902, 1450177348],
        ),
        (
            "philox4x32",
            [1713891541, 3781805453],
            [2034863994, 2176725434, 2877061679],
            [3063428598, 4089948016],
            [3063428598, 4089948016],
        ),
        ("philox2x32", [4280135257], [1770281948, 2307865104, 2982962561], [2635960248], [2635960248]),
    ],
)
def test_block_ciphers_as_generators(name, seed, bits, split, folded):
    key = random.key(0, impl=name)
    data = lambda k: np.asarray(random.key_data(k)).tolist()
    assert data(key) == seed
    assert np.asarray(random.bits(key, (3,))).tolist() == bits
    assert np.asarray(random.bits(key, (3,), "uint16")).tolist() == [b & 0xFFFF for b in bits]
    assert data(random.split(key))[1] == split and data(random.fold_in(key, 1)) == folded
    keys = random.split(key, (2, 3))
    each = np.asarray(vmap(vmap(lambda k: random.uniform(k, (4,))))(keys))
    for i in range(2):
        for j in range(3):
            np.testing.assert_array_equal(each[i, j], random.uniform(keys[i, j], (4,)))
    draws = np.asarray(random.normal(key, (20000,)))
    assert abs(draws.mean()) < 0.03 and abs(draws.std() - 1) < 0.03


def test_keys_are_close_where_they_are_equal():
    a, b = random.split(random.key(0))
    assert jnp.allclose(a, a) and not jnp.allclose(a, b) and jnp.array_equiv(a, a)
    keys = random.split(a, 3)
    np.testing.assert_array_equal(jnp.isclose(keys, keys.at[1].set(b), rtol=1.0, atol=1.0), [True, False, True])


def test_keys_of_a_process_are_a_part_of_an_array():
    """`pmap` in a run of several processes makes one array of their keys. Their parts were checked as integers."""
    backend = pytest.importorskip("bedrax.xla_backend.clients")
    from bedrax.parallel import Mesh, PartitionSpec
    from bedrax.parallel.process_parts import own_parts, whole_arrays

    mesh, specs = Mesh(np.array(backend.devices()[:1]), ("i",)), [PartitionSpec("i")]
    executors.install(sys.modules["bedrax.xla_backend"].executor)  # the fixture of this folder installs NumPy's again
    keys = random.split(random.key(0), 3)
    whole = whole_arrays([keys], mesh, specs)
    assert whole[0].shape == (3,) and whole[0].dtype == keys.dtype
    np.testing.assert_array_equal(data(own_parts(whole, mesh, specs)[0]), data(keys))


@pytest.mark.parametrize("name", segments.__all__)
def test_segments_of_keys_are_refused(name):
    keys = random.split(random.key(0), 3)
    with pytest.raises(TypeError, match=f"{name}: data are numbers, got key"):
        getattr(segments, name)(keys, np.array([0, 1, 1]), 2)


@pytest.mark.parametrize("spec", ["f", "s", ">40", "d"])
def test_keys_have_no_formats(spec):
    key = random.key(0)
    assert f"{key}" == str(key)
    with pytest.raises(TypeError, match="keys have no numbers to format"):
        format(key, spec)
