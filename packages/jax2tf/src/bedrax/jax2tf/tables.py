"""The TF column: plain TensorFlow operations.

A rule is ``rule(ctx, *tensors, **params) -> tensor`` (a list if the primitive has several
results). Rules use only operations of every TensorFlow runtime (including TFLite and TF.js),
and none of TensorFlow's XLA operations, so ``enable_xla=False`` converts the same programs as
``enable_xla=True``. `fusions` finds groups of equations that are one TensorFlow operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bedrax.core.columns import Column
from bedrax.lax.tables import decompositions
from bedrax.tf.tables import tf_calls


def _composed(prim) -> Callable | None:
    call = tf_calls.find(prim)
    if call is not None:
        return lambda ctx, *tensors, **params: call(*tensors, **params)
    decomposition = decompositions.find(prim)
    if decomposition is None:
        return None
    return lambda ctx, *tensors, **params: ctx.composed(decomposition, tensors, params)


tf_rules: Final = Column(
    "TF ops",
    "bedrax.jax2tf.lowering",
    signature="rule(ctx, *tensors, **params) -> tensor, or list of them",
    purpose="jax2tf.convert to operations of TensorFlow",
    otherwise=_composed,
)
