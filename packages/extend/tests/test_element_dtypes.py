"""Dtypes of libraries: arrays that are moved about, converted, and differentiated by rules of their own."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import custom_vjp, grad, jvp, vjp
from bedrax.batching import vmap
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.staging import make_jaxpr
from bedrax.extend import element_dtypes
from bedrax.extend.element_dtypes import EArray, ElementDType, from_edtype_p, primal_tangent_dtype, to_edtype_p
from bedrax.xla_backend import device_put, jit

PROGRAMS = Path(__file__).with_name("programs")

jnp = pytest.importorskip("bedrax.numpy")  # above this package

BF16 = ml_dtypes.bfloat16
I8 = primal_tangent_dtype(np.int8, BF16)
X = np.arange(6, dtype=np.int8).reshape(2, 3)


def coded(x=X):
    return lax.convert_element_type(x, I8)


def numbers(e):
    return np.asarray(lax.convert_element_type(e, np.int8))


def test_the_dtype():
    assert str(I8) == "PrimalTangentDType{i8/bf16}" and I8.itemsize == 1
    assert I8 == primal_tangent_dtype("int8", BF16) and hash(I8) == hash(primal_tangent_dtype("int8", BF16))
    named = primal_tangent_dtype(np.int8, BF16, name="q8")
    assert named != I8 and str(named) == "q8" and pickle.loads(pickle.dumps(named)) == named
    assert dtypes.issubdtype(I8, dtypes.extended) and not dtypes.issubdtype(I8, dtypes.prng_key)
    assert ShapedArray((3,), I8).to_tangent_aval() == ShapedArray((3,), np.dtype(BF16))


def test_attributes_and_copies_of_an_array():
    e = coded()
    assert isinstance(e, EArray) and isinstance(e, Array) and e.dtype == I8
    assert (e.shape, e.ndim, e.size, e.nbytes, len(e)) == ((2, 3), 2, 6, 6, 2)
    assert aval_of(e) == ShapedArray((2, 3), I8) and repr(e).startswith("EArray([[0 1 2]")
    assert e.devices() == e._data.devices() and e.is_fully_addressable and not e.is_deleted()
    for again in (
        copy.copy(e),
        pickle.loads(pickle.dumps(e)),
        device_put(e),
        e.block_until_ready(),
        e.addressable_data(0),
    ):
        assert isinstance(again, EArray) and again.dtype == I8
        np.testing.assert_array_equal(numbers(again), X)
    with pytest.raises(TypeError, match="convert it to int8 first"):
        np.asarray(e)
    with pytest.raises(TypeError, match="are converted from and to int8"):
        lax.convert_element_type(e, np.float32)
    with pytest.raises(TypeError, match="add does not accept"):
        e + e
    with pytest.raises(TypeError, match="to_edtype: elements of"):
        to_edtype_p.bind(np.ones(3, np.float32), edtype=I8)


MOVES = {
    "index": lambda x: x[1], "slice": lambda x: x[:, 1:], "reverse": lambda x: x[::-1], "reshape": lambda x: x.reshape(3, 2),
    "transpose": lambda x: x.T, "gather": lambda x: x[np.array([1, 0, 1])], "stack": lambda x: jnp.stack([x, x]),
    "broadcast": lambda x: jnp.broadcast_to(x, (2, 2, 3)), "where": lambda x: jnp.where(X > 2, x, x[::-1]),
    "scan": lambda x: lax.scan(lambda c, e: (e, c), x[0], x)[1], "update": lambda x: x.at[0].set(x[1]),
}  # fmt: skip


@pytest.mark.parametrize(
    "how", [lambda f: f, jit, lambda f: lambda x: vmap(f)(x[None])[0]], ids=["eager", "jit", "vmap"]
)
@pytest.mark.parametrize("name", MOVES)
def test_elements_are_moved_about(name, how):
    f = MOVES[name]
    np.testing.assert_array_equal(numbers(how(f)(coded())), f(jnp.asarray(X)))


def test_conversions_are_operations():
    (there, back) = make_jaxpr(lambda x: lax.convert_element_type(lax.convert_element_type(x, I8), np.int8))(X).eqns
    assert (there.primitive, back.primitive) == (to_edtype_p, from_edtype_p)
    np.testing.assert_array_equal(vmap(lambda e: lax.convert_element_type(e, np.int8), 1, 1)(coded()), X)


def test_tangents_have_the_other_dtype():
    t = np.arange(6).reshape(2, 3).astype(BF16)
    (pulled,) = vjp(lambda e: e[::-1].T, coded())[1](t.T)
    assert pulled.dtype == BF16
    np.testing.assert_array_equal(pulled, t[::-1])
    out, moved = jvp(lambda e: e[0], (coded(),), (t,))
    assert out.dtype == I8 and moved.dtype == BF16
    np.testing.assert_array_equal(moved, t[0])
    back, none = jvp(lambda e: lax.convert_element_type(e, np.int8), (coded(),), (t,))
    assert none.dtype == dtypes.float0 and back.dtype == np.int8


def test_a_rule_gives_the_tangents():
    @custom_vjp
    def scaled(e):
        return lax.convert_element_type(e, np.int8).astype(BF16) * 2

    scaled.defvjp(lambda e: (scaled(e), None), lambda _, ct: (ct * 2,))
    f = lambda e: jnp.sum(scaled(e[:1])) + jnp.sum(scaled(e))
    expected = np.full((2, 3), 2) + np.array([[2], [0]])
    for how in (lambda f: f, jit):
        np.testing.assert_array_equal(how(lambda e: vjp(f, e)[1](np.ones((), BF16))[0])(coded()), expected)


class LargestRules:
    """Cotangents add up to the largest of them."""

    allow_conversion = True
    physical_element_aval = staticmethod(lambda dt: ShapedArray((), dt.number))
    tangent_dtype = staticmethod(lambda dt: dt)
    zero = staticmethod(lambda dt: lax.convert_element_type(np.array(-np.inf, np.float32), dt))

    @staticmethod
    def add(dt, x, y):
        return lax.convert_element_type(lax.max(*(lax.convert_element_type(v, dt.number) for v in (x, y))), dt)


@dataclasses.dataclass(frozen=True)
class Largest(ElementDType):
    number: Any = np.float32
    name = "largest"
    _rules = LargestRules


def twice(s):
    s = lax.convert_element_type(s, Largest())
    return lax.convert_element_type(s, np.float32) * 3 + lax.convert_element_type(s, np.float32) * 7


def in_a_loop(s):
    s = lax.convert_element_type(s, Largest())
    xs = np.array([1, 5, -2, 3], np.float32)
    return lax.scan(lambda c, x: (c + lax.convert_element_type(s, np.float32) * x, None), np.float32(0), xs)[0]


@pytest.mark.parametrize(("f", "expected"), [(twice, 7), (in_a_loop, 5)])
def test_cotangents_add_up_by_the_rules(f, expected):
    for how in (lambda g: g, jit):
        assert float(how(grad(f))(np.float32(2))) == expected
    np.testing.assert_array_equal(vmap(grad(f))(np.ones(3, np.float32)), [expected] * 3)


def test_zeros_are_those_of_the_rules():
    assert float(lax.convert_element_type(jnp.zeros((), Largest()), np.float32)) == -np.inf
    np.testing.assert_array_equal(numbers(jnp.zeros((2,), I8)), [0, 0])


def test_infinities():
    known = {np.float32: True, ml_dtypes.float8_e5m2: True, ml_dtypes.float8_e4m3fn: False}
    assert {t: element_dtypes.supports_inf(t) for t in known} == known


SPLIT = PROGRAMS / "split_element_dtypes.py"


def test_arrays_that_are_split():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, SPLIT], env=environment, check=True)
