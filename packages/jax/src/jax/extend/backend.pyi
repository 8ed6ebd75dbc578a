from bedrax.xla_backend.clients import (
    backends as backends,
    clear_backends as clear_backends,
    get_backend as get_backend,
)
from bedrax.extend.services import (
    backend_xla_version as backend_xla_version,
    clear_in_memory_compilation_cache as clear_in_memory_compilation_cache,
    get_compile_options as get_compile_options,
    register_backend_cache as register_backend_cache,
    register_backend_factory as register_backend_factory,
)
from bedrax.xla_backend.clients import default_device as _default_device
from bedrax.xla_backend.door.proxy import ifrt_proxy as ifrt_proxy

get_default_device = _default_device
