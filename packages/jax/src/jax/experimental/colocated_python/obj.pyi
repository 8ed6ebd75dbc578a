from bedrax.processes.colocated import (
    SINGLETON_INSTANCE_REGISTRY as SINGLETON_INSTANCE_REGISTRY,
    wrap_class as wrap_class,
)
