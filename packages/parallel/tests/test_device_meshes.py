"""Orders of devices for meshes, of devices that are only described."""

import itertools
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bedrax.core import context
from bedrax.parallel import device_meshes as m
from bedrax.parallel.meshes import Mesh, get_mesh, set_mesh


def grid(*sizes, **fields):
    return [
        SimpleNamespace(id=i, coords=c, core_on_chip=0, device_kind="box", **fields)
        for i, c in enumerate(itertools.product(*map(range, sizes)))
    ]


def plain(n, **fields):
    return [SimpleNamespace(id=i, device_kind="flat", **{k: f(i) for k, f in fields.items()}) for i in range(n)]


def ids(found):
    return np.vectorize(lambda d: d.id)(found).tolist()


def test_in_their_order():
    assert ids(m.create_device_mesh((2, 3), plain(6))) == [[0, 1, 2], [3, 4, 5]]
    assert ids(m.create_device_mesh((4, 2), grid(2, 2, 2), contiguous_submeshes=True)) == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    with pytest.raises(ValueError, match=r"a mesh of shape \(4, 2\) has 8 devices, got 6"):
        m.create_device_mesh((4, 2), plain(6))


def test_along_physical_axes():
    devices = grid(4, 2, 1)[::-1]
    found = m.create_device_mesh((2, 4), devices)
    for row in found.T:  # neighbours along the first axis differ in one coordinate
        assert {d.coords[0] for d in row} == {row[0].coords[0]}
    assert m.create_device_mesh((8, 1), devices).shape == (8, 1)
    with pytest.raises(NotImplementedError, match="4x2x1x1 devices have the sizes"):
        m.create_device_mesh((2, 2, 2), devices)
    split = m.create_device_mesh((2, 2, 2), devices, allow_split_physical_axes=True)
    assert ids(split) == np.arange(8).reshape(2, 2, 2).tolist()


def test_users_order(monkeypatch):
    monkeypatch.setitem(
        m.device_kind_handler_dict, "flat", lambda shape, devices, **_: np.array(devices[::-1]).reshape(shape)
    )
    assert ids(m.create_device_mesh((4,), plain(4))) == [3, 2, 1, 0]


@pytest.mark.parametrize("field, options", [("slice_index", {}), ("process_index", {"process_is_granule": True})])
def test_groups(field, options):
    devices = plain(8, **{field: lambda i: 1 - i // 4})
    found = m.create_hybrid_device_mesh((2, 2), (2, 1), devices, **options)
    assert ids(found) == [[4, 5], [6, 7], [0, 1], [2, 3]]
    unsorted = m.create_hybrid_device_mesh((2, 2), (1, 2), devices, should_sort_granules_by_key=False, **options)
    assert ids(unsorted) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    with pytest.raises(ValueError, match=f"the devices have 2 by {field}"):
        m.create_hybrid_device_mesh((2, 2), (4, 1), devices, **options)


def test_set_mesh_is_of_the_thread_that_calls_it():
    first, second = (Mesh(np.arange(2), (name,)) for name in "xy")
    errors = []

    def other(manager):
        with set_mesh(second):
            try:
                with manager:
                    pass
            except RuntimeError as e:
                errors.append(str(e))
            errors.append(get_mesh())
        errors.append(get_mesh().empty)

    with set_mesh(first) as _:
        pass
    manager = set_mesh(first)
    thread = threading.Thread(target=other, args=(manager,))
    thread.start()
    thread.join()
    with manager:
        assert get_mesh() == first
    assert get_mesh().empty
    message, mesh, empty = errors
    assert "call it in the thread that enters it" in message
    assert mesh == second
    assert empty


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_blocks_of_set_mesh_that_end_in_any_order_leave_no_mesh(order):
    meshes = [Mesh(np.array([n]), ("i",)) for n in range(3)]
    blocks = [set_mesh(mesh) for mesh in meshes]  # each sets its mesh immediately
    for block in blocks:
        block.__enter__()
    open_blocks = [0, 1, 2]
    for n in order:
        blocks[n].__exit__(None, None, None)
        open_blocks.remove(n)
        assert not open_blocks or get_mesh() == meshes[max(open_blocks)], (order, n)
    assert get_mesh().empty and not context.thread.entered


def test_an_interrupt_inside_a_block_of_set_mesh_leaves_no_mesh():
    inside = {f.__code__ for f in (context.note_entered, context._last_entry, context._end, context._change)}

    class Interrupt(KeyboardInterrupt):
        pass

    def interrupted_at(step):
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            if frame.f_code not in inside or manager is None:
                return None
            if event == "line":
                count += 1
                if count == step:
                    sys.settrace(None)
                    raise Interrupt
            return trace

        saved, manager = sys.gettrace(), None
        try:
            manager = set_mesh(Mesh(np.array([0]), ("i",)))
            sys.settrace(trace)
            with manager:
                pass
        except Interrupt:
            return True
        finally:
            sys.settrace(saved)
        return False

    steps = 0
    while interrupted_at(steps + 1):
        steps += 1
        assert get_mesh().empty and not context.thread.entered, steps
    assert steps > 10
