"""Every record as TensorFlow operations: equal to the NumPy rules, eagerly, in a graph, and without XLA operations."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import tensorflow as tf

from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.jax2tf import graph
from bedrax.jax2tf.tables import tf_rules
from bedrax.testing import checks
from bedrax.testing.records import all_cases, case_params
from bedrax.tf import types

# Records that TensorFlow cannot express: the exception, and a piece of its message.
GAPS = {
    "contractions-scaled_dot-float8": (TypeError, "TensorFlow has no dtype for f8_e8m0fnu"),
    "sorting-sort-int4 front": (NotImplementedError, "two bits"),
}
# Records of the sign of a zero that is the larger of two, which TensorFlow's `Maximum` leaves open.
OPEN = ("elementwise-max-zeros", "elementwise-min-zeros")
# Families that do not run as TensorFlow operations at all, with the reasons in their files.
ABSENT = ("collectives",)

CASES = [c for c in all_cases() if c.primitive.family not in ABSENT and c.id not in OPEN]


def _in_graph(f, tensors):
    concrete = tf.function(f, autograph=False).get_concrete_function(*tensors)
    functions = concrete.graph.as_graph_def().library.function
    operations = {op.type for op in concrete.graph.get_operations()}
    operations |= {node.op for function in functions for node in function.node_def}
    assert not [t for t in operations if t.startswith("Xla")], "an operation that other runtimes lack"
    return concrete(*tensors)


def _check(case):
    args = case.make_args()
    jaxpr = staging.program_of(lambda *xs: checks.as_list(case.fun(*xs)), [aval_of(a) for a in args])
    expected = checks.numpy_results(case, args)
    tensors = [types.constant(a) for a in args]

    def converted(enable_xla):
        return lambda *xs: graph.run_program(graph.Context(enable_xla, {}), jaxpr, xs)

    for how, actual in (
        ("eager", converted(True)(*tensors)),
        ("graph without XLA operations", _in_graph(converted(False), tensors)),
    ):
        for out, want, aval in zip(actual, expected, jaxpr.out_avals, strict=True):
            assert out.dtype == types.tf_dtype(aval.dtype), f"{case.id}: {out.dtype}, expected {aval.dtype}"
            checks.assert_same(out.numpy(), want, case.rtol, case.atol, case.equal_nan, what=f"{case.id}, {how}")


@pytest.mark.parametrize("case", case_params(CASES))
def test_equals_numpy(case):
    with checks.x64_if_needed(case):
        if case.id in GAPS:
            kind, message = GAPS[case.id]
            with pytest.raises(kind, match=message):
                _check(case)
        else:
            _check(case)


def test_gaps_are_records():
    assert GAPS.keys() <= {c.id for c in CASES}


def test_column_is_complete():
    checks.check_complete(tf_rules)
