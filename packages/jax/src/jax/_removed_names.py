"""Names that upstream's interface removed.

`REMOVED` has those that libraries still use: they stay here. It maps a name to the text of the DeprecationWarning at its
lookup (of a module: at its import), or to None if upstream removed the name without a warning.
`REPLACED` has those of older programs, which are absent: it maps a name to the name in its place, for the message.
"""

from __future__ import annotations

REMOVED: dict[str, str | None] = {
    "jax.cloud_tpu_init": "jax.cloud_tpu_init is deprecated: importing it does nothing; remove the import",
    # Brax, ppo/train.py and others
    "jax.device_put_replicated": "jax.device_put_replicated is deprecated: stack the copies, and use jax.device_put with a "
    "sharding over the devices",
    "jax.device_put_sharded": "jax.device_put_sharded is deprecated: stack the parts, and use jax.device_put with a "
    "sharding over the devices",
    **dict.fromkeys(
        (
            "jax.experimental.cur_qdd",
            "jax.experimental.compute_on.compute_on2",
            "jax.experimental.control_deps",
            "jax.experimental.hijax.AvalMutableQDD",
            "jax.experimental.hijax.AvalQDD",
            "jax.experimental.hijax.HiPrimitive",
            "jax.experimental.hijax.MutableHiType",
            "jax.experimental.hijax.VJPHiPrimitive",
            "jax.experimental.pallas.core_map",
            "jax.experimental.pallas.reciprocal",
            "jax.experimental.scheduling_groups.attr_get",
            "jax.experimental.scheduling_groups.xla_metadata_call_p",
            "jax.experimental.shard_alike",
            "jax.extend.core.CallPrimitive",
            "jax.extend.core.call_impl",
            "jax.lax.dce_sink_p",
            "jax.lax.precv",
            "jax.lax.psend",
        )
    ),
}

REPLACED: dict[str, str] = {
    "jax.clear_backends": "jax.extend.backend.clear_backends",
    "jax.core.ClosedJaxpr": "jax.extend.core.ClosedJaxpr",
    "jax.core.Jaxpr": "jax.extend.core.Jaxpr",
    "jax.core.JaxprEqn": "jax.extend.core.JaxprEqn",
    "jax.core.Literal": "jax.extend.core.Literal",
    "jax.core.Primitive": "jax.extend.core.Primitive",
    "jax.core.Var": "jax.extend.core.Var",
    "jax.core.get_aval": "jax.typeof",
    "jax.core.jaxpr_as_fun": "jax.extend.core.jaxpr_as_fun",
    "jax.linear_util": "jax.extend.linear_util",
    "jax.nn.normalize": "jax.nn.standardize",
    "jax.numpy.DeviceArray": "jax.Array",
    "jax.numpy.alltrue": "jax.numpy.all",
    "jax.numpy.cumproduct": "jax.numpy.cumprod",
    "jax.numpy.in1d": "jax.numpy.isin",
    "jax.numpy.msort": "jax.numpy.sort with axis=0",
    "jax.numpy.product": "jax.numpy.prod",
    "jax.numpy.round_": "jax.numpy.round",
    "jax.numpy.row_stack": "jax.numpy.vstack",
    "jax.numpy.sometrue": "jax.numpy.any",
    "jax.numpy.trapz": "jax.numpy.trapezoid",
    "jax.ops.index_add": "x.at[i].add(y)",
    "jax.ops.index_update": "x.at[i].set(y)",
    "jax.random.KeyArray": "jax.Array",
    "jax.random.shuffle": "jax.random.permutation",
    "jax.tree_multimap": "jax.tree.map",
    "jax.tree_util.tree_multimap": "jax.tree.map",
    "jax.xla_computation": "jax.jit(f).lower(...).as_text()",
    **{
        f"jax.tree_{name}": f"jax.tree.{name}"
        for name in ("all", "flatten", "leaves", "map", "reduce", "structure", "transpose", "unflatten")
    },
}
