"""Loads a saved model and its data in a process that cannot import jax: python load_saved_model.py MODEL DATA"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "jaxlib", "bedrax"):
            raise ImportError(name)


sys.meta_path.insert(0, Refused())
import numpy as np
import tensorflow as tf

data = np.load(sys.argv[2])
model = tf.saved_model.load(sys.argv[1])
x = tf.constant(data["x"])
np.testing.assert_allclose(model.f(x), data["y"], rtol=1e-5, atol=1e-5)
with tf.GradientTape() as tape:
    tape.watch(x)
    value = tf.reduce_sum(model.f(x) ** 2)
np.testing.assert_allclose(tape.gradient(value, x), data["g"], rtol=1e-4, atol=1e-4)
assert not {"jax", "jaxlib", "bedrax"} & sys.modules.keys()
print("same")
