"""The measurements of a model: agreement after both conversions, size, and the result of TFLite."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import subprocess
import tempfile
import time
import warnings
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

from examples import tfjs
from tests.zoo.models import Record

KNOWN = "known sizes"


class Result(NamedTuple):
    """One row of the page. Errors are relative to the largest number of the result."""

    name: str
    plain: float
    native: float | None
    operations: int
    kilobytes: float
    seconds: float
    mobile: str
    mobile_error: float | None
    quantized_error: float | None


def _leaves(tree) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def _error(found, expected) -> float:
    worst = 0.0
    for x, y in zip(found, expected, strict=True):
        if x.shape != y.shape:
            return float("inf")
        scale = max(1e-6, float(np.max(np.abs(y))))
        worst = max(worst, float(np.max(np.abs(x.astype(np.float64) - y))) / scale)
    return worst


def _signature(record: Record, args) -> list:
    specs = []
    for i, (shape, x) in enumerate(zip(record.shapes, args, strict=True)):
        known = list(x.shape)
        if shape is not None:  # the first axis of each has a name
            known[0] = None
        specs.append(tf.TensorSpec(known, tf.as_dtype(x.dtype), f"x{i}"))
    return specs


def converted(record: Record, fun, args, native: bool = False, **options):
    """The model as a TensorFlow function with unknown sizes."""
    options = {"native_serialization": native, "with_gradient": False} | options
    f = jax2tf.convert(fun, polymorphic_shapes=list(record.shapes), **options)
    return tf.function(f, autograph=False, input_signature=_signature(record, args))


def _saved_size(f) -> float:
    module = tf.Module()
    module.f = f
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file()) / 1024


def run_lite(f, args, quantized: bool = False) -> tuple[list[np.ndarray], collections.Counter]:
    """Results of TFLite's interpreter (builtin operations only), and the number of operations of each kind."""
    module = tf.Module()
    module.f = f
    converter = tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], module)
    if quantized:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(
            model_content=converter.convert(),
            experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
    inputs = sorted(interpreter.get_input_details(), key=lambda d: d["name"])
    for d, x in zip(inputs, args, strict=True):
        interpreter.resize_tensor_input(d["index"], x.shape)
    interpreter.allocate_tensors()
    for d, x in zip(inputs, args, strict=True):
        interpreter.set_tensor(d["index"], x)
    interpreter.invoke()
    outputs = sorted(interpreter.get_output_details(), key=lambda d: d["name"])
    found = [interpreter.get_tensor(d["index"]) for d in outputs]
    return found, collections.Counter(d["op_name"] for d in interpreter._get_ops_details())


def lacking(f, args) -> str:
    """The operations that prevent TFLite's converter from converting a model."""
    try:
        run_lite(f, args)
    except Exception as error:  # the converter does not export its type
        if found := sorted(set(re.findall(r"'tf\.(\w+)' op is neither", str(error)))):
            return "no: " + ", ".join(found)
        raise
    raise ValueError("TFLite converts and runs the model: set `mobile` in its record")


def in_javascript(records) -> list[str]:
    """The results of TF.js for models with unknown sizes: the error of the values, or the missing operations."""
    made = [record.make() for record in records]
    unchecked = [jax2tf.DisabledSafetyCheck.shape_assertions()]  # TF.js has no strings for messages
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        pairs = {}
        for i, (record, (fun, args)) in enumerate(zip(records, made, strict=True)):
            # With gradients, though none is saved: TF.js lacks the operation that raises for them.
            f = converted(
                record, fun, args, enable_xla=False, with_gradient=True, native_serialization_disabled_checks=unchecked
            )
            module = tf.Module()
            module.f = f
            saved, target = pathlib.Path(folder, f"saved{i}"), pathlib.Path(folder, f"converted{i}")
            tf.saved_model.save(module, str(saved), signatures=f.get_concrete_function())
            pairs[saved] = target
        for (fun, args), target, wrong in zip(made, pairs.values(), tfjs.convert(pairs), strict=True):
            if wrong is not None:
                cells.append("no: " + wrong.splitlines()[-1])
                continue
            try:
                found = tfjs.run(target, **{f"x{i}": x for i, x in enumerate(args)})
            except subprocess.CalledProcessError:  # node has printed the reason
                cells.append("converted, fails when run")
                continue
            cells.append(f"{_error(found, _leaves(jax.jit(fun)(*args))):.0e}")
    return cells


def measure(record: Record, lite: bool = True) -> Result:
    """Measure one model."""
    fun, args = record.make()
    expected = _leaves(jax.jit(fun)(*args))
    f = converted(record, fun, args)
    start = time.process_time()  # of this process: the machine may be busy
    concrete = f.get_concrete_function()
    seconds = time.process_time() - start
    graph = concrete.graph.as_graph_def()
    count = len(graph.node) + sum(len(g.node_def) for g in graph.library.function)
    plain = _error(_leaves(f(*args)), expected)
    try:
        native: Any = _error(_leaves(converted(record, fun, args, native=True)(*args)), expected)
    except NotImplementedError:  # kernels that TensorFlow's runtime lacks
        native = None
    mobile, error, quantized = "", None, None
    if lite:
        given = record._replace(shapes=(None,) * len(args)) if record.mobile == KNOWN else record
        small = converted(given, fun, args, enable_xla=False)
    if lite and not record.mobile:
        mobile = lacking(small, args)
    elif lite:
        found, operations = run_lite(small, args)
        mobile = f"{KNOWN}: " if record.mobile == KNOWN else ""
        mobile += ", ".join(f"{n} {name}" for name, n in sorted(operations.items()))
        error, quantized = _error(found, expected), _error(run_lite(small, args, True)[0], expected)
    return Result(record.name, plain, native, count, _saved_size(f), seconds, mobile, error, quantized)
