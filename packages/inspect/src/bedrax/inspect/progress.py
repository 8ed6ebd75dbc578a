"""Progress of long work on a terminal, if `rich` is installed. In pipes and files, nothing is shown."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator


def on_terminal() -> bool:
    """Return whether the standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def waiting(text: str, after: float = 2.0) -> Iterator[None]:
    """Context manager: show a text and the seconds, while the block runs.

    Args:
      text: such as ``"compiling loss"``.
      after: the seconds after which it is shown. Shorter work shows nothing.

    Examples:

      >>> from bedrax.inspect import progress
      >>> with progress.waiting("adding"):
      ...     1 + 1
      ...
      2
    """
    if not on_terminal():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(text, after, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _show(text: str, after: float, ended: threading.Event) -> None:
    started = time.monotonic()
    if ended.wait(after):
        return
    try:
        from rich.console import Console
    except ImportError:
        return
    console = Console(stderr=True)
    if not console.is_terminal:  # also where TERM is dumb
        return
    with console.status(text) as status:
        while not ended.wait(0.2):
            status.update(f"{text}: {time.monotonic() - started:.0f} s")
