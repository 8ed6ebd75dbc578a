"""How arrays lie in memory: `Layout`, and `Format` (a layout and a placement).

Compiled programs use the default (row-major) layout; asking for another one is an error.
"""

from __future__ import annotations

from typing import Any


class Layout:
    """Order of the axes in memory.

    Args:
      major_to_minor: the axes, slowest first.
      tiling: tiles, where a device has them.
      sub_byte_element_size_in_bits: packing of narrow elements.
    """

    AUTO: Any = None

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")

    def __init__(self, major_to_minor, tiling=None, sub_byte_element_size_in_bits: int = 0):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    def _key(self):
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other):
        return type(other) is Layout and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling})"


class Format:
    """A layout and a sharding, either of which may be None."""

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | None = None, sharding: Any = None):
        if layout is not None and not isinstance(layout, Layout):
            raise TypeError(f"Format: layout must be a Layout or None, got {layout!r} of type {type(layout)}")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other):
        return type(other) is Format and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self):
        return hash((self.layout, self.sharding))

    def __repr__(self):
        return f"Format(layout={self.layout}, sharding={self.sharding})"


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Not supported yet: raises NotImplementedError."""
    raise NotImplementedError("with_layout_constraint: programs are compiled with the default layout only")
