"""Collectives are not converted: a TensorFlow program has no named axes."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import collectives as p

tf_rules.absent(
    *[prim for name, prim in vars(p).items() if name.endswith("_p") and prim not in (p.pvary_p, p.ragged_all_to_all_p)],
    why="a TensorFlow program of plain operations has no named axes: those of vmap and shard_map are array axes by now",
)
