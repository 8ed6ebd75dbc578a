"""The derivative of a function at a point, as a linear map that users hold: `linearize`, `vjp`, `linear_transpose`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from bedrax import pytree
from bedrax.autodiff.arguments import (
    Chosen,
    all_arguments,
    as_array,
    as_typed,
    check_argnums,
    check_function,
    check_no_reduce_axes,
    check_no_references,
    flattened,
    is_float0,
)
from bedrax.autodiff.linearization import Recorded, backward_pass, backward_pass_with_logs, linearize_checked
from bedrax.autodiff.tables import UndefinedPrimal, Zero
from bedrax.core import dtypes, ir, staging
from bedrax.core.avals import AbstractValue, ShapedArray, abstractify, aval_of
from bedrax.core.codes import coded
from bedrax.core.jitting import jit
from bedrax.core.typing import ArrayLike, R, S
from bedrax.pytree import PyTreeDef

__all__ = [
    "DidntWant",
    "DontWant",
    "GradRef",
    "GradValue",
    "NotNeeded",
    "NotSaveable",
    "VJP",
    "LinearFunction",
    "Linearized",
    "fwd_and_bwd",
    "linear_transpose",
    "linearize",
    "vjp",
]


class LinearProgram(NamedTuple):
    """``residuals, tangents of the active arguments -> tangents of the active results``, with its residuals."""

    jaxpr: ir.Jaxpr
    active_out: tuple[bool, ...]
    residuals: list[Any]


class Linearized:
    """A linear map between the tangents of a function's arguments and those of its results.

    A pytree whose leaves are the residuals: the values that it needs of the point. Before their first use, the map
    is the tape recorded at the point.

    Attributes:
      in_tree, out_tree: structures of the arguments and of the result.
      in_types, out_types: the types of their tangents.
      active: which leaves of the arguments have tangents other than zero.
    """

    __slots__ = ("_program", "_recorded", "active", "in_tree", "in_types", "out_tree", "out_types")

    def __init__(
        self,
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        in_types: tuple[Any, ...],
        out_types: tuple[Any, ...],
        active: tuple[bool, ...],
        recorded: Recorded | None = None,
        program: LinearProgram | None = None,
    ) -> None:
        self.in_tree: PyTreeDef = in_tree
        self.out_tree: PyTreeDef = out_tree
        self.active: tuple[bool, ...] = active
        self.in_types: tuple[Any, ...] = in_types
        self.out_types: tuple[Any, ...] = out_types
        self._recorded, self._program = recorded, program

    @property
    def program(self) -> LinearProgram:
        """The map as a program, made from the tape on first use."""
        if self._program is None:
            self._program = LinearProgram(*self._recorded.program())
            self._recorded = None
        return self._program

    def push(self, *tangents: ArrayLike) -> Any:
        """The tangent of the result for tangents of the arguments.

        Raises:
          TypeError: the tangents' structure is not that of the arguments.
          ValueError: a tangent is of a wrong type.
        """
        leaves, tree = pytree.tree_flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(f"linearized function: primals had structure {self.in_tree}, the tangents have {tree}")
        for t, wanted in zip(leaves, self.in_types, strict=True):
            got = _type_of(t)
            if not _fits(got, wanted):
                raise ValueError(
                    coded(
                        "BX-TANGENT",
                        f"linearized function: got tangent {got.str_short()}, expected {wanted.str_short()}",
                    )
                )
        jaxpr, active_out, residuals = self.program
        live = [t for t, a in zip(leaves, self.active, strict=True) if a]
        out = iter(ir.run(jaxpr, *residuals, *live))
        tangents_out = [
            as_typed(next(out) if a else Zero(t), t) for a, t in zip(active_out, self.out_types, strict=True)
        ]
        return pytree.tree_unflatten(self.out_tree, tangents_out)

    def pull(
        self,
        cotangent: Any,
        error: type[Exception] = ValueError,
        wanted: Sequence[bool] | None = None,
        backward: Callable[..., Any] | None = None,
    ) -> Any:
        """The cotangents of the arguments for a cotangent of the result.

        Args:
          wanted: the leaves of the arguments whose cotangents are needed; None: all.
          backward: the function that reads the tape, ``(cotangents of the result's leaves, wanted) -> cotangents``.
            Default: the tape's own.

        Raises:
          error: the structure or a type of the cotangent is not that of the result.
        """
        leaves, tree = pytree.tree_flatten(cotangent, is_leaf=lambda x: type(x) is Zero)
        if tree != self.out_tree:
            raise error(
                coded(
                    "BX-COTANGENT", f"a cotangent is structured like the result: expected {self.out_tree}, got {tree}"
                )
            )
        cts = [_checked_cotangent(ct, a, error) for ct, a in zip(leaves, self.out_types, strict=True)]
        if wanted is not None:
            wanted = [w for w, a in zip(wanted, self.active, strict=True) if a]
        found = iter((backward or self._backward)(cts, wanted))
        out = [as_array(next(found) if a else Zero(t), t) for a, t in zip(self.active, self.in_types, strict=True)]
        return pytree.tree_unflatten(self.in_tree, out)

    @property
    def out_nzs(self) -> Any:
        """A tree of booleans like the result: whether the tangent of the leaf is not known to be zero."""
        recorded = self._recorded
        moving = self.program.active_out if recorded is None else [type(t) is not Zero for t in recorded.tangents]
        return pytree.tree_unflatten(self.out_tree, list(moving))

    def _backward(self, cts: Sequence[Any], wanted: Sequence[bool] | None) -> list:
        recorded = self._recorded
        if recorded is not None:
            return recorded.backward(cts, wanted)
        jaxpr, active_out, residuals = self.program
        unknown = [UndefinedPrimal(v.aval) for v in jaxpr.invars[len(residuals) :]]
        live = [ct for ct, a in zip(cts, active_out, strict=True) if a]
        return backward_pass(jaxpr, [*residuals, *unknown], live, wanted)

    def _flatten(self):
        jaxpr, active_out, residuals = self.program
        static = (self.in_tree, self.out_tree, self.in_types, self.out_types, self.active, jaxpr, active_out)
        return tuple(residuals), static

    @classmethod
    def _unflatten(cls, static, residuals):
        *rest, jaxpr, active_out = static
        return cls(*rest, program=LinearProgram(jaxpr, active_out, list(residuals)))


class LinearFunction(Linearized):
    """The linear function that `linearize` returns: called with tangents, it pushes them.

    Attributes:
      func, args: a function of the residuals and the tangents, and the residuals: ``func(*args, *tangents)``.
    """

    __slots__ = ()
    __call__: Callable[..., Any] = Linearized.push

    @property
    def func(self) -> Callable[..., Any]:
        static = self._flatten()[1]
        return lambda residuals, *tangents: type(self)._unflatten(static, residuals)(*tangents)

    @property
    def args(self) -> tuple[Any, ...]:
        return (self._flatten()[0],)

    @property
    def keywords(self) -> dict[str, Any]:
        return {}


class _Mark:
    """Base of the marks: a request for a cotangent, or a placeholder for a missing value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """For `VJP.with_refs`: the cotangent of this argument is returned, as it is by default.

    Examples:

      >>> from jax import ad

      >>> total = jax.new_ref(jnp.zeros(()))
      >>> _, pullback = jax.vjp(lambda x, y: x * y, 3., 4.)
      >>> pullback.with_refs(total, ad.GradValue())(1.), total[...]
      ((GradRef(), Array(3., dtype=float32, weak_type=True)), Array(4., dtype=float32))
    """

    __slots__ = ()


class DontWant(_Mark):
    """For `VJP.with_refs`: the cotangent of this argument is not computed.

    Examples:

      >>> from jax import ad

      >>> _, pullback = jax.vjp(lambda x, y: x * y, 3., 4.)
      >>> pullback.with_refs(ad.DontWant(), ad.GradValue())(1.)
      (DidntWant(), Array(3., dtype=float32, weak_type=True))
    """

    __slots__ = ()


@pytree.register_static
class GradRef(_Mark):
    """Placeholder of a cotangent that was added to a reference; a node without leaves.

    Examples:

      >>> total = jax.new_ref(jnp.zeros(()))
      >>> _, pullback = jax.vjp(lambda x: x * x, 3.)
      >>> pullback.with_refs(total)(1.), total[...]
      ((GradRef(),), Array(6., dtype=float32))
    """

    __slots__ = ()


@pytree.register_static
class DidntWant(_Mark):
    """Placeholder of a cotangent that was not computed; a node without leaves.

    Examples:

      >>> from jax import ad

      >>> _, pullback = jax.vjp(lambda x, y: x * y, 3., 4.)
      >>> unwanted, _ = pullback.with_refs(ad.DontWant(), ad.GradValue())(1.)
      >>> unwanted, jax.tree.leaves(unwanted)
      (DidntWant(), [])
    """

    __slots__ = ()


class NotNeeded(_Mark):
    """Placeholder in `VJP.args_res` for an argument that the pullback does not need.

    Examples:

      >>> from jax import ad

      >>> _, pullback = jax.vjp(lambda x, y: jnp.sin(x) + y, 3., 4.)
      >>> [isinstance(x, ad.NotNeeded) for x in pullback.args_res]
      [True, True]
    """

    __slots__ = ()


class NotSaveable(_Mark):
    """Placeholder in `VJP.args_res` for an argument that the pullback needs but may not keep. Put it back first.

    Examples:

      >>> from jax import ad

      >>> y, pullback = jax.vjp(lambda x: x * jnp.sin(x), jnp.float32(2), saveable_args=False)
      >>> isinstance(pullback.args_res[0], jax.ad.NotSaveable)
      True
    """

    __slots__ = ()


_MARKS = (NotNeeded, NotSaveable)


class VJP(Linearized):
    """The pullback that `vjp` returns: called with a cotangent, it returns the cotangents of the arguments.

    Attributes:
      args_res: each argument of the function, with `NotNeeded` in place of leaves that the pullback does not need, and
        `NotSaveable` in place of those that it may not keep. The list may be written to: values may be taken out,
        and put back before a call.
      opaque_residuals: the other values that the pullback needs, in a list that may be written to, too.
    """

    __slots__ = ("_arguments", "_lists", "_sources")

    def __init__(
        self, *static: Any, arguments: Sequence[Any] = (), sources: tuple[Any, ...] | None = None, **residuals: Any
    ) -> None:
        super().__init__(*static, **residuals)
        self._arguments = tuple(map(_held_weakly, arguments))  # so that arguments that are not needed can be freed
        self._sources = sources  # per residual: the position of the argument's leaf that it is, or None
        self._lists: tuple[list[Any], list[Any]] | None = None

    @property
    def program(self) -> LinearProgram:
        """The map as a program, with the residuals as they are now."""
        found = Linearized.program.fget(self)
        if self._sources is None:
            leaves = [get() for get in self._arguments]
            which = lambda x: next((i for i, leaf in enumerate(leaves) if leaf is x), None)
            self._sources, self._arguments = tuple(map(which, found.residuals)), ()
        if self._lists is None:
            return found
        args, opaque = self._lists
        wanted = sum(i is None for i in self._sources)
        if len(opaque) != wanted:
            raise ValueError(f"this pullback needs {wanted} opaque_residuals, there are {len(opaque)}")
        given, rest = self._leaves_of(args), iter(opaque)
        residuals = [next(rest) if i is None else given[i] for i in self._sources]
        for i, x in zip(self._sources, residuals, strict=True):
            if x is None or isinstance(x, _MARKS):
                where = "opaque_residuals" if i is None else "args_res"
                raise ValueError(f"this pullback needs a value that was taken out of its {where}: put it back first")
        return found._replace(residuals=residuals)

    def _leaves_of(self, args: Sequence[Any]) -> list:
        """The entry of `args_res` for each leaf of the arguments."""
        out: list[Any] = []
        for tree, x in zip(pytree.treedef_children(self.in_tree), args, strict=True):
            gone = x is None or isinstance(x, _MARKS)
            out += [x] * tree.num_leaves if gone else tree.flatten_up_to(x)
        return out

    def _split(self) -> tuple[list, list]:
        if self._lists is None:
            residuals = self.program.residuals
            leaves: list[Any] = [NotNeeded()] * len(self.in_types)
            for i, x in zip(self._sources, residuals, strict=True):
                if i is not None:
                    leaves[i] = x
            opaque = [x for i, x in zip(self._sources, residuals, strict=True) if i is None]
            self._lists = list(pytree.tree_unflatten(self.in_tree, leaves)), opaque
        return self._lists

    @property
    def args_res(self) -> list[Any]:
        return self._split()[0]

    @args_res.setter
    def args_res(self, values: Sequence[Any]) -> None:
        self._lists = list(values), self._split()[1]

    @property
    def opaque_residuals(self) -> list[Any]:
        return self._split()[1]

    @opaque_residuals.setter
    def opaque_residuals(self, values: Sequence[Any]) -> None:
        self._lists = self._split()[0], list(values)

    def _drop(self, saveable: Sequence[bool]) -> None:
        """Drop the leaves of the arguments that may not be kept."""
        args, _ = self._split()
        leaves = self._leaves_of(args)
        kept = [x if s or isinstance(x, NotNeeded) else NotSaveable() for x, s in zip(leaves, saveable, strict=True)]
        args[:] = pytree.tree_unflatten(self.in_tree, kept)
        self._program = self._program._replace(residuals=[])

    def with_logs(self, *given: Any) -> tuple[Any, dict[Any, Any]]:
        """The cotangents, as a call returns them, and the dict of logs of backward rules (see `defvjp_with_logs`).

        Raises:
          NotImplementedError: a rule that logs is called in a loop or a branch.
        """
        logs: list[Any] = []

        def backward(cts, wanted):
            jaxpr, active_out, residuals = self.program
            unknown = [UndefinedPrimal(v.aval) for v in jaxpr.invars[len(residuals) :]]
            live = [ct for ct, a in zip(cts, active_out, strict=True) if a]
            found, logged = backward_pass_with_logs(jaxpr, [*residuals, *unknown], live)
            logs.append(logged)
            return found

        if len(given) != 1:
            raise TypeError(f"with_logs takes one argument, the cotangent (maybe a tuple), got {len(given)}")
        return self.pull(given[0], backward=backward), logs[0]

    def _flatten(self):
        lists = self._split()  # a value that was taken out is not a leaf
        jaxpr, active_out, _ = self._program
        static = self.in_tree, self.out_tree, self.in_types, self.out_types, self.active, jaxpr, active_out
        return lists, (*static, self._sources)

    @classmethod
    def _unflatten(cls, static, lists):
        *rest, jaxpr, active_out, sources = static
        out = cls(*rest, program=LinearProgram(jaxpr, active_out, []), sources=sources)
        out._lists = lists
        return out

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        if len(given) == 1 and not any([t.mutable for t in self.in_types]):
            return self.pull(given[0])
        return self._pulled(given, (None,) * len(self.in_types))

    def with_refs(self, *refs: Any) -> Callable[..., Any]:
        """This map, with a destination for the cotangent of each argument.

        Args:
          refs: one entry per argument of the function, or a prefix of it as a tree: a reference, to which the cotangent is
            added; `GradValue` ``()``, for the cotangent to be returned; `DontWant` ``()``. For an argument that is a
            reference, the entry is a reference, too.

        Returns:
          A function of the cotangent of the result. Where there is no cotangent to return, it returns a mark, `GradRef`
          or `DidntWant`.

        Raises:
          TypeError: an entry is none of these.
          ValueError: the entries are not structured like the arguments.
        """
        places: list[Any] = []
        arguments = pytree.tree_unflatten(self.in_tree, self.in_types)
        add = lambda place, part: places.extend([place] * len(pytree.tree_leaves(part)))
        pytree.tree_map(add, refs, arguments)
        for place in places:
            if not isinstance(place, (GradValue, DontWant)) and not getattr(
                getattr(place, "aval", None), "mutable", False
            ):
                raise TypeError(f"with_refs takes references, GradValue() and DontWant(), got {place!r}")
        return lambda *given: self._pulled(given, tuple(places))

    def _pulled(self, given: tuple, places: tuple) -> Any:
        if len(given) != 1:
            raise TypeError(f"what vjp returns takes one argument, the cotangent (maybe a tuple), got {len(given)}")
        for place, wanted in zip(places, self.in_types, strict=True):
            if wanted.mutable and (place is None or isinstance(place, GradValue)):
                raise ValueError(
                    f"an argument of the differentiated function is a reference of type {wanted.short()}: its cotangent is"
                    " added to a reference, too. Say to which: vjp_fun.with_refs(ref, ...)(ct)."
                )
        unwanted = [isinstance(place, DontWant) for place in places]
        found = pytree.tree_leaves(self.pull(given[0], wanted=[not u for u in unwanted] if any(unwanted) else None))
        for i, place in enumerate(places):
            if isinstance(place, DontWant):
                found[i] = DidntWant()
            elif place is not None and not isinstance(place, GradValue):
                place.addupdate(found[i])
                found[i] = GradRef()
        return pytree.tree_unflatten(self.in_tree, found)


def _held_weakly(x: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(x)
    except TypeError:  # tracers and Python scalars
        return lambda: x


pytree.register_pytree_node(NotNeeded, lambda mark: ((), None), lambda _, __: NotNeeded())
pytree.register_pytree_node(NotSaveable, lambda mark: ((), None), lambda _, __: NotSaveable())
for _class in (LinearFunction, VJP):
    pytree.register_pytree_node(_class, _class._flatten, _class._unflatten)


def _type_of(x) -> AbstractValue:
    return ShapedArray(np.shape(x), dtypes.float0) if is_float0(x) else aval_of(x)


def _fits(got: AbstractValue, wanted: AbstractValue) -> bool:
    """Whether a tangent or cotangent has a type: the shape and dtype of an array, or the type of a library."""
    if got.is_high or wanted.is_high:
        return got == wanted
    return got.shape == wanted.shape and got.dtype == wanted.dtype


def _checked_cotangent(ct, wanted: AbstractValue, error: type[Exception]):
    """A cotangent of the expected type; `Zero` for a result without derivative, given any array of its shape."""
    if type(ct) is Zero:
        return ct
    no_tangent = wanted.is_array and wanted.dtype == dtypes.float0
    got = _type_of(ct)
    if no_tangent:
        fits = is_float0(ct) or got.shape == wanted.shape  # NumPy has no float0 array of a symbolic shape
    else:
        fits = _fits(got, wanted)
    if not fits:
        raise error(
            coded(
                "BX-COTANGENT",
                f"a cotangent has the type of the result: expected {wanted.str_short()}, got {got.str_short()}",
            )
        )
    return Zero(wanted) if no_tangent else ct


def _each_leaf(name: str, parameter: str, flags: Any, tree: Any) -> list[bool]:
    """One flag per leaf of a tree, from a prefix of flags. Containers of both have the same number of children."""
    if isinstance(flags, bool):
        return [flags] * tree.num_leaves
    parts = pytree.tree_leaves(flags, is_leaf=lambda x: x is not flags)
    if len(parts) == 1 and parts[0] is flags:
        raise ValueError(f"{name}: {parameter} is a tree of booleans, got {flags!r} of type {type(flags).__name__}")
    children = [] if pytree.treedef_is_leaf(tree) else pytree.treedef_children(tree)
    if len(parts) != len(children):
        raise ValueError(
            f"{name}: {parameter} is a boolean or a tree of booleans that is a prefix of the arguments; it has"
            f" {len(parts)} entries for a container of {len(children)}: {tree}"
        )
    return [f for part, child in zip(parts, children, strict=True) for f in _each_leaf(name, parameter, part, child)]


def _at(kind: type[Linearized], name: str, chosen: Chosen, has_aux: bool, in_nzs: Any = None) -> tuple:
    """(result, map of class `kind`), and aux."""
    active = chosen.active()
    if in_nzs is not None:
        active = tuple(a and f for a, f in zip(active, _each_leaf(name, "in_nzs", in_nzs, chosen.tree), strict=True))
    if kind is not VJP:
        check_no_references(name, chosen.leaves)
    recorded = linearize_checked(flattened(chosen.call, name, has_aux), chosen.leaves, active)
    out_tree, aux_tree, n = recorded.aux
    outs, aux = recorded.outs[:n], recorded.outs[n:]
    in_types, out_types = (tuple([aval_of(x).to_tangent_aval() for x in xs]) for xs in (chosen.leaves, outs))
    linear = kind(
        chosen.tree,
        out_tree,
        in_types,
        out_types,
        active,
        recorded.first(n),
        **({"arguments": chosen.leaves} if kind is VJP else {}),
    )
    out = pytree.tree_unflatten(out_tree, outs)
    return (out, linear, pytree.tree_unflatten(aux_tree, aux)) if has_aux else (out, linear)


@overload
def linearize(
    fun: Callable[..., R], *primals: ArrayLike, has_aux: Literal[False] = False, in_nzs: Any = None
) -> tuple[R, Callable[..., Any]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, S]], *primals: ArrayLike, has_aux: Literal[True], in_nzs: Any = None
) -> tuple[R, Callable[..., Any], S]: ...
@overload
def linearize(
    fun: Callable[..., Any], *primals: ArrayLike, has_aux: bool = False, in_nzs: Any = None
) -> tuple[Any, ...]: ...
def linearize(fun: Callable[..., Any], *primals: ArrayLike, has_aux: bool = False, in_nzs: Any = None) -> Any:
    """The value of a function at a point, and its derivative there as a linear function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the point.
      has_aux: `fun` returns ``(result, aux)``.
      in_nzs: which leaves of the arguments have tangents; the tangents of the others are zero. A boolean, or a tree
        of booleans that is a prefix of `primals`, in which a tuple matches any container with as many children. Default:
        all.

    Returns:
      ``(result, f_jvp)``, and aux: ``f_jvp(*tangents)`` is the tangent of the result. ``f_jvp.out_nzs`` marks the
      leaves of the result whose tangent is not known to be zero.

    Raises:
      ValueError: `in_nzs` is not a prefix of the arguments.

    Examples:

      >>> value, linear = jax.linearize(lambda x: x ** 2, 3.)
      >>> linear(1.), linear(10.)
      (Array(6., dtype=float32, weak_type=True), Array(60., dtype=float32, weak_type=True))
    """
    check_function(fun)
    return _at(LinearFunction, "linearize", all_arguments("linearize", fun, primals), has_aux, in_nzs)


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, Callable[..., Any]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, S]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, Callable[..., Any], S]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[Any, ...]: ...
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """The value of a function at a point, and its pullback there.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the point.
      has_aux: `fun` returns ``(result, aux)``.
      saveable_args: which leaves of the arguments the pullback may keep; in place of each other one that it needs,
        ``vjp_fun.args_res`` has a mark, `NotSaveable`, and the value is put back before a call. A boolean, or a tree as for
        `in_nzs`.
      in_nzs: which leaves of the arguments are differentiated; the others have cotangents of zeros. A boolean, or a tree of
        booleans that is a prefix of `primals`, in which a tuple matches any container with as many children. Default: all.
      reduce_axes: only ``()``. Sum over named axes in `fun`.

    Returns:
      ``(result, vjp_fun)``, and aux: ``vjp_fun(ct)`` is a tuple with a cotangent per primal. ``vjp_fun.out_nzs``
      marks the leaves of the result that depend on differentiated arguments.

    Raises:
      ValueError: `saveable_args` or `in_nzs` is not a prefix of the arguments.

    Examples:

      >>> value, pullback = jax.vjp(lambda x, y: x * y, 2., 3.)
      >>> value
      Array(6., dtype=float32, weak_type=True)
      >>> pullback(10.)
      (Array(30., dtype=float32, weak_type=True), Array(20., dtype=float32, weak_type=True))

      It knows its arguments where the derivative depends on them; they can be taken out of it, and put back:

      >>> x, y = jnp.float32(2), jnp.float32(3)
      >>> _, pullback = jax.vjp(lambda x, y: x * y, x, y)
      >>> pullback.args_res
      [Array(2., dtype=float32), Array(3., dtype=float32)]
      >>> pullback.args_res[1] = jnp.float32(7)
      >>> pullback(jnp.float32(10))
      (Array(70., dtype=float32), Array(20., dtype=float32))
    """
    check_function(fun)
    check_no_reduce_axes("vjp", reduce_axes)
    chosen = all_arguments("vjp", fun, primals)
    saveable = _each_leaf("vjp", "saveable_args", saveable_args, chosen.tree)
    found = _at(VJP, "vjp", chosen, has_aux, in_nzs)
    if not all(saveable):
        found[1]._drop(saveable)
    return found


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`fun` as a pair of functions: forward ``args -> (result[, aux], residuals)``, backward ``(residuals, ct) -> cotangents``.

    Args:
      argnums: which positional arguments to differentiate.
      has_aux: `fun` returns ``(result, aux)``.
      jitted: compile both.

    Examples:

      >>> forward, backward = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
      >>> out, saved = forward(2., 3.)
      >>> backward(saved, 1.)
      (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    argnums = check_argnums("fwd_and_bwd", argnums)
    single = type(argnums) is int
    positions = (argnums,) if single else argnums  # A VJP has a list of arguments, even a VJP of one argument.

    def fwd(*args, **kwargs):
        result, pullback, *aux = _at(VJP, "fwd_and_bwd", Chosen("fwd_and_bwd", fun, positions, args, kwargs), has_aux)
        return (result, *aux, pullback)

    def bwd(residuals, ct):
        cotangents = residuals(ct)
        return cotangents[0] if single else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def linear_transpose(
    fun: Callable[..., Any], *primals: ArrayLike, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """Transpose a function that is linear.

    Args:
      fun: linear in its arguments.
      primals: arrays, or anything with a shape and dtype, like its arguments.
      reduce_axes: only ``()``. Sum over named axes in `fun`.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
      TypeError: an argument is not an array of numbers, or a cotangent does not fit the result.
      NotImplementedError: an operation in `fun` is not linear.

    Examples:

      >>> (jax.linear_transpose(lambda x: 3 * x, 0.))(2.)
      (Array(6., dtype=float32, weak_type=True),)
    """
    check_no_reduce_axes("linear_transpose", reduce_axes)
    leaves, tree = pytree.tree_flatten(primals)
    types = tuple([abstractify(x) for x in leaves])
    for a in types:
        if not a.is_array or not (dtypes.is_inexact(a.dtype) or dtypes.is_integer(a.dtype) or a.dtype == dtypes.float0):
            raise TypeError(f"linear_transpose only supports functions of arrays of numbers, got {a.str_short()}")
    of_leaves = lambda *values: pytree.tree_flatten(fun(*pytree.tree_unflatten(tree, values)))
    jaxpr, out_tree = staging.trace_to_jaxpr(of_leaves, types)
    out_types = tuple(jaxpr.out_avals)
    closed, consts = staging.close_over(jaxpr)
    linear = Linearized(
        tree,
        out_tree,
        types,
        out_types,
        (True,) * len(types),
        program=LinearProgram(closed, (True,) * len(out_types), consts),
    )
    return lambda ct: linear.pull(ct, TypeError)
