"""Options of runs of several processes."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

enable_recoverability: Final = flag(
    "jax_enable_recoverability", False, "the death of a process does not end the others of a run"
)
distributed_debug: Final = flag(
    "jax_distributed_debug", False, "jax.distributed.initialize logs its connections at WARNING"
)
check_proxy_envs: Final = flag(
    "jax_check_proxy_envs", True, "warn of proxies in the environment, which may prevent the connection of processes"
)
mtls_cert_file: Final = flag(
    "jax_mtls_cert_file",
    None,
    "the certificate chain (PEM) of this process, for the authentication of the processes of a run",
)
mtls_key_file: Final = flag("jax_mtls_key_file", None, "the private key (PEM) of jax_mtls_cert_file")
mtls_ca_file: Final = flag(
    "jax_mtls_ca_file", None, "the authorities (PEM) for the certificates of the other processes"
)
mtls_peer_uri_prefix: Final = flag(
    "jax_mtls_peer_uri_prefix",
    None,
    "the beginning of a URI in the certificate of another process, instead of its host's name",
)
verify_secure_credentials: Final = flag(
    "jax_distributed_verify_secure_credentials",
    False,
    "jax.distributed.initialize raises an error without certificates",
)
enable_preemption_service: Final = flag("jax_enable_preemption_service", True, "processes agree on a step for a stop")
