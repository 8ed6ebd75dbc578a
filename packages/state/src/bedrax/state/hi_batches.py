"""Operations of libraries on batches: those of a class with `batch_dim_rule`, and functions for rules of batching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bedrax import pytree
from bedrax.autodiff.accumulators import GradAccum, NullAccum, ValAccum
from bedrax.autodiff.tables import Zero
from bedrax.batching.tables import AxisData, to_front
from bedrax.batching.trace import batch_flat_with_aux, mapped_aval, place, unmapped_aval
from bedrax.core.effects import Effects
from bedrax.core.objects import MappingSpec
from bedrax.lax.primitives.reductions import reduce_sum
from bedrax.state.hi_operations import HiPrim, Residuals, is_zero

# ---- operations on batches, of a class with `batch_dim_rule`


class Batched(HiPrim):
    """An operation of a class with `batch_dim_rule`, on batches. Its rules are those of the class under `vmap`.

    Residuals are mapped at axis 0. The cotangent of an argument that is not mapped is summed over the mapped axis.
    """

    prim: HiPrim
    axis: AxisData
    in_dims: tuple[Any, ...]
    out_dims: Any

    # The rules that it has if the class has them. Those that it lacks keep the operation as it is.
    shared: Final = frozenset(
        (
            "expand",
            "jvp",
            "lin",
            "linearized",
            "vjp_fwd",
            "vjp_bwd",
            "vjp_bwd_retval",
            "vjp_bwd_retval_logs",
            "transpose",
        )
    )

    def __init__(self, prim: HiPrim, axis: AxisData, in_dims: tuple[Any, ...]) -> None:
        out_dims = self._checked(prim, prim.batch_dim_rule(axis, in_dims))
        self.in_avals: tuple[Any, ...] = unmap_avals(axis, tuple(prim.in_avals), in_dims)
        self.out_aval: Any = unmap_avals(axis, prim.out_aval, out_dims)
        self.params: dict[str, Any] = {"prim": prim, "axis": axis, "in_dims": in_dims, "out_dims": out_dims}
        self.effects: Effects = prim.effects
        super().__init__()

    @staticmethod
    def _checked(prim: HiPrim, dims: Any) -> Any:
        """The mapped axes of the result, one for each array."""
        name = f"{type(prim).__name__}.batch_dim_rule"
        try:
            flat = spread(dims, prim.out_aval)
        except (TypeError, ValueError) as e:
            raise TypeError(f"{name} returned {dims!r}, which does not fit the result of type {prim.out_aval}") from e
        for d, aval in zip(flat, prim.outputs.avals, strict=True):
            if d is not None and (type(d) is not int or not -aval.ndim - 1 <= d <= aval.ndim):
                raise TypeError(
                    f"{name} returns an axis of the batch or None for each result, got {d!r} for elements of type {aval}"
                )
        return prim.outputs.tree.unflatten(
            [d if d is None else d % (a.ndim + 1) for d, a in zip(flat, prim.outputs.avals, strict=True)]
        )

    def rule(self, name: str) -> Any:
        return self.prim.rule(name) if name in self.shared else super().rule(name)

    def pp_params(self) -> dict[str, Any]:
        return {"prim": self.prim, "size": self.axis.size, "in_dims": self.in_dims, "out_dims": self.out_dims}

    def _mapped(self, f: Callable, in_axes: Any, out_axes: Any, sum_match: bool = False) -> Callable:
        return vmap_rule(self.axis, f, in_axes, out_axes, sum_match=sum_match)

    def _saving(self, f: Callable, args: Sequence[Any]) -> tuple:
        """The result of ``f(*args) -> (result, residuals)``, and the residuals, mapped at axis 0, in a fixed leaf."""
        kept: list[Residuals] = []

        def flat(*xs):
            out, residuals = f(*xs)
            structure, arrays = Residuals.taken(residuals)
            kept.append(structure)
            return out, arrays

        out, arrays = self._mapped(flat, self.in_dims, (self.out_dims, 0))(*args)
        return out, (_Saved(kept[-1]), arrays)

    def batch_dim_rule(self, axis_data: AxisData, in_dims: tuple[Any, ...], /) -> Any:
        return 0

    def expand(self, *args: Any) -> Any:
        return self._mapped(self.prim.expand, self.in_dims, self.out_dims)(*args)

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        pushed = self._mapped(self.prim.jvp, (self.in_dims, self.in_dims), (self.out_dims, self.out_dims))
        return pushed(tuple(primals), tuple(tangents))

    def lin(self, nzs_in: tuple[Any, ...], *primals: Any) -> tuple[Any, ...]:
        return self._saving(lambda *xs: self.prim.lin(nzs_in, *xs), primals)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        saved, arrays = residuals
        pushed = lambda xs, ts: self.prim.linearized(saved.structure.tree(xs), *ts)
        return self._mapped(pushed, (0, self.in_dims), self.out_dims)(arrays, tuple(tangents))

    def vjp_fwd(self, nzs_in: tuple[Any, ...], /, *args: Any) -> tuple[Any, ...]:
        return self._saving(lambda *xs: self.prim.vjp_fwd(nzs_in, *xs), args)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        saved, arrays = res
        bwd = lambda xs, ct, accums: self.prim.vjp_bwd(saved.structure.tree(xs), ct, *accums)
        self._pulled(bwd, (0, self.out_dims), (arrays, outgrad), arg_accums)

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        leaves = self.inputs.leaves(maybe_accums, "arguments")
        dims = self.inputs.leaves(self.in_dims, "dims")
        known = [(x, d) for x, d in zip(leaves, dims, strict=True) if not isinstance(x, GradAccum)]

        def pull(ct, values, accums):
            rest = iter(values)
            sums = self.inputs.leaves(accums, "accums")
            args = [a if isinstance(x, GradAccum) else next(rest) for x, a in zip(leaves, sums, strict=True)]
            self.prim.transpose(ct, *self.in_tree.unflatten(args))

        accums = [
            x if isinstance(x, GradAccum) else NullAccum(a) for x, a in zip(leaves, self.inputs.avals, strict=True)
        ]
        given = (out_ct, [x for x, _ in known])
        self._pulled(pull, (self.out_dims, [d for _, d in known]), given, self.in_tree.unflatten(accums))

    def _pulled(self, pull: Callable, in_axes: tuple, given: tuple, arg_accums: Sequence[Any]) -> None:
        """Add what ``pull(*given, accums)`` adds for each element to the accums of the batches."""
        accums = self.inputs.leaves(tuple(arg_accums), "accums")
        live = [not isinstance(accum, NullAccum) for accum in accums]
        axes = self.inputs.leaves(self.in_dims, "dims")

        def cotangents(*xs):
            inner = [ValAccum(a) if f else NullAccum(a) for a, f in zip(self.prim.inputs.avals, live, strict=True)]
            pull(*xs, self.in_tree.unflatten(inner))
            return [accum.freeze() for accum, f in zip(inner, live, strict=True) if f]

        wanted = [d for d, f in zip(axes, live, strict=True) if f]
        found = self._mapped(cotangents, in_axes, wanted, sum_match=True)(*given)
        for accum, ct in zip([a for a, f in zip(accums, live, strict=True) if f], found, strict=True):
            accum.accum(ct)


@dataclass(frozen=True)
class _Saved:
    """The structure of the residuals of an element; a leaf of residuals that is not a value."""

    structure: Residuals


# ---- for rules of batching


def bdims_at_front(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    """Batches with the mapped axis first. Values that are not mapped are repeated.

    Args:
      axis_data: the argument of a rule `batch`.
      args: arrays.
      dims: the mapped axis of each, or None.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Dot(hijax.HiPrim):
      ...     def __init__(self, kind):
      ...         self.in_avals, self.out_aval, self.params = (kind, kind), kind, {}
      ...         super().__init__()
      ...     expand = lambda self, x, y: x * y
      ...     def batch(self, axis_data, args, dims):
      ...         x, y = hijax.bdims_at_front(axis_data, args, dims)
      ...         return Dot(jax.typeof(x))(x, y), 0
      ...
      >>> jax.vmap(Dot(jax.typeof(jnp.ones(2))), in_axes=(1, None))(jnp.ones((2, 3)), jnp.array([4., 5.]))
      Array([[4., 5.],
             [4., 5.],
             [4., 5.]], dtype=float32)
    """
    return tuple(to_front(x, d, axis_data.size) for x, d in zip(args, dims, strict=True))


def unmap_avals(axis_data: AxisData, avals: Any, dims: Any) -> Any:
    """The types of batches, from the types of elements.

    Args:
      axis_data: the argument of a rule `batch`.
      avals: a tree of types.
      dims: a tree of the same structure: the mapped axis (an int), or None.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Axis:
      ...     name, size = "i", 5
      ...
      >>> kind = jax.typeof(jnp.ones((2, 3)))
      >>> hijax.unmap_avals(Axis(), (kind, kind), (1, None))
      (ShapedArray(float32[2,5,3]), ShapedArray(float32[2,3]))
    """
    leaves, tree = pytree.tree_flatten(avals)
    axes = tree.flatten_up_to(dims)
    return tree.unflatten([unmapped_aval(axis_data.size, d, a) for a, d in zip(leaves, axes, strict=True)])


def vmap_rule(
    axis_data: AxisData, f: Callable[..., Any], in_axes: Any, out_axes: Any, *, sum_match: bool = False
) -> Callable[..., Any]:
    """A function on batches, for a rule `batch`.

    Args:
      axis_data: the argument of the rule; collectives over its name work in `f`.
      f: takes and returns trees of arrays or `Zero`.
      in_axes, out_axes: axes (int) or None, or trees of them that are prefixes of the arguments and of the result.
      sum_match: sum a result whose entry in `out_axes` is None over the mapped axis.

    Returns:
      ``(*batches) -> batches``.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Norm(hijax.HiPrim):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (jax.typeof(jnp.ones(2)),), jax.typeof(1.), {}
      ...         super().__init__()
      ...     expand = lambda self, x: jnp.sqrt((x * x).sum())
      ...     def batch(self, axis_data, args, dims):
      ...         return hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
      ...
      >>> jax.vmap(Norm())(jnp.array([[3., 4.], [5., 12.]]))
      Array([ 5., 13.], dtype=float32)
    """

    def mapped(*args: Any) -> Any:
        leaves, tree = pytree.tree_flatten(args, is_leaf=is_zero)
        axes = spread(in_axes, args)
        zeros = {
            i: Zero(mapped_aval(x.aval, d, axis_data.size))
            for i, (x, d) in enumerate(zip(leaves, axes, strict=True))
            if is_zero(x)
        }
        values = [x for x in leaves if not is_zero(x)]
        dims = [d for x, d in zip(leaves, axes, strict=True) if not is_zero(x)]

        def flat(*xs):
            rest = iter(xs)
            given = [zeros[i] if i in zeros else next(rest) for i in range(len(leaves))]
            outs, out_tree = pytree.tree_flatten(f(*tree.unflatten(given)), is_leaf=is_zero)
            return [x for x in outs if not is_zero(x)], (outs, out_tree)

        vals, found, (outs, out_tree) = batch_flat_with_aux(flat, axis_data, values, dims)
        out = out_tree.unflatten([x if is_zero(x) else (0,) for x in outs])
        wanted = spread(out_axes, out, lambda x: is_zero(x) or x == (0,))
        rest = iter(zip(vals, found, strict=True))
        placed = [
            Zero(unmapped_aval(axis_data.size, w, x.aval)) if is_zero(x) else _left(*next(rest), w)
            for x, w in zip(outs, wanted, strict=True)
        ]
        return out_tree.unflatten(placed)

    def _left(x, dim, wanted):
        if wanted is None and dim is not None and sum_match:
            return reduce_sum(x, (dim,))
        return place(x, dim, wanted, axis_data.size)

    return mapped


def spread(axes: Any, tree: Any, is_leaf: Callable = is_zero) -> list[Any]:
    """One axis or None per leaf of a tree, from axes for a prefix of it."""
    every: list[Any] = []

    def add(axis, part):
        every.extend([axis] * len(pytree.tree_leaves(part, is_leaf=is_leaf)))

    pytree.tree_map(add, axes, tree, is_leaf=lambda d: d is None or isinstance(d, int | MappingSpec))
    return every
