"""Names for single libraries: scalars with their own types, positions and names of parameters."""

import inspect
import pickle

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import custom_jvp, jvp
from bedrax.core import ir, staging, tracing
from bedrax.core.avals import aval_of
from bedrax.extend import attributes, linear_util
from bedrax.extend.api_util import infer_argnums_and_argnames
from bedrax.extend.jaxprs import Trace
from bedrax.extend.literals import TypedComplex, TypedFloat, TypedInt, TypedNdArray
from bedrax.lax import operators


@pytest.mark.parametrize(
    "kind, value, dtype", [(TypedInt, 3, "int8"), (TypedFloat, 0.5, "float16"), (TypedComplex, 1j, "complex64")]
)
def test_scalars_carry_their_dtype(kind, value, dtype):
    x = kind(value, dtype)
    assert x == value and isinstance(x, type(value))
    assert (aval_of(x).dtype, aval_of(x).weak_type, aval_of(x).shape) == (np.dtype(dtype), True, ())
    assert operators.add(x, x) == 2 * value
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is kind and again == x and again.dtype == x.dtype
    assert dtype in repr(x)


def test_arrays_may_be_weakly_typed():
    x = TypedNdArray(np.ones(3, np.float32), True)
    assert aval_of(x).weak_type and operators.multiply(x, np.float16(2)).dtype == np.float16
    assert not aval_of(TypedNdArray(np.ones(3))).weak_type
    assert pickle.loads(pickle.dumps(x)).weak_type


def test_positions_and_names():
    signature = inspect.signature(lambda a, b, *, c=1: None)
    for given, expected in {
        (None, None): ((), ()),
        (0, None): ((0,), ("a",)),
        (None, ("b", "c")): ((1,), ("b", "c")),
        ((1,), ("c",)): ((1,), ("c",)),
        (None, "other"): ((), ("other",)),
    }.items():
        assert infer_argnums_and_argnames(signature, *given) == expected


class Doubling(Trace):
    __slots__ = ()

    def process_primitive(self, prim, args, params):
        with tracing.set_trace(self.parent):
            out = prim.bind(*args, **params)
            return prim.bind(out, out)


def test_traces_of_libraries_define_process_primitive():
    x, y = np.int32(2), np.int32(3)
    assert isinstance(tracing.eval_trace, Trace) and not isinstance(tracing.eval_trace, Doubling)
    with tracing.entered(Doubling(tracing.current.trace)) as trace:
        assert int(lax.add(x, y)) == 10 and trace.full_raise(x) is x
    seen = []

    class Seeing(Trace):
        def process_primitive(self, prim, args, params):
            seen.append(dict(**params))
            with tracing.set_trace(self.parent):
                return prim.bind(*args, **params)

    with tracing.entered(Seeing(tracing.current.trace)):
        carry, _ = lax.scan(lambda c, x: (c + x, c), np.float32(1), np.ones(3, np.float32))
    assert float(carry) == 4 and [len(group) for group in seen[-1]["ft_in"].unpack()] == [0, 1, 1]
    with (
        tracing.entered(Trace(tracing.current.trace)),
        pytest.raises(NotImplementedError, match="does not define process_primitive"),
    ):
        lax.add(x, y)


class Tagging(Trace):
    """A trace that records primitives and binds functions with rules as wrapped functions, like Quax."""

    __slots__ = ("seen",)

    def process_primitive(self, prim, args, params):
        self.seen.append(prim.name)
        with tracing.set_trace(self.parent):
            return prim.bind(*args, **params)

    def process_custom_jvp_call(self, prim, fun, jvp, args, *, symbolic_zeros):
        self.seen.append(("jvp", symbolic_zeros))
        again = lambda f: linear_util.wrap_init(lambda *xs: [lax.mul(x, np.float32(10)) for x in f.call_wrapped(*xs)])
        params = {"subfuns": (again(fun), again(jvp)), "symbolic_zeros": symbolic_zeros}
        return prim.bind_with_trace(self.parent, args, tuple(map(aval_of, args)), params)


@pytest.mark.parametrize("staged", [False, True])
def test_traces_of_libraries_get_the_functions_of_a_custom_jvp_call(staged):
    attributes.install()
    f = custom_jvp(lambda x: lax.mul(x, x))
    f.defjvp(
        lambda primals, tangents: (lax.mul(*primals, *primals), lax.mul(np.float32(3), *tangents)), symbolic_zeros=True
    )
    program = staging.make_jaxpr(f)(np.float32(2))
    call = (lambda x: ir.run(program, x)[0]) if staged else f

    def tagged(x):
        trace = Tagging(tracing.current.trace)
        trace.seen = []
        with tracing.entered(trace):
            out = call(x)
        assert trace.seen[-1] == ("jvp", True)
        return out

    assert float(tagged(np.float32(2))) == 40
    assert [float(x) for x in jvp(tagged, (np.float32(2),), (np.float32(1),))] == [40, 30]


def test_tracers_of_libraries_are_made_of_a_trace_and_a_type():
    class Named(tracing.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, aval_of(value))

    trace = Doubling(tracing.current.trace)
    x = Named(trace, np.ones(3, np.float32))
    assert x._trace is trace and x.shape == (3,) and x.aval == aval_of(np.ones(3, np.float32))
