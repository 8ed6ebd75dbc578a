"""Traced values that are not arrays have the attributes and operators of their types."""

import pytest

from bedrax.core import array
from bedrax.core.avals import AbstractValue, ShapedArray
from bedrax.core.dtypes import canonicalize_dtype
from bedrax.core.staging import StagedTracer, make_jaxpr
from bedrax.core.tracing import Primitive, Tracer
from bedrax.core.typed_values import typed


class Called:
    """As `bedrax.state.hi_types.aval_method`."""

    def __init__(self, fun):
        self.fun = fun

    def of_value(self, value):
        return lambda *args: self.fun(value, *args)


class Pair(AbstractValue):
    plain = 7
    sum = Called(lambda pair, by: ("sum", by, isinstance(pair, Tracer)))
    T = "not a transpose"
    _add = lambda self, pair, other: ("add", other, isinstance(pair, Tracer))
    _radd = lambda self, pair, other: ("radd", other)
    _getitem = lambda self, pair, index: ("getitem", index)
    _setitem = lambda self, pair, index, value: self.written.append((index, value))
    _len = lambda self, pair: 2
    _iter = lambda self, pair: iter("ab")
    _neg = lambda self, pair: "neg"
    _eq = lambda self, pair, other: ("eq", other)
    _bool = lambda self, pair: False
    _int = lambda self, pair: 5
    written: list = []

    def __getattr__(self, name):
        if name != "dynamic":
            raise AttributeError(name)
        return "of the type"


pair_p = Primitive("make_pair")
pair_p.abstract(lambda x: Pair())


def in_a_trace(check):
    def f(x):
        check(pair_p.bind(x))
        return x

    make_jaxpr(f)(1.0)


def test_attributes_are_those_of_the_type():
    def check(pair):
        assert (pair.plain, pair.T, pair.dynamic) == (7, "not a transpose", "of the type")
        assert pair.sum(3) == ("sum", 3, True)
        assert not isinstance(pair, array.Array) and isinstance(pair, StagedTracer)
        for name in ("shape", "dtype", "ndim", "weak_type", "at", "reshape", "item", "nothing", "_nothing"):
            assert not hasattr(pair, name)
        with pytest.raises(AttributeError, match=r"type Pair\(\) in a traced function has no attribute 'shape'"):
            pair.shape

    in_a_trace(check)


def test_operators_are_methods_of_the_type():
    def check(pair):
        assert pair + 1 == ("add", 1, True) and 2 + pair == ("radd", 2)
        assert pair[3] == ("getitem", 3) and len(pair) == 2 and list(pair) == ["a", "b"] and -pair == "neg"
        assert (pair == 4) == ("eq", 4) and not pair and int(pair) == 5
        pair[1] = 6
        assert Pair.written == [(1, 6)]
        for missing in (lambda: pair - 1, lambda: abs(pair), lambda: pair < 1, lambda: 1 in pair):
            with pytest.raises(AttributeError, match="in a traced function has no operator __"):
                missing()
        with pytest.raises(Exception, match="concrete value"):  # the error of any traced value
            float(pair)

    in_a_trace(check)


def test_an_error_inside_of_an_attribute_is_raised_once():
    calls = []

    def fails(pair):
        calls.append(pair)
        raise AttributeError("inside")

    class Failing:
        of_value = staticmethod(fails)

    class Odd(AbstractValue):
        size = Failing()

    odd_p = Primitive("make_odd")
    odd_p.abstract(lambda x: Odd())

    def f(x):
        with pytest.raises(AttributeError, match="inside"):
            odd_p.bind(x).size
        return x

    make_jaxpr(f)(1.0)
    assert len(calls) == 1


def test_a_tracer_that_is_not_yet_filled_has_no_attributes():
    class Bare(Tracer):
        __slots__ = ("aval",)

    for kind in (Bare, typed(Bare)):
        blank = kind.__new__(kind)
        for name in ("aval", "_trace"):
            with pytest.raises(AttributeError):
                getattr(blank, name)


def test_tracers_of_arrays_are_as_before():
    def f(x):
        assert type(x) is StagedTracer and isinstance(x, array.Array)
        assert x.shape == () and x.aval == ShapedArray((), canonicalize_dtype(float), weak_type=True)
        return x

    make_jaxpr(f)(1.0)
