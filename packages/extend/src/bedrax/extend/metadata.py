"""Hints for the compiler, which it keeps with operations and calls as it finds them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core.signatures import signature_of
from bedrax.lax import hint
from bedrax.lax.marking import Hinted, marked_call, ordered_call, pairs_of

__all__ = [
    "fuse_limit", "must_fuse_call", "program_order", "scheduling_group", "set_xla_metadata", "xla_metadata_call",
    "xla_metadata_call2",
]  # fmt: skip


def set_xla_metadata(x: Any = None, /, **metadata: Any) -> Any:
    """Hand pairs to the compiler with operations, as their frontend attributes.

    Args:
      x: a pytree of arrays: the operations that make its leaves get the pairs. Without it, the result is a context
        manager, which is about the operations traced inside, and a decorator.
      metadata: booleans, numbers or strings by name.

    Returns:
      `x` as it is, or the context manager.

    Raises:
      TypeError: a value is something else.
    """
    pairs = pairs_of("set_xla_metadata", metadata)
    return Hinted(pairs) if x is None else hint(x, pairs)


def fuse_limit() -> Hinted:
    """Context manager: XLA fuses no operation that is traced inside with one outside.

    The operations get the pair ``FUSE_LIMIT = "true"``. XLA's compiler for TPUs reads it, others leave it as it is.
    """
    return Hinted(pairs_of("fuse_limit", {"FUSE_LIMIT": True}))


def xla_metadata_call(f: Callable | None = None, /, **meta: Any) -> Callable:
    """`f` as a function of the module, whose calls have pairs for the compiler.

    Unlike `set_xla_metadata`, the pairs belong to the call: programs that derivatives make of it have them, too.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      meta: booleans, numbers or strings by name.

    Raises:
      TypeError: a value is something else.
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f: Any = None, /, metadata: dict | None = None, *, ad_metadata: dict | str = "same") -> Callable:
    """`xla_metadata_call` with the pairs as a dictionary, and others for derivatives.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator; the first argument may be `metadata` then.
      metadata: booleans, numbers or strings by name.
      ad_metadata: for the linear programs, and their transposes, that derivatives make of `f`: ``"same"`` (`metadata`),
        ``"drop"`` (none), or a dictionary. Where values and tangents are computed together (`jax.jvp`) the call is one,
        and has `metadata`.

    Raises:
      TypeError: `metadata` or `ad_metadata` is something else, or a value of them is.
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


def must_fuse_call(identifier: str) -> Callable[[Callable], Callable]:
    """Decorator: XLA puts all operations of a function into one fusion.

    Its calls have the pair ``MUST_FUSE = identifier``. XLA's compiler for TPUs reads it, others leave it as it is.

    Args:
      identifier: of the fusion, a number as a text.
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def scheduling_group(name: str) -> Callable[[Callable], Callable]:
    """Decorator: the compiler schedules the operations of a function together.

    Its calls have the pair ``scheduling_group = name``, which XLA's schedulers for TPUs and GPUs read.

    Args:
      name: of the group.
    """
    return xla_metadata_call(scheduling_group=name)


def program_order(
    f: Callable | None = None, *, enforce: bool, strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | Sequence[str] | None = None,
) -> Callable:  # fmt: skip
    """`f`, whose operations run in the order in which it writes them.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      enforce: put a barrier between each operation and the next one. Without it, the order is that of the program as
        it is lowered, which the compiler may change.
      strict_in_out: whether all arguments are there before the first operation, and no result is used before all are
        there: one boolean for both, or a pair. Only with `enforce`.
      exclude_argnames: names of arguments that wait for nothing. Only without `enforce`, where no argument waits.

    Raises:
      ValueError: the arguments do not go together, or `f` has no argument of such a name.
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
        raise ValueError("program_order: strict_in_out goes with enforce=True; without it nothing waits")
    names = [exclude_argnames] if isinstance(exclude_argnames, str) else list(exclude_argnames or ())
    if enforce and names:
        raise ValueError(
            "program_order: exclude_argnames goes with enforce=False; an order that is enforced has no gaps"
        )
    known = signature_of(f).parameters if names else {}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"program_order: exclude_argnames has {unknown[0]!r}, but the arguments are {', '.join(known)}"
        )
    return ordered_call(f, enforce, *pair)
