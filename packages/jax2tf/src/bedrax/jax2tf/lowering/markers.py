"""TensorFlow for markers. A graph of plain operations may run on any platform, so the branch for the CPU is used."""

from bedrax.core import avals
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import markers as p
from bedrax.tf import tensorflow as tf

# TensorFlow orders the effects: tokens only keep their positions in the program.
tf_rules.add(p.create_token_p, lambda ctx: avals.token)
tf_rules.add(p.after_all_p, lambda ctx, *operands: avals.token)
tf_rules.add(p.stage_p, lambda ctx, x: x)
tf_rules.add(p.hint_p, lambda ctx, x, *, pairs: x)
tf_rules.add(p.dce_sink_p, lambda ctx, *operands, prevent_mlir_dce: [])
tf_rules.add(p.platform_index_p, lambda ctx, *, platforms: tf.constant(p.index_of_platform("cpu", platforms)))
