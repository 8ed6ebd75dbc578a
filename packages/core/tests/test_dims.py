"""Dimensions: ints have a fast path, registered classes work, other values are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax.core import dims


class Monomial:
    """A minimal symbolic dimension: coefficient * n**power, of unknown n >= 1."""

    def __init__(self, coefficient, power=1):
        self.coefficient, self.power = coefficient, power

    def _of(self, other):
        return other if isinstance(other, Monomial) else Monomial(other, 0)

    def _ask(self, question, other):
        other = self._of(other)
        if self.power == other.power:
            return question(self.coefficient, other.coefficient)
        raise dims.InconclusiveDimensionOperation("depends on n")

    def __eq__(self, other):
        return self._ask(lambda a, b: a == b, other)

    def __ge__(self, other):
        return self._ask(lambda a, b: a >= b, other)

    def __hash__(self):
        return hash((self.coefficient, self.power))

    def __mul__(self, other):
        other = self._of(other)
        return Monomial(self.coefficient * other.coefficient, self.power + other.power)

    __rmul__ = __mul__

    def __divmod__(self, other):
        other = self._of(other)
        if self.coefficient % other.coefficient or self.power < other.power:
            raise dims.InconclusiveDimensionOperation("not whole")
        c, p = self.coefficient // other.coefficient, self.power - other.power
        return (Monomial(c, p) if p else c), 0

    def __sub__(self, other):
        if other == 0:
            return self
        raise dims.InconclusiveDimensionOperation("no sums here")

    def max(self, other):
        return ("max", self, other)

    def min(self, other):
        return ("min", self, other)

    def as_value(self):
        return "value of n"


@pytest.fixture
def n():
    before = dims._symbolic
    dims.register_symbolic(Monomial)
    yield Monomial(1)
    dims._symbolic = before


def test_constant_and_symbolic_dimensions(n):
    assert dims.is_constant_dim(3) and dims.is_constant_dim(np.int64(3)) and not dims.is_constant_dim(n)
    assert dims.is_constant_shape(()) and dims.is_constant_shape((2, 3)) and not dims.is_constant_shape((2, n))
    assert dims.is_symbolic(n) and not dims.is_symbolic(2)


def test_equality(n):
    assert dims.same_dim(2, 2) and not dims.same_dim(2, 3)
    assert dims.same_dim(n, Monomial(1)) and not dims.same_dim(n, Monomial(2))
    with pytest.raises(dims.InconclusiveDimensionOperation):
        dims.same_dim(n, 2)
    assert not dims.definitely_equal(n, 2)
    assert dims.same_shape((n, 2), (n, 2)) and not dims.same_shape((n, 2), (n,))
    assert not dims.definitely_equal_shape((n, 2), (2, 2))
    assert isinstance(dims.InconclusiveDimensionOperation(""), TypeError)


@given(st.lists(st.integers(0, 7), max_size=5))
def test_size_agrees_with_numpy(shape):
    assert dims.size(shape) == np.empty(shape).size


def test_size_of_symbolic_shapes(n):
    assert dims.size((2, n, 3)) == Monomial(6)


@given(st.lists(st.integers(1, 6), max_size=4), st.integers(1, 9), st.randoms())
def test_divide_shapes_finds_the_missing_dimension(shape, missing, random):
    whole = [*shape, missing]
    random.shuffle(whole)
    assert dims.divide_shapes(whole, shape) == missing


def test_divide_shapes_that_do_not_divide(n):
    with pytest.raises(dims.InconclusiveDimensionOperation, match=r"\(2, 3\).*\(4,\)"):
        dims.divide_shapes((2, 3), (4,))
    with pytest.raises(dims.InconclusiveDimensionOperation):
        dims.divide_shapes((2,), (0,))
    assert dims.divide_shapes((0, 3), (0,)) in (1, 3)
    assert dims.divide_shapes((n, 3, 4), (n, 2)) == 6
    assert dims.divide_shapes((n, 4), (2,)) == Monomial(2)
    with pytest.raises(dims.InconclusiveDimensionOperation):
        dims.divide_shapes((n, 3), (2,))


def test_cancel(n):
    assert dims.cancel((n, 2, 3, 3), (3, n)) == ([2, 3], [])
    assert dims.cancel((0, 2), (0, 3)) == ([0, 2], [0, 3])


def test_extremes(n):
    assert dims.max_dim(2, 3) == 3 and dims.min_dim(2, 3) == 2
    assert dims.non_negative(-3) == 0 and dims.non_negative(3) == 3
    assert dims.max_dim(n, 2) == ("max", n, 2) == dims.max_dim(2, n)
    assert dims.min_dim(2, n) == ("min", n, 2)
    assert dims.non_negative(n) == ("max", n, 0)
    assert dims.at_least(n, n) and not dims.at_least(2, 3)


@given(st.integers(0, 12), st.integers(1, 4))
def test_dilation_counts_positions(d, dilation):
    holes = np.arange(d) * dilation
    assert dims.dilate_dim(d, dilation) == (holes.max() + 1 if d else 0)


@given(st.integers(0, 12), st.integers(1, 6), st.integers(1, 4))
def test_stride_counts_windows(d, window, stride):
    starts = [i for i in range(0, d, stride) if i + window <= d]
    assert dims.stride_dim(d, window, stride) == len(starts)


def test_dim_as_value(n):
    assert dims.dim_as_value(3) == 3
    assert type(dims.dim_as_value(np.int32(3))) is int
    assert dims.dim_as_value(n) == "value of n"


@pytest.mark.parametrize(
    "shape, expected",
    [
        ((2, 3), (2, 3)),
        ([2, 3], (2, 3)),
        (3, (3,)),
        (np.int32(3), (3,)),
        ((np.int64(2), 3), (2, 3)),
        (np.array([2, 3]), (2, 3)),
        (np.array(4), (4,)),
        (range(3), (0, 1, 2)),
        ((True, 2), (1, 2)),
        ((), ()),
    ],
)
def test_canonical_shapes(shape, expected):
    result = dims.canonical_shape(shape)
    assert result == expected and type(result) is tuple
    assert all(type(d) is int for d in result)


def test_canonical_shapes_of_libraries_classes():
    class TensorShape:  # like that of TensorFlow Probability: no Sequence
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return (3, 4)[i]

    assert dims.canonical_shape(TensorShape()) == (3, 4)


def test_canonical_shapes_keep_symbols(n):
    assert dims.canonical_shape([n, np.int8(2)])[0] is n
    assert dims.canonical_shape(n) == (n,)
    assert dims.canonical_dim(n) is n


@pytest.mark.parametrize(
    "shape", [3.5, (1, 2.5), np.float32(3), "ab", (2, None), None, [2, [3]], np.ones((2, 2), int), {2, 3}, b"a"]
)
def test_values_that_are_no_shapes_are_refused(shape):
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type, got"):
        dims.canonical_shape(shape)


def test_traced_dimensions_get_advice():
    class Traced:
        aval = None
        origin = "While tracing f for jit."

        def __index__(self):
            raise TypeError

    with pytest.raises(TypeError, match=r"static_argnums(.|\n)*While tracing f"):
        dims.canonical_shape((2, Traced()))
    with pytest.raises(TypeError, match="in zeros"):
        dims.canonical_shape((2, 1.5), "in zeros")
