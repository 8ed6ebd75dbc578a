"""jax2tf and call_tf: conversion to a TensorFlow graph, native or of plain operations, runs of it, and calls of
TensorFlow.

Upstream no longer converts to plain operations, so the peer is one of the last releases that did.
"""

from ..case import Case

FUNCTION = """\
import jax, numpy as np, tensorflow as tf
from jax.experimental import jax2tf
from benchmarks.programs import PROGRAMS, gradient_in_tensorflow
make, args = PROGRAMS[{program!r}]({size})
"""
CONVERSION = "tf.function({function}, autograph=False).get_concrete_function(*specs)"
KINDS = {
    "native": "jax2tf.convert(make(), native_serialization=True)",
    "plain ops": "jax2tf.convert(make(), native_serialization=False)",
    "plain ops and their gradient": "gradient_in_tensorflow(jax2tf.convert(make(), native_serialization=False))",
}


def conversion(program: str, kind: str) -> list[Case]:
    """The time of the conversion; for plain operations, also the number of nodes."""
    setup = FUNCTION.format(program=program, size="")
    setup += "specs = jax.tree.map(lambda a: tf.TensorSpec(a.shape, a.dtype), args)\n"
    statement = CONVERSION.format(function=KINDS[kind])
    if kind == "native":
        return [Case(f"jax2tf/{program}, native", statement, setup)]
    setup += f"graph = {statement}.graph.as_graph_def()\n"
    setup += "nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]\n"
    # an implementation that ignores the flag must fail
    setup += "assert 'XlaCallModule' not in {node.op for node in nodes}, 'not plain ops'"
    peers = ("upstream-0.4.30",)
    return [
        Case(f"jax2tf/{program}, {kind}", statement, setup, peers=peers, target=0.5),
        Case(f"jax2tf/{program}, {kind}, nodes", "len(nodes)", setup, peers=peers, target=1, unit="nodes"),
    ]


def running(program: str, size: int, kind: str, options: str) -> Case:
    """A graph of plain operations, and our compiled function."""
    setup = FUNCTION.format(program=program, size=size) + (
        "rng = np.random.default_rng(0)\n"
        "integers = lambda a: rng.integers(0, 200, a.shape, a.dtype)\n"
        "floats = lambda a: rng.uniform(0.01, 0.1, a.shape).astype(a.dtype)\n"
        "args = jax.tree.map(lambda a: (integers if a.dtype.kind == 'i' else floats)(a), args)\n"
    )
    ours = (
        "args = jax.tree.map(tf.constant, args)\n"
        "converted = jax2tf.convert(make(), native_serialization=False)\n"
        f"run = tf.function(converted, autograph=False{options}).get_concrete_function(*args)"
    )
    return Case(
        f"jax2tf, run/{program}, {kind}",
        {"ours": "run(*args).numpy()", "ours:jit": "float(run(*args))"},
        {"ours": setup + ours, "ours:jit": setup + "args, run = jax.device_put(args), jax.jit(make())"},
        peers=("ours:jit",),
        target=1.1,
    )


CALLED = """\
import jax, jax.numpy as jnp, numpy as np, tensorflow as tf
from jax.experimental import jax2tf
layer = lambda x, w: tf.nn.relu(tf.matmul(x, w)) + 1.0
graph = tf.function(layer, autograph=False)
sine = lambda x, w: tf.sin(x)
x, w = jnp.ones((64, 64)), jnp.ones((64, 64)) / 64
t, v = tf.constant(np.asarray(x)), tf.constant(np.asarray(w))
"""


def called_eagerly(function: str) -> Case:
    """A call of a TensorFlow function by `call_tf`, and by TensorFlow."""
    return Case(
        f"call_tf/eager, {function}",
        {"ours": "f(x, w)", "ours:TensorFlow": f"{function}(t, v)", "upstream": "f(x, w)"},
        CALLED + f"f = jax2tf.call_tf({function})",
        peers=("ours:TensorFlow", "upstream"),
        target=1,
        allowance=30e-6,
    )


FRESH = "jax.jit(lambda x, w: jax2tf.call_tf({function})(x, w)){method}"
# The time to compile is nearly all TensorFlow's time and XLA's.
STAGES = {"lower": (".lower(x, w)", 0.9), "compile": (".lower(x, w).compile()", None)}


def called_in_jit(function: str) -> list[Case]:
    """The stages of a compiled function that calls a TensorFlow function."""
    run = Case(
        f"call_tf/in jit, {function}, run", "f(x, w)", CALLED + f"f = jax.jit(jax2tf.call_tf({function}))", target=0.9
    )
    return [run] + [
        Case(
            f"call_tf/in jit, {function}, {stage}", FRESH.format(function=function, method=method), CALLED, target=goal
        )
        for stage, (method, goal) in STAGES.items()
    ]


PROGRAMS = {"mlp": 512, "cnn": 32, "resnet": 4, "transformer": 4}  # at these sizes the computation outweighs the calls
CASES = [
    *(case for program in PROGRAMS for kind in KINDS for case in conversion(program, kind)),
    *(
        running(program, size, kind, options)
        for program, size in PROGRAMS.items()
        for kind, options in (("grappler", ""), ("XLA", ", jit_compile=True"))
    ),
    *(called_eagerly(function) for function in ("sine", "layer", "graph")),
    *(case for function in ("sine", "graph") for case in called_in_jit(function)),
]
