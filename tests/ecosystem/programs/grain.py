"""Batches of a data set, shuffled and mapped, become arrays of a training step."""

import grain.python as grain
import jax
import numpy as np

data = grain.MapDataset.range(20).seed(3).shuffle().map(lambda i: {"x": np.float32(i)}).batch(5, drop_remainder=True)
total = jax.jit(lambda batch: batch["x"].sum())
assert sum(float(total(b)) for b in data) == 190
loader = data.to_iter_dataset()
iterator = iter(loader)
first = next(iterator)
state = iterator.get_state()
second = next(iterator)
iterator.set_state(state)
np.testing.assert_array_equal(next(iterator)["x"], second["x"])
assert isinstance(jax.device_put(first)["x"], jax.Array)
