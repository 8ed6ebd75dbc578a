"""`tensorflow_hub` loads our saved models, and Keras trains them further: in a separate environment, which uv makes.

Not among the default tests, because it needs the network: `nox -s integration` names this file.
"""

import json
import os
import subprocess
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from flax import linen as nn
from jax.experimental import jax2tf

LIMIT = 1e-5


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.LayerNorm()(nn.Dense(4)(nn.tanh(nn.Dense(8)(x))))


@pytest.fixture(scope="module", params=["plain", "native"])
def answers(request, tmp_path_factory):
    """The results of the consumer for a network that was saved as both kinds."""
    folder = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 3)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
    params = Net().init(jax.random.key(0), x)
    apply = lambda params, x: {"scores": Net().apply(params, x), "best": jnp.argmax(Net().apply(params, x), -1)}
    converted = jax2tf.convert(
        apply, polymorphic_shapes=[None, "(b, _)"], native_serialization=request.param == "native"
    )
    # `hub.KerasLayer` requires these attributes of an object.
    reusable = tf.train.Checkpoint()
    tree = jax.tree.map(tf.Variable, params)
    reusable.variables = reusable.trainable_variables = jax.tree.leaves(tree)
    reusable.__call__ = tf.function(
        lambda x: converted(tree, x), autograph=False, input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")]
    )
    tf.saved_model.save(
        reusable,
        str(folder / "model"),
        signatures=reusable.__call__.get_concrete_function(),
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
    )
    np.savez(folder / "inputs.npz", x=x, y=y, scores=jax.jit(apply)(params, x)["scores"])

    script = Path(__file__).with_name("hub_consumer.py")
    surroundings = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    command = ["uv", "run", "-q", "--no-project", "--script", script, folder / "model", folder / "inputs.npz"]
    result = subprocess.run(command, capture_output=True, text=True, env=surroundings, timeout=900)
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_loaded(answers):
    assert answers["jax"] == []
    assert max(answers[how] for how in ("loaded", "signature", "pipeline")) < LIMIT


def test_a_frozen_layer_stays_unchanged_during_training(answers):
    """A layer that is not trainable stays unchanged, while Keras trains the other layers."""
    found = answers["frozen"]
    assert found["trainable"] == 0 and found["kept"]
    assert found["losses"][1] < found["losses"][0]
    assert found["read_back"] < LIMIT


def test_fine_tuned(answers):
    found = answers["tuned"]
    assert found["trainable"] == 6 and found["changed"]
    assert found["losses"][1] < answers["frozen"]["losses"][1]
    assert found["read_back"] < LIMIT
