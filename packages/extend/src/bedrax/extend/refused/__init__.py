"""Names of modules that need the compiler of a GPU or a TPU: they can be imported, and a use raises with the reason.

`refused` is the table: module of the face -> (reason, names), and so on. Each module in this folder makes the names of
one module of the face.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax.core.defining import named, with_example

_REMOTE = (
    "it is between devices, and interpreted kernels run on one; write the exchange with jax.lax.ppermute, all_gather or"
    " psum under jax.shard_map, around kernels"
)
_INSIDE_GPU = (
    "it is a unit of a GPU (tensor memory, clusters, warps, layouts of registers) and needs its compiler; write the"
    " kernel with plain loads and stores, plgpu.copy_gmem_to_smem and plgpu.wgmma, or with jax.numpy"
)
_SPARSE_CORES = (
    "kernels for the sparse cores of TPUs do not run here; ref.at[indices], jax.numpy.cumsum, jax.lax.sort and"
    " jax.lax.population_count compute the same in an interpreted kernel"
)
_NO_TPU = "there is no TPU, and no compiler for one; write what the kernel does without it"
_RANDOM = "kernels have no generator of a TPU; draw with jax.random before the kernel, or in the kernel with a key as its argument"
_SEMAPHORE = "semaphores are memory of pltpu.SemaphoreType: in scratch_shapes, or for run_scoped"
_COST = "XLA's estimate of operations and bytes is the result of jax.jit(f).lower(*args).compile().cost_analysis()"
_NOT_FUSED = "kernels are interpreted, as operations that XLA fuses; call the function in the kernel, or around it"
_COMPILED = "kernels are not compiled here; jax.jit(f).lower(*args) has the program that runs instead"

# Module of the face -> pairs (why, names).
refused: dict[str, tuple[tuple[str, str], ...]] = {
    "jax.experimental.thunky": (
        (
            "it records commands for a GPU's streams, which no CPU has; write the function with jax.numpy, jax.lax.cond,"
            " while_loop and collectives under jax.shard_map, and jax.jit compiles it",
            """all_gather all_gather_p all_reduce all_reduce_p all_to_all all_to_all_p async_done async_done_p async_start
            async_start_p call_jax call_jax_p call_thunky_p collective_group collective_group_p collective_permute
            collective_permute_p cond cond_p copy copy_p custom_call custom_call_p jit memset memset_p memzero memzero_p
            ptx_kernel ptx_kernel_p reduce_scatter reduce_scatter_p switch while_loop while_p""",
        ),
    ),
    "jax.experimental.pallas": (
        (_COST, "estimate_cost"),
        (_SEMAPHORE, "semaphore"),
        (_COMPILED, "lower_as_mlir pallas_call_p pallas_export_experimental"),
        ("every call of an interpreted kernel has its own memory; give it a reference as an argument of kernel", "get_global"),
        ("one of several references is chosen by jax.lax.cond, or by an index into one larger reference", "select_ref"),
        ("the programs of a grid run one after the other, so a delay has no use", "delay"),
        ("memory that is not written yet always holds nan or the least integer", "enable_poison_buffers"),
    ),
    "jax.experimental.pallas.tpu": (
        (_REMOTE, "async_remote_copy make_async_remote_copy"),
        (_RANDOM, "prng_random_bits prng_seed sample_block stateful_bernoulli stateful_bits stateful_normal stateful_uniform to_pallas_key"),
        (_SEMAPHORE, "dma_semaphore"),
        (_NO_TPU, "BufferedRefBase ChipVersion CoreType Tiling TpuInfo core get_tpu_info get_tpu_info_for_chip trace_value"),
    ),
    "jax.experimental.pallas.tpu_sc": (
        (
            _SPARSE_CORES,
            """Indices PackFormat ScalarSubcoreMesh VectorSubcoreMesh addupdate addupdate_compressed addupdate_scatter
            all_reduce_ffs all_reduce_population_count bitcast cummax cumsum fetch_and_add get_sparse_core_info load_expanded
            load_gather pack parallel_loop scan_count slice_subcore_vmem_from_shared sort_key_val store_compressed
            store_scatter subcore_barrier unpack""",
        ),
    ),
    "jax.experimental.pallas.triton": (
        ("instructions of a GPU do not run here; write the operation with jax.numpy", "elementwise_inline_asm"),
    ),
    "jax.experimental.pallas.fuser": (
        (_NOT_FUSED, "BlockIndexTransform custom_fusion get_stateful_input_fusion_values get_stateful_output_fusion_values"),
    ),
    "jax.experimental.pallas.mosaic_gpu": (
        (_REMOTE, "PeerMemRef multimem_load_reduce multimem_store remote_ref semaphore_signal_multicast semaphore_signal_parallel SemaphoreSignal"),
        (
            _INSIDE_GPU,
            """ClusterBarrier CopyPartition PipelinePipeline RefType RefUnion Replicated ShapeDtypeStruct SwizzleTransform TMEM TMEMLayout Tiling
            TilingTransform Transform TryClusterCancelResult WarpMesh alloc_semaphore as_torch_kernel
            async_copy_scales_to_tmem async_copy_smem_to_tmem async_copy_sparse_metadata_to_tmem async_load_tmem async_prefetch
            async_store_smem async_store_tmem cluster_ref commit_tmem dynamic_scheduling_loop emit_pipeline_warp_specialized
            format_tcgen05_sparse_metadata griddepcontrol_launch_dependents griddepcontrol_wait im2col_ref inline_mgpu
            multicast_ref print_layout query_cluster_cancel tcgen05_commit_arrive tcgen05_mma transform_ref transpose_ref
            try_cluster_cancel wait_load_tmem warp_map""",
        ),
    ),
}  # fmt: skip

# Path of a name -> an example with what to write instead.
_EXAMPLES = {
    "jax.experimental.pallas.estimate_cost": """
    >>> from jax.experimental import pallas as pl

    >>> f, x = jnp.exp, jnp.ones((4, 8))
    >>> pl.estimate_cost(f, x)
    Traceback (most recent call last):
        ...
    NotImplementedError: jax.experimental.pallas.estimate_cost: ...
    >>> int(jax.jit(f).lower(x).compile().cost_analysis()["bytes accessed"]) == 2 * x.nbytes  # XLA's estimate
    True
    """,
    "jax.experimental.pallas.get_global": """
    >>> from jax.experimental import pallas as pl

    >>> pl.get_global(pl.ANY((2,), jnp.int32))
    Traceback (most recent call last):
        ...
    NotImplementedError: jax.experimental.pallas.get_global: ...
    >>> def body(ref):  # memory of a function, not of the program
    ...     ref[...] = jnp.array([1, 2])
    ...     return ref[...].sum()
    ...
    >>> pl.run_scoped(body, pl.ANY((2,), jnp.int32))
    Array(3, dtype=int32)
    """,
    "jax.experimental.pallas.lower_as_mlir": """
    >>> from jax.experimental import pallas as pl

    >>> x = jnp.ones(3)
    >>> pl.lower_as_mlir(jnp.sin, x)
    Traceback (most recent call last):
        ...
    NotImplementedError: jax.experimental.pallas.lower_as_mlir: ...
    >>> "stablehlo.sine" in jax.jit(jnp.sin).lower(x).as_text()
    True
    """,
    "jax.experimental.pallas.semaphore": """
    >>> from jax.experimental import pallas as pl

    >>> pl.semaphore([3])
    Traceback (most recent call last):
        ...
    NotImplementedError: jax.experimental.pallas.semaphore: semaphores are memory of pltpu.SemaphoreType: ...
    """,
}

# Path of a name -> reason.
reasons: dict[str, str] = {
    f"{module}.{name}": why for module, groups in refused.items() for why, names in groups for name in names.split()
}


def _make(path: str, module: str) -> Any:
    """A class (for a name with a capital first letter) or a function of `module` that raises when it is called."""
    name, text = path.rpartition(".")[2], f"{path}: {reasons[path]}"
    doc = f"Not supported: raises NotImplementedError. {reasons[path][0].upper()}{reasons[path][1:]}."
    doc = with_example(doc, _EXAMPLES.get(path, ""))

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(text)

    if name[0].isupper():
        return type(name, (), {"__init__": refuse, "__doc__": doc, "__module__": module})
    return named(refuse, name, module, doc)


def names_of(module: str) -> tuple[Callable[[str], Any], list[str]]:
    """``__getattr__, __all__`` for the unsupported names of a module of the face."""
    found = [path.rpartition(".")[2] for path in reasons if path.rpartition(".")[0] == module]
    made: dict[str, Any] = {}
    home = f"{__name__}.{module.rpartition('.')[2]}"

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"{module} has no refused name {name!r}")
        return made.setdefault(name, _make(f"{module}.{name}", home))

    return get, found
