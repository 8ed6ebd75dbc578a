"""`jax.experimental.multihost_utils`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.processes.multihost": (
            "ProcessFailureError",
            "assert_equal",
            "broadcast_one_to_all",
            "global_array_to_host_local_array",
            "global_array_to_host_local_array_impl",
            "global_array_to_host_local_array_p",
            "gtl_abstract_eval",
            "host_local_array_to_global_array_impl",
            "host_local_array_to_global_array_p",
            "ltg_abstract_eval",
            "ltg_batcher",
            "host_local_array_to_global_array",
            "live_devices",
            "process_allgather",
            "reached_preemption_sync_point",
            "sync_global_devices",
        )
    },
    renamed={"bedrax.parallel": {"P": "PartitionSpec"}},
)
