"""Options that change nothing, under the names that programs and libraries set.

Each has a reason. Setting one to another value than its default gives a warning with the reason. The table is data:
reason -> (name, default[, condition on the option]).
"""

from __future__ import annotations

from typing import Any, Final

from bedrax.core.config import Flag, flag

INERT: dict[str, tuple[tuple[Any, ...], ...]] = {
    "there is only one implementation here": (
        ("jax_use_direct_linearize", True), ("jax_use_simplified_jaxpr_constants", False), ("jax_scan3", False),
        ("jax_remat3", False), ("jax_custom_vjp3", False), ("jax_refs_to_pins", False),
        ("jax_threefry_gpu_kernel_lowering", False), ("jax2tf_associative_scan_reductions", False),
        ("jax_use_magma", "auto", {"choices": ("off", "on", "auto")}), ("jax_bcoo_cusparse_lowering", False),
        ("jax_ragged_dot_use_ragged_dot_instruction", True), ("jax_custom_jvp3", False),
        ("jax_remat_barrier_no_cotangents", False), ("jax_use_rgv3", True), ("jax_use_cpp_shard_args", False),
        ("jax_use_hlo_logistic_lowering", None, {"kind": bool}), ("jax_accurate_erf_inv", False),
    ),
    "the axes of a collective are taken in the order in which they are named": (("jax_raise_on_ppermute_sort_diff", True),),
    "exported programs of any age are read if their format is readable": (
        ("jax_export_deserialize_expired_versions", False),
    ),
    "kernels are interpreted: nothing is compiled for them": (
        ("jax_use_emit_pipeline_primitive", False), ("jax_ragged_dot_use_gpu_pallas_triton_lowering", False),
        ("jax_mosaic_allow_hlo", False), ("jax_pallas_use_mosaic_gpu", True), ("jax_pallas_verbose_errors", False),
        ("jax_pallas_poison_buffers", False), ("jax_mosaic_unzip_debug_locations", True),
        ("jax_pallas_auto_assign_collective_ids", "no", {"choices": ("no", "yes", "override")}),
        ("jax_pallas_auto_assign_collective_ids_limit", 25),
    ),
    "shard_map itself sets whether types are checked; casts are always inserted between operands that differ, and axes of size "
    "one are axes": (
        ("check_vma", False), ("jax_auto_pcast", True), ("jax_remove_size_one_mesh_axis_from_type", False),
        ("jax_disable_vmap_shmap_error", False),
    ),
    "the processes of a run connect through jaxlib only": (
        ("jax_force_dcn_cross_host_transfers", False),
        ("jax_cross_host_transfer_socket_address", ""), ("jax_cross_host_transport_addresses", ""),
        ("jax_cross_host_transfer_timeout_seconds", None, {"kind": int}),
        ("jax_cross_host_transfer_transfer_size", None, {"kind": int}), ("jax_share_binary_between_hosts", False),
        ("jax_share_binary_between_hosts_timeout_ms", 1_200_000),
    ),
    "a plugin finds its devices itself; jax_pjrt_client_create_options passes options to it": (
        ("mock_num_gpu_processes", 0), ("jax_mock_gpu_topology", ""), ("jax_backend_target", ""),
    ),
    "programs are compiled once, without profiles of earlier runs": (
        ("jax_enable_pgle", False), ("jax_pgle_profiling_runs", 3), ("jax_pgle_aggregation_percentile", 90),
        ("jax_compilation_cache_expect_pgle", False),
    ),
    "the compilation cache holds executables only, under a key that has no addresses": (
        ("jax_remove_custom_partitioning_ptr_from_cache_key", False),
        ("jax_persistent_cache_enable_xla_caches", "xla_gpu_per_fusion_autotune_cache_dir", {"optional": True}),
    ),
    "an operation's location is the user's line, in full": (
        ("jax_include_full_tracebacks_in_locations", True), ("jax_traceback_in_locations_limit", 100),
        ("jax_source_url_schema", None), ("jax_tracer_error_num_traceback_frames", 5),
        ("jax_compiler_detailed_logging_min_ops", 10),
        ("jax_send_traceback_to_runtime", "off", {"choices": ("off", "on", "full")}),
    ),
    "errors raised by Python callbacks always reach the caller": (
        ("jax_experimental_unsafe_xla_runtime_errors", False),
    ),
    "sums of 16-bit floats are computed in 32 bits": (("jax_allow_f16_reductions", True),),
    "every call checks that no two of its references are of one array": (("jax_mutable_array_checks", True),),
    "operations on known values run eagerly": (("eager_constant_folding", False),),
    "an export has the version of its calling convention, and its serialized form has one version": (
        ("jax_export_ignore_forward_compatibility", False), ("jax_serialization_version", 0),
    ),
    "not checked here: jax.error_checking has no such behavior": tuple(
        (f"jax_error_checking_behavior_{kind}", "ignore", {"choices": ("ignore", "raise")})
        for kind in ("nan", "divide", "oob")
    ),
}  # fmt: skip


def _declare(why: str, name: str, default: Any, options: dict | None = None) -> Flag:
    return flag(name, default, f"no effect: {why}", inert=why, **(options or {}))


_declared = {row[0]: _declare(why, *row) for why, rows in INERT.items() for row in rows}

# Options that are also names of the public interface.
allow_f16_reductions: Final = _declared["jax_allow_f16_reductions"]
auto_pcast: Final = _declared["jax_auto_pcast"]
jax2tf_associative_scan_reductions: Final = _declared["jax2tf_associative_scan_reductions"]
remove_size_one_mesh_axis_from_type: Final = _declared["jax_remove_size_one_mesh_axis_from_type"]
