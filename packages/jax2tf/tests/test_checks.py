"""Graphs refuse sizes that their symbolic dimensions exclude: saved or not, compiled or not, with or without XLA's operations."""

import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import pytest
import tensorflow as tf

import bedrax.numpy as jnp
from bedrax.jax2tf import DisabledSafetyCheck, convert

CASES = {
    "equal": (["b, b"], (), (4, 4), (4, 5), ["args[0].shape[1] (= 5)", "'b' (= 4)", "multiple values"]),
    "multiple": (["2*b"], (), (4,), (3,), ["Division had remainder 1 when computing the value of 'b'", "(2*b,)"]),
    "positive": (
        ["b"],
        (),
        (1,),
        (0,),
        ["Dimension variable b must have integer value >= 1. Found value 0 when solving b == 0"],
    ),
    "twice": (["a, 2*a"], (), (2, 4), (2, 5), ["args[0].shape[1] (= 5)", "'2*a' (= 4)"]),
    "next": (["a, a+1"], (), (2, 3), (2, 2), ["args[0].shape[1] (= 2)", "(= 3)"]),
    "constraint": (["a, b"], ["a >= b"], (5, 2), (2, 5), ["symbolic shape constraint a >= b", "found -3"]),
    "known": (["b, 3"], (), (2, 3), (2, 4), ["Expected the constant 3 for dimension args[0].shape[1]"]),
}


def summed(x):
    return jnp.sum(x, axis=0)


def assert_stated(words, error):
    """The error has the words. A plain graph prints sizes in brackets, and is compiled with the message as a name."""
    letters = lambda text: re.sub(r"[\W\d_]", "", text)
    for word in words:
        assert letters(word) in letters(str(error))


def graph_of(case, compiled=False, **options):
    specs, constraints, good, *_ = CASES[case]
    f = convert(summed, polymorphic_shapes=specs, polymorphic_constraints=constraints, **options)
    spec = tf.TensorSpec([None, 3] if case == "known" else [None] * len(good), tf.float32)
    return tf.function(f, autograph=False, jit_compile=compiled, input_signature=[spec])


@pytest.mark.parametrize("case", [c for c in CASES if c != "known"])
@pytest.mark.parametrize("how", ["graph", "compiled", "no xla", "no xla compiled", "native", "native compiled"])
def test_sizes_that_do_not_fit_are_refused(case, how):
    _, _, good, bad, words = CASES[case]
    f = graph_of(case, "compiled" in how, enable_xla="no xla" not in how, native_serialization="native" in how)
    np.testing.assert_array_equal(f(tf.ones(good)), np.ones(good).sum(0))
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        f(tf.ones(bad))
    assert_stated(words, error.value)


@pytest.mark.parametrize("case", CASES)
def test_refused_eagerly(case):
    specs, constraints, good, bad, words = CASES[case]
    f = convert(summed, polymorphic_shapes=specs, polymorphic_constraints=constraints)
    np.testing.assert_array_equal(f(np.ones(good, np.float32)), np.ones(good).sum(0))
    with pytest.raises(ValueError) as error:
        f(np.ones(bad, np.float32))
    if case != "known":
        assert words[0] in str(error.value)


@pytest.mark.parametrize("with_gradient", [False, True])
def test_refused_when_saved(tmp_path, with_gradient):
    module = tf.Module()
    for case in CASES:
        setattr(module, case, graph_of(case, with_gradient=with_gradient))
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    for case, (_, _, good, bad, words) in CASES.items():
        if case == "known":
            continue
        for f in (getattr(loaded, case), tf.function(getattr(loaded, case), autograph=False, jit_compile=True)):
            np.testing.assert_array_equal(f(tf.ones(good)), np.ones(good).sum(0))
            with pytest.raises(tf.errors.InvalidArgumentError) as error:
                f(tf.ones(bad))
            assert_stated(words, error.value)


@pytest.mark.parametrize("enable_xla", [True, False])
def test_the_whole_library_is_plain(enable_xla):
    for case in CASES:
        definition = graph_of(case, enable_xla=enable_xla).get_concrete_function().graph.as_graph_def()
        types = {node.op for f in definition.library.function for node in f.node_def}
        assert "Assert" in types and "XlaCallModule" not in types


@pytest.mark.parametrize("options", [{}, {"enable_xla": False}, {"native_serialization": True}])
def test_switched_off(options):
    f = graph_of("equal", native_serialization_disabled_checks=[DisabledSafetyCheck.shape_assertions()], **options)
    assert f(tf.ones((4, 5))).shape[0] in (4, 5)
    types = {op.type for op in f.get_concrete_function().graph.get_operations()}
    assert not types & {"Case", "StatelessCase", "If", "StatelessIf"}


def test_known_sizes_need_no_check():
    f = tf.function(convert(summed, polymorphic_shapes=["b, _"]), autograph=False)
    types = {op.type for op in f.get_concrete_function(tf.TensorSpec([4, 3], tf.float32)).graph.get_operations()}
    assert not types & {"Case", "StatelessCase", "If", "StatelessIf"}
    with pytest.raises(ValueError, match="multiple values"):
        tf.function(convert(summed, polymorphic_shapes=["b, b"]))(tf.ones([2, 3]))


def test_derivatives_do_not_check_again():
    f = convert(lambda x: jnp.sum(x * x), polymorphic_shapes=["b"])

    @tf.function(autograph=False)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    operations = both.get_concrete_function(tf.TensorSpec([None], tf.float32)).graph.get_operations()
    assert [op.type for op in operations if op.type in ("If", "StatelessIf")] in (["If"], ["StatelessIf"])
    np.testing.assert_array_equal(both(tf.ones(3)), 2 * np.ones(3))


def test_the_error_of_an_unknown_size_names_the_argument_and_a_specification():
    model = convert(lambda params, x: x @ params["w"], native_serialization=False)
    graph = tf.function(lambda x: model({"b": tf.ones(2), "w": tf.ones([4, 2])}, x), autograph=False)
    with pytest.raises(ValueError, match=r"polymorphic shape of args\[1\] \(of shape \(None, 4\)\).*as in '\(d0, _\)'"):
        graph.get_concrete_function(tf.TensorSpec([None, 4]))
