"""TensorFlow for calls: a jitted function is a TensorFlow function with its name, unless it is short; others are
inlined."""

from bedrax.core.jitting import jit_p
from bedrax.jax2tf import native
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import calls as p
from bedrax.xla_backend.export import call_exported_p
from bedrax.xla_backend.lowering import modules

tf_rules.add(jit_p, lambda ctx, *args, jaxpr, name, **_: ctx.called(jaxpr, args, name))


@tf_rules.rule(*p.plain_calls, p.composite_p, p.custom_partitioning_p, p.remat_p)
def _call(ctx, *args, jaxpr, **_):
    return ctx.run(jaxpr, *args)


tf_rules.add(p.optimization_barrier_p, lambda ctx, *args: list(args))
tf_rules.add(p.name_p, lambda ctx, x, *, name: x)


@tf_rules.rule(call_exported_p, kind="XlaCallModule")
def _call_exported(ctx, *tensors, exported):
    """The exported module itself: it is compiled for fixed types, and there is no program to convert."""
    if not ctx.enable_xla:
        raise NotImplementedError(
            f"jax2tf: '{exported.fun_name}' is an exported program, which only XLA can run; convert with enable_xla=True"
        )
    module = modules.deserialize(exported.mlir_module_serialized)
    native.check_kernels(exported.fun_name, modules.custom_call_targets(module), exported.platforms)
    given = [tensors[i] for i in exported.module_kept_var_idx]
    return native.call_module(
        exported.mlir_module_serialized,
        given,
        ctx.avals_out,
        exported.platforms,
        exported.disabled_safety_checks,
        version=exported.calling_convention_version,
    )
