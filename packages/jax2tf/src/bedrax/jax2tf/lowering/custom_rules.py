"""TensorFlow for functions with custom rules: only the functions are converted."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import custom_rules as p


@tf_rules.rule(p.custom_jvp_call_p, p.custom_vjp_call_p, p.linear_call_p)
def _call(ctx, *args, call_jaxpr, **_):
    return ctx.run(call_jaxpr, *args)


tf_rules.add(p.remat_opt_p, lambda ctx, *args, jaxpr, **_: ctx.run(jaxpr, *args))
tf_rules.add(p.custom_lin_p, p.refuse_forward_mode, "error")
