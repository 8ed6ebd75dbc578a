"""Export without TensorFlow: the trained model as a StableHLO program, for a batch of any size, with its gradient."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from . import training
from .model import Model


def save(model: Model, params, stats, path: Path) -> None:
    """Write a folder: a program of a list of parameters and images `(n, 8, 8, 1)`, and the parameters."""
    leaves, structure = jax.tree.flatten(params)

    @jax.jit
    def predict(leaves, images):
        return training.predict(model, jax.tree.unflatten(structure, leaves), stats, images)

    images = jax.ShapeDtypeStruct(export.symbolic_shape("b, 8, 8, 1"), jnp.float32)
    exported = export.export(predict)([jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves], images)
    path.mkdir(parents=True, exist_ok=True)
    (path / "predict.bin").write_bytes(exported.serialize(vjp_order=1))
    np.savez(path / "params.npz", *map(np.asarray, leaves))
