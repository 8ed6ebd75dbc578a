"""The public functions of differentiation: `grad`, `jvp`, `vjp`, `linearize` and what is made of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.linearize import Linearized, backward_pass, linearize_flat
from bedrax.autodiff.tables import UndefinedPrimal, Zero, instantiate
from bedrax.batching import vmap
from bedrax.core import dtypes, ir, staging
from bedrax.core.avals import ShapedArray, abstractify, aval_of
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name
from bedrax.lax.primitives.shaping import zeros_of


class _Split:
    """The differentiated positional arguments of a call, as leaves, and a way to call with others."""

    __slots__ = ("argnums", "leaves", "rebuild", "tree")

    def __init__(self, fun: Callable, argnums, args: tuple, kwargs: dict):
        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        count = len(args)
        for n in positions:
            if not -count <= n < count:
                raise TypeError(
                    f"differentiating {function_name(fun)} with respect to argnums={argnums} requires at least"
                    f" {max(n + 1 if n >= 0 else -n for n in positions)} positional arguments, but it was called with"
                    f" {count}."
                )
        positions = tuple(n % count for n in positions)
        chosen = args[positions[0]] if isinstance(argnums, int) else tuple(args[n] for n in positions)
        leaves, tree = pytree.tree_flatten(chosen)
        single = isinstance(argnums, int)

        def rebuild(values):
            inner = pytree.tree_unflatten(tree, values)
            full = list(args)
            for n, value in zip(positions, (inner,) if single else inner, strict=True):
                full[n] = value
            return fun(*full, **kwargs)

        self.leaves, self.tree, self.rebuild, self.argnums = leaves, tree, rebuild, positions


def _check_argnums(name: str, argnums) -> Any:
    if isinstance(argnums, bool) or not isinstance(argnums, int | Sequence):
        try:
            return operator.index(argnums)
        except TypeError:
            raise TypeError(
                f"{name}: argnums must be an int or a sequence of ints, got {argnums!r}"
            ) from None
    if isinstance(argnums, int):
        return argnums
    if not argnums:
        raise ValueError(f"{name}: argnums must not be empty")
    return tuple(operator.index(n) for n in argnums)


def _check_inputs(name: str, leaves, *, holomorphic: bool, allow_int: bool, forward: bool = False) -> None:
    for x in leaves:
        aval = abstractify(x)
        if not aval.is_array:
            continue
        dtype = aval.dtype
        if holomorphic:
            if not dtypes.issubdtype(dtype, np.complexfloating):
                raise TypeError(
                    f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}."
                )
        elif dtypes.is_extended(dtype) or not dtypes.is_inexact(dtype):
            if not allow_int or not (dtypes.is_integer(dtype) or dtype == np.bool_):
                wanted = "real-" if forward else "real- or complex-"
                raise TypeError(
                    f"{name} requires {wanted}valued inputs (input dtype that is a sub-dtype of"
                    f" np.{'floating' if forward else 'inexact'}), but got {dtype.name}. If you want to use Boolean- or"
                    f" integer-valued inputs, use {'jvp' if forward else 'vjp or set allow_int to True'}."
                )
        elif forward and dtypes.issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got"
                f" {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of"
                " non-holomorphic functions involving complex inputs, use jax.jvp directly."
            )


def _check_outputs(name: str, leaves, *, holomorphic: bool, reverse: bool = True) -> None:
    for x in leaves:
        dtype = aval_of(x).dtype
        if holomorphic:
            if not dtypes.issubdtype(dtype, np.complexfloating):
                raise TypeError(
                    f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype.name}."
                )
        elif dtypes.issubdtype(dtype, np.complexfloating):
            if reverse:
                raise TypeError(
                    f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got"
                    f" {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of"
                    " non-holomorphic functions involving complex outputs, use jax.vjp directly."
                )
        elif not dtypes.is_inexact(dtype):
            raise TypeError(
                f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got"
                f" {dtype.name}. For differentiation of functions with integer outputs, use"
                f" {'jax.vjp' if reverse else 'jax.jvp'} directly."
            )


def _with_aux(result: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name} with has_aux=True: expected function with aux output to return a two-element tuple, but got type"
            f" {type(result)} with value {result!r}"
        )
    return result


def _linearize_call(split: _Split, has_aux: bool, name: str, active=None) -> tuple[Linearized, Any, Any]:
    """Linearize a call; returns (linearized, treedef of the result, aux)."""
    out_tree = aux = None

    def flat(*values):
        nonlocal out_tree, aux
        out = split.rebuild(values)
        if has_aux:
            out, aux = _with_aux(out, name)
        leaves, out_tree = pytree.tree_flatten(out)
        return leaves

    if not has_aux:
        return linearize_flat(flat, split.leaves, active), out_tree, None
    # The aux output must leave the trace, too: its leaves travel as results.
    count = 0

    def flat_with_aux(*values):
        nonlocal count
        leaves = flat(*values)
        count = len(leaves)
        aux_leaves, aux_tree = pytree.tree_flatten(aux)
        trees.append(aux_tree)
        return [*leaves, *aux_leaves]

    trees: list = []
    lin = linearize_flat(flat_with_aux, split.leaves, active)
    aux_out = pytree.tree_unflatten(trees[-1], lin.outs[count:])
    return Linearized(lin.outs[:count], lin.tape, lin.inputs, lin.tangents[:count]), out_tree, aux_out


def _activity(leaves) -> list[bool]:
    return [aval_of(x).is_array and dtypes.is_inexact(aval_of(x).dtype) for x in leaves]


def _cotangents(lin: Linearized, cts: Sequence[Any], active: Sequence[bool], leaves: Sequence[Any]) -> list:
    """A cotangent array for every leaf: zeros where nothing arrives, `float0` for integers."""
    found = iter(lin.tape.backward(lin.tangents, cts, lin.inputs))
    return [
        _as_array(instantiate(next(found))) if a else zeros_of(aval_of(x).to_tangent_aval())
        for a, x in zip(active, leaves, strict=True)
    ]


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable:
    """The gradient of a scalar-valued function.

    Args:
      fun: returns a scalar (shape ``()``) of a float dtype.
      argnums: which positional arguments to differentiate.
      has_aux: `fun` returns ``(scalar, aux)``; aux is passed through.
      holomorphic: `fun` is a holomorphic function of complex arguments.
      allow_int: allow integer arguments; their gradients have dtype `float0`.

    Returns:
      A function like `fun` that returns the gradient, a pytree like the argument (a tuple of
      them if `argnums` is a sequence); with `has_aux`, ``(gradient, aux)``.
    """
    value_and_gradient = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @functools.wraps(fun, updated=())
    @api_boundary
    def gradient(*args, **kwargs):
        return value_and_gradient(*args, **kwargs)[1]

    @functools.wraps(fun, updated=())
    @api_boundary
    def gradient_and_aux(*args, **kwargs):
        (_, aux), g = value_and_gradient(*args, **kwargs)
        return g, aux

    return gradient_and_aux if has_aux else gradient


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence = (),
) -> Callable:
    """Like `grad`, but the function returns ``(value, gradient)``.

    With `has_aux` the value is ``(scalar, aux)``.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    if reduce_axes:
        raise NotImplementedError(
            "grad: reduce_axes is not supported; sum over the named axis in the function"
        )
    argnums = _check_argnums("grad", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def value_and_gradient(*args, **kwargs):
        split = _Split(fun, argnums, args, kwargs)
        _check_inputs("grad", split.leaves, holomorphic=holomorphic, allow_int=allow_int)
        active = _activity(split.leaves)
        lin, out_tree, aux = _linearize_call(split, has_aux, "grad", active)
        if len(lin.outs) != 1 or not pytree.treedef_is_leaf(out_tree):
            raise TypeError(
                f"Gradient only defined for scalar-output functions. Output was: {pytree.tree_unflatten(out_tree, lin.outs)}."
            )
        (value,) = lin.outs
        aval = aval_of(value)
        if aval.shape:
            raise TypeError(
                f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}."
            )
        _check_outputs("grad", [value], holomorphic=holomorphic)
        gradients = _cotangents(lin, [_one(aval)], active, split.leaves)
        gradient = pytree.tree_unflatten(split.tree, gradients)
        return ((value, aux) if has_aux else value), gradient

    return value_and_gradient


def _one(aval) -> Any:
    """The cotangent of a scalar result: a scalar literal of its type."""
    if aval.weak_type:
        for kind in (float, complex):
            if aval.dtype == dtypes.python_scalar_dtype(kind):
                return kind(1)
    return aval.dtype.type(1)


def _as_array(x: Any) -> Any:
    """A result of differentiation as an array (a rule may have passed a scalar literal through)."""
    if type(x) is float or type(x) is complex or isinstance(x, np.generic):
        from bedrax.lax.primitives.conversions import asarray

        return asarray(x)
    return x


# ---- jvp, linearize, vjp


def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple:
    """Push tangents forward through a function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: where to evaluate; a tuple or list, one entry per argument.
      tangents: like `primals`; integer primals have tangents of dtype `float0`.
      has_aux: `fun` returns ``(result, aux)``.

    Returns:
      ``(result, tangent of the result)``, and aux.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found"
            f" {type(primals).__name__} and {type(tangents).__name__}."
        )
    leaves, tree = pytree.tree_flatten(tuple(primals))
    tangent_leaves, tangent_tree = pytree.tree_flatten(tuple(tangents))
    if tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure"
            f" {tree} whereas tangents have tree structure {tangent_tree}."
        )
    pushed = [_checked_tangent(p, t) for p, t in zip(leaves, tangent_leaves, strict=True)]
    trees: list = []

    def flat(*values):
        out = fun(*pytree.tree_unflatten(tree, values))
        aux = None
        if has_aux:
            out, aux = _with_aux(out, "jvp")
        out_leaves, out_tree = pytree.tree_flatten(out)
        aux_leaves, aux_tree = pytree.tree_flatten(aux)
        trees.append((out_tree, aux_tree, len(out_leaves)))
        return [*out_leaves, *aux_leaves]

    outs, out_tangents = jvp_flat(flat, leaves, pushed)
    out_tree, aux_tree, n = trees[-1]
    result = pytree.tree_unflatten(out_tree, outs[:n])
    tangent = pytree.tree_unflatten(out_tree, map(instantiate, out_tangents[:n]))
    return (result, tangent, pytree.tree_unflatten(aux_tree, outs[n:])) if has_aux else (result, tangent)


def _checked_tangent(p, t):
    """The tangent as a value of the tangent type, `Zero` for integers."""
    aval = aval_of(p)
    wanted = aval.to_tangent_aval()
    if wanted.is_array and wanted.dtype == dtypes.float0:
        given = getattr(t, "dtype", None)
        if given != dtypes.float0:
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool"
                f" primal dtype the tangent dtype must be float0. Got primal dtype {aval.dtype.name} and so expected"
                f" tangent dtype float0, but got tangent dtype {getattr(aval_of(t).dtype, 'name', given)} instead."
            )
        return Zero(wanted)
    if type(t) is Zero:
        return t
    got = aval_of(t)
    if got.dtype != wanted.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool"
            f" primal dtype the tangent dtype must be float0. Got primal dtype {aval.dtype.name} and so expected tangent"
            f" dtype {wanted.dtype.name}, but got tangent dtype {got.dtype.name} instead."
        )
    if got.shape != wanted.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes;Got primal shape"
            f" {aval.shape} and tangent shape as {got.shape}"
        )
    return t


class LinearFunction:
    """The linear program of `linearize`: maps tangents of the arguments to tangents of the result.

    A pytree whose leaves are the residuals, so it can be passed to and returned from transformed functions.
    """

    def __init__(self, jaxpr, residuals, in_tree, out_tree, in_types, active, out_types, active_out):
        self.jaxpr, self.residuals = jaxpr, residuals
        self.in_tree, self.out_tree = in_tree, out_tree
        self.in_types, self.active = in_types, active
        self.out_types, self.active_out = out_types, active_out

    def __call__(self, *tangents):
        leaves, tree = pytree.tree_flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(
                f"linearized function called with tangents of structure {tree}, but the primals had structure"
                f" {self.in_tree}"
            )
        live = []
        for t, wanted, a in zip(leaves, self.in_types, self.active, strict=True):
            got = aval_of(t) if not _is_float0(t) else ShapedArray(np.shape(t), dtypes.float0)
            if got.shape != wanted.shape or got.dtype != wanted.dtype:
                raise ValueError(
                    f"linearized function called on tangent values inconsistent with the original primal values: got"
                    f" {got.str_short()}, expected {wanted.str_short()}"
                )
            if a:
                live.append(t)
        out = iter(ir.run(self.jaxpr, *self.residuals, *live))
        return pytree.tree_unflatten(
            self.out_tree,
            [next(out) if a else zeros_of(t) for a, t in zip(self.active_out, self.out_types, strict=True)],
        )


def _is_float0(x) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def _flatten_linear(f: LinearFunction):
    return tuple(f.residuals), (
        f.jaxpr, f.in_tree, f.out_tree, tuple(f.in_types), tuple(f.active), tuple(f.out_types), tuple(f.active_out)
    )  # fmt: skip


def _unflatten_linear(static, residuals):
    jaxpr, *rest = static
    return LinearFunction(jaxpr, list(residuals), *rest)


pytree.register_pytree_node(LinearFunction, _flatten_linear, _unflatten_linear)


def linearize(fun: Callable, *primals, has_aux: bool = False) -> tuple:
    """The value of a function at a point, and its derivative there as a linear function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the point.
      has_aux: `fun` returns ``(result, aux)``.

    Returns:
      ``(result, f_jvp)``, and aux: ``f_jvp(*tangents)`` is the tangent of the result.
    """
    split = (
        _Split(fun, tuple(range(len(primals))), primals, {}) if primals else _Split(lambda: fun(), (), (), {})
    )
    active = _activity(split.leaves)
    lin, out_tree, aux = _linearize_call(split, has_aux, "linearize", active)
    live = [t for t in lin.tangents if type(t) is not Zero]
    jaxpr, residuals = lin.tape.to_jaxpr(lin.inputs, live)
    f_jvp = LinearFunction(
        jaxpr, residuals, split.tree, out_tree, [aval_of(x).to_tangent_aval() for x in split.leaves], active,
        [aval_of(x).to_tangent_aval() for x in lin.outs], [type(t) is not Zero for t in lin.tangents],
    )  # fmt: skip
    out = pytree.tree_unflatten(out_tree, lin.outs)
    return (out, f_jvp, aux) if has_aux else (out, f_jvp)


class VJP:
    """A pullback: maps a cotangent of the result to cotangents of the arguments.

    A pytree whose leaves are the residuals.
    """

    __slots__ = (
        "active",
        "in_tree",
        "in_types",
        "out_tree",
        "out_types",
        "program",
        "residuals",
        "single",
        "tape",
    )

    def __init__(
        self,
        in_tree,
        out_tree,
        in_types,
        out_types,
        active,
        tape=None,
        program=None,
        residuals=(),
        single=False,
    ):
        self.in_tree, self.out_tree, self.in_types, self.out_types = in_tree, out_tree, in_types, out_types
        self.active, self.single = active, single
        self.tape = tape  # (tape, inputs, tangents) while nothing asked for the program
        self.program, self.residuals = program, residuals

    def __call__(self, *given):
        if len(given) != 1:
            raise TypeError(
                f"The function returned by `jax.vjp` takes one argument, the cotangent of the result, but {len(given)}"
                " were given. Pass a tuple if the function returns one."
            )
        leaves, tree = pytree.tree_flatten(given[0], is_leaf=lambda x: type(x) is Zero)
        if tree != self.out_tree:
            raise ValueError(
                f"unexpected tree structure: the cotangent given to the VJP function has structure {tree}, but the"
                f" function returned {self.out_tree}."
            )
        cts = [_checked_cotangent(ct, a) for ct, a in zip(leaves, self.out_types, strict=True)]
        if self.tape is not None:
            tape, inputs, tangents = self.tape
            found = tape.backward(tangents, cts, inputs)
        else:
            live = sum(self.active)
            linear_types = [v.aval for v in self.program[0].invars[len(self.residuals) :]]
            assert live == len(linear_types)
            active_out = self.program[1]
            found = backward_pass(
                self.program[0],
                [*self.residuals, *map(UndefinedPrimal, linear_types)],
                [ct for ct, a in zip(cts, active_out, strict=True) if a],
            )
        rest = iter(found)
        out = [
            instantiate(next(rest)) if a else zeros_of(t.to_tangent_aval())
            for a, t in zip(self.active, self.in_types, strict=True)
        ]
        return pytree.tree_unflatten(self.in_tree, out)

    def settle(self) -> None:
        """Turn the tape into a program and its residuals."""
        if self.tape is not None:
            tape, inputs, tangents = self.tape
            active_out = tuple(type(t) is not Zero for t in tangents)
            jaxpr, self.residuals = tape.to_jaxpr(inputs, [t for t in tangents if type(t) is not Zero])
            self.program = (jaxpr, active_out)
            self.tape = None


def _flatten_vjp(f: VJP):
    f.settle()
    return tuple(f.residuals), (f.in_tree, f.out_tree, f.in_types, f.out_types, f.active, f.program)


def _unflatten_vjp(static, residuals):
    in_tree, out_tree, in_types, out_types, active, program = static
    return VJP(in_tree, out_tree, in_types, out_types, active, None, program, list(residuals))


pytree.register_pytree_node(VJP, _flatten_vjp, _unflatten_vjp)


def _checked_cotangent(ct, aval):
    wanted = aval.to_tangent_aval()
    if type(ct) is Zero:
        return ct
    if wanted.is_array and wanted.dtype == dtypes.float0:
        if not _is_float0(ct):
            raise ValueError(
                f"unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got {aval_of(ct).str_short()}, but"
                f" expected {wanted.str_short()} because the corresponding output of the function had JAX type"
                f" {aval.str_short()}"
            )
        return Zero(wanted)
    got = aval_of(ct)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise ValueError(
            f"unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got {got.str_short()}, but expected"
            f" {wanted.str_short()} because the corresponding output of the function had JAX type {aval.str_short()}"
        )
    return ct


def vjp(fun: Callable, *primals, has_aux: bool = False, reduce_axes: Sequence = ()) -> tuple:
    """The value of a function at a point, and its pullback there.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the point.
      has_aux: `fun` returns ``(result, aux)``.

    Returns:
      ``(result, vjp_fun)``, and aux: ``vjp_fun(ct)`` is a tuple with a cotangent per primal.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    if reduce_axes:
        raise NotImplementedError(
            "vjp: reduce_axes is not supported; sum over the named axis in the function"
        )
    split = (
        _Split(fun, tuple(range(len(primals))), primals, {}) if primals else _Split(lambda: fun(), (), (), {})
    )
    active = tuple(_activity(split.leaves))
    lin, out_tree, aux = _linearize_call(split, has_aux, "vjp", active)
    pullback = VJP(
        split.tree, out_tree, tuple(map(aval_of, split.leaves)), tuple(map(aval_of, lin.outs)), active,
        (lin.tape, lin.inputs, lin.tangents),
    )  # fmt: skip
    out = pytree.tree_unflatten(out_tree, lin.outs)
    return (out, pullback, aux) if has_aux else (out, pullback)


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """`fun` as a pair of functions: forward ``args -> (result[, aux], residuals)``, backward ``(residuals, ct) -> cotangents``.

    Args:
      argnums: which positional arguments to differentiate.
      has_aux: `fun` returns ``(result, aux)``.
      jitted: compile both.
    """
    from bedrax.core.jitting import jit

    argnums = _check_argnums("fwd_and_bwd", argnums)

    def fwd(*args, **kwargs):
        positions = (argnums,) if isinstance(argnums, int) else argnums
        chosen = [args[n] for n in positions]

        def of_chosen(*values):
            full = list(args)
            for n, v in zip(positions, values, strict=True):
                full[n] = v
            return fun(*full, **kwargs)

        out = vjp(of_chosen, *chosen, has_aux=has_aux)
        return out if not has_aux else (out[0], out[2], out[1])

    def bwd(residuals, ct):
        cts = residuals(ct)
        return cts[0] if isinstance(argnums, int) else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def linear_transpose(fun: Callable, *primals, reduce_axes: Sequence = ()) -> Callable:
    """Transpose a function that is linear.

    Args:
      fun: linear in its arguments.
      primals: arrays, or anything with a shape and dtype, like its arguments.

    Returns:
      A function from a cotangent of the result to a tuple of cotangents of the arguments.
    """
    if reduce_axes:
        raise NotImplementedError("linear_transpose: reduce_axes is not supported")
    leaves, tree = pytree.tree_flatten(primals)
    types = [abstractify(x) for x in leaves]
    for a in types:
        if not a.is_array or not (
            dtypes.is_inexact(a.dtype) or dtypes.is_integer(a.dtype) or a.dtype == dtypes.float0
        ):
            raise TypeError(
                f"linear_transpose only supports functions of arrays of numbers, got {a.str_short()}"
            )
    jaxpr, out_tree = staging.trace_to_jaxpr(
        staging.flat_fun(lambda *a: fun(*a), pytree.tree_structure((primals, {}))), types
    )

    def transposed(ct):
        ct_leaves, ct_tree = pytree.tree_flatten(ct)
        if ct_tree != out_tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {out_tree} but got {ct_tree}"
            )
        for got, want in zip(ct_leaves, jaxpr.out_avals, strict=True):
            g = aval_of(got)
            if g.shape != want.shape or g.dtype != want.dtype:
                raise TypeError(f"cotangent type does not match function output, expected {want} but got {g}")
        out = backward_pass(jaxpr, [UndefinedPrimal(a) for a in types], ct_leaves)
        return pytree.tree_unflatten(tree, [instantiate(x) for x in out])

    return transposed


# ---- Jacobians


def _basis(leaves) -> list:
    """The standard basis of the space of `leaves`, one batch per leaf."""
    from bedrax import lax

    avals = [aval_of(x) for x in leaves]
    sizes = [a.size for a in avals]
    total = sum(sizes)
    out, start = [], 0
    for a, n in zip(avals, sizes, strict=True):
        rows = lax.broadcasted_iota(np.dtype(np.int32), (total, n), 0)
        columns = lax.add(lax.broadcasted_iota(np.dtype(np.int32), (total, n), 1), np.int32(start))
        eye = lax.convert_element_type(lax.eq(rows, columns), a.dtype)
        out.append(lax.reshape(eye, (total, *a.shape)))
        start += n
    return out


def _split_batch(x, axis: int, trees_leaves) -> list:
    """Cut the batch axis of `x` into one piece per leaf, shaped like it."""
    from bedrax import lax

    avals = [aval_of(leaf) for leaf in trees_leaves]
    out, start = [], 0
    shape = aval_of(x).shape
    for a in avals:
        part = lax.slice_in_dim(x, start, start + a.size, axis=axis)
        out.append(lax.reshape(part, (*shape[:axis], *a.shape, *shape[axis + 1 :])))
        start += a.size
    return out


def jacfwd(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Jacobian by forward mode, one column at a time under `vmap`.

    Args: see `grad`; `fun` may return any pytree of arrays.

    Returns:
      A function that returns, for each result, a pytree like the argument whose leaves have
      the result's axes, then the argument's.
    """
    argnums = _check_argnums("jacfwd", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def jacobian(*args, **kwargs):
        split = _Split(fun, argnums, args, kwargs)
        _check_inputs("jacfwd", split.leaves, holomorphic=holomorphic, allow_int=False, forward=True)

        def push(*tangents):
            return jvp(lambda *v: split.rebuild(v), tuple(split.leaves), tangents, has_aux=has_aux)

        basis = _basis(split.leaves)
        if has_aux:
            result, tangents, aux = vmap(push, out_axes=(None, -1, None))(*basis)
        else:
            result, tangents = vmap(push, out_axes=(None, -1))(*basis)
        _check_outputs("jacfwd", pytree.tree_leaves(result), holomorphic=holomorphic, reverse=False)

        def columns(t):
            pieces = _split_batch(t, len(aval_of(t).shape) - 1, split.leaves)
            return pytree.tree_unflatten(split.tree, pieces)

        jac = pytree.tree_map(columns, tangents)
        return (jac, aux) if has_aux else jac

    return jacobian


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The Jacobian by reverse mode, one row at a time under `vmap`. See `jacfwd` for the result."""
    argnums = _check_argnums("jacrev", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def jacobian(*args, **kwargs):
        split = _Split(fun, argnums, args, kwargs)
        _check_inputs("jacrev", split.leaves, holomorphic=holomorphic, allow_int=allow_int)
        out = vjp(lambda *v: split.rebuild(v), *split.leaves, has_aux=has_aux)
        result, pullback = out[0], out[1]
        out_leaves, out_tree = pytree.tree_flatten(result)
        _check_outputs("jacrev", out_leaves, holomorphic=holomorphic)
        basis = _basis(out_leaves)
        rows = vmap(lambda *cts: pullback(pytree.tree_unflatten(out_tree, cts)))(*basis)
        by_output: list[list] = [[] for _ in out_leaves]
        for r in rows:
            pieces = [r] * len(out_leaves) if _is_float0(r) else _split_batch(r, 0, out_leaves)
            for collected, piece in zip(by_output, pieces, strict=True):
                collected.append(piece)
        jac = pytree.tree_unflatten(out_tree, [pytree.tree_unflatten(split.tree, row) for row in by_output])
        return (jac, out[2]) if has_aux else jac

    return jacobian


jacobian = jacrev


def hessian(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Hessian of a function: forward mode over reverse mode. The result nests two Jacobians' pytrees."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


__all__ = [
    "VJP", "LinearFunction", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp",
    "linear_transpose", "linearize", "value_and_grad", "vjp",
]  # fmt: skip
