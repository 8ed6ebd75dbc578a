"""`jax.experimental`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.primitives.callbacks": (
        "io_callback",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "array_serialization", "buffer_callback", "checkify", "colocated_python", "compilation_cache",
    "compute_on", "control_deps", "custom_partitioning", "fused", "hijax", "jax2tf", "jet", "key_reuse",
    "layout", "mesh_utils", "multihost_utils", "ode", "pjit", "profiler", "random", "rnn", "roofline",
    "scheduling_groups", "serialize_executable", "shard_alike", "shard_map", "source_mapper", "sparse",
    "topologies", "transfer", "xla_metadata",
))  # fmt: skip

if TYPE_CHECKING:
    from bedrax.core.primitives.callbacks import (
        io_callback as io_callback,
    )  # fmt: skip
    from jax.experimental import array_serialization as array_serialization
    from jax.experimental import buffer_callback as buffer_callback
    from jax.experimental import checkify as checkify
    from jax.experimental import colocated_python as colocated_python
    from jax.experimental import compilation_cache as compilation_cache
    from jax.experimental import compute_on as compute_on
    from jax.experimental import control_deps as control_deps
    from jax.experimental import custom_partitioning as custom_partitioning
    from jax.experimental import fused as fused
    from jax.experimental import hijax as hijax
    from jax.experimental import jax2tf as jax2tf
    from jax.experimental import jet as jet
    from jax.experimental import key_reuse as key_reuse
    from jax.experimental import layout as layout
    from jax.experimental import mesh_utils as mesh_utils
    from jax.experimental import multihost_utils as multihost_utils
    from jax.experimental import ode as ode
    from jax.experimental import pjit as pjit
    from jax.experimental import profiler as profiler
    from jax.experimental import random as random
    from jax.experimental import rnn as rnn
    from jax.experimental import roofline as roofline
    from jax.experimental import scheduling_groups as scheduling_groups
    from jax.experimental import serialize_executable as serialize_executable
    from jax.experimental import shard_alike as shard_alike
    from jax.experimental import shard_map as shard_map
    from jax.experimental import source_mapper as source_mapper
    from jax.experimental import sparse as sparse
    from jax.experimental import topologies as topologies
    from jax.experimental import transfer as transfer
    from jax.experimental import xla_metadata as xla_metadata
