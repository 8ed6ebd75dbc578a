"""Progress on a terminal; nothing in a pipe."""

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

needs_terminal = pytest.mark.skipif(
    importlib.util.find_spec("pty") is None or importlib.util.find_spec("rich") is None, reason="needs rich and pty"
)
PROGRAM = Path(__file__).with_name("programs") / "slow_work.py"


def on_terminal(*arguments, until=None):
    """The output of the program on a terminal. Its standard input ends when the output has the text `until`."""
    import pty

    outer, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    process = subprocess.Popen(
        [sys.executable, PROGRAM, *arguments], stdin=subprocess.PIPE, stderr=inner, stdout=inner, env=environment
    )
    os.close(inner)
    if until is None:
        process.stdin.close()
    found = b""
    while True:
        try:
            part = os.read(outer, 4096)
        except OSError:  # the other end was closed
            break
        if not part:
            break
        found += part
        if until is not None and until.encode() in found:
            process.stdin.close()
    assert process.wait(120) == 0, found
    os.close(outer)
    return found.decode(errors="replace")


@needs_terminal
def test_long_work_is_shown_on_a_terminal():
    assert "adding: " in on_terminal("wait", "0.1", until="adding: ")


@needs_terminal
def test_short_work_is_not_shown():
    assert on_terminal("wait", "1000000") == ""


@needs_terminal
def test_a_long_compilation_shows_its_progress():
    assert "compiling <lambda>" in on_terminal("compile", "shown", until="compiling <lambda>")
    assert on_terminal("compile", "hidden") == ""


def test_nothing_is_shown_in_a_pipe():
    done = subprocess.run([sys.executable, PROGRAM, "wait", "0"], input="", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_error_ends_the_progress(monkeypatch):
    from bedrax.inspect import progress

    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    with pytest.raises(ValueError, match="mine"), progress.waiting("adding", after=10**6):
        raise ValueError("mine")
    assert not [t for t in threading.enumerate() if t.name.endswith("(_show)")]  # it did not wait, and left no thread
