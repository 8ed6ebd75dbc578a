"""The TF columns: plain TensorFlow operations, and TensorFlow's own XLA operations.

A rule is ``rule(ctx, *tensors, **params) -> tensor`` (a list where the primitive has several
results). `tf_rules` uses plain operations only, which every TensorFlow runtime knows (TFLite
and TF.js among them). Where a use of a primitive cannot be expressed so, the rule raises
`NeedsXla`, and with ``enable_xla=True`` the rule in `xla_op_rules` is used instead.
"""

from __future__ import annotations

from bedrax.core.tables import RuleTable

tf_rules = RuleTable("TF ops", "bedrax.jax2tf.lowering")
xla_op_rules = RuleTable("TF XLA ops", "bedrax.jax2tf.lowering")


class NeedsXla(Exception):
    """Raised by a rule of `tf_rules` for a use that plain TensorFlow operations cannot express."""


def needs_xla(*prims, why: str) -> None:
    """Rows for primitives that no plain TensorFlow operation expresses."""
    for prim in prims:

        def rule(ctx, *args, **params):
            raise NeedsXla(why)

        tf_rules.add(prim, rule, f"needs XLA: {why}")
