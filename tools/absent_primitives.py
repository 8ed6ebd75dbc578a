"""Primitives of the reference that Bedrax does not have: their names and the reasons. `coverage.py` prints them."""

ABSENT = {
    "types do not state which values are partial sums, an exchange is one operation (XLA splits it in two), and a "
    "broadcast from one device is an element of a gather": (
        "all_gather_done all_gather_reduced all_gather_reduced_start all_gather_start all_to_all_done all_to_all_start "
        "pbroadcast pbroadcast_done pbroadcast_start "
        "ppermute_done ppermute_start precv preduced psend psum_done psum_invariant_start psum_start "
        "reduce_scatter_done reduce_scatter_start reduced_vary_cast_p reshard unreduced_psum unreduced_psum_start "
        "unreduced_reduce_scatter unreduced_reduce_scatter_start vary_unreduced_cast_p"
    ),
    "sparse arrays are not supported": (
        "bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_spdot_general "
        "bcoo_sum_duplicates bcoo_todense bcoo_transpose bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense "
        "coo_fromdense coo_matmat coo_matvec coo_spmm coo_spmv coo_todense csr_fromdense csr_matmat csr_matvec "
        "csr_spmm csr_spmv csr_todense spsolve todense"
    ),
    "kernels of one vendor's library; here the public functions are programs of other primitives": (
        "cudnn_fusion dot_product_attention_bwd dot_product_attention_bwd_wrapper dot_product_attention_fp8_bwd "
        "dot_product_attention_fp8_bwd_wrapper dot_product_attention_fp8_fwd dot_product_attention_fp8_fwd_wrapper "
        "dot_product_attention_fwd dot_product_attention_fwd_wrapper fused_call rnn_bwd rnn_fwd scaled_matmul "
        "scaled_matmul_wrapper"
    ),
    "mutable references, logs and boxes are not part of programs: values are immutable": (
        "accum_grad_in_ref addupdate box_get box_set create_linear empty2 empty_ref free_ref freeze get log_extend "
        "log_read new_box new_log new_ref pin run_state swap unpin"
    ),
    "annotations for the compiler or the partitioner that have no counterpart": (
        "buffer_callback compute_on inspect_sharding layout_constraint shard_alike tie xla_metadata_call"
    ),
    "the code that makes a program does this, and no operation of the program (a dimension is a value of "
    "`dim_as_value`, printing is a `debug_callback`, an extended dtype is evaluated on its base dtype; the "
    "column `key reuse` watches keys)": (
        "assert_consumed_value broadcast_to call call_hi_primitive call_hi_primitive_linearized check consume "
        "custom_jvp_call_jaxpr debug_print dimension_size eval_jaxpr iota_2x32_shape shape_assertion "
        "unreachable zeros_like"
    ),
    "these generators compute keys with additions, products and exclusive ors (`bedrax.random.block_ciphers`)": (
        "philox2x32 philox4x32 threefry4x32"
    ),
}


def section() -> list[str]:
    """Return the lines of the section."""
    lines = ["\n## Primitives that only the reference has\n", "| primitives | why they are absent |", "|---|---|"]
    return lines + [f"| {', '.join(f'`{n}`' for n in names.split())} | {why} |" for why, names in ABSENT.items()]
