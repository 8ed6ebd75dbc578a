"""One call of a converted function: its tensors, their types, and the traced program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree, shape_poly
from bedrax.core import dims, objects, represented, staging
from bedrax.core.avals import ShapedArray
from bedrax.core.staging import function_name
from bedrax.jax2tf import arguments


class PolyShape(tuple):
    """A shape specification as a tuple of dimension specifications (older spelling of a string).

    Examples:

      >>> import tensorflow as tf
      >>> from jax.experimental import jax2tf

      >>> f = jax2tf.convert(lambda x: x.sum(), polymorphic_shapes=[jax2tf.PolyShape("b", 3)])
      >>> print(tf.function(f, autograph=False).get_concrete_function(tf.TensorSpec([None, 3])).structured_outputs.shape)
      ()
    """

    def __new__(cls, *dim_specs: Any) -> Any:
        return tuple.__new__(cls, dim_specs)

    def __str__(self) -> str:
        return "(" + ", ".join("..." if d is ... else "_" if d is None else str(d) for d in self) + ")"


class Call:
    """One call of a converted function.

    Attributes:
      tensors: the leaves of its arguments (variables stay variables; keys are their words).
      avals: their types; sizes are symbolic according to `polymorphic_shapes`.
      jaxpr: the program.
    """

    def __init__(
        self, fun: Callable[..., Any], args: Any, kwargs: Any, polymorphic_shapes: Any, constraints: Any
    ) -> None:
        self.name: str = function_name(fun)
        args, kwargs = arguments.without_wrappers(args), arguments.without_wrappers(kwargs)
        self.in_tree: Any
        leaves, self.in_tree = pytree.tree_flatten((tuple(args), kwargs))
        given = [arguments.to_tensor(x) for x in leaves]
        self.tensors: list[Any] = [x.tensor for x in given]
        shapes = [arguments.outer_shape(x) for x in given]
        specs = specifications(self.in_tree, args, kwargs, polymorphic_shapes)
        symbolic = shape_poly.symbolic_shapes(shapes, specs, constraints, argument_names(self.in_tree))
        self.avals: list[ShapedArray] = [ShapedArray(s, x.dtype) for s, x in zip(symbolic, given, strict=True)]
        self.flat: Callable[..., Any] = staging.flat_fun(fun, self.in_tree)
        self.jaxpr: Any
        self.out_tree: Any
        self.jaxpr, self.out_tree = staging.trace_to_jaxpr(self.flat, self.avals)
        if objects.kinds:
            for aval in self.jaxpr.out_avals:
                if aval.represented:
                    raise TypeError(f"{self.name} returns a value of type {aval}; a converted function returns arrays")
            self.jaxpr = represented.on_arrays(self.jaxpr)

    @property
    def is_symbolic(self) -> bool:
        """Whether a size of an argument is unknown."""
        return not all(dims.is_constant_shape(a.shape) for a in self.avals)

    def unflatten(self, outs: Any) -> Any:
        """The results in the structure of the function's result."""
        return pytree.tree_unflatten(self.out_tree, outs)


def argument_names(in_tree: Any) -> Callable[[int], str]:
    """The name of an argument in messages, such as ``args[1]`` or ``args[0]['w']``, by its position among the leaves."""

    def name(i: int) -> str:
        first, *path = pytree.leaf_paths(in_tree)[i]
        return f"{('args', 'kwargs')[first.idx]}{pytree.keystr(tuple(path))}"

    return name


def specifications(
    in_tree: Any, args: Sequence[Any], kwargs: dict[str, Any], polymorphic_shapes: Any
) -> list[str | None]:
    """The shape specification of each leaf of the arguments, from a pytree prefix of specifications.

    Raises:
      TypeError: `polymorphic_shapes` is not a sequence with an entry per positional argument.
      ValueError: it is not a prefix.
    """
    if polymorphic_shapes is None:
        return [None] * in_tree.num_leaves
    if isinstance(polymorphic_shapes, str | PolyShape):
        polymorphic_shapes = (polymorphic_shapes,) * len(args)
    elif not isinstance(polymorphic_shapes, Sequence) or len(polymorphic_shapes) != len(args):
        raise TypeError(
            "jax2tf.convert: polymorphic_shapes must be None, a string, or a sequence with one entry per positional"
            f" argument; got {polymorphic_shapes!r} for {len(args)} arguments"
        )
    is_spec = lambda x: x is None or isinstance(x, str | PolyShape)
    try:
        found = pytree.tree_broadcast_leaves(
            (tuple(polymorphic_shapes), dict.fromkeys(kwargs)), (tuple(args), kwargs), is_leaf=is_spec
        )
    except (ValueError, TypeError) as e:
        raise ValueError(f"jax2tf.convert: polymorphic_shapes must be a pytree prefix of the arguments: {e}") from e
    return [None if s is None else str(s) for s in found]
