"""Memory layouts of arrays: `Layout`, and `Format` (a layout and a sharding)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.lax.primitives.placement import reshard_p
from bedrax.xla_backend.door import runtime


class _Auto:
    """`Layout.AUTO`: the compiler chooses."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> tuple[Any, ...]:
        return "AUTO"


AUTO = _Auto()


class Layout:
    """Order of the axes in memory.

    Args:
      major_to_minor: the axes, slowest first.
      tiling: tiles, on a device that has them.
      sub_byte_element_size_in_bits: packing of elements smaller than a byte.

    Examples:

      >>> from jax.experimental.layout import Layout

      >>> Layout(major_to_minor=(1, 0)).major_to_minor
      (1, 0)
    """

    AUTO = AUTO

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")

    def __init__(self, major_to_minor: Any, tiling: Any = None, sub_byte_element_size_in_bits: int = 0) -> None:
        self.major_to_minor: tuple[Any, ...] = tuple(major_to_minor)
        self.tiling: tuple[tuple[Any, ...], ...] | None = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits: int = sub_byte_element_size_in_bits

    @classmethod
    def from_pjrt_layout(cls, pjrt_layout: Any) -> Layout:
        """The layout of jaxlib's object."""
        found = pjrt_layout._xla_layout()
        return cls(found.minor_to_major()[::-1], found.tiling(), found.element_size_in_bits())

    @staticmethod
    def for_array(x: Any) -> Layout:
        """The layout of an array on its device."""
        return x.format.layout

    @property
    def is_default(self) -> Any:
        return self.text() == self._plain(len(self.major_to_minor))

    @staticmethod
    def _plain(ndim: int) -> str:
        return "{" + ",".join(map(str, range(ndim - 1, -1, -1))) + "}"

    def text(self) -> str:
        """The layout as XLA writes it."""
        tiles = "".join(f"({','.join(map(str, t))})" for t in self.tiling or ())
        bits = f"E({self.sub_byte_element_size_in_bits})" if self.sub_byte_element_size_in_bits else ""
        more = (f"T{tiles}" if tiles else "") + bits
        return "{" + ",".join(map(str, self.major_to_minor[::-1])) + (f":{more}" if more else "") + "}"

    def _to_xla_layout(self, dtype: Any) -> Any:
        """The layout as C++ takes it, to compare with the layout of an argument."""
        return runtime.XlaLayout(self.major_to_minor[::-1], self.tiling or (), self.sub_byte_element_size_in_bits)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise ValueError if the layout does not order the axes of an array of this shape."""
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(
                f"{self} orders {len(self.major_to_minor)} axes, the array has rank {len(aval_shape)}; write each of its"
                f" axes 0 to {len(aval_shape) - 1} once"
            )

    def over(self, ndim: int) -> Layout:
        """The layout of an array of `ndim` axes that has more, inner axes, as the words of keys have."""
        order = self.major_to_minor
        return (
            self if ndim == len(order) else self.update(major_to_minor=(*order, *range(len(order), ndim)), tiling=None)
        )

    def update(self, **changes: Any) -> Layout:
        """A copy with some fields changed."""
        return Layout(**{**{name: getattr(self, name) for name in self.__slots__}, **changes})

    def _key(self):
        return self.major_to_minor, self.tiling or (), self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return type(other) is Layout and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling},"
            f" sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding. Both may be None. The layout may be `Layout.AUTO`, for `jit`: the compiler
    chooses it, as it does inside of programs.

    Examples:

      >>> from jax.experimental.layout import Format

      >>> x = jnp.ones((2, 3))
      >>> isinstance(x.format, Format)
      True
      >>> x.format.layout.major_to_minor
      (0, 1)
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Any = None) -> None:
        if not (layout is None or layout is AUTO or isinstance(layout, Layout)):
            raise TypeError(f"Format: layout must be a Layout or None, got {layout!r} of type {type(layout)}")
        self.layout: Layout | None = layout
        self.sharding: Any = sharding

    # The protocol of shardings in programs: `bedrax.lax.primitives.placement`.
    @property
    def assignment(self) -> Any:
        return None if self.sharding is None else self.sharding.assignment

    @property
    def memory_kind(self) -> Any:
        return None if self.sharding is None else self.sharding.memory_kind

    def with_dimension(self, position: int, axes: Sequence[int]) -> Format:
        """The format of a batch. The batch axis is the slowest in memory."""
        sharding = self.sharding if self.sharding is None else self.sharding.with_dimension(position, axes)
        if self.layout is AUTO:
            return Format(AUTO, sharding)
        order = (position, *(i + (i >= position) for i in self.layout.major_to_minor))
        return Format(self.layout.update(major_to_minor=order, tiling=None), sharding)

    @property
    def partial(self) -> bool:
        return self.sharding is not None and self.sharding.partial

    def dual(self) -> Format:
        return Format(self.layout, self.sharding.dual()) if self.partial else self

    def sharding_of_type(self, aval: AbstractValue) -> Any:
        return aval.split if self.sharding is None else self.sharding.sharding_of_type(aval)

    def __eq__(self, other: object) -> bool:
        return type(other) is Format and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Constrain the memory layouts of the leaves of `x`.

    Args:
      x: a pytree of arrays.
      layouts: a `Layout`, or a pytree prefix of `x` with them.

    Raises:
      ValueError: a leaf of `layouts` is not a layout, or does not order the axes of its array.

    Examples:

      >>> from jax.experimental.layout import Layout, with_layout_constraint

      >>> f = jax.jit(lambda x: 2 * with_layout_constraint(x, Layout(major_to_minor=(1, 0))))
      >>> f(jnp.ones((1, 2)))
      Array([[2., 2.]], dtype=float32)
    """
    leaves, tree = pytree.tree_flatten(x)
    is_layout = lambda v: isinstance(v, Layout) or v is None
    full = pytree.tree_unflatten(tree, [0] * len(leaves))
    wanted = [layouts] * len(leaves) if is_layout(layouts) else pytree.tree_broadcast_leaves(layouts, full, is_layout)
    for leaf, layout in zip(leaves, wanted, strict=True):
        if not isinstance(layout, Layout):
            raise ValueError(f"with_layout_constraint: layouts holds a Layout for each array, got {layout!r}")
        layout.check_compatible_aval(aval_of(leaf).shape)
    placed = [reshard_p.bind(v, to=Format(s), src=None) for v, s in zip(leaves, wanted, strict=True)]
    return pytree.tree_unflatten(tree, placed)


def explicit_layout(f: Callable[..., Any] | None = None, /, *, in_layouts: Any = None) -> Callable[..., Any]:
    """`f` with the given memory layouts of its arguments. The compiler chooses the layouts of the results.

    Args:
      f: a function of arrays, given by position. Without it, returns a decorator.
      in_layouts: a `Layout`, or a pytree prefix of the arguments (a tuple) with them.

    Raises:
      TypeError: `in_layouts` is missing, or has a leaf that is not a layout.
      ValueError: a layout does not order the axes of its array, or `in_layouts` does not fit the arguments.

    Examples:

      >>> from jax.experimental.layout import Layout, explicit_layout

      >>> @explicit_layout(in_layouts=(Layout(major_to_minor=(1, 0)),))
      ... def f(x):
      ...     return 2 * x
      ...
      >>> jax.jit(f)(jnp.ones((1, 2)))
      Array([[2., 2.]], dtype=float32)
    """
    if in_layouts is None:
        raise TypeError("explicit_layout needs in_layouts=, a Layout or a tuple with one for each argument")
    if f is None:
        return functools.partial(explicit_layout, in_layouts=in_layouts)
    wrong = [x for x in pytree.tree_leaves(in_layouts, lambda x: x is None) if not isinstance(x, Layout)]
    if wrong:
        raise TypeError(f"explicit_layout: in_layouts holds a Layout for each argument, got {wrong[0]!r}")

    @functools.wraps(f)
    def explicit(*args: Any) -> Any:
        if isinstance(in_layouts, tuple) and len(in_layouts) != len(args):
            raise ValueError(f"explicit_layout: in_layouts has {len(in_layouts)} entries, for {len(args)} arguments")
        return f(*with_layout_constraint(args, in_layouts))

    return explicit
