"""Names that upstream's interface removed and libraries use. They stay here.

The table is data: name -> text of the DeprecationWarning at its lookup (of a module: at its import), or None if
upstream removed the name without a warning.
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
