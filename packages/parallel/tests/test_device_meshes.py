"""Orders of devices for meshes, of devices that are only described."""

import itertools
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bedrax.core import context
from bedrax.parallel import device_meshes as m
from bedrax.parallel.meshes import AbstractMesh, AxisType, Mesh, get_mesh, set_mesh


def grid(*sizes, **fields):
    return [
        SimpleNamespace(id=i, coords=c, core_on_chip=0, device_kind="box", **fields)
        for i, c in enumerate(itertools.product(*map(range, sizes)))
    ]


def plain(n, **fields):
    return [SimpleNamespace(id=i, device_kind="flat", **{k: f(i) for k, f in fields.items()}) for i in range(n)]


def ids(found):
    return np.vectorize(lambda d: d.id)(found).tolist()


def test_devices_are_in_their_order():
    assert ids(m.create_device_mesh((2, 3), plain(6))) == [[0, 1, 2], [3, 4, 5]]
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


def slice_of(kind, x, y, z, cores=1, **fields):
    places = [(i, j, k, c) for k in range(z) for j in range(y) for i in range(x) for c in range(cores)]
    return [
        SimpleNamespace(id=n, coords=p[:3], core_on_chip=p[3], device_kind=kind, **fields) for n, p in enumerate(places)
    ]


# What upstream 0.12.0.1 answers for devices with these coordinates and numbers.
ORDERS = [
    ("TPU v4", (2, 2, 1), 1, (2, 2), [[0, 1], [2, 3]]),
    ("TPU v4", (2, 2, 2), 1, (2, 4), [[0, 2, 1, 3], [4, 6, 5, 7]]),
    ("TPU v4", (2, 2, 2), 1, (4, 2), [[0, 1], [4, 5], [2, 3], [6, 7]]),
    ("TPU v4", (2, 2, 2), 1, (2, 2, 2), np.arange(8).reshape(2, 2, 2).tolist()),
    ("TPU v5", (2, 2, 2), 1, (2, 2, 2), [[[0, 1], [3, 2]], [[6, 7], [5, 4]]]),
    ("TPU v5", (2, 2, 2), 1, (8,), [0, 1, 3, 2, 6, 7, 5, 4]),
    ("TPU v5p", (2, 2, 2), 1, (4, 2), [[0, 1], [3, 2], [6, 7], [5, 4]]),
    ("TPU v4", (2, 2, 4), 1, (4, 4), [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11], [12, 14, 13, 15]]),
    ("TPU7x", (2, 2, 4), 2, (4, 8), [[n + 8 * z for n in (0, 1, 2, 3, 6, 7, 4, 5)] for z in range(4)]),
    ("TPU7x", (4, 2, 1), 2, (2, 8), [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]),
    ("TPU v5", (4, 4, 4), 1, (4, 4, 4), np.arange(64).reshape(4, 4, 4).tolist()),
    ("TPU v4", (4, 4, 8), 1, (4, 32), np.arange(128).reshape(8, 4, 4).transpose(1, 2, 0).reshape(4, 32).tolist()),
    ("TPU v5 lite", (2, 2, 1), 1, (4,), [0, 1, 3, 2]),
    ("TPU v5 lite", (4, 2, 1), 1, (2, 4), [[0, 1, 2, 3], [7, 6, 5, 4]]),
    ("TPU v5 lite", (4, 2, 1), 1, (4, 2), [[0, 1], [2, 3], [7, 6], [5, 4]]),
    ("TPU v5 lite", (4, 4, 1), 1, (16,), [0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4]),
    ("TPU v5 lite", (4, 4, 1), 1, (4, 4), np.arange(16).reshape(4, 4).tolist()),
    ("TPU v6 lite", (16, 16, 1), 1, (16, 16), np.arange(256).reshape(16, 16).tolist()),
    ("TPU7x", (2, 2, 1), 2, (2, 4), [[0, 1, 2, 3], [6, 7, 4, 5]]),
    ("TPU7x", (2, 2, 2), 2, (2, 8), [[0, 1, 2, 3, 6, 7, 4, 5], [8, 9, 10, 11, 14, 15, 12, 13]]),
    ("TPU7x", (4, 4, 4), 2, (64, 2), np.arange(128).reshape(4, 4, 4, 2).transpose(2, 1, 0, 3).reshape(64, 2).tolist()),
]


@pytest.mark.parametrize("kind, sizes, cores, shape, order", ORDERS)
def test_slices_of_tpus(kind, sizes, cores, shape, order):
    devices = slice_of(kind, *sizes, cores)
    assert ids(m.create_device_mesh(shape, devices)) == order
    assert ids(m.create_device_mesh(shape, devices[::-1])) == order


def processes(sizes, chips, cores=1, kind="TPU v4"):
    """A slice whose processes have `chips` each."""
    devices = slice_of(kind, *sizes, cores)
    for d in devices:
        x, y, z = (c // n for c, n in zip(d.coords, chips, strict=True))
        d.process_index = x + (sizes[0] // chips[0]) * (y + (sizes[1] // chips[1]) * z)
    return devices


def blocks(found):
    """The numbers of elements of the smallest blocks with the devices of each process."""
    owner = np.vectorize(lambda d: d.process_index)(found)
    return [int(np.prod(np.ptp(np.argwhere(owner == p), axis=0) + 1)) for p in np.unique(owner)]


@pytest.mark.parametrize("kind, sizes, chips, cores", [
    ("TPU v4", (4, 4, 4), (2, 2, 1), 1), ("TPU v5 lite", (4, 2, 1), (2, 2, 1), 1), ("TPU v5 lite", (4, 4, 1), (2, 2, 1), 1),
    ("TPU7x", (4, 2, 2), (2, 2, 1), 2), ("TPU v5p", (2, 2, 2), (1, 1, 1), 1),
])  # fmt: skip
def test_the_devices_of_a_process_are_a_block(kind, sizes, chips, cores):
    devices = processes(sizes, chips, cores, kind)
    n, own = len(devices), int(np.prod(chips)) * cores
    shapes = [(a, b, n // a // b) for a in range(1, n + 1) for b in range(1, n + 1) if n % (a * b) == 0]
    scattered = 0
    for shape in shapes:
        found = m.create_device_mesh(shape, devices, contiguous_submeshes=True)
        assert found.shape == shape and sorted(ids(found.ravel())) == list(range(n))
        assert blocks(found) == [own] * (n // own), (shape, ids(found))
        usual = m.create_device_mesh(shape, devices, allow_split_physical_axes=True)
        scattered += blocks(usual) != [own] * (n // own)
    assert scattered or own == 1  # the option changes something


def test_blocks_of_processes_without_coordinates():
    devices = plain(6, process_index=lambda i: i % 2)
    assert ids(m.create_device_mesh((2, 3), devices, contiguous_submeshes=True)) == [[0, 2, 4], [1, 3, 5]]
    assert ids(m.create_device_mesh((3, 2), devices, contiguous_submeshes=True)) == [[0, 1], [2, 3], [4, 5]]
    uneven = plain(6, process_index=lambda i: i // 4)
    with pytest.raises(ValueError, match=r"different numbers of devices, \{0: 4, 1: 2\}"):
        m.create_device_mesh((6,), uneven, contiguous_submeshes=True)


def test_rings_have_neighbours():
    for x, y in ((2, 2), (4, 2), (2, 4), (4, 4)):
        found = m.create_device_mesh((x * y,), slice_of("TPU v5 lite", x, y, 1))
        for a, b in zip(found, np.roll(found, -1), strict=True):
            assert np.abs(np.subtract(a.coords, b.coords)).sum() == 1, (x, y, ids(found))
    found = m.create_device_mesh((8,), slice_of("TPU v5p", 2, 2, 2))
    for a, b in zip(found, np.roll(found, -1), strict=True):
        assert np.abs(np.subtract(a.coords, b.coords)).sum() == 1, ids(found)


def test_several_slices():
    slices = [d for n in range(2) for d in slice_of("TPU v5 lite", 4, 2, 1, slice_index=n)]
    for n, d in enumerate(slices):
        d.id = n
    found = ids(m.create_hybrid_device_mesh((2, 4), (2, 1), slices))
    assert found == [[0, 1, 2, 3], [7, 6, 5, 4], [8, 9, 10, 11], [15, 14, 13, 12]]


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


NO_AXES = [
    ((2, -1), ("i", "j"), ValueError, "at least 1, got (2, -1)"),
    ((0,), ("i",), ValueError, "at least 1, got (0,)"),
    ((2.0,), ("i",), TypeError, "a sequence of integers, got (2.0,)"),
    (2, ("i",), TypeError, "a sequence of integers, got 2"),
    (("2",), ("i",), TypeError, "a sequence of integers"),
    ((2, 2), ("i", "i"), ValueError, "differ from each other, got ('i', 'i')"),
    ((2,), (None,), ValueError, "needs a name"),
    ((2,), ("i", "j"), ValueError, "one size per axis name"),
]


@pytest.mark.parametrize("sizes, names, error, message", NO_AXES)
def test_sizes_and_names_that_make_no_mesh(sizes, names, error, message):
    with pytest.raises(error, match=re.escape(message)):
        AbstractMesh(sizes, names)


def test_axes_of_an_abstract_mesh():
    mesh = AbstractMesh((np.int64(4),), "batch")
    assert mesh.axis_names == ("batch",)
    assert repr(mesh) == "AbstractMesh('batch': 4, axis_types=(Explicit,))"
    with pytest.raises(ValueError, match=re.escape("are ('batch',), got types for ['i']")):
        mesh.update_axis_types({"i": AxisType.Auto})
