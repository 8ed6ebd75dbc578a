"""Arrays of keys: their dtype, and the class of their values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from bedrax import lax, pytree
from bedrax.core import avals, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.public import public
from bedrax.core.tables import families_on_bases
from bedrax.core.tracing import Primitive
from bedrax.core.typing import DTypeLike, Shape
from bedrax.random.implementations import KeyImplementation, find, implementations

FAMILY: Final = "keys"  # of the primitives that act on each key separately
families_on_bases.add(FAMILY)
random_wrap_p: Final = Primitive("random_wrap", FAMILY)  # keys from a base; its rules stand in `primitives`


class KeyDType(dtypes.ExtendedDType):
    """The dtype of keys of one implementation; prints as ``key<tag>``."""

    __slots__ = ("element_shape", "implementation", "itemsize", "name")
    type: type = dtypes.prng_key
    element_dtype: np.dtype[Any] = np.dtype(np.uint32)

    implementation: KeyImplementation

    def __new__(cls, implementation: KeyImplementation) -> KeyDType:
        found = _dtypes.get(implementation)
        if found is None:
            found = _dtypes[implementation] = object.__new__(cls)
            found.implementation = implementation
            found.element_shape = tuple(implementation.key_shape)
            found.itemsize = math.prod(found.element_shape) * 4
            found.name = f"key<{implementation.tag}>"
        return found

    _impl = property(lambda self: self.implementation)

    def __reduce__(self) -> tuple[Any, ...]:
        return _dtype_of_name, (self.implementation.name,)

    # The members that evaluators need of an extended dtype.

    @staticmethod
    def physical_value(x: KeyArray) -> Any:
        """The base of an array of keys."""
        return x.base

    @staticmethod
    def from_physical(base: Any, aval: ShapedArray) -> KeyArray:
        """The array of keys, of type `aval`, with that base."""
        return KeyArray(aval.dtype, base)

    def filled(self, shape: Shape, value: Any) -> Any:
        """Keys whose words all have one value: `jax.numpy.zeros` and `full_like` make them."""
        return random_wrap_p.bind(
            lax.full((*shape, *self.element_shape), value, self.element_dtype), impl=self.implementation
        )


_dtypes: dict[KeyImplementation, KeyDType] = {}


def _dtype_of_name(name: str) -> KeyDType:
    return KeyDType(find(name))


def dtype_of_printed_name(name: str) -> KeyDType:
    """The dtype that prints as `name`, such as ``key<fry>``.

    Raises:
      ValueError: no known implementation has that tag.
    """
    for implementation in implementations.values():
        if name == f"key<{implementation.tag}>":
            return KeyDType(implementation)
    raise ValueError(f"no PRNG implementation known here has keys of dtype {name}; register it first")


def _of_base(name: str):
    return property(lambda self: getattr(self.base, name), doc=f"`{name}` of the array that holds the keys' numbers.")


def _shaped_like_keys(sharding: Any, rank: int) -> Any:
    """The sharding of the keys: the sharding of their base without the trailing axes."""
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return sharding
    return type(sharding)(sharding.mesh, type(spec)(*tuple(spec)[:rank]), memory_kind=sharding.memory_kind)


_avals: dict[tuple[Any, ...], ShapedArray] = {}


def _type_of_keys(dtype: KeyDType, base: Any) -> ShapedArray:
    """The type of the keys with a base: the type of the base without its trailing axes."""
    shape = base.shape
    rank = len(shape) - len(dtype.element_shape)
    if avals.any_split:
        aval = aval_of(base)
        if aval.split is not None:
            for d in reversed(range(rank, len(shape))):
                aval = aval.without_axis(d)
            return ShapedArray(aval.shape, dtype, sharding=aval.split)
    aval = _avals.get((dtype, shape))
    if aval is None:
        if len(_avals) > 4096:
            _avals.clear()
        aval = _avals[dtype, shape] = ShapedArray(shape[:rank], dtype)
    return aval


class KeyArray(Array):
    """Keys, made by `key`, `split`, ... and never by calling this class."""

    __slots__ = ("aval", "base", "marks")

    def __init__(self, dtype: KeyDType, base: Any, marks: Any = None) -> None:
        self.base: Any = base
        self.marks: Any = marks  # the places where its keys were used, while jax_debug_key_reuse is on
        self.aval: ShapedArray = _type_of_keys(dtype, base)

    _base_array = property(lambda self: self.base)
    _impl = property(lambda self: self.aval.dtype.implementation)
    _committed = _of_base("_committed")
    if not TYPE_CHECKING:
        committed = _of_base("committed")
        device = _of_base("device")
        is_fully_addressable = _of_base("is_fully_addressable")
        is_fully_replicated = _of_base("is_fully_replicated")

    @property
    def nbytes(self) -> Any:
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def sharding(self) -> Any:
        return _shaped_like_keys(self.base.sharding, len(self.aval.shape))

    def devices(self) -> Any:
        """The devices that hold the keys."""
        return self.base.devices()

    def addressable_data(self, index: int) -> KeyArray:
        """The keys on one of this process's devices."""
        return KeyArray(self.aval.dtype, self.base.addressable_data(index))

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts on this process's devices."""
        return [self._shard(s) for s in self.base.addressable_shards]

    @property
    def global_shards(self) -> list[Any]:
        """The parts on all devices."""
        return [self._shard(s) for s in self.base.global_shards]

    def _shard(self, shard):
        data = None if shard.data is None else KeyArray(self.aval.dtype, shard.data)
        return type(shard)(shard.device, shard.index[: len(self.aval.shape)], shard.replica_id, data)

    def block_until_ready(self) -> Any:
        """Wait until the keys have been computed; returns them."""
        self.base.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        """Start copying to the host."""
        self.base.copy_to_host_async()

    def is_deleted(self) -> bool:
        """Whether the buffer has been deleted."""
        return self.base.is_deleted()

    def delete(self) -> None:
        """Free the buffer."""
        self.base.delete()

    def on_device_size_in_bytes(self) -> int:
        """Bytes that the keys take."""
        return self.base.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> Any:
        """Address of the buffer."""
        return self.base.unsafe_buffer_pointer()

    def copy(self) -> KeyArray:
        """The same keys in a new buffer."""
        import copy

        return KeyArray(self.aval.dtype, copy.copy(self.base))

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        import copy

        return KeyArray(self.aval.dtype, copy.deepcopy(self.base, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyArray, (self.aval.dtype, self.base)

    def __array__(self, dtype: DTypeLike | None = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise TypeError(
            public(
                "an array of keys cannot be converted to a NumPy array; jax.random.key_data(keys) gives the numbers"
                " that they are made of"
            )
        )

    def __bool__(self) -> bool:
        raise TypeError("a key is neither true nor false")

    def _no_number(self, *_: Any) -> NoReturn:
        raise TypeError(
            public("keys are not numbers; jax.random.key_data(arr) gives the numbers that they are made of.")
        )

    if not TYPE_CHECKING:
        __int__ = __float__ = __complex__ = __index__ = _no_number

    def item(self, *args: Any) -> None:
        """Raise TypeError: keys have no Python scalar."""
        self._no_number()

    tolist: Callable[..., Any] = item

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        dtype = self.aval.dtype
        marks = self.marks
        return (
            KeyArray(
                dtype, row, None if marks is None else marks[i : i + 1].reshape(row.shape[: len(self.aval.shape) - 1])
            )
            for i, row in enumerate(self.base)
        )

    def __repr__(self) -> str:
        return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n{np.asarray(self.base)}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(
                f"keys have no numbers to format, got the format {spec!r}; leave it out, or format key_data(keys)"
            )
        return repr(self)


avals.aval_functions[KeyArray] = operator.attrgetter("aval")
pytree.dispatch_registry.register_node(
    KeyArray, lambda keys: ((keys.base,), keys.aval.dtype), lambda dtype, base: KeyArray(dtype, *base), None
)
