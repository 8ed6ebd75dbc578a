"""Hints for the compiler, attached to operations and calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core.signatures import signature_of
from bedrax.lax import hint
from bedrax.lax.marking import Hinted, marked_call, ordered_call, pairs_of

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "program_order",
    "scheduling_group",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]


def set_xla_metadata(x: Any = None, /, **metadata: Any) -> Any:
    """Attach pairs to operations for the compiler, as their frontend attributes.

    Args:
      x: a pytree of arrays. The operations that make its leaves get the pairs. Without it, the result is a context
        manager for the operations traced inside, and a decorator.
      metadata: booleans, numbers or strings by name.

    Returns:
      `x` unchanged, or the context manager.

    Raises:
      TypeError: a value has another type.

    Examples:

      >>> from jax.experimental.xla_metadata import set_xla_metadata
      >>> marked = lambda f, x: [line.split('attributes = ')[1].split('}')[0] for line in jax.jit(f).lower(x).as_text().splitlines() if 'frontend' in line]

      >>> @jax.jit
      ... def f(x):
      ...     with set_xla_metadata(stage="first"):
      ...         y = jnp.sin(x)
      ...     return set_xla_metadata(jnp.cos(y), stage="second")
      ...
      >>> [line.strip() for line in f.lower(1.).as_text().splitlines() if "stage" in line]
      ['%0 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {stage = "first"}} : tensor<f32>', '%1 = stablehlo.cosine %0 {mhlo.frontend_attributes = {stage = "second"}} : tensor<f32>']
    """
    pairs = pairs_of("set_xla_metadata", metadata)
    return Hinted(pairs) if x is None else hint(x, pairs)


def fuse_limit() -> Hinted:
    """Context manager: XLA fuses no operation traced inside with one outside.

    The operations get the pair ``FUSE_LIMIT = "true"``. XLA's compiler for TPUs reads it, others ignore it.

    Examples:

      >>> from jax.experimental.xla_metadata import fuse_limit
      >>> marked = lambda f, x: [line.split('attributes = ')[1].split('}')[0] for line in jax.jit(f).lower(x).as_text().splitlines() if 'frontend' in line]

      >>> def f(x):
      ...     with fuse_limit():
      ...         y = jnp.sin(x)
      ...     return 2 * y
      ...
      >>> marked(f, 1.)
      ['{FUSE_LIMIT = "true"']
    """
    return Hinted(pairs_of("fuse_limit", {"FUSE_LIMIT": True}))


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Callable[..., Any]:
    """`f` as a function of the module, with pairs for the compiler at its calls.

    Unlike with `set_xla_metadata`, the pairs belong to the call: the calls in derivatives have them, too.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      meta: booleans, numbers or strings by name.

    Raises:
      TypeError: a value has another type.

    Examples:

      >>> from jax.experimental import scheduling_groups

      >>> f = scheduling_groups.xla_metadata_call(jnp.sin, stage="first")
      >>> f(0.)
      Array(0., dtype=float32, weak_type=True)

      >>> from jax.experimental.xla_metadata import xla_metadata_call
      >>> marked = lambda f, x: [line.split('attributes = ')[1].split('}')[0] for line in jax.jit(f).lower(x).as_text().splitlines() if 'frontend' in line]

      >>> @xla_metadata_call(block="first", count=3)
      ... def f(x):
      ...     return jnp.sin(x) * jnp.cos(x)
      ...
      >>> marked(f, 1.)
      ['{block = "first", count = "3"']
      >>> len(marked(jax.grad(f), 1.))
      2
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Any = None, /, metadata: dict[str, Any] | None = None, *, ad_metadata: dict[str, Any] | str = "same"
) -> Callable[..., Any]:
    """`xla_metadata_call` with the pairs as a dictionary, and others for derivatives.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator; then the first argument may be `metadata`.
      metadata: booleans, numbers or strings by name.
      ad_metadata: for the calls of the linear programs and their transposes in derivatives of `f`: ``"same"``
        (`metadata`), ``"drop"`` (none), or a dictionary. A call that computes values and tangents together (`jax.jvp`)
        has `metadata`.

    Raises:
      TypeError: `metadata`, `ad_metadata`, or a value in them has another type.

    Examples:

      >>> from jax.experimental.xla_metadata import xla_metadata_call2
      >>> marked = lambda f, x: [line.split('attributes = ')[1].split('}')[0] for line in jax.jit(f).lower(x).as_text().splitlines() if 'frontend' in line]

      >>> f = xla_metadata_call2(jnp.sin, {"group": "layer"}, ad_metadata={"group": "backward"})
      >>> marked(jax.grad(f), 1.)
      ['{group = "layer"', '{group = "backward"']
    """
    if f is not None and not callable(f):
        if metadata is not None:
            raise TypeError(f"xla_metadata_call2: the first argument is a function of arrays, got {f!r}")
        f, metadata = None, f
    if not isinstance(metadata, dict | None):
        raise TypeError(f"xla_metadata_call2: metadata is a dictionary, got {metadata!r} of type {type(metadata)}")
    pairs = pairs_of("xla_metadata_call", metadata or {})
    if isinstance(ad_metadata, dict):
        others: Any = tuple(sorted(pairs_of("xla_metadata_call", ad_metadata)))
    elif ad_metadata in ("same", "drop"):
        others = "same" if ad_metadata == "same" else ()
    else:
        raise TypeError(f"xla_metadata_call2: ad_metadata is 'same', 'drop' or a dictionary, got {ad_metadata!r}")
    decorator = functools.partial(marked_call, pairs=pairs, of_derivatives=others)
    return decorator if f is None else decorator(f)


def must_fuse_call(identifier: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: XLA puts all operations of a function into one fusion.

    Its calls have the pair ``MUST_FUSE = identifier``. XLA's compiler for TPUs reads it, others ignore it.

    Args:
      identifier: the identifier of the fusion, a number as a text.

    Examples:

      >>> from jax.experimental.xla_metadata import must_fuse_call
      >>> marked = lambda f, x: [line.split('attributes = ')[1].split('}')[0] for line in jax.jit(f).lower(x).as_text().splitlines() if 'frontend' in line]

      >>> f = must_fuse_call("1")(lambda x: jnp.sin(x) * jnp.cos(x))
      >>> marked(f, 1.)
      ['{MUST_FUSE = "1"']
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the compiler schedules the operations of a function together.

    Its calls have the pair ``scheduling_group = name``, which XLA's schedulers for TPUs and GPUs read.

    Args:
      name: of the group.

    Examples:

      >>> from jax.experimental import scheduling_groups

      >>> f = scheduling_groups.scheduling_group(name="first")(lambda x: jnp.sin(x) * 2)
      >>> [line.split(" : ")[0].strip() for line in jax.jit(f).lower(1.).as_text().splitlines() if "call @" in line]
      ['%0 = call @xla_metadata_call(%arg0) {mhlo.frontend_attributes = {scheduling_group = "first"}}']
    """
    return xla_metadata_call(scheduling_group=name)


def program_order(
    f: Callable[..., Any] | None = None,
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """`f` with its operations executed in the order of its code.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      enforce: put a barrier between each operation and the next one. Without it, the order is that of the lowered
        program, which the compiler may change.
      strict_in_out: whether all arguments are complete before the first operation, and all results before any is
        used: one boolean for both, or a pair. Only with `enforce`.
      exclude_argnames: names of arguments without barriers. Only without `enforce`, which has no barriers at all.

    Raises:
      ValueError: the arguments contradict each other, or `f` has no argument with such a name.

    Examples:

      >>> from jax.experimental.overlap import program_order
      >>> f = program_order(lambda x: (jnp.sin(x), jnp.cos(x)), enforce=True)
      >>> f(0.)
      (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
      >>> jax.jit(f).lower(0.).as_text().count("optimization_barrier")
      1
    """
    if f is None:
        return functools.partial(
            program_order, enforce=enforce, strict_in_out=strict_in_out, exclude_argnames=exclude_argnames
        )
    pair = strict_in_out if isinstance(strict_in_out, tuple) else (strict_in_out, strict_in_out)
    if len(pair) != 2 or not all(isinstance(x, bool) for x in (*pair, enforce)):
        raise ValueError(
            f"program_order: enforce is a boolean, strict_in_out one or a pair, got {enforce!r}, {strict_in_out!r}"
        )
    if not enforce and any(pair):
        raise ValueError("program_order: strict_in_out needs enforce=True; without it no operation waits")
    names = [exclude_argnames] if isinstance(exclude_argnames, str) else list(exclude_argnames or ())
    if enforce and names:
        raise ValueError("program_order: exclude_argnames needs enforce=False; an order that is enforced has no gaps")
    known = signature_of(f).parameters if names else {}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"program_order: exclude_argnames has {unknown[0]!r}, but the arguments are {', '.join(known)}"
        )
    return ordered_call(f, enforce, *pair)
