"""`custom_partitioning`: functions with their own partition over devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.signatures import normalized, positions_of, signature_of
from bedrax.lax.primitives.calls import custom_partitioning_p
from bedrax.parallel.shardy_rules import SdyShardingRule, parse_rule

__all__ = ["custom_partitioning"]


class custom_partitioning:
    """A function of arrays with a partition over many devices from `def_partition`.

    Inside `jit` over several devices, the partitioner uses that partition. In other contexts (one device, `shard_map`
    over all axes, NumPy, TensorFlow, outside `jit`) it is the function itself. It has no derivative and no
    mapped form: wrap it with `jax.custom_vjp` and `jax.custom_batching.custom_vmap`.

    Args:
      fun: takes arrays (pytrees) by position.
      static_argnums: positions of arguments that are hashable values; the functions of `def_partition` take them first.

    Examples:

      >>> from jax.experimental import custom_partitioning as cp

      >>> @cp.custom_partitioning
      ... def row_sums(x):
      ...     return x.sum(axis=1)
      ...
      >>> def partition(mesh, args, result):  # called where several devices share the work: rows may be split, columns not
      ...     rows = args[0].sharding.spec[0]
      ...     split = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
      ...     return mesh, lambda part: part.sum(axis=1), split(rows), (split(rows, None),)
      ...
      >>> row_sums.def_partition(partition, sharding_rule="row col -> row", need_replication_factors=("col",))
      >>> jax.jit(row_sums)(jnp.arange(6.).reshape(2, 3))
      Array([ 3., 12.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums: tuple[int, ...] = positions_of(static_argnums, "custom_partitioning: static_argnums")
        self._params: dict[str, Any] | None = None

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Define the partition of the function.

        Args:
          partition: ``partition(*static, mesh, arg_shapes, result_shape) -> (mesh, lower_fn, result_shardings,
            arg_shardings)``; the shapes are trees of `ShapeDtypeStruct` of whole arrays, with shardings. `lower_fn` is
            the function of the parts of one device; the axes of the mesh are in scope for collectives.
          infer_sharding_from_operands: ``(*static, mesh, arg_shapes, result_shape) -> result_shardings``, for GSPMD.
          propagate_user_sharding: ``(*static, mesh, result_shape) -> sharding``, for GSPMD: the split of the result,
            from the split that a user of the result needs.
          decode_shardings: pass shardings as `NamedSharding` over the program's mesh if possible.
          sharding_rule: for Shardy: ``"i k, k j -> i j"``, a `SdyShardingRule`, or ``(*static, mesh, operand_types,
            result_types) -> either``, called with MLIR's types.
          reduction_factors, need_replication_factors, permutation_factors, **factor_sizes: see `SdyShardingRule`; with
            a rule that is a text.

        Raises:
          ValueError: the rule is invalid, or factors are given with a rule that is not a text.
        """
        options = dict(
            reduction_factors=tuple(reduction_factors),
            need_replication_factors=tuple(need_replication_factors),
            permutation_factors=tuple(permutation_factors),
            **factor_sizes,
        )
        if isinstance(sharding_rule, str):
            sharding_rule = parse_rule(sharding_rule, **options)
        elif any(options.values()):
            raise ValueError(
                f"def_partition: kinds and sizes of factors go with a rule that is a text, got {sharding_rule!r};"
                " give them to SdyShardingRule"
            )
        self._params = dict(
            partition=partition,
            infer_sharding_from_operands=infer_sharding_from_operands,
            propagate_user_sharding=propagate_user_sharding,
            decode_shardings=decode_shardings,
            sharding_rule=sharding_rule,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function.

        Raises:
          ValueError: `def_partition` was not called.
          NotImplementedError: the function closes over values of a transformation.
        """
        name = getattr(self.fun, "__name__", "function")
        if self._params is None:
            raise ValueError(
                f"custom_partitioning of {name}: call def_partition first, with a function that partitions it"
            )
        bound = signature_of(self.fun).bind(*args, **kwargs)
        if bound.kwargs:
            raise TypeError(
                f"custom_partitioning of {name}: it takes arguments by position, got {sorted(bound.kwargs)}"
            )
        bound.apply_defaults()
        args = bound.args
        name_of_positions = f"custom_partitioning of {name}: static_argnums"
        fixed = {i: args[i] for i in normalized(self.static_argnums, len(args), name_of_positions)}
        moving = tuple(x for i, x in enumerate(args) if i not in fixed)

        def fun(*xs):
            rest = iter(xs)
            return self.fun(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))))

        leaves, tree = pytree.tree_flatten((moving, {}))
        program, out_tree = staging.trace_to_jaxpr(staging.flat_fun(fun, tree), [aval_of(x) for x in leaves])
        program, consts = staging.close_over(program, every=False)
        if consts:
            raise NotImplementedError(
                f"custom_partitioning of {name}: it closes over values that are being transformed; make them arguments"
            )
        out = custom_partitioning_p.bind(
            *leaves,
            jaxpr=program,
            in_tree=pytree.tree_structure(moving),
            out_tree=out_tree,
            static_args=tuple(fixed[i] for i in sorted(fixed)),
            **self._params,
        )
        return pytree.tree_unflatten(out_tree, out)
