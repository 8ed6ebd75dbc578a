"""Names that upstream's interface had at 0.10.2 and removed later. They stay here, as libraries use them.

The table is data: name -> text of the DeprecationWarning at its lookup (of a module: at its import), or None if
upstream removed the name without a warning.
"""

from __future__ import annotations

REMOVED: dict[str, str | None] = {
    "jax.cloud_tpu_init": "jax.cloud_tpu_init is deprecated: importing it does nothing; remove the import",
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
