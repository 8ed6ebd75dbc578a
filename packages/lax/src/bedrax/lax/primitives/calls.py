"""Calls: primitives that hold a program and apply it, and identities that compilers and policies see.

`jit_p` comes from the kernel (`bedrax.core.jitting`); `checkpoint` lives in `bedrax.autodiff`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.ir import call_flat
from bedrax.core.jitting import holds_program
from bedrax.core.tables import identities
from bedrax.core.tracing import Primitive
from bedrax.core.typing import P, R, T

_FAMILY = "calls"


# params: jaxpr, prevent_cse, differentiated, policy
remat_p: Final = holds_program("remat2")
# params: jaxpr
closed_call_p: Final = holds_program("closed_call")
core_call_p: Final = holds_program("core_call")
# A call with pairs of strings for the compiler. params: jaxpr, xla_metadata (the pairs), ad_metadata (the pairs of its
# derivatives' calls, or "same")
xla_metadata_call_p: Final = holds_program("xla_metadata_call")
# Operations run in the order in which they are written. params: jaxpr, enforce, strict_in, strict_out
program_order_p: Final = holds_program("program_order")
# Plain calls of a program: a transformed program is called by the same primitive.
plain_calls: Final = (closed_call_p, core_call_p, xla_metadata_call_p, program_order_p)
# params: jaxpr, name, version, attributes (a tuple of pairs)
composite_p: Final = holds_program("composite")
# params: jaxpr, partition, infer_sharding_from_operands, propagate_user_sharding, decode_shardings, sharding_rule, in_tree,
# out_tree, static_args
custom_partitioning_p: Final = holds_program(
    "custom_partitioning", shrinks=False
)  # its other params describe all of them


@closed_call_p.def_impl
def _closed_call_impl(*args, jaxpr, **_):
    return call_flat(jaxpr, args)


for _prim in plain_calls[1:]:
    _prim.def_impl(_closed_call_impl)
remat_p.def_impl(_closed_call_impl)
composite_p.def_impl(_closed_call_impl)
custom_partitioning_p.def_impl(_closed_call_impl)


# ---- identities that compilers and policies see

optimization_barrier_p: Final = Primitive("optimization_barrier", _FAMILY, multiple_results=True)
optimization_barrier_p.abstract_eval = lambda *avals: list(avals)


def optimization_barrier(operand: T, /) -> T:
    """The identity; the compiler moves no computation across it.

    Args:
      operand: a pytree of arrays.

    Returns:
      The same pytree; every leaf is computed before any leaf is used.

    Examples:

      >>> lax.optimization_barrier((jnp.array([1]), 2))
      (Array([1], dtype=int32), Array(2, dtype=int32, weak_type=True))
    """
    leaves, tree = pytree.tree_flatten(operand)
    return pytree.tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else leaves)


# params: name
name_p: Final = Primitive("name", _FAMILY)
name_p.abstract_eval = lambda aval, name: aval
identities.update((optimization_barrier_p, name_p))


def checkpoint_name(x: Any, name: str) -> Any:
    """Name the leaves of `x`, for the policies of `checkpoint` that save by name.

    Args:
      x: a pytree of arrays.
      name: any string.

    Returns:
      `x`.

    Examples:

      >>> from jax.ad_checkpoint import checkpoint_name
      >>> policy = jax.checkpoint_policies.save_only_these_names("hidden")
      >>> layer = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "hidden")), policy=policy)
      >>> jax.grad(layer)(1.)
      Array(0.36003947, dtype=float32, weak_type=True)
    """
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def checkpoint_name_fwd(x: Any, name: str) -> Any:
    """`checkpoint_name`; derivatives of it name no tangents and no cotangents.

    Args:
      x: a pytree of arrays.
      name: any string.

    Returns:
      `x`.

    Examples:

      >>> jax.ad_checkpoint.checkpoint_name_fwd(jnp.float32(2), "twice") * 2
      Array(4., dtype=float32)
    """
    return checkpoint_name(x, name)  # its derivatives name none either


def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """A named operation that a compiler may recognise, with its meaning as a function.

    Args:
      decomposition: takes arrays (pytrees) and keyword attributes; defines the operation.
      name: e.g. ``"my.op"``.
      version: of the operation's definition.

    Returns:
      A function of the same arrays and attributes.

    Examples:

      >>> double = lax.composite(lambda x: 2 * x, name="my.double")
      >>> double(jnp.array([1, 2]))
      Array([2, 4], dtype=int32)
    """

    def call(*args, **attributes):
        leaves, in_tree = pytree.tree_flatten((args, {}))
        flat = staging.flat_fun(lambda *a: decomposition(*a, **attributes), in_tree)
        program, out_tree = staging.trace_to_jaxpr(flat, [aval_of(x) for x in leaves])
        program, consts = staging.close_over(program)
        if consts:
            raise NotImplementedError(f"composite '{name}': the function closes over arrays; make them arguments")
        out = composite_p.bind(
            *leaves, jaxpr=program, name=name, version=version, attributes=tuple(sorted(attributes.items()))
        )
        return pytree.tree_unflatten(out_tree, out)

    return call
