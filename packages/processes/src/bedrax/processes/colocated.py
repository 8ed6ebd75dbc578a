"""Python functions that run on the hosts of devices. These are the current host: there are no remote hosts."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.tracing import Tracer
from bedrax.xla_backend import clients, flags
from bedrax.xla_backend.door.runtime import DeviceList
from bedrax.xla_backend.placement import device_put


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices on the hosts of the given devices (or the mesh of them).

    Raises:
      ValueError: the process of a device has no CPU device.

    Examples:

      >>> jax.experimental.colocated_python.colocated_cpu_devices(jax.devices("cpu")[:1])
      (CpuDevice(id=0),)
    """
    if hasattr(devices_or_mesh, "devices"):
        mesh = devices_or_mesh
        flat = colocated_cpu_devices(tuple(mesh.devices.flat))
        array = np.empty(mesh.devices.shape, dtype=object)
        array.flat = list(flat)
        return type(mesh)(array, mesh.axis_names, axis_types=mesh.axis_types)
    devices: Sequence[Any] = tuple(devices_or_mesh)
    by_process: dict[int, list[Any]] = {}
    for d in clients.devices("cpu"):
        by_process.setdefault(d.process_index, []).append(d)
    out = []
    for d in devices:
        if d.platform == "cpu":
            out.append(d)
        elif d.process_index in by_process:
            same_process = by_process[d.process_index]
            out.append(same_process[d.id % len(same_process)])
        else:
            raise ValueError(f"the process of {d} has no CPU device")
    return tuple(out)


@dataclasses.dataclass(frozen=True)
class FunctionInfo:
    """A function that runs on the host of its arguments.

    Attributes:
      fun: the function.
      fun_sourceinfo: its name in messages; None for its own name.
      fun_signature: its visible signature; None for its own.

    Examples:

      >>> from jax.experimental.colocated_python import func

      >>> info = func.FunctionInfo(lambda x: x, "identity at model.py:5", None)
      >>> info.fun_sourceinfo
      'identity at model.py:5'
    """

    fun: Callable[..., Any]
    fun_sourceinfo: str | None = None
    fun_signature: Any = None


@dataclasses.dataclass(frozen=True)
class Specialization:
    """The known properties of a function's calls; None: unknown.

    Attributes:
      in_specs_treedef, in_specs_leaves: the structure of ``(args, kwargs)``, and a `ShapeDtypeStruct` for each array.
      out_specs_fn: maps such arguments to the `ShapeDtypeStruct`s of the results.
      out_specs_treedef, out_specs_leaves: the structure of the results, and a `ShapeDtypeStruct` for each.
      devices: the devices of the arguments.

    Examples:

      >>> from jax.experimental.colocated_python import func

      >>> known = func.Specialization().update(devices=jax.devices("cpu")[:1])
      >>> known.devices, known.out_specs_fn
      ([CpuDevice(id=0)], None)
    """

    in_specs_treedef: Any = None
    in_specs_leaves: tuple[Any, ...] | None = None
    out_specs_fn: Callable[..., Any] | None = None
    out_specs_treedef: Any = None
    out_specs_leaves: tuple[Any, ...] | None = None
    devices: Any = None

    def update(self, **changes: Any) -> Specialization:
        """A copy with some fields changed. Fields that are None stay unchanged."""
        return dataclasses.replace(self, **{name: value for name, value in changes.items() if value is not None})


def make_callable(
    fun: Callable[..., Any], fun_sourceinfo: str | None = None, fun_signature: Any = None
) -> Callable[..., Any]:
    """Return `colocated_python(fun)` with another name in messages, and another visible signature.

    Args:
      fun: takes and returns pytrees of arrays.
      fun_sourceinfo: the name of the function in the messages of errors; None: its own name.
      fun_signature: the `inspect.Signature` of the result, or None for that of `fun`.

    Returns:
      The function, as `colocated_python` returns it.

    Examples:

      >>> from jax.experimental.colocated_python import func

      >>> double = func.make_callable(lambda x: 2 * x, fun_sourceinfo="double at model.py:3")
      >>> double(jnp.arange(3))
      Array([0, 2, 4], dtype=int32)
    """
    return _specialized(FunctionInfo(fun, fun_sourceinfo, fun_signature), Specialization())


def _specialized(info: FunctionInfo, known: Specialization) -> Callable:
    fun, signature = info.fun, info.fun_signature
    where = info.fun_sourceinfo or getattr(fun, "__qualname__", repr(fun))
    in_specs, devices = None, known.devices
    if known.in_specs_treedef is not None:
        in_specs = pytree.tree_unflatten(known.in_specs_treedef, known.in_specs_leaves)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        leaves, tree = pytree.tree_flatten((args, kwargs))
        found = _checked_arguments(where, leaves, tree, in_specs, devices)
        with flags.default_device(found[0]):
            out = fun(*args, **kwargs)
        outs, out_tree = pytree.tree_flatten(out)
        for x in outs:
            if not _is_array(x):
                raise ValueError(f"{where}: colocated Python returns arrays, got {type(x).__name__}: {x!r}")
        if known.out_specs_fn is not None:
            args, kwargs = pytree.tree_map(_spec, (args, kwargs))
            specs, spec_tree = pytree.tree_flatten(known.out_specs_fn(*args, **kwargs))
        elif known.out_specs_treedef is not None:
            specs, spec_tree = known.out_specs_leaves, known.out_specs_treedef
        else:
            return out
        if spec_tree != out_tree or any((x.shape, x.dtype) != (s.shape, s.dtype) for x, s in zip(outs, specs)):
            got = pytree.tree_unflatten(out_tree, list(map(_spec, outs)))
            raise ValueError(
                f"{where} returned {got}, but its out_specs_fn returned {pytree.tree_unflatten(spec_tree, specs)}"
            )
        placed = [x if s.sharding is None else device_put(x, s.sharding) for x, s in zip(outs, specs, strict=True)]
        return pytree.tree_unflatten(out_tree, placed)

    def specialize(in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None) -> Callable:
        """The function with more properties of its calls.

        Args:
          in_specs: ``(args, kwargs)`` with a `ShapeDtypeStruct` for each array of a call.
          out_specs_fn: maps such arguments to the `ShapeDtypeStruct`s of the results. Results get the shardings of
            these.
          devices: the devices of its arguments; without arguments, of its results.
        """
        leaves, tree = (None, None) if in_specs is None else pytree.tree_flatten(in_specs)
        return _specialized(
            info,
            known.update(
                in_specs_treedef=tree,
                in_specs_leaves=None if leaves is None else tuple(leaves),
                out_specs_fn=out_specs_fn,
                devices=devices,
            ),
        )

    call.specialize = specialize
    if signature is not None:
        call.__signature__ = signature
    return call


def _is_array(x: Any) -> bool:
    return isinstance(x, Array) and not isinstance(x, Tracer)


def _spec(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


def _checked_arguments(where: str, leaves: list, tree: Any, in_specs: Any, devices: Any) -> tuple:
    """The devices of a call."""
    for x in leaves:
        if not _is_array(x):
            raise TypeError(f"{where}: colocated Python is called with arrays, got {type(x).__name__}: {x}")
        if not x.is_fully_addressable:
            raise NotImplementedError(
                f"{where}: Python runs on the host of this process, whose devices do not hold {x.sharding}"
            )
    if in_specs is not None:
        specs, spec_tree = pytree.tree_flatten(in_specs)
        if spec_tree != tree or any((x.shape, x.dtype) != (s.shape, s.dtype) for x, s in zip(leaves, specs)):
            got = pytree.tree_unflatten(tree, list(map(_spec, leaves)))
            raise ValueError(f"{where} was specialized for {in_specs}, but called with {got}")
    found = {tuple(sorted(x.devices(), key=lambda d: d.id)) for x in leaves}
    if devices is not None:
        found.add(tuple(sorted(getattr(devices, "flat", devices), key=lambda d: d.id)))
    if not found:
        raise ValueError(
            f"{where} is called without arrays, which would determine its devices: use .specialize(devices=...)"
        )
    if len(found) > 1:
        raise ValueError(
            f"{where}: the arrays of a call, and the devices of .specialize, are the same ones; got {found}"
        )
    return found.pop()


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that runs in Python on the host of their devices, which is the current host.

    Args:
      fun: takes and returns pytrees of arrays.

    Returns:
      The function, with the method ``specialize(in_specs=None, out_specs_fn=None, devices=None)`` for properties of
      its calls.

    Raises (when called):
      TypeError: an argument is not an array (or is a tracer).
      ValueError: arrays on different devices; no arrays and no devices; a result that is not an array.
      NotImplementedError: an array with parts on devices of other processes.

    Examples:

      >>> @jax.experimental.colocated_python.colocated_python
      ... def total(x):
      ...     print("on the host")
      ...     return jnp.asarray(np.asarray(x).sum())
      >>> total(jnp.arange(4))
      on the host
      Array(6, dtype=int32)
    """
    return make_callable(fun, getattr(fun, "__qualname__", None))


class InstanceRegistry:
    """The objects of colocated classes, and the devices on which their methods have run."""

    def __init__(self) -> None:
        self._devices: dict[int, set[Any]] = {}
        self._numbers = itertools.count()

    def new_instance(self) -> int:
        """Register a new object. Returns its number."""
        uid = next(self._numbers)
        self._devices[uid] = set()
        return uid

    def update_devices(self, uid: int, device_set: set[Any]) -> None:
        """Record that methods of the object have run on these devices."""
        self._devices[uid] |= device_set

    def pop_instance(self, uid: int) -> set[Any]:
        """Remove an object. Returns its devices."""
        return self._devices.pop(uid)


class ObjectStore:
    """The objects by number. Each is made at the first call of a method."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._locks: dict[int, threading.RLock] = {}  # one per object: an initializer may wait for other objects

    def get_or_create(self, uid: int, initializer: Callable[[], Any]) -> Any:
        """The object of a number, made by `initializer` at the first call."""
        with self._locks.setdefault(uid, threading.RLock()):
            if uid not in self._objects:
                self._objects[uid] = initializer()
            return self._objects[uid]

    def remove(self, uid: int) -> None:
        """Remove the object of a number."""
        self._objects.pop(uid, None)
        self._locks.pop(uid, None)


SINGLETON_INSTANCE_REGISTRY = InstanceRegistry()
SINGLETON_OBJECT_STORE = ObjectStore()


def wrap_class(cls: type, cls_sourceinfo: str | None = None) -> type:
    """Return `colocated_python_class(cls)` with another name in messages.

    Args:
      cls: a class. Its methods take and return pytrees of arrays.
      cls_sourceinfo: the name of the class in the messages of errors, or None for ``cls.__qualname__``.

    Returns:
      A class with the same methods. Each runs like a function of `colocated_python`. The object of `cls` is made at
      the first call of a method.

    Examples:

      >>> from jax.experimental.colocated_python import obj

      >>> class Counter:
      ...     def __init__(self, start):
      ...         self.value = start
      ...
      ...     def add(self, x):
      ...         self.value = self.value + x
      ...         return self.value
      ...
      >>> Shared = obj.wrap_class(Counter, "Counter at model.py:1")
      >>> counter = Shared(1)
      >>> counter.add(jnp.array(2)), counter.add(jnp.array(3))
      (Array(3, dtype=int32, weak_type=True), Array(6, dtype=int32, weak_type=True))
    """
    where = cls_sourceinfo or cls.__qualname__

    def method(name):
        def get(self):
            def run(*args, **kwargs):
                leaves = pytree.tree_leaves((args, kwargs))
                uid, make = self._colocated_python_uid, lambda: cls(*self._made_of[0], **self._made_of[1])
                SINGLETON_INSTANCE_REGISTRY.update_devices(uid, set().union(*(x.devices() for x in leaves)))
                return getattr(SINGLETON_OBJECT_STORE.get_or_create(uid, make), name)(*args, **kwargs)

            return make_callable(functools.wraps(getattr(cls, name))(run), f"{where}.{name}")

        return property(get, doc=getattr(cls, name).__doc__)

    def start(self, *args, **kwargs):
        self._made_of = args, kwargs
        self._colocated_python_uid = uid = SINGLETON_INSTANCE_REGISTRY.new_instance()
        weakref.finalize(self, SINGLETON_OBJECT_STORE.remove, uid)
        weakref.finalize(self, SINGLETON_INSTANCE_REGISTRY.pop_instance, uid)

    names = [n for n in dir(cls) if not n.startswith("__") and inspect.isfunction(inspect.getattr_static(cls, n))]
    body = {"__init__": start, "__doc__": cls.__doc__, "__module__": cls.__module__, **{n: method(n) for n in names}}
    return type(cls.__name__, (), body)


def colocated_python_class(cls: type) -> type:
    """A class with methods that run as `colocated_python` functions, on an object that the first call makes.

    Only methods are available, with arrays as arguments and results. Attributes, operators and class methods are not.

    Examples:

      >>> @jax.experimental.colocated_python.colocated_python_class
      ... class Counter:
      ...     def __init__(self, start):
      ...         self.count = start
      ...     def next(self, x):
      ...         self.count += 1
      ...         return x + self.count
      >>> counter = Counter(10)
      >>> counter.next(jnp.int32(0)), counter.next(jnp.int32(0))
      (Array(11, dtype=int32), Array(12, dtype=int32))
    """
    return wrap_class(cls, cls.__qualname__)


def is_prng_key_dtype(dtype: Any) -> bool:
    """Whether the dtype is that of typed keys.

    Examples:

      >>> from jax.experimental.colocated_python import func

      >>> func.is_prng_key_dtype(jax.random.key(0).dtype), func.is_prng_key_dtype(jnp.uint32)
      (True, False)
    """
    return dtypes.issubdtype(dtype, dtypes.prng_key)


__all__ = [
    "FunctionInfo",
    "Specialization",
    "SINGLETON_INSTANCE_REGISTRY",
    "SINGLETON_OBJECT_STORE",
    "DeviceList",
    "colocated_cpu_devices",
    "colocated_python",
    "colocated_python_class",
    "is_prng_key_dtype",
    "make_callable",
    "wrap_class",
]
