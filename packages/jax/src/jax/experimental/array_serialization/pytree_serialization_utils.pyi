from bedrax.processes.tree_io import (
    deserialize_pytreedef as deserialize_pytreedef,
    register_pytree_node_serialization as register_pytree_node_serialization,
    serialize_pytreedef as serialize_pytreedef,
)
