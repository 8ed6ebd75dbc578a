"""Callbacks are not converted: they are Python functions of this process, which a saved model cannot carry."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import callbacks as p

tf_rules.absent(
    *[prim for name, prim in vars(p).items() if name.endswith("_p")],
    why="a callback is a Python function of this process, which a TensorFlow program cannot carry; call it from TensorFlow"
    " (tf.py_function) around the converted function",
)
