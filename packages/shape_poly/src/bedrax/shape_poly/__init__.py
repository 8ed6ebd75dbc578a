"""Symbolic dimensions: expressions in dimension variables instead of numbers in shapes."""

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core.errors import InconclusiveDimensionOperation
from bedrax.shape_poly.expressions import SymbolicDim, UnexpectedDimVar
from bedrax.shape_poly.scope import SymbolicScope
from bedrax.shape_poly.solving import solve_dims
from bedrax.shape_poly.specs import (
    constraints_of,
    is_symbolic_dim,
    scope_of,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
    symbolic_shapes,
)
from bedrax.shape_poly.values import dim_as_value_p

__all__ = [
    "InconclusiveDimensionOperation",
    "SymbolicDim",
    "SymbolicScope",
    "UnexpectedDimVar",
    "constraints_of",
    "dim_as_value_p",
    "is_symbolic_dim",
    "scope_of",
    "solve_dims",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
    "symbolic_shapes",
]
