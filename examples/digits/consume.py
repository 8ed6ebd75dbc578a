"""Use of the exported models in a program that has only TensorFlow, or only JAX.

    python -m examples.digits.consume FOLDER tensorflow plain native model.tflite
    python -m examples.digits.consume FOLDER jax program

reads `inputs.npz` in that folder, runs the named models and writes their results into `outputs_tensorflow.npz` or
`outputs_jax.npz`. Before that, imports are blocked: with TensorFlow those of JAX, Flax and Bedrax, with JAX those of
the libraries that wrote the model. This shows that the exported files need none of them.
"""

import importlib.abc
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
BLOCKED = {  # modules that a process with this library must not import
    "tensorflow": {"jax", "jaxlib", "bedrax", "flax"},
    "jax": {"tensorflow", "flax", "optax", "orbax"},
}


class Blocker(importlib.abc.MetaPathFinder):
    """Raises for the blocked packages. TensorFlow tries `import jax` and handles the error."""

    def __init__(self, blocked):
        self.blocked = blocked

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"{name} is blocked in this process", name=name)


def run_saved_model(path: Path, batches: dict, targets) -> dict:
    """Probabilities of every batch, and gradients of a log-likelihood with respect to the images and every parameter.

    The log-likelihood is that of the images showing the target classes.
    """
    import tensorflow as tf

    model = tf.saved_model.load(str(path))
    answers = {f"probs{n}": model.predict(images).numpy() for n, images in batches.items()}
    images = tf.constant(batches["7"])
    params = tf.nest.flatten(model.params)
    with tf.GradientTape() as tape:
        tape.watch(images)
        score = tf.reduce_sum(tf.math.log(tf.gather(model.predict(images), targets, batch_dims=1)))
    for i, grad in enumerate(tape.gradient(score, [images, *params])):
        answers[f"grad{i}"] = grad.numpy()
    return answers


def run_tflite(path: Path, batches: dict, targets) -> dict:
    """Probabilities of every batch, from the TFLite interpreter."""
    import tensorflow as tf

    warnings.filterwarnings("ignore", message=".*tf.lite.Interpreter is deprecated")
    interpreter = tf.lite.Interpreter(str(path))
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    answers = {}
    for n, images in batches.items():
        interpreter.resize_tensor_input(source["index"], images.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], images)
        interpreter.invoke()
        answers[f"probs{n}"] = interpreter.get_tensor(result["index"])
    return answers


def run_program(path: Path, batches: dict, targets) -> dict:
    """The same results as `run_saved_model`, with `jax.export`."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export

    predict = export.deserialize(bytearray((path / "predict.bin").read_bytes())).call
    with np.load(path / "params.npz") as file:
        params = [file[f"arr_{i}"] for i in range(len(file))]
    score = lambda images, params: jnp.log(predict(params, images)[jnp.arange(len(targets)), targets]).sum()
    answers = {f"probs{n}": np.asarray(predict(params, images)) for n, images in batches.items()}
    grads = jax.tree.leaves(jax.grad(score, argnums=(0, 1))(jnp.asarray(batches["7"]), list(map(jnp.asarray, params))))
    return answers | {f"grad{i}": np.asarray(grad) for i, grad in enumerate(grads)}


RUNNERS = {"plain": run_saved_model, "native": run_saved_model, "model.tflite": run_tflite, "program": run_program}


def main(folder: Path, library: str, models: list[str]) -> None:
    import numpy as np
    from absl import logging

    logging.set_verbosity("error")  # TensorFlow warns that it saves no second derivatives: none are needed
    with np.load(folder / "inputs.npz") as inputs:
        targets = inputs["targets"]
        batches = {name.removeprefix("images"): inputs[name] for name in inputs if name != "targets"}
    outputs = {name: RUNNERS[name](folder / name, batches, targets) for name in models}
    imported = BLOCKED[library].intersection(sys.modules)
    assert not imported, f"imported despite the blocker: {imported}"
    np.savez(
        folder / f"outputs_{library}.npz",
        **{f"{model}/{name}": array for model, answers in outputs.items() for name, array in answers.items()},
    )


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocker(BLOCKED[sys.argv[2]]))
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
