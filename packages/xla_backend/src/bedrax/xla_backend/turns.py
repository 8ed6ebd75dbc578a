"""Turns of the threads that run programs: over several CPU devices, and at the end of the process.

**Several CPU devices.** The CPU client runs the parts of a program in a pool of threads. A call hands each part to the
pool, and a part waits there if 32 programs of its device have not ended yet. The client runs the programs over several
devices in the order of the calls, but only if the calls do not overlap. Overlapping calls of many threads can so occupy
any pool with parts that wait for each other. So a call waits until those of other threads have handed their parts over.
Then the pool contains the parts of one waiting program and of one running program, and `THREADS_PER_DEVICE` is enough.

C++ dispatch runs known programs without Python, and takes no turns. So it runs programs over several devices only as long
as one thread does so. From the first call of a second thread on, every thread calls such programs in Python.

**The end.** Python ends daemon threads when they return from C++ to Python, which aborts the process. So before Python
ends, calls in progress are awaited, and later calls of other threads never return. Calls inside callbacks do return.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, Final

from bedrax.xla_backend.door import runtime

# The threads for a running program, for a waiting program, and a third one. The first call of a second thread may
# overlap a call by C++, so that two programs run, or two wait. Later, programs of callbacks use the third thread.
THREADS_PER_DEVICE: Final = 3
SECONDS_AT_THE_END: Final = 10.0
SECONDS_FOR_OTHERS: Final = 1.0  # how long threads are awaited that may not use arrays

_turn = threading.RLock()  # a signal handler may call a program during a call of its thread
# `first`: whether this is the only thread so far with programs over several CPU devices. `callbacks`: for each callback
# that the thread is inside of, whether its program is over several CPU devices.
_thread = threading.local()

_ended_by: int | None = None  # the thread that ends the interpreter
_parked: set[int] = set()
_never = threading.Lock()
_never.acquire()

# Functions that return the arrays that may still be computed.
live_arrays: list[Callable[[], Iterable[Any]]] = []


def are_needed(executable: Any, devices: Sequence[runtime.Device]) -> bool:
    """Whether calls of a program take turns: it runs on several CPU devices of this process."""
    if len(devices) < 2 or devices[0].platform != "cpu" or not isinstance(executable, runtime.LoadedExecutable):
        return False
    return len(executable.local_devices()) > 1


def callback(function: Callable[..., Any], of_several: bool) -> Callable[..., Any]:
    """`function` as a callback of a program.

    At the end of the process it continues to its own end: while C++ calls Python, Python 3.15 does not end. So C++
    dispatch has other keys in callbacks, and waits there for no thread that has stopped. If `of_several`, the program
    is over several CPU devices, and the callback calls no such program.
    """

    def call(*arrays):
        outer = getattr(_thread, "callbacks", ())
        _thread.callbacks = (*outer, of_several)
        part = runtime.part.swap_local("callback")
        try:
            return function(*arrays)
        finally:
            runtime.part.swap_local(part)
            _thread.callbacks = outer

    return call


def _in_callback() -> bool:
    return bool(getattr(_thread, "callbacks", ()))


def turn() -> contextlib.AbstractContextManager[Any]:
    """The context of a call of a program over several CPU devices.

    Raises:
      RuntimeError: a callback of such a program makes the call. It would begin after the end of the program.
    """
    if any(getattr(_thread, "callbacks", ())):
        raise RuntimeError(
            "a callback of a program over several CPU devices calls a program over several CPU devices, which would wait"
            " for the end of the first one: compute with NumPy in the callback, or with arrays on one device"
        )
    calls = runtime.calls.value
    inside = _in_callback()  # C++ has other keys there, so this is not a first thread
    if calls is None:
        with _turn:
            if runtime.calls.value is None and not inside:
                _thread.first = True
                runtime.part.set_local("first")
                runtime.calls.set_global("one thread")
                return _turn
    if inside or not getattr(_thread, "first", False):
        with _turn:
            if runtime.calls.value in (None, "one thread"):
                runtime.calls.set_global("threads")
    return _turn


def are_alone() -> bool:
    """Whether this is the only thread so far that has called programs over several CPU devices.

    C++ dispatch stores the data of a program for calls of the same key. If this was true when the call began, no other
    thread has the same key or waits for these data.
    """
    return runtime.calls.value == "one thread" and getattr(_thread, "first", False) and not _in_callback()


def are_for_cpp(in_turn: bool, alone: bool) -> bool:
    """Whether C++ dispatch may run a program without Python.

    Args:
      alone: the value of `are_alone` at the begin of the call.
    """
    return _ended_by is None and (not in_turn or alone and are_alone())


# ---- the end ----


def stop_at_the_end() -> None:
    """Do not return if another thread ends the interpreter. Inside a callback, do return."""
    if _ended_by is not None and _ended_by != (me := threading.get_ident()) and not _in_callback():
        _parked.add(me)
        while True:
            _never.acquire()


def _others() -> dict[int, FrameType]:
    """The innermost frames of other threads that are not parked."""
    own = {t.ident for t in threading.enumerate() if t.name.startswith("bedrax ")}
    own |= _parked | {threading.get_ident()}
    return {ident: frame for ident, frame in sys._current_frames().items() if ident not in own}


def _are_busy() -> bool:
    """Whether a thread is in code of this implementation, or an array is not computed yet."""
    for frame in _others().values():
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_globals.get("__name__", "").partition(".")[0] in ("bedrax", "jax"):
                return True
            caller = caller.f_back
    for arrays in live_arrays:
        for x in arrays():
            with contextlib.suppress(RuntimeError):  # it was deleted, or its program failed
                if not x.is_ready():
                    return True
    return False


def _are_running() -> bool:
    """Whether a thread runs or waits for a core. It may be in C++, where it has no frame of this implementation."""
    others = _others()
    for thread in threading.enumerate():
        if thread.ident in others:
            with contextlib.suppress(OSError):  # the thread has ended, or the system has no such file
                with open(f"/proc/self/task/{thread.native_id}/stat", encoding="utf-8", errors="replace") as file:
                    if file.read().rpartition(")")[2].split()[0] == "R":
                        return True
    return False


@atexit.register
def _end() -> None:
    """Wait for the calls of daemon threads, which Python does not join."""
    global _ended_by
    if not _others():
        return
    _ended_by = threading.get_ident()
    runtime.calls.set_global("none")  # C++ dispatch calls Python from now on
    runtime.part.set_local("end")  # this thread does not wait for the trace of a stopped thread
    begin = time.monotonic()
    quiet = 0
    while quiet < 5 and (waited := time.monotonic() - begin) < SECONDS_AT_THE_END:
        time.sleep(0.005)
        # A call in C++ needs a moment after its last array is computed. A thread without arrays may run for ever.
        quiet = 0 if _are_busy() or waited < SECONDS_FOR_OTHERS and _are_running() else quiet + 1
