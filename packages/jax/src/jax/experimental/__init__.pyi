from bedrax.extend.element_dtypes import EArray as EArray, primal_tangent_dtype as primal_tangent_dtype
from bedrax.state.hi_types import cur_qdd as cur_qdd
from bedrax.lax.primitives.callbacks import io_callback as io_callback
from . import (
    array_serialization as array_serialization, buffer_callback as buffer_callback, checkify as checkify,
    colocated_python as colocated_python, compilation_cache as compilation_cache, compute_on as compute_on, custom_partitioning as custom_partitioning,
    control_deps as control_deps, fused as fused, hijax as hijax, jax2tf as jax2tf, jet as jet, key_reuse as
    key_reuse, layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils, ode as ode,
    overlap as overlap, pallas as
    pallas, pjit as pjit, profiler as profiler, random as random, rnn as rnn, roofline as roofline,
    scheduling_groups as scheduling_groups, serialize_executable as serialize_executable, shard_alike as
    shard_alike, shard_map as shard_map, source_mapper as source_mapper, sparse as sparse, thunky as thunky, topologies as topologies,
    transfer as transfer, xla_metadata as xla_metadata,
)  # fmt: skip
