"""Public names that no test names, with reasons: reason -> their last parts."""

NOT_COVERED: dict[str, str] = {
    "classes in programs, traces and rules that libraries read and do not make; the functions that make them are tested": """
        DropVar CustomVJPPrimal DebugEffect OrderedDebugEffect JetTrace JetTracer terms_of ZeroSeries ZeroTerm MemoryRef
        TransformedRef AvalMutableQDD AvalQDD AbstractToken Token TraceTag JVPTrace JVPTracer UndefinedPrimal JaxprTracer
        SparseTrace SparsifyValue MappingSpec RooflineRuleContext FunctionInfo Specialization LoweringResult LoweringRuleContext ModuleContext SPMDAxisContext ShapePolyLoweringState
        TokenSet ExecutionContext AbstractDevice TopologyDescription SourceMapDump BCOOProperties BCSRProperties
    """,
    "members of these classes for their own package": """
        tracer_class result_types is_default from_pjrt_layout rewrite arg_names func_src_info with_unknown_names
        is_forward_compat set_tokens_out tokens_in add_host_callback ip keepalives symbol_table has_platform_index_argument
        to_tangent_spec lojax dce_jaxpr_closed_call_rule
    """,
    "classes for the compilation of kernels, which are not compiled here": """
        Blocked BoundedSlice Buffered CompilerParams MemorySpace PipelineStage RevisitMode SideEffectType TraceScope
    """,
    "names for annotations, warnings and errors": """
        PolyShape CuSparseEfficiencyWarning LoweringException SparseCorePushStreamWarning BarrierTimeoutError ProcessFailureError GlobalAsyncCheckpointManagerBase
        BatchedDotGeneralProperties SparseLayout is_prng_key_dtype
    """,
    "it needs a network, a profile or another process, or ends the state of other tests in its process": """
        start_server register_subprocess get_profiled_instructions_proto clear_backends clear_event_listeners
        check_for_errors async_deserialize async_serialize
    """,
    "XLA accepts it, and programs for CPUs do not change": """
        register_ffi_target_as_batch_partitionable
    """,
}
