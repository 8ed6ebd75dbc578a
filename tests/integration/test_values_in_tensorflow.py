"""Functions that close over values of libraries' types, converted to TensorFlow."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import numpy as np
import pytest
from jax.experimental import hijax

tf = pytest.importorskip("tensorflow", reason="comes with the extra `tf`")
jax2tf = pytest.importorskip("jax.experimental.jax2tf")

F32 = np.float32


@pytest.mark.parametrize("native", [False, True])
def test_a_value_of_a_library_is_closed_over(native, tmp_path):
    class Shift:
        def __init__(self, by):
            self.by = by

    class ShiftType(hijax.HiType):
        __eq__ = lambda self, other: isinstance(other, ShiftType)
        __hash__ = lambda self: 0
        lo_ty = lambda self: [hijax.ShapedArray((2,), np.dtype(F32))]
        lower_val = lambda self, shift: [shift.by]
        raise_val = lambda self, by: Shift(by)

    hijax.register_hitype(Shift, lambda shift: ShiftType())

    class Read(hijax.HiPrim):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (ShiftType(),), hijax.ShapedArray((2,), np.dtype(F32)), {}
            super().__init__()

        expand = lambda self, shift: shift.by

    shift = Shift(np.array([1, 2], F32))
    f = jax.jit(lambda x: (x * Read()(shift)).sum())
    module = tf.Module()
    converted = jax2tf.convert(f, native_serialization=native)
    module.f = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec((2,), tf.float32)])
    tf.saved_model.save(module, str(tmp_path))
    x = np.array([3, 5], F32)
    assert tf.saved_model.load(str(tmp_path)).f(x) == 13
    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        out = converted(variable)
    np.testing.assert_array_equal(tape.gradient(out, variable), shift.by)
    with pytest.raises(TypeError, match="returns a value of type ShiftType"):
        jax2tf.convert(lambda x: shift)(x)
