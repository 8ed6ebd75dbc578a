"""Parameters that are accepted and change nothing, with reasons: reason -> ``function(parameter, ...)``.

Every other parameter of a public function is read (`arguments.py` looks).
"""

from __future__ import annotations

_SCIPY = "jax.scipy.linalg"
_OVERWRITE = {
    "overwrite_a": "cho_factor cholesky det eigh hessenberg inv lu lu_factor qr qr_multiply solve svd",
    "overwrite_b": "cho_solve eigh lu_solve solve solve_triangular",
    "overwrite_c": "qr_multiply",
}
_PLGPU = "jax.experimental.pallas.mosaic_gpu"
_OPTIMIZED = "atomic_add atomic_and atomic_max atomic_min atomic_or atomic_xor load store"
_CHECKED = (
    "cho_factor cho_solve cholesky det eigh hessenberg inv lu lu_factor lu_solve qr rsf2csf solve solve_triangular svd"
)

IGNORED: dict[str, tuple[str, ...]] = {
    "arrays are immutable: no function writes to them or needs a copy": (
        *(f"{_SCIPY}.{f}({p})" for p, functions in _OVERWRITE.items() for f in functions.split()),
        "jax.numpy.nan_to_num(copy)",
    ),
    "a traced value may not be finite; `jax_debug_nans` and `jax.experimental.checkify` check all values": (
        *(f"{_SCIPY}.{f}(check_finite)" for f in _CHECKED.split()), "jax.scipy.cluster.vq.vq(check_finite)",
    ),
    "the choice of an algorithm, or of its memory, in SciPy: there is one algorithm here": (
        f"{_SCIPY}.eigh(turbo)", f"{_SCIPY}.svd(lapack_driver)", f"{_SCIPY}.qr(lwork)", f"{_SCIPY}.eigh_tridiagonal(tol)",
        f"{_SCIPY}.eigh_tridiagonal(key)", f"{_SCIPY}.solve(debug)", f"{_SCIPY}.solve_triangular(debug)",
        "jax.lax.scan(_split_transpose)", "jax.experimental.sparse.sparsify(use_tracer)",
    ),
    "a promise that allows a faster program; the result is the same without it": (
        "jax.numpy.intersect1d(assume_unique)", "jax.numpy.isin(assume_unique)", "jax.numpy.setxor1d(assume_unique)",
        "jax.numpy.unique(sorted)", "jax.numpy.top_k(sorted)", "jax.lax.linalg.qdwh(is_hermitian)", "jax.lax.cond(linear)",
        "jax.experimental.sparse.bcoo_gather(indices_are_sorted)", "jax.experimental.sparse.bcoo_gather(unique_indices)",
        "jax.experimental.buffer_callback.buffer_callback(command_buffer_compatible)",
        "jax.experimental.pallas.multiple_of(values)", "jax.experimental.pallas.triton.max_contiguous(values)",
    ),
    "kernels are interpreted, exactly and in order: nothing is compiled, cached or approximated": (
        "jax.experimental.pallas.pallas_call(compiler_params)", "jax.experimental.pallas.pallas_call(cost_estimate)",
        "jax.experimental.pallas.pallas_call(metadata)", "jax.experimental.pallas.reciprocal(approx)",
        "jax.experimental.pallas.reciprocal(full_range)", "jax.experimental.pallas.tpu.load(cache_modifier)",
        "jax.experimental.pallas.tpu.load(eviction_policy)", "jax.experimental.pallas.tpu.load(volatile)",
        "jax.experimental.pallas.tpu.store(eviction_policy)",
        *(f"jax.experimental.pallas.core_map({p})" for p in ("compiler_params", "cost_estimate", "metadata")),
        *(f"{_PLGPU}.{f}(optimized)" for f in _OPTIMIZED.split()),
        *(f"{_PLGPU}.{f}(accumulator_ilp)" for f in ("max", "min", "prod", "sum")),
        *(f"jax.experimental.pallas.tpu.emit_pipeline{f}({p})" for f in ("", "_with_async_prefetch")
          for p in ("tiling", "trace_scopes", "no_pipelining")),
    ),
    "an interpreted kernel makes a copy at its start: a wait has nothing to do": (
        f"{_PLGPU}.copy_smem_to_gmem(commit_group)", f"{_PLGPU}.wait_smem_to_gmem(wait_read_only)",
        "jax.experimental.pallas.tpu.emit_pipeline(output_wait_read_only)",
    ),
    "arrays are not assigned to registers here": (
        f"{_PLGPU}.broadcasted_iota(layout)", f"{_PLGPU}.layout_cast(new_layout)", f"{_PLGPU}.load(layout)",
    ),
    "the protocol has this parameter; this implementation does not need it": (
        "jax.experimental.hijax.HiPrim.dce(used_outs)", "jax.experimental.hijax.HiPrim.dce(live_ins)",
        "jax.experimental.hijax.HiPrim.staging(source_info)", "jax.extend.core.eval_jaxpr_transpose(prim)",
        "jax.extend.core.eval_jaxpr_transpose(params)", "jax.extend.core.Primitive.bind_with_trace(avals)",
        "jax.extend.core.CallPrimitive.bind_with_trace(avals)", "jax.experimental.hijax.HiPrimitive.bind_with_trace(avals)",
        "jax.nn.initializers.ones(key)", "jax.nn.initializers.zeros(key)", "jax.experimental.jet.zero_prop(series_in)",
        "jax.scipy.stats.gaussian_kde.tree_unflatten(aux_data)", "jax.NamedSharding.unconstrained(ndim)",
        "jax.extend.sharding.GSPMDSharding.with_dimension(axes)", "jax.extend.core.call_impl(params)", "jax.experimental.sparse.JAXSparse.__init__(args)",
    ),
    "a policy for all operations does not depend on their parameters": (
        *(f"jax.checkpoint_policies.{f}(__)" for f in ("dots_saveable", "everything_saveable", "nothing_saveable")),
    ),
    "NumPy uses it in rules for the number of bins, which are not supported": ("jax.numpy.histogram_bin_edges(weights)",),
    "products of pairs are added one by one, in full precision": (
        "jax.experimental.sparse.bcoo_conv_general_dilated(precision)",
    ),
    "the arrays contain this information": (
        "jax.experimental.rnn.lstm_ref(hidden_size)", "jax.experimental.rnn.lstm_ref(input_size)",
        "jax.experimental.sparse.test_util.SparseTestCase.assertSparseArraysEquivalent(canonicalize_dtypes)",
    ),
    "for libraries: messages find the names of functions, places and arguments themselves": (
        "jax.api_util.flatten_axes(kws)", "jax.api_util.flatten_axes(tupled_args)", "jax.experimental.ode.ravel_first_arg(debug_info)",
        "jax.extend.linear_util.cache(explain)", "jax.extend.source_info_util.summarize(num_frames)",
        "jax.extend.source_info_util.user_context(traceback)", "jax.interpreters.mlir.jaxpr_subcomp(outer_traceback)",
        "jax.interpreters.mlir.jaxpr_subcomp(name_stack)", "jax.ref.swap(_function_name)",
        "jax.core.ShapedArray.str_short(mesh_axis_types)", "jax.experimental.hijax.AbstractRef.str_short(mesh_axis_types)",
    ),
    "for libraries: the behaviour is always this one here": (
        "jax.core.ShapedArray.dec_rank(size)", "jax.core.ShapedArray.row_type(size)",
        "jax.experimental.hijax.HiType.str_short(short_dtypes)", "jax.experimental.hijax.HiType.str_short(mesh_axis_types)",
        "jax.experimental.hijax.MutableHiType.str_short(short_dtypes)",
        "jax.experimental.hijax.MutableHiType.str_short(mesh_axis_types)",
        "jax.extend.core.AbstractToken.str_short(short_dtypes)", "jax.extend.core.AbstractToken.str_short(mesh_axis_types)",
        "jax.custom_vjp.defvjp(generic_batching)", "jax.custom_vjp.defvjp_with_accums(generic_batching)",
        "jax.custom_vjp.defvjp_with_logs(generic_batching)", "jax.interpreters.ad.backward_pass(transform_stack)",
        "jax.api_util.flatten_fun(unk_names)", "jax.api_util.flatten_fun(use_eq_store)",
        "jax.api_util.flatten_fun_nokwargs(unk_names)", "jax.api_util.flatten_fun_nokwargs(use_eq_store)",
        "jax.extend.linear_util.transformation_with_aux2(unk_names)",
        "jax.extend.linear_util.transformation_with_aux2(use_eq_store)", "jax.extend.core.get_opaque_trace_state(convention)",
        "jax.interpreters.ad.jvp(transform_stack)", "jax.interpreters.mlir.register_lowering(cacheable)",
        "jax.interpreters.mlir.register_lowering(inline)", "jax.extend.xla.clear_hlo_module_transformation(name)",
        "jax.extend.xla.clear_hlo_module_transformation(platforms)", "jax.extend.xla.clear_hlo_module_transformation(stage)",
        "jax.stages.Traced.lower(_private_parameters)",
    ),
    "for libraries: an equation has no context of its own, and a rule has its module's": (
        "jax.extend.core.JaxprEqn.make(ctx)", "jax.interpreters.mlir.core_call_lowering(backend)",
        "jax.interpreters.mlir.ir_constant(const_lowering)", "jax.interpreters.mlir.ir_constants(const_lowering)",
        "jax.interpreters.mlir.jaxpr_subcomp(const_lowering)", "jax.interpreters.mlir.jaxpr_subcomp(dim_var_values)",
        "jax.interpreters.pxla.create_compile_options(computation)",
    ),
    "for libraries: the values and the program contain this information": (
        "jax.interpreters.mlir.emit_python_callback(operand_avals)", "jax.interpreters.mlir.emit_python_callback(partitioned)",
        "jax.interpreters.mlir.emit_python_callback(returns_token)",
        "jax.interpreters.mlir.lower_jaxpr_to_module(ordered_effects)",
    ),
}  # fmt: skip
