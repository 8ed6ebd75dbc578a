"""Options of keys and samplers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from bedrax.core import executors, offers
from bedrax.core.config import Flag, flag, on_change

default_prng_impl: Final = flag(
    "jax_default_prng_impl",
    "threefry2x32",
    "implementation of keys that do not name theirs",
    choices=("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"),
    keyed=True,
)
enable_custom_prng: Final = flag("jax_enable_custom_prng", False, "PRNGKey makes typed keys", keyed=True)
legacy_prng_key: Final = flag(
    "jax_legacy_prng_key",
    "allow",
    "what to do when an untyped uint32 key is used",
    choices=("allow", "warn", "error"),
    keyed=True,
)
threefry_partitionable: Final = flag(
    "jax_threefry_partitionable", True, "threefry bits do not depend on how the array is sharded", keyed=True
)
random_seed_offset: Final = flag("jax_random_seed_offset", 0, "added to every seed", keyed=True)
high_dynamic_range_gumbel: Final = flag(
    "jax_high_dynamic_range_gumbel", False, "Gumbel samples with more bits in their tails", keyed=True
)
debug_key_reuse: Final = flag(
    "jax_debug_key_reuse", False, "using a key twice is an error: each must be split or folded", keyed=True
)


def _checked(*what: Any) -> Callable[..., Any] | None:
    found = offers.offered("key reuse") if debug_key_reuse.value else None
    return None if found is None else found(*what)


_on: set[int | None] = set()  # the threads in which the option is on, and None if it is on in all
_lock = threading.Lock()


@on_change(debug_key_reuse)
def _observe(changed: Flag) -> None:
    """Observe evaluations and programs while the option is on in a thread."""
    from bedrax.core import staging  # not at the top: options are declared before programs are made

    with _lock:
        for where, on in ((threading.get_ident(), changed.local_value is True), (None, changed.global_value)):
            (_on.add if on else _on.discard)(where)
        executors.observe(_checked, bool(_on))
        staging.observers[:] = [_checked] if _on else []
