"""Prints the derivatives of the functions of a saved model, without jax: python ... MODEL NAMES ORDER"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
for name in ("jax", "jaxlib", "bedrax"):  # which others would import if they find it
    sys.modules[name] = None
import tensorflow as tf

loaded = tf.saved_model.load(sys.argv[1])
x = tf.constant(0.7)


def value(f, n):
    if n == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = value(f, n - 1)
    return tape.gradient(y, x)


found = {}
for name in json.loads(sys.argv[2]):
    for n in range(int(sys.argv[3]) + 1):
        try:
            found.setdefault(name, []).append(float(value(getattr(loaded, name), n)))
        except Exception as error:
            found[name].append(str(error))
print("FOUND" + json.dumps(found))
