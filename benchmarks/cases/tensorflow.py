"""jax2tf: conversion of a program to a TensorFlow graph (upstream has the native serialization only)."""

from ..case import Case


def case(program: str, kind: str, native: bool, peers: tuple[str, ...]) -> Case:
    setup = (
        "import jax, tensorflow as tf\n"
        "from jax.experimental import jax2tf\n"
        "from benchmarks.programs import PROGRAMS\n"
        f"make, args = PROGRAMS[{program!r}]()\n"
        "specs = jax.tree.map(lambda a: tf.TensorSpec(a.shape, a.dtype), args)\n"
    )
    statement = (
        f"converted = jax2tf.convert(make(), native_serialization={native})\n"
        "tf.function(converted, autograph=False).get_concrete_function(*specs)"
    )
    if not native:  # an implementation that ignores the flag must not pass for one that has the feature
        setup += f"{statement.replace('tf.function', 'graph = tf.function')}.graph\n"
        setup += "assert 'XlaCallModule' not in {op.type for op in graph.get_operations()}, 'not plain ops'"
    return Case(f"jax2tf/{program}, {kind}", statement, setup, peers=peers)


CASES = [
    case(program, kind, native, peers)
    for program in ("mlp", "cnn", "transformer")
    for kind, native, peers in (("native", True, ("upstream",)), ("plain ops", False, ()))
]
