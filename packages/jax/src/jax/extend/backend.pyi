from bedrax.xla_backend.clients import (
    backends as backends, clear_backends as clear_backends, get_backend as get_backend,
)  # fmt: skip
