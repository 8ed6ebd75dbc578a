"""Array programs that are differentiated, batched, compiled and carried to TensorFlow.

This package is a face: every name comes from one of the `bedrax` layers."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

from bedrax.core import array as _array
from bedrax.core import executors as _executors
from jax.version import __version__, __version_info__

# XLA runs what users of `jax` write, and arrays have NumPy's methods; both are loaded when first used.
_executors.offer("bedrax.xla_backend", rank=1)
_array.install_on_demand("bedrax.numpy.methods", _array.NUMPY_METHODS)

_HOMES = {
    "bedrax.core": (
        "Array", "ShapeDtypeStruct",
    ),
    "bedrax.xla_backend.jaxlib_door": (
        "Device",
    ),
    "bedrax.xla_backend": (
        "NamedSharding", "Shard", "block_until_ready", "clear_caches", "default_backend", "device_count",
        "device_get", "device_put", "devices", "effects_barrier", "jit", "local_device_count",
        "local_devices", "make_array_from_callback", "make_array_from_process_local_data",
        "make_array_from_single_device_arrays", "make_mesh", "process_count", "process_index",
        "process_indices",
    ),
    "bedrax.xla_backend.sharding": (
        "P=PartitionSpec", "set_mesh",
    ),
    "bedrax.extend.refs": (
        "Ref", "empty_ref", "free_ref", "freeze", "new_ref",
    ),
    "bedrax.core.config": (
        "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "check_tracer_leaks",
        "checking_leaks=check_tracer_leaks", "config", "debug_infs", "debug_key_reuse", "debug_nans",
        "default_device", "default_matmul_precision", "default_prng_impl", "disable_jit", "enable_checks", "make_user_context",
        "enable_custom_prng", "enable_x64", "explain_cache_misses", "jax2tf_associative_scan_reductions",
        "legacy_prng_key", "log_compiles", "no_execution", "no_tracing", "numpy_dtype_promotion",
        "numpy_rank_promotion", "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "thread_guard",
        "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
        "transfer_guard_device_to_host", "transfer_guard_host_to_device",
    ),
    "bedrax.autodiff": (
        "checkpoint", "checkpoint_policies", "closure_convert", "custom_gradient", "custom_jvp",
        "custom_vjp", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp",
        "linear_transpose", "linearize", "remat", "value_and_grad", "vjp",
    ),
    "bedrax.xla_backend.placement": (
        "copy_to_host_async",
    ),
    "bedrax.core.scopes": (
        "ensure_compile_time_eval", "named_call", "named_scope", "typeof",
    ),
    "bedrax.core.staging": (
        "eval_shape", "make_jaxpr",
    ),
    "bedrax.core.dtypes": (
        "float0",
    ),
    "bedrax.xla_backend.clients": (
        "host_count", "host_id", "host_ids", "live_arrays",
    ),
    "bedrax.xla_backend.environment": (
        "print_environment_info",
    ),
    "bedrax.extend.device_maps": (
        "pmap", "shard_map", "smap",
    ),
    "bedrax.lax.primitives.callbacks": (
        "pure_callback",
    ),
    "bedrax.batching": (
        "vmap",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "_src", "ad_checkpoint", "api_util", "cloud_tpu_init", "core", "custom_batching", "custom_derivatives",
    "debug", "distributed", "dlpack", "dtypes", "errors", "example_libraries", "experimental", "export",
    "extend", "ffi", "flatten_util", "image", "interpreters", "lax", "lib", "monitoring", "nn", "numpy",
    "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "test_util", "tree", "tree_util",
    "typing", "version",
))  # fmt: skip

if TYPE_CHECKING:
    from bedrax.core import (
        Array as Array, ShapeDtypeStruct as ShapeDtypeStruct,
    )  # fmt: skip
    from bedrax.xla_backend.jaxlib_door import (
        Device as Device,
    )  # fmt: skip
    from bedrax.xla_backend import (
        NamedSharding as NamedSharding, Shard as Shard, block_until_ready as block_until_ready,
        clear_caches as clear_caches, default_backend as default_backend, device_count as device_count,
        device_get as device_get, device_put as device_put, devices as devices,
        effects_barrier as effects_barrier, jit as jit, local_device_count as local_device_count,
        local_devices as local_devices, make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
        make_mesh as make_mesh, process_count as process_count, process_index as process_index,
        process_indices as process_indices,
    )  # fmt: skip
    from bedrax.xla_backend.sharding import (
        PartitionSpec as P, set_mesh as set_mesh,
    )  # fmt: skip
    from bedrax.extend.refs import (
        Ref as Ref, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref,
    )  # fmt: skip
    from bedrax.core.config import (
        allow_f16_reductions as allow_f16_reductions,
        array_garbage_collection_guard as array_garbage_collection_guard, auto_pcast as auto_pcast,
        check_tracer_leaks as check_tracer_leaks, check_tracer_leaks as checking_leaks, config as config, make_user_context as make_user_context,
        debug_infs as debug_infs, debug_key_reuse as debug_key_reuse, debug_nans as debug_nans,
        default_device as default_device, default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl, disable_jit as disable_jit, enable_checks as enable_checks,
        enable_custom_prng as enable_custom_prng, enable_x64 as enable_x64,
        explain_cache_misses as explain_cache_misses,
        jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
        legacy_prng_key as legacy_prng_key, log_compiles as log_compiles, no_execution as no_execution,
        no_tracing as no_tracing, numpy_dtype_promotion as numpy_dtype_promotion,
        numpy_rank_promotion as numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp as softmax_custom_jvp, thread_guard as thread_guard,
        threefry_partitionable as threefry_partitionable, transfer_guard as transfer_guard,
        transfer_guard_device_to_device as transfer_guard_device_to_device,
        transfer_guard_device_to_host as transfer_guard_device_to_host,
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )  # fmt: skip
    from bedrax.autodiff import (
        checkpoint as checkpoint, checkpoint_policies as checkpoint_policies,
        closure_convert as closure_convert, custom_gradient as custom_gradient, custom_jvp as custom_jvp,
        custom_vjp as custom_vjp, fwd_and_bwd as fwd_and_bwd, grad as grad, hessian as hessian,
        jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, jvp as jvp,
        linear_transpose as linear_transpose, linearize as linearize, remat as remat,
        value_and_grad as value_and_grad, vjp as vjp,
    )  # fmt: skip
    from bedrax.xla_backend.placement import (
        copy_to_host_async as copy_to_host_async,
    )  # fmt: skip
    from bedrax.core.scopes import (
        ensure_compile_time_eval as ensure_compile_time_eval, named_call as named_call,
        named_scope as named_scope, typeof as typeof,
    )  # fmt: skip
    from bedrax.core.staging import (
        eval_shape as eval_shape, make_jaxpr as make_jaxpr,
    )  # fmt: skip
    from bedrax.core.dtypes import (
        float0 as float0,
    )  # fmt: skip
    from bedrax.xla_backend.clients import (
        host_count as host_count, host_id as host_id, host_ids as host_ids, live_arrays as live_arrays,
    )  # fmt: skip
    from bedrax.xla_backend.environment import (
        print_environment_info as print_environment_info,
    )  # fmt: skip
    from bedrax.extend.device_maps import (
        pmap as pmap, shard_map as shard_map, smap as smap,
    )  # fmt: skip
    from bedrax.lax.primitives.callbacks import pure_callback as pure_callback  # fmt: skip
    from bedrax.batching import (
        vmap as vmap,
    )  # fmt: skip
    from jax import _src as _src
    from jax import ad_checkpoint as ad_checkpoint
    from jax import api_util as api_util
    from jax import cloud_tpu_init as cloud_tpu_init
    from jax import core as core
    from jax import custom_batching as custom_batching
    from jax import custom_derivatives as custom_derivatives
    from jax import debug as debug
    from jax import distributed as distributed
    from jax import dlpack as dlpack
    from jax import dtypes as dtypes
    from jax import errors as errors
    from jax import example_libraries as example_libraries
    from jax import experimental as experimental
    from jax import export as export
    from jax import extend as extend
    from jax import ffi as ffi
    from jax import flatten_util as flatten_util
    from jax import image as image
    from jax import interpreters as interpreters
    from jax import lax as lax
    from jax import lib as lib
    from jax import monitoring as monitoring
    from jax import nn as nn
    from jax import numpy as numpy
    from jax import ops as ops
    from jax import profiler as profiler
    from jax import random as random
    from jax import ref as ref
    from jax import scipy as scipy
    from jax import sharding as sharding
    from jax import stages as stages
    from jax import test_util as test_util
    from jax import tree as tree
    from jax import tree_util as tree_util
    from jax import typing as typing
    from jax import version as version
