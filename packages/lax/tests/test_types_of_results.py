"""The types of results are cached for primitives of the vocabulary only."""

import copy
import operator
import pickle

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import ShapedArray, aval_of, interned
from bedrax.core.tracing import Primitive

# A library's primitive of a family of ours. Its shape rule reads the type of a parameter.
typed_p = Primitive("typed", lax.sin_p.family)
DTYPES = {bool: "bool", int: "int32", float: "float32", tuple: "int8"}


@typed_p.abstract
def _of_the_parameter(x, *, n):
    kinds = [type(n)] if not isinstance(n, tuple) else [tuple, *map(type, n)]
    sign = int(isinstance(n, float) and np.signbit(n))
    return ShapedArray((len(kinds) + sign,), np.dtype(DTYPES[kinds[-1]]))


@pytest.mark.parametrize("values", [(1, True, 1.0), ((1,), (True,), (1.0,)), (0.0, -0.0)])
def test_equal_parameters_of_different_types_or_bits_have_separate_results(values):
    x = ShapedArray((), np.dtype("float32"))
    assert len({typed_p.result_types([x], {"n": n}) for n in values}) == len(values)
    programs = [staging.make_jaxpr(lambda x, n=n: typed_p.bind(x, n=n))(np.float32(1)) for n in values]
    assert len({program.out_avals[0] for program in programs}) == len(values)


def test_types_of_results_are_one_object():
    x = ShapedArray((3, 4), np.dtype("float32"))
    first, second = (lax.reduce_max_p.result_types([x], {"axes": (n,)}) for n in (0, 0))
    assert first is second
    one, other = (lax.sin_p.result_types([x], {}) for _ in range(2))
    assert one is other and one.token
    parts, again = (lax.split_p.result_types([x], {"sizes": (1, 2), "axis": 0}) for _ in range(2))
    assert all(map(operator.is_, parts, again)) and all(aval.token for aval in parts)


def test_arguments_of_programs_have_interned_types():
    kinds = [ShapedArray((3, 4), np.dtype("float32")) for _ in range(2)]
    programs = [staging.program_of(lambda x: [lax.sin_p.bind(x)], [kind]) for kind in kinds]
    (first,), (second,) = (program.in_avals for program in programs)
    assert first is second and first == kinds[0]
    assert aval_of(np.ones((3, 4), np.float32)) is first
    split = ShapedArray((3,), np.dtype("float32"), vma=frozenset("i"))
    assert interned(split) is split


def test_a_type_of_another_process_has_no_token_of_this_one():
    """Its number there may be that of another type here, which would get the types of its results."""
    known = interned(ShapedArray((3,), np.dtype(np.float32)))
    hash(known)
    for other in (pickle.loads(pickle.dumps(known)), copy.deepcopy(known)):
        assert other == known and hash(other) == hash(known)
        assert other.token is None and interned(other) is known
