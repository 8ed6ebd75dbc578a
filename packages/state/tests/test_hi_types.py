"""Types of a library: a box with a mutable value, and a pair that is not mutable."""

from dataclasses import dataclass

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import grad
from bedrax.core import avals
from bedrax.core.avals import ShapedArray, typeof
from bedrax.core.jitting import jit
from bedrax.core.staging import eval_shape, make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.state import hi_types

f32 = np.float32


@dataclass(frozen=True)
class BoxData:
    leaf_avals: tuple


class BoxType(hi_types.MutableHiType):
    def __eq__(self, other):
        return isinstance(other, BoxType)

    def __hash__(self):
        return hash(BoxType)

    def read_loval(self, data, box):
        return list(get_p.bind(box))

    def update_from_loval(self, data, box, *values):
        set_p.bind(box, *values)


class Box:
    __slots__ = ("parts",)  # no room for anything of ours

    def __init__(self, *parts):
        self.parts = parts

    def cur_qdd(self):
        return BoxData(tuple(typeof(x) for x in self.parts))

    get = lambda self: get_p.bind(self)
    set = lambda self, *parts: set_p.bind(self, *parts)


class New(hi_types.HiPrimitive):
    def to_lojax(self, *parts):
        return Box(*parts)


class Get(hi_types.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box):
        return list(box.parts)


class Set(hi_types.HiPrimitive):
    multiple_results = True

    def to_lojax(self, box, *parts):
        box.parts = parts
        return []


new_p, get_p, set_p = New("new_box"), Get("get_box"), Set("set_box")
hi_types.register_hitype(Box, lambda box: BoxType())


def test_a_value_is_written_to_in_any_function():
    box = new_p.bind(jnp.float32(1), jnp.arange(2))
    assert typeof(box) == BoxType() and typeof(box).has_qdd
    assert [a.short() for a in hi_types.cur_qdd(box).leaf_avals] == ["f32[]", "i32[2]"]
    traces = []

    @jit
    def add(box, x):
        traces.append(x)
        a, b = box.get()
        box.set(a + x, b + 1)
        return a

    assert add(box, 2.0) == 1 and add(box, 3.0) == 3
    assert len(traces) == 1
    np.testing.assert_array_equal(box.get()[0], 6)
    np.testing.assert_array_equal(box.get()[1], [2, 3])
    other = new_p.bind(jnp.float32(10), jnp.arange(2))
    assert add(other, 1.0) == 10 and other.get()[0] == 11 and box.get()[0] == 6 and len(traces) == 2

    @jit
    def closed(x):
        lax.fori_loop(0, 3, lambda i, _: (box.set(box.get()[0] * x, box.get()[1]), None)[1], None)

    closed(2.0)
    assert box.get()[0] == 48
    assert "a[...] <- " in str(make_jaxpr(lambda b: b.set(b.get()[0] * 2, b.get()[1]))(box))


def test_the_type_of_a_result_is_found_without_a_write():
    box = new_p.bind(jnp.float32(3), jnp.arange(2))

    def f(box, x):
        box.set(box.get()[0] * x, box.get()[1])
        return box.get()

    scaled, counts = eval_shape(f, box, avals.ShapeDtypeStruct((), f32))
    assert (scaled.shape, scaled.dtype, counts.shape, counts.dtype) == ((), f32, (2,), np.int32)
    assert box.get()[0] == 3
    described = new_p.bind(scaled, counts)
    assert described.get() == [scaled, counts] and eval_shape(lambda x: x, described.get()) == [scaled, counts]
    assert eval_shape(f, new_p.bind(jnp.arange(4), jnp.ones(5)), 2)[0].shape == (4,)


def test_a_value_made_inside_is_differentiated():
    def f(x):
        box = new_p.bind(x)
        for _ in range(2):
            (value,) = box.get()
            box.set(lax.sin(value) * x)
        return box.get()[0]

    expected = lambda x: np.sin(np.sin(x) * x) * x
    np.testing.assert_allclose(jit(f)(0.7), expected(0.7), rtol=1e-6)
    numeric = (expected(0.7 + 1e-5) - expected(0.7 - 1e-5)) / 2e-5
    np.testing.assert_allclose([grad(f)(0.7), grad(jit(f))(0.7)], numeric, rtol=1e-4)


def test_the_type_of_a_state_changes_where_the_value_was_made():
    box = new_p.bind(jnp.float32(1))
    box.set(jnp.arange(3), jnp.ones(()))
    assert [a.short() for a in hi_types.cur_qdd(box).leaf_avals] == ["i32[3]", "f32[]"]
    with pytest.raises(ValueError, match="another structure"):
        lax.fori_loop(0, 2, lambda i, _: (box.set(jnp.float32(i)), None)[1], None)
    np.testing.assert_array_equal(box.get()[0], [0, 1, 2])

    @jit
    def closed(x):
        box.set(*[x + part for part in box.get()], x)

    for count in (3, 4, 5):  # the function is traced again for each state
        closed(jnp.float32(1))
        assert len(box.get()) == count
    np.testing.assert_array_equal(box.get()[0], [3, 4, 5])
    empty = new_p.bind()
    given = jit(lambda box, x: box.set(x, *box.get()))
    jit(lambda x: (given(empty, x), given(empty, x + 1)))(1.0)
    assert [float(x) for x in empty.get()] == [2, 1]


class Advance(hi_types.HiPrimitive):
    """Computes with the contents of a box, directly and by other operations."""

    def to_lojax(self, box, by):
        first, *rest = box.parts
        box.parts = ("changed", *rest)
        box.parts = (first + by, *rest)
        first, *rest = box.get()
        box.set(2 * first, *rest)
        return box.parts[0]


def test_operations_compute_with_the_contents_of_a_value():
    advance = Advance("advance").bind
    box = new_p.bind(jnp.float32(1), jnp.arange(2))
    assert advance(box, 2.0) == 6
    step = jit(advance)
    assert step(box, 1.0) == 14 and step(box, 0.0) == 28 and box.get()[0] == 28
    np.testing.assert_array_equal(box.get()[1], [0, 1])
    assert grad(lambda x: advance(new_p.bind(x), x))(jnp.float32(3)) == 4
    with pytest.raises(TypeError):
        advance(box, None)
    assert box.get()[0] == 28 and step(box, 0.0) == 56  # as if there had been no operation


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


class PairType(hi_types.HiType):
    __eq__ = lambda self, other: isinstance(other, PairType)
    __hash__ = lambda self: hash(PairType)


class Total(hi_types.HiPrimitive):
    def to_lojax(self, pair, x):
        return pair.a * x + pair.b


def test_a_value_that_is_not_mutable_is_held():
    hi_types.register_hitype(Pair, lambda pair: PairType())
    pair = Pair(jnp.float32(2), jnp.float32(3))
    total = jit(Total("total").bind)
    assert typeof(pair) == PairType() and total(pair, 5.0) == 13 and total(Pair(1.0, 1.0), 5.0) == 6
    box = new_p.bind(jnp.float32(1), pair)
    box.set(jnp.float32(2), other := Pair(4.0, 5.0))  # what is kept in no reference is written to as well
    assert box.get()[0] == 2 and box.get()[1] is other


pack_p, unpack_p = Primitive("pack_for_attributes"), Primitive("unpack_for_attributes")


class PackedType(hi_types.AbstractValue):
    is_packed = True
    scaled = hi_types.aval_method(lambda packed, by, plus=0.0: unpack_p.bind(packed) * by + plus)
    shape_inside = hi_types.aval_property(lambda packed: unpack_p.bind(packed).shape)


pack_p.def_abstract_eval(lambda x: PackedType())
unpack_p.def_abstract_eval(lambda packed: ShapedArray((2,), np.dtype(np.float32)))


def test_values_in_programs_have_the_attributes_that_their_type_declares():
    seen = []

    def f(x):
        packed = pack_p.bind(x)
        seen.append((packed.shape_inside, packed.is_packed))
        for missing in ("nothing", "shape", "sum", "T", "_private"):  # arrays have some of them
            with pytest.raises(AttributeError, match=f"no attribute '{missing}'"):
                getattr(packed, missing)
        return packed.scaled(3.0, plus=1.0)

    jaxpr = make_jaxpr(f)(jnp.ones(2))
    assert seen == [((2,), True)]
    assert [eqn.primitive.name for eqn in jaxpr.eqns][-3:] == [unpack_p.name, "mul", "add"]


def test_attributes_of_types_are_attributes_of_values():
    assert hi_types.aval_method(sorted).of_value([2, 1])(reverse=True) == [2, 1]
    assert hi_types.aval_property(len).of_value([2, 1]) == 2
