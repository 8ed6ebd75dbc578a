from bedrax.core import Array as Array, ShapeDtypeStruct as ShapeDtypeStruct
from bedrax.xla_backend.door.runtime import Device as Device
from bedrax.xla_backend import (
    NamedSharding as NamedSharding,
    Shard as Shard,
    block_until_ready as block_until_ready,
    clear_caches as clear_caches,
    default_backend as default_backend,
    device_count as device_count,
    device_get as device_get,
    device_put as device_put,
    devices as devices,
    effects_barrier as effects_barrier,
    jit as jit,
    local_device_count as local_device_count,
    local_devices as local_devices,
    make_array_from_callback as make_array_from_callback,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    make_mesh as make_mesh,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)
from bedrax.parallel import (
    PartitionSpec as _PartitionSpec,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    pmap as pmap,
    reshard as reshard,
    set_mesh as set_mesh,
    shard_map as shard_map,
    smap as smap,
    use_abstract_mesh as use_abstract_mesh,
)
from bedrax.pallas import ds as ds
from bedrax.xla_backend.sharding import memory as memory
from bedrax.state import Ref as Ref, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref
from bedrax.core.config import (
    check_tracer_leaks as check_tracer_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_nans as debug_nans,
    disable_jit as disable_jit,
    enable_checks as enable_checks,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    make_user_context as make_user_context,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
)
from bedrax.lax.flags import (
    default_matmul_precision as default_matmul_precision,
    numpy_rank_promotion as numpy_rank_promotion,
)
from bedrax.random.flags import (
    debug_key_reuse as debug_key_reuse,
    default_prng_impl as default_prng_impl,
    enable_custom_prng as enable_custom_prng,
    legacy_prng_key as legacy_prng_key,
    threefry_partitionable as threefry_partitionable,
)
from bedrax.nn.flags import softmax_custom_jvp as softmax_custom_jvp
from bedrax.xla_backend.flags import (
    array_garbage_collection_guard as array_garbage_collection_guard,
    default_device as default_device,
    log_compiles as log_compiles,
    no_execution as no_execution,
    thread_guard as thread_guard,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from bedrax.extend.flags import (
    allow_f16_reductions as allow_f16_reductions,
    auto_pcast as auto_pcast,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
)
from bedrax.autodiff import (
    checkpoint as checkpoint,
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
    fwd_and_bwd as fwd_and_bwd,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    remat as remat,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from bedrax.xla_backend.placement import copy_to_host_async as copy_to_host_async
from bedrax.lax.at_once import ensure_compile_time_eval as ensure_compile_time_eval
from bedrax.core.avals import typeof as typeof
from bedrax.core.jitting import Inline as Inline
from bedrax.xla_backend.compile import CompilerEffortLevel as CompilerEffortLevel
from bedrax.core.names import named_call as named_call, named_scope as named_scope
from bedrax.core.staging import eval_shape as eval_shape, make_jaxpr as make_jaxpr
from bedrax.core.dtypes import float0 as float0
from bedrax.xla_backend.clients import (
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    live_arrays as live_arrays,
)
from bedrax.processes.local_data import make_array_from_process_local_data as make_array_from_process_local_data
from bedrax.xla_backend.environment import print_environment_info as print_environment_info
from bedrax.lax.primitives.callbacks import pure_callback as pure_callback
from bedrax.batching import vmap as vmap
from . import (
    _gone as _gone,
    _src as _src,
    ad as ad,
    ad_checkpoint as ad_checkpoint,
    api_util as api_util,
    checkpoint_policies as checkpoint_policies,
    cloud_tpu_init as cloud_tpu_init,
    core as core,
    custom_batching as custom_batching,
    custom_derivatives as custom_derivatives,
    debug as debug,
    distributed as distributed,
    dlpack as dlpack,
    dtypes as dtypes,
    errors as errors,
    example_libraries as example_libraries,
    experimental as experimental,
    export as export,
    extend as extend,
    ffi as ffi,
    flatten_util as flatten_util,
    image as image,
    interpreters as interpreters,
    lax as lax,
    lib as lib,
    monitoring as monitoring,
    nn as nn,
    numpy as numpy,
    ops as ops,
    profiler as profiler,
    random as random,
    ref as ref,
    scipy as scipy,
    sharding as sharding,
    stages as stages,
    test_util as test_util,
    tree as tree,
    tree_util as tree_util,
    typing as typing,
    version as version,
)
from .version import __version__ as __version__, __version_info__ as __version_info__

P = _PartitionSpec
checking_leaks = check_tracer_leaks
