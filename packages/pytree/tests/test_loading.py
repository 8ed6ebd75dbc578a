"""The import of modules during which no interrupt may be handled."""

import sys
import threading

import pytest

from bedrax.pytree import engine


def test_a_function_runs_in_another_thread_and_its_outcome_is_returned():
    assert engine.uninterrupted(threading.current_thread) is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        engine.uninterrupted(lambda: 1 / 0)


def test_an_interrupt_is_raised_in_the_waiting_thread():
    """The function continues, and has ended when another caller needs its result."""
    started, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow():
        started.set()
        may_end.wait(60)
        ended.set()

    class Interrupt(BaseException):
        pass

    def interrupted(self, timeout=None):
        started.wait(60)
        raise Interrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(Interrupt):
            engine.uninterrupted(slow)
    assert not ended.is_set()
    may_end.set()
    assert ended.wait(60)


def test_without_threads_it_is_called_here(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert engine.uninterrupted(threading.current_thread) is threading.main_thread()


def test_a_module_that_is_missing():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        engine.load_whole("json", "no_such_module_anywhere")
    assert engine.load_whole("json", "colorsys") is sys.modules["colorsys"]
