"""Shardings as arguments of a library's own functions: those of types, and the value that leaves a placement open.

Needed by jaxns (`canonicalize_sharding`) and BrainState (`UNSPECIFIED`).
"""

from __future__ import annotations

from typing import Final

from bedrax.parallel import PartitionSpec
from bedrax.parallel.meshes import get_abstract_mesh
from bedrax.xla_backend.sharding import NamedSharding, check_explicit, resolve

__all__ = ["UNSPECIFIED", "canonicalize_sharding"]

UNSPECIFIED: Final = None
"""The `in_shardings` and `out_shardings` of `jax.jit` that leave the placement open."""


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Return an argument `out_sharding` as a sharding over an abstract mesh, as the types of arrays have it.

    Args:
      sharding: the argument. A `PartitionSpec` is one of the current mesh.
      api_name: the function that has the argument, for messages.
      check_mesh_consistency: whether the mesh must be the current one, if there is one.

    Returns:
      The sharding; None if there is none: for None, and for the sharding of a type without a mesh.

    Raises:
      TypeError: it is neither a `NamedSharding` nor a `PartitionSpec`.
      ValueError: a spec without a current mesh; an axis that is not explicit; another mesh than the current one.

    Examples:

      >>> from jax._src.sharding_impls import canonicalize_sharding

      >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
      ...     canonicalize_sharding(jax.P("i"), "my_function").spec
      ...
      P('i',)
      >>> canonicalize_sharding(jax.typeof(jnp.ones(3)).sharding, "my_function") is None
      True
    """
    if sharding is None:
        return None
    if not isinstance(sharding, NamedSharding | PartitionSpec):
        raise TypeError(
            f"out_sharding of {api_name}: expected a NamedSharding or a PartitionSpec, got {sharding!r} of type"
            f" {type(sharding).__name__}"
        )
    if isinstance(sharding, PartitionSpec):
        sharding = resolve(sharding, f"out_sharding of {api_name}")
    mesh, current = [m.abstract_mesh.update(abstract_device=None) for m in (sharding.mesh, get_abstract_mesh())]
    if mesh.empty:
        return None
    if check_mesh_consistency and not current.empty and current != mesh:
        raise ValueError(
            f"out_sharding of {api_name}: {sharding.spec} is over {mesh}, but the current mesh is {current}; make the first"
            " one current with jax.set_mesh"
        )
    sharding = NamedSharding(mesh, sharding.spec)
    check_explicit(sharding, f"out_sharding of {api_name}")
    return sharding
