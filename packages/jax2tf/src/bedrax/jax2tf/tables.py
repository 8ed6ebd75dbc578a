"""The TF column: plain TensorFlow operations.

A rule is ``rule(ctx, *tensors, **params) -> tensor`` (a list where the primitive has several
results). Rules use only operations that every TensorFlow runtime knows (TFLite and TF.js among
them), never TensorFlow's XLA operations, so ``enable_xla=False`` converts as much as
``enable_xla=True``; where the latter is exact at the price of an operation that mobile
converters do not fuse (NaN in pooling), a rule asks ``ctx.enable_xla``.
"""

from __future__ import annotations

from bedrax.core.tables import RuleTable

tf_rules = RuleTable("TF ops", "bedrax.jax2tf.lowering")
