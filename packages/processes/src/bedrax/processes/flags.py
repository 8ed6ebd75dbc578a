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
enable_preemption_service = flag(
    "jax_enable_preemption_service", True, "processes agree on the step at which they stop when they are to"
)
