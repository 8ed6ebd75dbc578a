"""Context managers of traces, shared by threads."""

import threading

import pytest

from bedrax.core.tracing import current, eval_trace
from bedrax.extend.jaxprs import set_current_trace, take_current_trace


@pytest.mark.parametrize("make", [lambda trace: set_current_trace(None), lambda trace: take_current_trace()])
def test_each_thread_gets_back_its_own_trace(make):
    mine, other_trace = object(), object()
    shared, entered, may_leave = make(None), threading.Event(), threading.Event()
    after = []

    def other():
        with set_current_trace(other_trace):
            with shared:
                entered.set()
                assert may_leave.wait(10)
                after.append(current.trace)
            after.append(current.trace)

    thread = threading.Thread(target=other)
    with set_current_trace(mine):
        with shared:
            thread.start()
            assert entered.wait(10)
        assert current.trace is mine
        may_leave.set()
        thread.join()
    assert after == [eval_trace, other_trace]
    assert current.trace is eval_trace
