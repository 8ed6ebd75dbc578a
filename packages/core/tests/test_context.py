"""The context of a thread: interned records, blocks in any order, threads, interrupts."""

import gc
import sys
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax.core import config, context
from bedrax.core.context import UNSET, Changes, Variable, enter, leave, note_entered, thread, trace_context

keyed = Variable("keyed_of_these_tests", 0)
other = Variable("other_of_these_tests", None)
silent = Variable("silent_of_these_tests", 0, keyed=False)
ALL = (keyed, other, silent)


@pytest.fixture(autouse=True)
def nothing_is_left():
    before, entered = thread.context, len(thread.entered)
    yield
    assert thread.context is before and len(thread.entered) == entered


def in_thread(function):
    results = []
    new = threading.Thread(target=lambda: results.append(function()))
    new.start()
    new.join()
    return results[0]


def test_there_is_one_record_per_combination_of_values():
    with keyed(1), other("a"):
        record, key = thread.context, trace_context()
    with other("a"), keyed(1):
        assert thread.context is record and trace_context() is key
    with Changes({other: "a", keyed: 1}):
        assert thread.context is record
    assert in_thread(lambda: enter(keyed, {keyed: 1, other: "a"}) or thread.context) is record


def test_a_variable_that_is_not_keyed_changes_the_record_and_no_key():
    before, key = thread.context, trace_context()
    with silent(1):
        assert thread.context is not before and trace_context() is key and thread.context.own is None


@pytest.mark.parametrize("a, b", [(1, True), (1, 1.0), (-0.0, 0.0), ((1,), (True,)), (0, False)])
def test_values_are_compared_by_type_and_bits(a, b):
    with keyed(a):
        record, key = thread.context, trace_context()
    with keyed(b):
        assert thread.context is not record and trace_context() is not key
        assert type(keyed.value) is type(b)


def test_a_value_that_cannot_be_hashed_is_refused():
    with pytest.raises(TypeError, match=r"keyed_of_these_tests.*hashable.*\[1\]"), keyed([1]):
        pass


def test_records_and_keys_are_freed():
    class Value:
        pass

    value = Value()
    with other(value):
        freed = [weakref.ref(x) for x in (value, thread.context, trace_context())]
    del value
    for i in range(100):  # a record keeps a bounded number of those that followed it
        with other(i):
            pass
    gc.collect()
    assert [ref() for ref in freed] == [None] * 3


def test_a_thread_starts_with_the_global_values():
    flag = config.flag(f"test_global_{id(gc)}", 1, "a number", keyed=True)
    with flag(2):
        assert in_thread(lambda: flag.value) == 1
        flag.set(3)
        assert flag.value == 2 and in_thread(lambda: flag.value) == 3
        here = trace_context()
    flag.set(1)
    with flag(2):
        assert trace_context() is here


def test_a_global_value_reaches_threads_that_change_another_variable():
    flag = config.flag(f"test_late_global_{id(gc)}", 1, "a number", keyed=True)
    with keyed(1):
        before = trace_context()
        in_thread(lambda: flag.set(2))
        assert flag.value == 2 and dict(trace_context()) == {keyed.name: 1, flag.name: 2}
        in_thread(lambda: flag.set(1))
        assert trace_context() is before


@given(st.lists(st.tuples(st.sampled_from(ALL), st.integers(1, 3), st.integers(0, 9)), max_size=12))
def test_blocks_end_in_any_order(steps):
    """The value is that of the block in force that began last."""
    active = []
    for variable, value, position in steps:
        if position < len(active):
            leave(active.pop(position)[1])
        else:
            block = object()
            enter(block, {variable: value})
            active.append((variable, block, value))
        for variable in ALL:
            values = [v for changed, _, v in active if changed is variable]
            assert variable.value == (values[-1] if values else variable.default)
    for _, block, _ in active:
        leave(block)


def test_a_generator_may_end_inside_another_block():
    def generator():
        with keyed(1):
            yield keyed.value

    steps = generator()
    assert next(steps) == 1
    with keyed(2):
        steps.close()
        assert keyed.value == 2
    assert keyed.local_value is UNSET


def test_one_block_in_many_threads():
    block = Changes({keyed: 1, other: "x"})
    meet, wrong = threading.Barrier(8), []

    def run(i):
        with keyed(10 + i):
            meet.wait()
            for _ in range(300):
                with block:
                    with other(i), block:
                        wrong.append((keyed.value, other.value) != (1, "x"))
                    wrong.append(other.value != "x")
                wrong.append((keyed.value, other.value) != (10 + i, None))
        wrong.append(thread.context is not context._unchanged)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for new in threads:
        new.start()
    for new in threads:
        new.join()
    assert len(wrong) == 8 * 901 and not any(wrong)


def test_an_error_of_a_listener_undoes_the_change():
    def refuse(variable):
        if variable.local_value == 13:
            raise ZeroDivisionError

    silent.listeners.append(refuse)
    try:
        with keyed(1):
            before = thread.context
            with pytest.raises(ZeroDivisionError), Changes({silent: 13, keyed: 2}):
                pass
            assert thread.context is before
    finally:
        silent.listeners.remove(refuse)


class Interrupt(KeyboardInterrupt):
    pass


def interrupted_at(step, run):
    """Call `run`, interrupted at a line of the context's own functions. Returns whether there is such a line."""
    inside = {f.__code__ for f in (context._change, context._install, context._end, context._last_entry, note_entered)}
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code not in inside:
            return None
        if event == "line":
            count += 1
            if count == step:
                sys.settrace(None)
                raise Interrupt
        return trace

    saved = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except Interrupt:
        return True
    finally:
        sys.settrace(saved)
    return False


def test_an_interrupt_at_any_line_leaves_nothing():
    block = Changes({keyed: 1, silent: 2})

    def run():
        with block, other(3), block:
            pass

    before, steps = thread.context, 0
    while interrupted_at(steps + 1, run):
        steps += 1
        assert thread.context is before and not thread.entered, steps
    assert steps > 40
    run()
