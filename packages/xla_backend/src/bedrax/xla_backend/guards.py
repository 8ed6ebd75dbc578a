"""Guards of the runtime: implicit transfers, and arrays that only the cycle collector frees.

The runtime does the checks. This module passes the options to it, and marks the functions that transfer explicitly.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from bedrax.core import config
from bedrax.core.context import UNSET
from bedrax.xla_backend import flags
from bedrax.xla_backend.door.runtime import guard_lib

# Guard of the runtime -> the options that set it, the more specific first.
_GUARDED = {
    "host_to_device": (flags.transfer_guard_host_to_device, flags.transfer_guard),
    "device_to_device": (flags.transfer_guard_device_to_device, flags.transfer_guard),
    "device_to_host": (flags.transfer_guard_device_to_host, flags.transfer_guard),
    "garbage_collect_array": (flags.array_garbage_collection_guard,),
}
_LEVELS = {"garbage_collect_array": guard_lib.GarbageCollectionGuardLevel}


@config.on_change(*{flag for options in _GUARDED.values() for flag in options})
def _set_guards(flag: config.Flag) -> None:
    """Pass a changed option to the runtime."""
    for guarded, options in _GUARDED.items():
        if flag in options:
            levels = _LEVELS.get(guarded, guard_lib.TransferGuardLevel)
            everywhere = next((f.global_value for f in options if f.global_value is not None), None)
            here = next((f.local_value for f in options if f.local_value not in (None, UNSET)), None)
            for state, value in ((guard_lib.global_state(), everywhere), (guard_lib.thread_local_state(), here)):
                setattr(state, guarded, None if value is None else getattr(levels, value.upper()))


_guarded_by: tuple[int, bool] | None = None  # the thread, and whether it turned the guard on for all


@config.on_change(flags.thread_guard)
def _set_thread_guard(flag: config.Flag) -> None:
    """The runtime stores the thread that turns this on, and checks launches on devices of several processes."""
    global _guarded_by
    me = threading.get_ident()
    if flag.value:
        guard_lib.update_thread_guard_global_state(True)  # raises if another thread did
        _guarded_by = me, flag.global_value
    elif _guarded_by is not None and (_guarded_by[1] or _guarded_by[0] == me):  # only the owning thread
        guard_lib.update_thread_guard_global_state(False)
        _guarded_by = None


def asks_for(transfer: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that transfer explicitly: "explicit_device_put" or "..._get"."""

    def decorate(fun: Callable) -> Callable:
        @functools.wraps(fun)
        def explicit(*args, **kwargs):
            state = guard_lib.thread_local_state()
            before = getattr(state, transfer)
            setattr(state, transfer, True)
            try:
                return fun(*args, **kwargs)
            finally:
                setattr(state, transfer, before)

        return explicit

    return decorate
