"""Operations about programs rather than values: tokens, the platform that a program runs on, values to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax import pytree
from bedrax.core import avals, effects
from bedrax.core.array import Array
from bedrax.core.avals import Token
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import control_flow

__all__ = [
    "after_all",
    "after_all_p",
    "create_token",
    "create_token_p",
    "dce_sink",
    "dce_sink_p",
    "platform_dependent",
    "hint",
    "hint_p",
    "platform_index_p",
    "stage",
    "stage_p",
]

_FAMILY = "markers"

# ---- tokens

create_token_p: Final = Primitive("create_token", _FAMILY)
after_all_p: Final = Primitive("after_all", _FAMILY)
create_token_p.abstract_eval = lambda: avals.abstract_token
create_token_p.def_impl(lambda: avals.token)


@after_all_p.abstract
def _after_all_type(*operands):
    if any(a is not avals.abstract_token for a in operands):
        raise TypeError(f"after_all takes tokens, got {[a.short() for a in operands]}")
    return avals.abstract_token


@after_all_p.def_impl
def _after_all(*operands):
    _after_all_type(*map(avals.aval_of, operands))
    return avals.token


def create_token(_: Any = None) -> Token | Array:
    """A token without dependencies. The argument is ignored.

    Examples:

      >>> token = lax.create_token()
    """
    return create_token_p.bind()


def after_all(*operands: Token | ArrayLike) -> Token | Array:
    """A token that depends on all of the given ones.

    Examples:

      >>> token = lax.after_all(lax.create_token(), lax.create_token())
    """
    return after_all_p.bind(*operands)


# ---- identities and sinks

stage_p: Final = Primitive("stage", _FAMILY)
stage_p.abstract_eval = lambda aval: aval


def stage(x: ArrayLike, /) -> Any:
    """`x`, such as a Python scalar, as an array; inside a transformed function, as a value of its program.

    Examples:

      >>> lax.stage(3)
      Array(3, dtype=int32, weak_type=True)
    """
    return stage_p.bind(x)


# The operation that computes the operand gets hints for the compiler. params: pairs (of strings)
hint_p: Final = Primitive("xla_metadata_value", _FAMILY)
hint_p.abstract_eval = lambda aval, *, pairs: aval


def hint(x: Array | dict[str, Array], pairs: tuple[tuple[str, str], ...]) -> Array | dict[str, Array]:
    """`x`, a pytree of arrays; the operations that compute its leaves pass `pairs` to the compiler."""
    return pytree.tree_map(lambda leaf: hint_p.bind(leaf, pairs=pairs), x)


# params: prevent_mlir_dce
dce_sink_p: Final = Primitive("dce_sink", _FAMILY, multiple_results=True)
dce_sink_p.abstract_eval = lambda *operands, prevent_mlir_dce: []
effect_rules.add(dce_sink_p, lambda *operands, prevent_mlir_dce: {effects.kept})


def dce_sink(val: ArrayLike, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the operations that compute an unused `val` in the program.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: keep it in the lowered program, too.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     lax.dce_sink(jnp.sin(x))
      ...     return 2 * x
      ...
      >>> f(1.)
      Array(2., dtype=float32, weak_type=True)
    """
    leaves = pytree.tree_leaves(val)
    if leaves:
        dce_sink_p.bind(*leaves, prevent_mlir_dce=prevent_mlir_dce)


# ---- the platform

# The index of the first tuple of `platforms` with the platform's name; None matches any.
platform_index_p: Final = Primitive("platform_index", _FAMILY)
platform_index_p.abstract_eval = lambda *, platforms: avals.scalar_aval(np.dtype(np.int32))


def index_of_platform(platform: str, platforms: tuple[Any, ...]) -> int:
    """The index of the branch for `platform`.

    Raises:
      NotImplementedError: there is no branch for it.
    """
    for i, names in enumerate(platforms):
        if names is None or platform in names:
            return i
    given = [name for names in platforms for name in names]
    raise NotImplementedError(f"platform_dependent: no branch for platform '{platform}', only {given}, no default")


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Apply the function of the platform on which the program runs.

    All functions are traced; the function is chosen when the program is lowered for a platform (or, of a program for
    several, when it is compiled).

    Args:
      args: pytrees of arrays.
      default: for platforms without a function in `per_platform`.
      per_platform: functions by platform: ``cpu=``, ``tpu=``, ``cuda=``, ``rocm=``.

    Returns:
      The function's result. All functions must return the same types.

    Raises:
      ValueError: the platform name ``gpu``, which is two platforms.
      NotImplementedError: when lowered: there is neither a function for the platform nor a default.

    Examples:

      >>> lax.platform_dependent(jnp.array([1, 2]), cpu=lambda x: -x, default=lambda x: x)
      Array([-1, -2], dtype=int32)
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: 'gpu' is not the name of a platform; pass cuda= or rocm= instead of gpu=")
    functions = list(per_platform.values())
    platforms: tuple[Any, ...] = tuple((name,) for name in per_platform)
    if default is not None:
        functions.append(default)
        platforms += (None,)
    if not functions:
        raise ValueError("platform_dependent got no function; pass one for a platform, such as cpu=, or default=")
    names = tuple(per_platform) + (("default",) if default is not None else ())
    return control_flow.branch(
        platform_index_p.bind(platforms=platforms), functions, args, names, branches_platforms=platforms
    )
