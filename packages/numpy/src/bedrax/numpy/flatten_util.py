"""Trees of arrays as one vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from bedrax import lax, pytree
from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapeDtypeStruct, aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax import lattice
from bedrax.pytree import PyTreeDef


@dataclasses.dataclass(frozen=True)
class Unravel:
    """The function from a vector to the pytree that `ravel_pytree` was given.

    Those of pytrees with equal structure, shapes and dtypes are equal: libraries keep them in the static data of pytrees.
    """

    tree: PyTreeDef
    shapes: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    dtype: Any

    def __call__(self, values: ArrayLike) -> Any:
        edges = np.cumsum([0, *map(dims.size, self.shapes)]).tolist()
        aval = aval_of(values)
        if aval.shape != (edges[-1],):
            raise ValueError(f"unravel takes a vector of {edges[-1]} elements, got an array of shape {aval.shape}")
        if aval.dtype != self.dtype:
            raise TypeError(f"unravel takes a vector of dtype {self.dtype}, got {aval.dtype}")
        out = []
        for shape, dtype, start, stop in zip(self.shapes, self.dtypes, edges, edges[1:], strict=False):
            part = lax.reshape(lax.slice_in_dim(values, start, stop), shape)
            out.append(lax.convert_element_type(part, dtype))
        return pytree.tree_unflatten(self.tree, out)


def ravel_pytree(pytree_: Any = None, /, **given: Any) -> tuple[Any, Callable[..., Any]]:
    """Concatenate the leaves of a pytree into one vector.

    Args:
      pytree_: a pytree of arrays and scalars. Leaves may be `ShapeDtypeStruct`s; then the vector is one, too.
      given: only ``pytree=``, instead of the positional argument.

    Returns:
      (vector of all elements, of the promoted dtype; the function that turns such a vector into
      such a pytree, each leaf of its own dtype).

    Examples:

      >>> from jax.flatten_util import ravel_pytree
      >>> flat, unravel = ravel_pytree({"w": jnp.ones((2, 2)), "b": jnp.zeros(1)})
      >>> flat
      Array([0., 1., 1., 1., 1.], dtype=float32)
      >>> unravel(10 * flat)["w"]
      Array([[10., 10.],
             [10., 10.]], dtype=float32)
    """
    tree_of_values = given.pop("pytree", pytree_)
    if given:
        raise TypeError(f"ravel_pytree got unexpected arguments {sorted(given)}")
    leaves, tree = pytree.tree_flatten(tree_of_values)
    vector: Any
    types = [aval_of(x) for x in leaves]
    sizes = [a.size for a in types]
    if not leaves:
        dtype = dtypes.default_float_dtype()
        vector = lax.full((0,), 0, dtype)
    elif any(isinstance(x, ShapeDtypeStruct) for x in leaves):
        dtype = lattice.result_type(*leaves)
        vector = ShapeDtypeStruct((sum(sizes),), dtype)
    else:
        dtype = lattice.result_type(*leaves)
        parts = [lax.reshape(lax.convert_element_type(x, dtype), (n,)) for x, n in zip(leaves, sizes, strict=True)]
        vector = parts[0] if len(parts) == 1 else lax.concatenate(parts, 0)
    return vector, Unravel(tree, tuple([a.shape for a in types]), tuple([a.dtype for a in types]), dtype)
