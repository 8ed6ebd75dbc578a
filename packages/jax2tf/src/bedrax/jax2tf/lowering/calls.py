"""TensorFlow for calls: the program is converted in place, a named jit as a name scope."""

from bedrax.core.jitting import jit_p
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives.calls import (
    closed_call_p,
    composite_p,
    core_call_p,
    name_p,
    optimization_barrier_p,
    remat_p,
)


@tf_rules.rule(jit_p)
def _jit(ctx, *args, jaxpr, name, **_):
    return ctx.run(jaxpr, *args)


@tf_rules.rule(closed_call_p, core_call_p, composite_p, remat_p)
def _call(ctx, *args, jaxpr, **_):
    return ctx.run(jaxpr, *args)


@tf_rules.rule(optimization_barrier_p)
def _barrier(ctx, *args):
    return list(args)


@tf_rules.rule(name_p)
def _name(ctx, x, *, name):
    return x
