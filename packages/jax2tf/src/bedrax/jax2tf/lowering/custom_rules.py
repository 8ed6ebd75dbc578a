"""TensorFlow for functions with rules of their own: their rules do not matter to it."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives.custom_rules import (
    custom_jvp_call_p,
    custom_lin_p,
    custom_vjp_call_p,
    linear_call_p,
    refuse_forward_mode,
    remat_opt_p,
)


@tf_rules.rule(custom_jvp_call_p, custom_vjp_call_p, linear_call_p)
def _call(ctx, *args, call_jaxpr, **_):
    return ctx.run(call_jaxpr, *args)


tf_rules.add(remat_opt_p, lambda ctx, *args, jaxpr, **_: ctx.run(jaxpr, *args))
tf_rules.add(custom_lin_p, refuse_forward_mode, "error")
