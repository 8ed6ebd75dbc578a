"""The checks find wrong rules: each is run on a primitive with one mistake."""

from dataclasses import replace

import numpy as np
import pytest

from bedrax.core import executors
from bedrax.lax.primitives.elementwise import unary
from bedrax.numpy_backend.executor import NumpyExecutor
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.testing import checks
from bedrax.testing.records import OpCase, all_cases, arg


@pytest.fixture(autouse=True)
def on_numpy(monkeypatch):
    monkeypatch.setattr(executors, "active", NumpyExecutor())


def _wrong(name, evaluate):
    prim = unary(name, family="")
    numpy_rules.add(prim, evaluate)
    return prim


def test_a_wrong_dtype_is_found():
    prim = _wrong("wrong_dtype", lambda x: np.sin(x).astype(np.float64))
    with pytest.raises(AssertionError, match="the shape rule gives"):
        checks.check_evaluation(OpCase(prim, "f32", prim.bind, (arg((3,)),)))


def test_a_wrong_value_is_found():
    prim = _wrong("wrong_value", np.sin)
    case = OpCase(prim, "f32", prim.bind, (arg((3,)),), oracle=np.cos)
    with pytest.raises(AssertionError, match="wrong_value"):
        checks.check_evaluation(case)


def test_a_comparison_that_is_finer_than_rounding_is_found():
    """The eigenvalues of a singular matrix of norm 202: that near zero is rounding alone."""
    from bedrax.lax.primitives import contractions, linalg, shaping

    values = lambda x: linalg.eigh(contractions.dot(x, shaping.transpose(x, (1, 0))))[1]
    eigenvalues = OpCase(linalg.eigh_p, "singular", values, (np.arange(9, dtype=np.float32).reshape(3, 3),))
    checks.check_conditioned(replace(eigenvalues, rtol=2e-5, atol=2e-4))
    with pytest.raises(AssertionError, match="singular: ill-conditioned"):
        checks.check_conditioned(replace(eigenvalues, rtol=2e-5, atol=1e-6))


def test_a_record_of_another_primitive_is_found():
    prim, other = _wrong("bound", np.sin), _wrong("not_bound", np.sin)
    with pytest.raises(AssertionError, match="does not bind"):
        checks.check_evaluation(OpCase(other, "f32", prim.bind, (arg((3,)),)))


def test_wrong_batching_is_found():
    tables = pytest.importorskip("bedrax.batching.tables")
    prim = _wrong("wrong_batching", lambda x: np.cumsum(x, -1).astype(x.dtype) if x.ndim else x)
    tables.elementwise(prim)
    with pytest.raises(AssertionError):
        checks.check_batching(OpCase(prim, "f32", prim.bind, (arg((3,)),)))


def test_wrong_derivatives_are_found():
    tables = pytest.importorskip("bedrax.autodiff.tables")
    from bedrax import lax

    prim = _wrong("wrong_jvp", np.sin)
    tables.jvp(prim, lambda t, ans, x: lax.mul(t, lax.sin(x)))
    with pytest.raises(AssertionError, match="wrong_jvp"):
        checks.check_jvp(OpCase(prim, "f32", prim.bind, (arg((3,)),)))
    linear = _wrong("wrong_transpose", np.negative)
    tables.linear(linear, lambda ct, x: [ct])
    case = OpCase(linear, "f32", linear.bind, (arg((3,)),))
    checks.check_jvp(case)
    with pytest.raises(AssertionError, match="wrong_transpose"):
        checks.check_vjp(case)


def test_an_incomplete_column_is_found():
    from bedrax.core.columns import Column

    # The package `json` holds no family's file.
    with pytest.raises(AssertionError, match=r"elementwise\.sin"):
        checks.check_complete(Column("empty", "json"))


def test_operands_depend_on_the_name_only():
    case = all_cases()[0]
    for a, b in zip(case.make_args(), case.make_args(), strict=True):
        np.testing.assert_array_equal(a, b)
