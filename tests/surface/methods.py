"""Records of an array's methods, operators and properties, and of `.at[index]` for each form of an index."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Names that do not compute: the tests of arrays cover them.
APART = {
    "addressable_data",
    "addressable_shards",
    "aval",
    "block_until_ready",
    "clone",
    "committed",
    "copy_to_host_async",
    "delete",
    "device",
    "devices",
    "format",
    "global_shards",
    "is_deleted",
    "is_fully_addressable",
    "is_fully_replicated",
    "is_ready",
    "on_device_size_in_bytes",
    "flat",
    "platform",
    "sharding",
    "to_device",
    "traceback",
    "unsafe_buffer_pointer",
    "unsafe_raw_buffer",
    "at",
    "__array_module__",
    "__array_namespace__",
    "__array_priority__",
    "__setitem__",
    "__getattr__",
    "__slots__",
    "__weakref__",
    "__module__",
    "__annotations__",
    "__reduce__",
    "__array_function__",
    "__dlpack__",
    "__dlpack_device__",
    "__del__",
    "__clear_fastpath_data__",
    "__cuda_array_interface__",
    "__deepcopy__",
    "__copy__",
    "__array__",
    "__buffer__",  # Python 3.12 shows the protocol of buffers
    "__release_buffer__",
    "__firstlineno__",
    "__static_attributes__",
    "__class__",
    "__doc__",
    "__init__",
    "__new__",
    "__init_subclass__",
    "__subclasshook__",
    "__repr__",
    "__str__",
    "__reduce_ex__",
    "__hash__",
    "__instancecheck__",
    "__setattr__",
    "__dict__",
    "__abstractmethods__",
    "__numpy_dtype__",
    "__xla_mark_donated__",
}
# Methods that make a Python value, which a traced array cannot: their results are shown as texts here.
VALUES = {"__bool__", "__float__", "__int__", "__index__", "__complex__", "__contains__", "item", "tolist"}


def names() -> list[str]:
    """Public names of an array, and the special methods that `object` does not have or that arrays define again."""
    kinds = (jax.Array, type(jnp.ones(3)))
    special = {
        n for k in kinds for n in dir(k) if n.startswith("__") and getattr(k, n, None) is not getattr(object, n, None)
    }
    return sorted({n for k in kinds for n in dir(k) if not n.startswith("_")} | special)


def member(name: str) -> Callable:
    """The method or property called `name`, as a function of the array."""
    found = getattr(jax.Array, name, None) or getattr(type(jnp.ones(3)), name)
    if not callable(found):
        return lambda x: getattr(jnp.asarray(x), name)

    @functools.wraps(found, assigned=("__doc__",))  # the functions behind operators have other names
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        out = getattr(jnp.asarray(x), name)(*args, **kwargs)
        return f"{out}" if name in VALUES else out

    method.__name__ = name
    return method


def calls(call: Callable, m: Any, n: Any, v: Any, ints: Any, bools: Any, square: Any) -> dict[str, Any]:
    """The arguments of the methods that need some: name -> record."""
    binary = "add sub mul truediv floordiv mod pow divmod".split()
    orders = "eq ne lt le gt ge".split()
    bits = "and or xor lshift rshift".split()
    out = {f"Array.__{r}{name}__": call(m, n) for name in binary for r in ("", "r")}
    out |= {f"Array.__{name}__": call(m, n) for name in orders}
    out |= {f"Array.__{r}{name}__": call(ints, ints % 3) for name in bits for r in ("", "r")}
    out |= {f"Array.__{name}__": call(np.float32(1.3)) for name in ("float", "complex", "bool")}
    out |= {f"Array.__{name}__": call(np.int32(7)) for name in ("int", "index")}
    out |= {
        f"Array.{name}": call(m)
        for name in "sum prod max min mean std var all any argmax argmin cumsum cumprod".split()
    }
    return out | {
        "Array.__matmul__": call(m, n.T),
        "Array.__rmatmul__": call(m, n.T),
        "Array.__getitem__": call(m, (1, slice(None, None, -1))),
        "Array.__contains__": call(m, m[0, 0]),
        "Array.__invert__": call(ints),
        "Array.__format__": call(np.float32(1.3), ".2f"),
        "Array.argpartition": call(m, 1),
        "Array.astype": call(m, np.int32),
        "Array.choose": call(ints % 2, [ints, ints + 1], mode="clip"),
        "Array.compress": call(m, np.array([True, False, True]), axis=0, size=2),
        "Array.dot": call(m, n.T),
        "Array.clip": call(m, np.float32(0.3), np.float32(0.6)),
        "Array.nonzero": call(bools, size=12),
        "Array.repeat": call(m, 2, axis=0),
        "Array.reshape": call(m, (4, 3)),
        "Array.round": call(m, 1),
        "Array.searchsorted": call(np.sort(v), m),
        "Array.item": call(m[0, 0]),
        "Array.squeeze": call(m[None]),
        "Array.swapaxes": call(m, 0, 1),
        "Array.take": call(m, np.array([3, 0])),
        "Array.view": call(m, np.int32),
        "Array.diagonal": call(square),
        "Array.trace": call(square),
        "Array.imag": call((m + 1j * n).astype(np.complex64)),
        "Array.real": call((m + 1j * n).astype(np.complex64)),
        "Array.byteswap": call(ints),
    }


# The forms of an index: name -> index; arrays of integers in it are arguments of the record, masks are not.
FORMS: dict[str, Any] = {
    "number": 1, "negative": -1, "slice": slice(1, 3), "backwards": slice(None, None, -2), "dots": (..., 2), "new axis": (None, 0),
    "all": (), "array": np.array([2, 0]), "pair": (np.array([0, 2]), np.array([1, -1])), "array of rank 0": np.array(1),
    "outer": (np.array([[0], [2]]), np.array([1, 3])), "apart": (np.array([0, 2]), None, slice(1, 3)), "mixed": (slice(0, 2), np.array([3, 1])),
    "mask": np.array([True, False, True]), "whole mask": np.arange(12).reshape(3, 4) % 3 == 0,
}  # fmt: skip
UPDATES: dict[str, Callable] = {
    "set": lambda old, new: new,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "mul": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "min": np.minimum,
    "max": np.maximum,
}


def expected_at(x: np.ndarray, index: Any, method: str, values: Any = None) -> np.ndarray:
    """The result of `x.at[index].method(values)` with NumPy: x is changed one element after the other."""
    if method == "get":
        return x[index]
    places = np.arange(x.size).reshape(x.shape)[index]
    out = x.copy()
    values = np.broadcast_to(np.sin(x[index]) if method == "apply" else values, places.shape)
    for place, value in zip(places.ravel(), values.ravel(), strict=True):
        old = out.flat[place]
        out.flat[place] = value if method in ("set", "apply") else UPDATES[method](old, value)
    return out


def _is_places(index: Any) -> bool:
    return isinstance(index, np.ndarray) and index.dtype.kind == "i"


def at_records(call: Callable, m: np.ndarray, value: Any) -> Iterator[tuple[str, Callable, Any]]:
    """(name, function, its call) for each form of an index and each method of `.at[...]`."""
    for form, index in FORMS.items():
        parts = index if isinstance(index, tuple) else (index,)
        arrays = [i for i in parts if _is_places(i)]
        for method in (*UPDATES, "get", "apply"):
            given = [] if method in ("get", "apply") else [value]

            def function(x, *rest, index=index, parts=parts, method=method):
                new = iter(rest)
                read = tuple(next(new) if _is_places(i) else i for i in parts)
                at = jnp.asarray(x).at[read if isinstance(index, tuple) else read[0]]
                return at.apply(jnp.sin) if method == "apply" else getattr(at, method)(*new)

            yield f"Array.at[{form}].{method}", function, call(m, *arrays, *given)
