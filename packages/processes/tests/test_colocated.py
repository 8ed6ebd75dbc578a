"""Python functions that run on the host of devices, and objects on this host."""

import gc
import threading

import numpy as np
import pytest

import bedrax.xla_backend
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.parallel import AxisType, Mesh
from bedrax.processes import colocated
from bedrax.xla_backend import SingleDeviceSharding, clients, device_put, jit

X = np.arange(4, dtype=np.float32)


def struct(shape, sharding=None):
    return ShapeDtypeStruct(shape, np.float32, sharding=sharding)


def device():
    return clients.devices("cpu")[0]


@colocated.colocated_python
def doubled(x, *, rest=None):
    return {"x": device_put(2 * np.asarray(x)), "rest": rest}


def test_a_function_runs_on_the_host():
    out = doubled(device_put(X))
    np.testing.assert_array_equal(out["x"], 2 * X)
    assert out["rest"] is None and doubled.__name__ == "doubled"
    seen = []
    made = colocated.colocated_python(lambda: seen.append(bedrax.xla_backend.flags.default_device.value))
    made.specialize(devices=[device()])()
    assert seen == [device()]


def test_arguments_and_results_are_checked():
    for wrong in (X, 1.0):
        with pytest.raises(TypeError, match="doubled: colocated Python is called with arrays"):
            doubled(wrong)
    with pytest.raises(TypeError, match="called with arrays"):
        jit(doubled)(X)
    with pytest.raises(ValueError, match=r"specialize\(devices=...\)"):
        colocated.colocated_python(lambda: None)()
    with pytest.raises(ValueError, match="returns arrays, got str"):
        colocated.colocated_python(lambda x: "text")(device_put(X))
    with pytest.raises(ZeroDivisionError):
        colocated.colocated_python(lambda x: 1 / 0)(device_put(X))


def test_a_function_is_specialized():
    place = SingleDeviceSharding(device())
    fun = doubled.specialize(in_specs=((struct((4,)),), {}))
    fun = fun.specialize(out_specs_fn=lambda x: {"x": struct(x.shape, place), "rest": None})
    assert fun(device_put(X))["x"].committed and not doubled(device_put(X))["x"].committed
    with pytest.raises(ValueError, match="was specialized for"):
        fun(device_put(X[:2]))
    with pytest.raises(ValueError, match="its out_specs_fn returned"):
        doubled.specialize(out_specs_fn=lambda x: {"x": struct((3,)), "rest": None})(device_put(X))


made = []


@colocated.colocated_python_class
class Counter:
    """Counts."""

    def __init__(self, start):
        self.count = start
        made.append(start)

    def next(self, x):
        self.count += 1
        return device_put(np.asarray(x) + self.count)

    def now(self):
        return device_put(np.int32(self.count))


def test_an_object_is_made_by_the_first_call():
    made.clear()
    counter, other = Counter(1), Counter(5)
    assert made == [] and Counter.__doc__ == "Counts." and isinstance(counter, Counter)
    x = device_put(np.float32(0))
    assert [float(counter.next(x)) for _ in range(2)] == [2, 3] and float(other.next(x)) == 6 and made == [1, 5]
    assert int(counter.now.specialize(devices=[device()])()) == 3
    with pytest.raises(ValueError, match="Counter.now is called without arrays"):
        counter.now()
    assert not hasattr(counter, "count")
    uid, objects = counter._colocated_python_uid, colocated.SINGLETON_OBJECT_STORE
    kept = objects.get_or_create(uid, lambda: None)
    assert kept.count == 3
    del counter
    gc.collect()
    assert objects.get_or_create(uid, lambda: "another") == "another"
    objects.remove(uid)
    with pytest.raises(KeyError):
        colocated.SINGLETON_INSTANCE_REGISTRY.pop_instance(uid)


def test_an_object_may_wait_for_another_one_while_it_is_made():
    store = colocated.ObjectStore()

    def first():
        other = threading.Thread(target=store.get_or_create, args=(2, lambda: "second"), daemon=True)
        other.start()
        other.join(10)
        return "first" if not other.is_alive() else "alone"

    assert store.get_or_create(1, first) == "first" and store.get_or_create(2, lambda: "late") == "second"


def test_instances_are_numbered():
    registry = colocated.InstanceRegistry()
    first, second = registry.new_instance(), registry.new_instance()
    registry.update_devices(first, {1})
    registry.update_devices(first, {2})
    assert first != second and registry.pop_instance(first) == {1, 2} and registry.pop_instance(second) == set()


def test_sources_and_signatures_are_shown():
    fun = colocated.make_callable(lambda: None, "fun at there.py", None)
    with pytest.raises(ValueError, match="fun at there.py is called without arrays"):
        fun()
    assert colocated.wrap_class(dict, "a class").__name__ == "dict"


def test_the_mesh_of_the_hosts_has_the_types_of_the_axes():
    types = (AxisType.Explicit, AxisType.Auto)
    mesh = Mesh(np.array([[device()]]), ("x", "y"), axis_types=types)
    assert colocated.colocated_cpu_devices(mesh).axis_types == types
