"""Options of meshes."""

from bedrax.core.config import flag

disallow_mesh_context_manager = flag(
    "jax_disallow_mesh_context_manager", False, "`with mesh:` is an error; jax.set_mesh is not"
)
