"""References to mutable arrays: their type only. The operations on them are not supported yet."""

from __future__ import annotations

from bedrax.core.avals import AbstractValue


class AbstractRef(AbstractValue):
    """The type of a reference to an array of type `inner_aval`."""

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval, memory_space=None, kind=None):
        self.inner_aval, self.memory_space, self.kind = inner_aval, memory_space, kind

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def __eq__(self, other):
        return type(other) is AbstractRef and (self.inner_aval, self.kind) == (other.inner_aval, other.kind)

    def __hash__(self):
        return hash((AbstractRef, self.inner_aval, self.kind))

    def __repr__(self):
        return f"Ref{{{self.inner_aval.short()}}}"


def _unsupported(name: str):
    def operation(*args, **kwargs):
        raise NotImplementedError(
            f"{name}: references to mutable arrays are not supported; carry the array through the program and return"
            " its new value (x.at[...].set makes one)"
        )

    operation.__name__ = name
    operation.__doc__ = "References to mutable arrays are not supported: raises NotImplementedError."
    return operation


class Ref:
    """A reference to a mutable array. None exists: `new_ref` raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        _unsupported("Ref")()


new_ref, empty_ref, free_ref, freeze, get, swap, addupdate = map(
    _unsupported, ("new_ref", "empty_ref", "free_ref", "freeze", "get", "swap", "addupdate")
)
