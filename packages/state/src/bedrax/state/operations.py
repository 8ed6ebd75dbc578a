"""The public functions of references: `new_ref`, reading, writing, `freeze`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray, abstractify, aval_of
from bedrax.core.public import public
from bedrax.core.tracing import current
from bedrax.state import primitives as prims
from bedrax.state import views
from bedrax.state.types import Cell, Ref, RefTracer
from bedrax.state.views import TransformedRef

__all__ = ["TransformedRef", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

_KINDS = (None, "no_grad_no_remat")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False) -> Ref:
    """A reference to a mutable array.

    Args:
      init_val: an array of any shape and dtype; the reference holds a copy.
      memory_space: a part of the type; the device's own memory is used.
      kind: None or ``"no_grad_no_remat"``, a note on its use in the type.
      pin: False. True raises NotImplementedError.

    Raises:
      TypeError: `init_val` is a reference, or no array.
      ValueError: an unknown `kind`.
      NotImplementedError: `pin` is true.

    Examples:

      >>> count = jax.new_ref(jnp.zeros((), int))
      >>> @jax.jit
      ... def step():
      ...     count[...] += 1
      ...
      >>> step()
      >>> step()
      >>> count[...]
      Array(2, dtype=int32)
    """
    _not_pinned("new_ref", pin)
    if kind not in _KINDS:
        raise ValueError(f"new_ref: kind is one of {_KINDS}, got {kind!r}")
    if isinstance(init_val, Ref):
        raise TypeError("new_ref: there are no references to references; pass the value, ref[...]")
    value = (
        init_val
        if aval_of(init_val).is_array and not isinstance(init_val, (bool, int, float, complex))
        else (lax.asarray(init_val))
    )
    return prims.new_ref_p.bind(value, memory_space=memory_space, kind=kind)


def _not_pinned(what: str, pin: bool) -> None:
    if pin:
        raise NotImplementedError(
            f"{what}: pin=True requests a buffer that stays in one place while a program runs; references become values"
            " before a program is compiled, and XLA chooses their buffers. Leave pin out: results are the same"
        )


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A reference to an array of zeros.

    Args:
      ty: an object with a shape and a dtype.
      memory_space, pin: as in `new_ref`.

    Raises:
      NotImplementedError: `pin` is true.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     ref = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
      ...     ref[...] = 2 * x
      ...     return ref[...]
      ...
      >>> f(jnp.array([1., 2.]))
      Array([2., 4.], dtype=float32)
    """
    _not_pinned("empty_ref", pin)
    aval = ty if isinstance(ty, ShapedArray) else abstractify(ty)
    return prims.empty_ref_p.bind(aval=aval.strip_weak_type(), memory_space=memory_space)


class At:
    """The attribute ``ref.at``: an index of it is a view."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref: Ref = ref

    def __getitem__(self, idx: Any) -> TransformedRef:
        view = as_view(self.ref)
        return view._with(*views.index(view.shape, idx))


def as_view(ref: Any) -> TransformedRef:
    """A view of the whole reference.

    Raises:
      TypeError: the argument is not a reference.
    """
    if isinstance(ref, TransformedRef):
        return ref
    if not isinstance(ref, Ref):
        raise TypeError(public(f"a reference (jax.new_ref) is needed, got {ref!r} of type {type(ref)}"))
    return TransformedRef(ref)


def _part(ref: Any, idx: Any) -> tuple[Ref, TransformedRef]:
    view = as_view(ref)
    view = view._with(*views.index(view.shape, idx))
    return view.ref, view


def _rank(dtype: np.dtype) -> int:
    """The rank of a dtype: booleans 0, integers, floats, complex numbers."""
    return sum(dtypes.issubdtype(dtype, kind) for kind in (np.number, np.inexact, np.complexfloating))


def _value(ref: Ref, view: TransformedRef, value: Any) -> Any:
    """The value to write: Python scalars are converted to the dtype of the reference, other objects to arrays."""
    if isinstance(value, Ref):
        raise TypeError("a reference cannot be written into a reference; write what it holds, other[...]")
    dtype = view.dtype
    if isinstance(value, (list, tuple)):
        given = np.asarray(value).dtype
    elif not isinstance(dtype, np.dtype) or not (aval_of(value).weak_type or isinstance(value, bool)):
        return value
    else:
        given = aval_of(value).dtype
    if isinstance(dtype, np.dtype) and _rank(given) > _rank(dtype):
        raise ValueError(
            public(
                f"{value!r} is written to a reference to {dtype}, which would lose a part of it: convert it before,"
                f" jnp.asarray(x).astype({str(dtype)!r})"
            )
        )
    if isinstance(value, (list, tuple)):
        return np.asarray(value, dtype)
    if isinstance(value, (bool, int, float, complex)):
        scalar = dtype.type(value)  # a literal of the recorded program
        return scalar if prims.records(current.trace) and not view.shape else lax.asarray(scalar)
    return value if aval_of(value).dtype == dtype else lax.convert_element_type(value, dtype)


def get(ref: Any, idx: Any = None) -> Any:
    """``ref[idx]``: a part of the value of a reference.

    Args:
      ref: a reference, or a view of one.
      idx: a NumPy-style index; None: the whole.

    Examples:

      >>> from jax import ref

      >>> x = jax.new_ref(jnp.array([1, 2, 3]))
      >>> ref.get(x, slice(1, None))
      Array([2, 3], dtype=int32)
    """
    ref, view = _part(ref, ... if idx is None else idx)
    return prims.get_p.bind(ref, *view.operands, transforms=view.transforms)


def swap(ref: Any, idx: Any, value: Any, _function_name: str = "ref_swap") -> Any:
    """Write `value` at `idx`. Returns the former value.

    Args:
      ref: a reference, or a view of one.
      idx: a NumPy-style index; None: the whole.
      value: an array with the shape and the dtype of the part; a Python scalar is converted to the dtype.

    Raises:
      ValueError: the value has another shape or dtype.

    Examples:

      >>> from jax import ref

      >>> x = jax.new_ref(jnp.array([1, 2, 3]))
      >>> ref.swap(x, 0, 9)
      Array(1, dtype=int32)
      >>> x[...]
      Array([9, 2, 3], dtype=int32)
    """
    ref, view = _part(ref, ... if idx is None else idx)
    return prims.swap_p.bind(ref, _value(ref, view, value), *view.operands, transforms=view.transforms)


def set(ref: Any, idx: Any, value: Any) -> None:
    """Write values to a part of a reference, as ``ref[idx] = value`` does.

    Args:
      ref: a reference, from ``jax.new_ref``.
      idx: an index, or a tuple of indices: ints, slices, arrays of ints.
      value: the values, of the shape and the dtype of the part.

    Examples:

      >>> from jax import ref

      >>> x = jax.new_ref(jnp.array([1, 2, 3]))
      >>> ref.set(x, 0, 9)
      >>> x[...]
      Array([9, 2, 3], dtype=int32)
    """
    swap(ref, idx, value)


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add values to a part of a reference. An element whose index occurs twice gets both values.

    Args:
      ref: a reference, from ``jax.new_ref``.
      idx: an index, or a tuple of indices: ints, slices, arrays of ints.
      x: the values to add, of the shape and the dtype of the part.

    Examples:

      >>> from jax import ref

      >>> x = jax.new_ref(jnp.zeros(3))
      >>> ref.addupdate(x, 1, 5.)
      >>> x[...]
      Array([0., 5., 0.], dtype=float32)
    """
    ref, view = _part(ref, ... if idx is None else idx)
    prims.addupdate_p.bind(ref, _value(ref, view, x), *view.operands, transforms=view.transforms)


def freeze(ref: Ref) -> Any:
    """End a reference, in the trace that made it. Returns its last value.

    Examples:

      >>> ref = jax.new_ref(jnp.zeros(2))
      >>> ref[0] = 5.
      >>> jax.freeze(ref)
      Array([5., 0.], dtype=float32)
    """
    _check_own(ref, "freeze")
    return prims.freeze_p.bind(ref)


def free_ref(ref: Ref) -> None:
    """End a reference, in the trace that made it, and drop its value.

    Examples:

      >>> ref = jax.new_ref(jnp.zeros(3))
      >>> _ = jax.free_ref(ref)
    """
    _check_own(ref, "free_ref")
    prims.free_ref_p.bind(ref)


def _check_own(ref: Any, what: str) -> None:
    if not isinstance(ref, Ref):
        raise TypeError(public(f"{what}: a reference (jax.new_ref) is needed, got {ref!r} of type {type(ref)}"))
    if isinstance(ref, TransformedRef):
        raise TypeError(f"{what}: {ref!r} is a view; the reference that it is a part of is frozen")
    if ref._trace is current.trace and not (type(ref) is RefTracer and ref.variable in current.trace.invars):
        return
    if type(ref) is Cell:
        prims.check_alive(ref)
    raise ValueError(
        f"{what}: a reference of type {ref.aval.short()} comes from outside of the function that is being traced; it is"
        " frozen where it was made"
    )


# ---- methods of references and of views


def _set(self, value: Any, idx: Any = ...) -> None:
    """``ref[idx] = value``."""
    swap(self, idx, value)


def _get(self, idx: Any = ...) -> Any:
    """``ref[idx]``."""
    return get(self, idx)


def _swap(self, value: Any, idx: Any = ...) -> Any:
    """Write `value` at `idx`. Returns the former value."""
    return swap(self, idx, value)


def _addupdate(self, x: Any, idx: Any = ...) -> None:
    """Add `x` at `idx`."""
    addupdate(self, idx, x)


for _name, _method in {
    "__getitem__": get,
    "__setitem__": set,
    "get": _get,
    "set": _set,
    "swap": _swap,
    "addupdate": _addupdate,
    "at": property(At, doc="``ref.at[idx]``: a view of a part, which can be read and written like a reference."),
}.items():
    setattr(Ref, _name, _method)


def _copied(ref: Ref, memo: Any = None) -> Ref:
    return new_ref(ref[...], memory_space=ref.aval.memory_space, kind=ref.aval.kind)


Cell._made = staticmethod(lambda x, aval: new_ref(x, memory_space=aval.memory_space, kind=aval.kind))
Cell.__deepcopy__ = _copied  # type: ignore[attr-defined]
Cell.__reduce__ = lambda self: (new_ref, (np.asarray(self[...]),))  # type: ignore[method-assign,assignment]
