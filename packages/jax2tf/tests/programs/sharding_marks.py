"""Counts the operations of a graph that split a value over two devices."""

import numpy as np
import tensorflow as tf

from bedrax import jax2tf
from bedrax.core.jitting import jit
from bedrax.parallel.specs import PartitionSpec as P
from bedrax.xla_backend.placement import with_sharding_constraint
from bedrax.xla_backend.sharding import NamedSharding, make_mesh

mesh = make_mesh((2,), ("x",))
rows, everywhere = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
x = np.arange(8, dtype=np.float32)


def marks(f, compiled=False, **options):
    g = tf.function(jax2tf.convert(f, native_serialization=False, **options), autograph=False, jit_compile=compiled)
    np.testing.assert_allclose(g(x), 2 * x)
    definition = g.get_concrete_function(x).graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return sum(n.op == "XlaSharding" for n in nodes)


double = lambda x: x * 2
split = jit(double, in_shardings=rows, out_shardings=rows)
assert marks(split) == 2 and marks(split, compiled=True) == 2
assert marks(jit(double, in_shardings=rows, out_shardings=everywhere)) == 1
assert marks(jit(double, in_shardings=everywhere, out_shardings=everywhere)) == 0
assert marks(lambda x: with_sharding_constraint(x, rows) * 2) == 1
assert marks(split, enable_xla=False) == 0
try:
    jax2tf.convert(split, native_serialization=False)(x)
except ValueError as error:
    assert "wrap the converted function with tf.function" in str(error)
else:
    raise AssertionError("eager")
f = tf.function(jax2tf.convert(split, native_serialization=False), autograph=False)
v = tf.Variable(x)
with tf.GradientTape() as tape:
    y = tf.reduce_sum(f(v))
np.testing.assert_allclose(tape.gradient(y, v), 2 * np.ones(8))
print("done")
