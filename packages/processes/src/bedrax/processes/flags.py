"""Options of runs of several processes."""

from bedrax.core.config import flag

enable_recoverability = flag(
    "jax_enable_recoverability", False, "the death of a process does not end the others of a run"
)
distributed_debug = flag(
    "jax_distributed_debug", False, "what jax.distributed.initialize connects is logged at WARNING"
)
check_proxy_envs = flag(
    "jax_check_proxy_envs", True, "warn of proxies in the environment, which may come between the processes of a run"
)
mtls_cert_file = flag(
    "jax_mtls_cert_file",
    None,
    "this process's chain of certificates (PEM), by which the processes of a run know each other",
)
mtls_key_file = flag("jax_mtls_key_file", None, "the private key (PEM) of jax_mtls_cert_file")
mtls_ca_file = flag(
    "jax_mtls_ca_file", None, "the authorities (PEM) that certificates of the other processes are checked by"
)
mtls_peer_uri_prefix = flag(
    "jax_mtls_peer_uri_prefix",
    None,
    "how a URI in the certificate of another process begins, in place of its host's name",
)
verify_secure_credentials = flag(
    "jax_distributed_verify_secure_credentials",
    False,
    "jax.distributed.initialize refuses to connect without certificates",
)
enable_preemption_service = flag(
    "jax_enable_preemption_service", True, "processes agree on the step at which they stop when they are to"
)
