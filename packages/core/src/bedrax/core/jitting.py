"""`jit`: trace once per signature, then pass the program to the executor.

The active executor makes the result of `jit` (`make_jitted`). NumPy evaluates the traced
program; XLA wraps the same `Jitted` in jaxlib's C++ dispatch. Under another transformation
both bind `jit_p`, whose rules transform the program.
"""

from __future__ import annotations

import enum
import functools
import inspect
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, overload

import numpy as np

from bedrax import pytree
from bedrax.core import avals, caches, config, dead_code, executors, monitoring, objects, retracing, source, staging
from bedrax.core.codes import coded
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.public import public
from bedrax.core.signatures import Signature, leaf_names
from bedrax.core.tables import calls, families_on_bases, print_rules, programs, with_programs
from bedrax.core.tracing import Primitive, current
from bedrax.core.typing import JitFunction, P, R
from bedrax.pytree import PyTreeDef

_FAMILY = "calls"
families_on_bases.add(_FAMILY)


def holds_program(name: str, shrinks: bool = True) -> Primitive:
    """A primitive of the family of calls that applies its param `jaxpr` to its operands.

    Args:
      shrinks: whether the program may lose unused operands and results.
    """
    prim = Primitive(name, _FAMILY, multiple_results=True)
    programs.add(prim, lambda params: [calls(params["jaxpr"])])
    if shrinks:
        with_programs.add(prim, _smaller_call)

    @prim.abstract
    def types(*avals, jaxpr, **_):
        if len(avals) != len(jaxpr.invars):
            raise TypeError(f"{name}: {len(avals)} operands for a program that takes {len(jaxpr.invars)} arguments")
        return [v.aval for v in jaxpr.outvars]

    return prim


def _smaller_call(params: dict, smaller, operands, results) -> dict:
    params = {**params, "jaxpr": smaller[0]}
    if params.get("donated_invars") is not None:
        donated = params["donated_invars"]
        params["donated_invars"] = tuple([w.source[0] == "operand" and donated[w.source[1]] for w in operands])
    return params


class Inline(enum.Enum):
    """The stage at which the call of a jitted function inside another one is inlined: `jit(inline=)`.

    Attributes:
      JAX_EARLY: when the outer function is traced; its program has no call.
      JAX_LATE: when the outer program is lowered; its module has no call.
      XLA_EARLY, XLA_LATE: the module has a call with a mark for XLA. XLA inlines it before or after its other passes.
      AUTO: the module has a call, and XLA decides.

    Examples:

      >>> double = jax.jit(lambda x: 2 * x, inline=jax.Inline.JAX_EARLY)
      >>> jax.make_jaxpr(lambda x: double(x) + 1)(1.)  # the call is gone
      { lambda ; a:f32[]. let
          b:f32[] = mul 2.0:f32[] a
          c:f32[] = add b 1.0:f32[]
        in (c,) }
      >>> kept = jax.jit(lambda x: 2 * x, inline=jax.Inline.XLA_LATE)
      >>> "call @" in jax.jit(lambda x: kept(x) + 1).lower(1.).as_text()
      True
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def _checked_inline(inline: bool | Inline) -> Inline:
    if isinstance(inline, bool):
        return Inline.JAX_LATE if inline else Inline.AUTO
    if not isinstance(inline, Inline):
        raise ValueError(public(f"jit: inline is a boolean or a jax.Inline, got {inline!r}"))
    return inline


# params: jaxpr, name, donated_invars, keep_unused, inline (an `Inline`), compiler_options
jit_p: Final = holds_program("jit")


@staging.stage_rules.rule(jit_p)
def _stage_jit(trace, prim, args, params):
    if params["inline"] is Inline.JAX_EARLY:
        return eval_jaxpr(params["jaxpr"], params["jaxpr"].consts, *args)
    if avals.ShapeDtypeStruct in map(type, args):
        args = _without_unused_types(params["jaxpr"], args)
    return trace.record(prim, args, params)


def _without_unused_types(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Return the arguments. A type in place of an array that the program does not read becomes an array of zeros.

    A type that the program reads is an error when the outer program is compiled.
    """
    used = dead_code.dce_for(jaxpr, (True,) * len(jaxpr.outvars))[1]
    zeros = lambda x: np.broadcast_to(np.zeros((), x.dtype), x.shape)
    is_unused_type = lambda x, needed: (
        type(x) is avals.ShapeDtypeStruct and not needed and isinstance(x.dtype, np.dtype)
    )
    return [zeros(x) if is_unused_type(x, needed) else x for x, needed in zip(args, used, strict=True)]


@print_rules.rule(jit_p)
def _print_jit(params: dict) -> dict:
    shown = {"name": params["name"], "jaxpr": params["jaxpr"]}
    if any(params["donated_invars"]):
        shown["donated_invars"] = params["donated_invars"]
    return shown


def jit_params(jaxpr: Jaxpr, name: str, like: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return params of a `jit` equation for a program. Options are taken from `like`, per-argument ones dropped."""
    params = dict(
        jaxpr=jaxpr,
        name=name,
        donated_invars=(False,) * len(jaxpr.invars),
        keep_unused=False,
        inline=Inline.AUTO,
        compiler_options=(),
    )
    if like is not None:
        params.update({k: like[k] for k in ("keep_unused", "inline", "compiler_options")})
    params.update(changes)
    return params


def _jitted_again(fun: Callable, options: dict) -> Callable:
    return jit(fun, **options)


class TracedCall(NamedTuple):
    """A traced call of a jitted function: the program and its arguments."""

    jaxpr: Jaxpr
    args: list[Any]  # flat, with the tracers that the function closed over in front
    params: dict[str, Any]  # of the `jit` equation
    out_tree: Any
    in_tree: Any
    arg_offset: int  # the number of closed-over values in `args`
    changes: objects.Changes | None = None  # the last results are for these
    seen: Sequence[objects.Held] = ()

    def results(self, outs: Sequence[Any]) -> Any:
        """Return the result of the function, given the results of its program."""
        if self.changes is not None:
            count = self.out_tree.num_leaves
            self.changes.finish(outs[count:])
            outs = outs[:count]
        return pytree.tree_unflatten(self.out_tree, outs)


class _Traced(NamedTuple):
    jaxpr: Jaxpr
    consts: list[Any]
    out_tree: Any
    changes: objects.Changes | None = None
    seen: Sequence[objects.Held] = ()

    def holds(self) -> bool:
        """Return whether the objects that the trace used are unchanged."""
        return all(objects.Held.of(held.value) == held for held in self.seen)


def _with_changes(flat: Callable) -> Callable:
    """Return a flat function whose results are followed by the new contents of objects that it changed."""

    def ended(*args):
        outs, out_tree = flat(*args)
        used = current.trace.objects  # type: ignore[attr-defined]
        if used is None:
            return outs, (out_tree, None, ())
        further, changes, seen = used.further_results()
        return [*outs, *further], (out_tree, changes, seen)

    return ended


class Jitted:
    """A function to be staged out as one program. Made by `jit`; see there for the options."""

    # See `operation`.
    is_operation = False
    in_place: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any] | None] | None = None

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.name: str = staging.function_name(fun)
        self.signature: Signature = Signature(
            fun, *(options[k] for k in ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames"))
        )
        self.options = options
        self.cache: caches.Recent = caches.traces.of(fun)  # shared by all results of `jit` for one function

    def __reduce__(self) -> tuple[Any, ...]:
        return _jitted_again, (self.fun, self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config.disable_jit.value:
            return self.fun(*args, **kwargs)
        if self.in_place is not None and (done := self.in_place(args, kwargs)) is not None:
            return done[0]
        call = self.trace_call(args, kwargs)
        return call.results(self.bind(call))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def bind(self, call: TracedCall) -> list[Any]:
        """Run a traced call under the current trace."""
        return jit_p.bind(*call.args, **call.params)

    def trace_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedCall:
        """Trace the function for these arguments (arrays, or anything with a shape and dtype)."""
        signature = self.signature
        dynamic, dynamic_kwargs, static_key = signature.split(args, kwargs)
        leaves, in_tree = pytree.tree_flatten((dynamic, dynamic_kwargs))
        try:
            types = tuple(
                [avals.abstractify(x) for x in leaves] if not objects.kinds else map(staging.type_or_object, leaves)
            )
        except (TypeError, OverflowError):
            self.complain(in_tree, leaves, len(args))
            raise
        key = (in_tree, types, static_key, caches.context())
        traced = self.cache.get(key)
        if traced is None or (traced.seen and not traced.holds()):
            if config.no_tracing.value:
                raise RuntimeError(f"jit would trace {self.name} now, but jax_no_tracing is on")
            known = [k for k in self.cache.keys() if len(k) == len(key) and type(k[1]) is tuple]
            retracing.note(self.name, self.fun, key, known, signature.static_positions(len(args)))
            traced = self.trace_now(in_tree, types, static_key)
            if not any(map(staging.of_a_trace, traced.consts)):
                self.cache.keep(key, traced)
        gives = signature.donate_argnums or signature.donate_argnames
        donated = signature.donated(args, dynamic_kwargs) if gives else (False,) * len(leaves)
        if objects.kinds:
            arrays = [type(t) is not objects.Held for t in types]
            leaves, donated = (tuple(v for v, a in zip(values, arrays) if a) for values in (leaves, donated))
        params = dict(
            jaxpr=traced.jaxpr,
            name=self.name,
            donated_invars=(False,) * len(traced.consts) + donated,
            keep_unused=self.options["keep_unused"],
            inline=self.options["inline"],
            compiler_options=self.options["compiler_options"],
        )
        return TracedCall(
            traced.jaxpr,
            [*traced.consts, *leaves],
            params,
            traced.out_tree,
            in_tree,
            len(traced.consts),
            traced.changes,
            traced.seen,
        )

    def trace_now(self, in_tree: PyTreeDef, types: tuple[Any, ...], static_key: tuple[tuple[Any, ...], ...]) -> _Traced:
        """Trace without a lookup in the cache."""
        started = time.monotonic()
        call = self.signature.bound(self.fun, static_key)
        info = staging.described(self.fun, in_tree, [n for n, _ in static_key if type(n) is int])
        flat, types = objects.with_held(staging.flat_fun(call, in_tree), types)
        if objects.kinds:
            jaxpr, (out_tree, changes, seen) = staging.trace_to_jaxpr(_with_changes(flat), types, info)
        else:  # one frame less: nested functions reach Python's limit later
            jaxpr, out_tree = staging.trace_to_jaxpr(flat, types, info)
            changes, seen = None, ()
        jaxpr, consts = staging.close_over(jaxpr, every=False)
        monitoring.record_event_duration_secs("/jax/core/compile/jaxpr_trace_duration", time.monotonic() - started)
        return _Traced(staging.without_references(jaxpr), consts, out_tree, changes, seen)

    def complain(self, in_tree: Any, leaves: Any, count: int) -> None:
        """Raise an error that names the argument (of `count` positional ones) that is not an array."""
        names = leaf_names(self.fun, in_tree, sorted(self.signature.static_positions(count)))
        for where, leaf in zip(names, leaves, strict=True):
            try:
                avals.abstractify(leaf)
            except OverflowError as error:
                raise OverflowError(
                    f"{self.name} was called with an argument {where} that is too large: {error}"
                ) from None
            except TypeError:
                raise TypeError(
                    coded(
                        "BX-JIT-ARGUMENT",
                        f"{self.name} was called with an argument {where} of type {type(leaf)}, which is not a valid JAX type."
                        " Arguments of jit are pytrees of arrays; name others in static_argnums or static_argnames.",
                    )
                ) from None

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`."""
        call = self.trace_call(args, kwargs)
        out = map(avals.struct_of, call.jaxpr.out_avals[: call.out_tree.num_leaves])
        return pytree.tree_unflatten(call.out_tree, out)

    def clear_cache(self) -> None:
        """Drop every trace."""
        self.cache.clear()

    def __repr__(self) -> str:
        return f"<jitted {self.name} at {source.describe_function(self.fun)}>"


class JitDecorator(Protocol):
    """The result of `jit` that is called with options only."""

    def __call__(self, fun: Callable[P, R], /) -> JitFunction[P, R]:
        """Compile a function."""
        ...


@overload
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> JitDecorator: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Stage a function out as one program, traced once per signature of its arguments.

    Args:
      fun: a pure function of pytrees of arrays. Without it, returns a decorator.
      in_shardings: shardings of the positional arguments (XLA): one sharding for all, or a tuple of pytree prefixes.
        None: the argument decides. Uncommitted arguments are placed there. A committed argument has to be there.
      out_shardings: shardings of the results (XLA), a pytree prefix of them. None: the compiler decides.
      static_argnums, static_argnames: arguments that are compile-time constants; hashable.
      donate_argnums, donate_argnames: arguments whose buffers the result may take over.
      keep_unused: keep arguments that the program does not use.
      device, backend: where to run (older spelling of shardings).
      inline: an `Inline`: the stage at which a call of this function inside another traced function is inlined. True
        is ``Inline.JAX_LATE``, False ``Inline.AUTO``.
      compiler_options: options for XLA.

    Returns:
      A function with the signature of `fun`. It raises ValueError if an argument is committed to another sharding than
      the one in `in_shardings`; `device_put` moves it.

    Raises:
      ValueError: `inline` is neither a boolean nor an `Inline`.

    Examples:

      >>> from functools import partial
      >>> @partial(jax.jit, static_argnames="n")
      ... def power(x, n):
      ...     print("traced for n =", n)
      ...     return x ** n
      ...
      >>> power(jnp.array([1., 2.]), n=3)
      traced for n = 3
      Array([1., 8.], dtype=float32)
      >>> power(jnp.array([3., 4.]), n=3)
      Array([27., 64.], dtype=float32)
    """
    options = dict(
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=_checked_inline(inline),
        compiler_options=tuple(sorted((compiler_options or {}).items())),
    )
    if fun is None:
        return lambda f: jit(f, **{**options, "compiler_options": compiler_options})
    if not callable(fun):
        raise TypeError(
            coded(
                "BX-NOT-CALLABLE",
                f"jit needs a callable, got {fun!r} of type {type(fun)}; pass the function itself, without a call",
            )
        )
    if inspect.isgeneratorfunction(fun):
        raise TypeError(
            coded(
                "BX-JIT-GENERATOR",
                f"jit needs a function that returns its result, got the generator function {fun}; return a tuple in"
                " place of yield",
            )
        )
    return _dispatched(Jitted(fun, options))


def _dispatched(jitted: Jitted) -> Any:
    return executors.get().make_jitted(jitted) if executors.any_offered() else jitted


_NO_OPTIONS: Final = {name: None for name in ("in_shardings", "out_shardings", "device", "backend")}


def operation(
    fun: Callable[..., Any],
    static_argnames: Sequence[str] = (),
    inline: bool = False,
    in_place: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any] | None] | None = None,
) -> Any:
    """`jit` of a function of ours whose calls are eager operations. An executor need not compile for the first calls.

    Args:
      in_place: ``(args, kwargs)`` -> the result of a call without a program, in a tuple; or None: a program is needed. It is
        called where no program is known for these arguments.
    """
    options = dict(static_argnums=None, static_argnames=static_argnames, donate_argnums=None, donate_argnames=None)
    more = dict(keep_unused=False, inline=_checked_inline(inline), compiler_options=())
    jitted = Jitted(fun, {**_NO_OPTIONS, **options, **more})
    jitted.is_operation, jitted.in_place = True, in_place
    return _dispatched(jitted)


@jit_p.def_impl
def _run_jit(*args, jaxpr, **params):
    return executors.get().run_jit(args, {"jaxpr": staging.without_references(jaxpr), **params})
