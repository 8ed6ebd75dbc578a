"""Options of meshes."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

disallow_mesh_context_manager: Final = flag(
    "jax_disallow_mesh_context_manager", False, "`with mesh:` is an error; jax.set_mesh is not"
)
