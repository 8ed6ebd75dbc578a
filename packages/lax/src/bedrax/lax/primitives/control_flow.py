"""Control flow: `scan`, `while_loop`, `cond` and functions built from them.

The primitives hold programs in which everything that the user's functions closed over is an
argument. Conventions: consts, then carry, then scanned inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree
from bedrax.core import config, dims, dtypes, effects, offers, staging
from bedrax.core.avals import abstractify, aval_of
from bedrax.core.codes import coded
from bedrax.core.dead_code import dce_for, kept
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.facts import cached, fact
from bedrax.core.ir import Jaxpr, Var, eval_jaxpr
from bedrax.core.signatures import is_position, normalized
from bedrax.core.source import api_boundary
from bedrax.core.tables import CARRY, CONSTANT, Use, count, families_on_bases, programs, with_programs
from bedrax.core.tracing import Primitive, Tracer, pvary_p, varying_axes
from bedrax.core.typing import ArrayLike
from bedrax.lax import groups, lattice
from bedrax.lax.carry_errors import check_branches, check_carry, short
from bedrax.lax.primitives.conversions import convert_element_type, convert_element_type_p

_FAMILY = "control_flow"
families_on_bases.add(_FAMILY)


class _Scan(Primitive):
    """`scan`: its operands are consts, carry and scanned inputs, its results are carry and stacks.

    Libraries know these groups by two counts, or, of upstream 0.11 and later, by two `FlatTree`: `ft_in` and `ft_out`.
    """

    __slots__ = ()

    def bind(self, *args: Any, ft_in: Any = None, ft_out: Any = None, **params: Any) -> Any:
        """Apply a loop. If `ft_in` and `ft_out` are given, the counts follow from them."""
        if ft_in is not None or ft_out is not None:
            params |= _counts(ft_in, ft_out)
        return super().bind(*args, **params)

    def further_params(self, params: dict[str, Any]) -> Any:
        """The groups of operands and of results."""
        jaxpr, consts, carry = params["jaxpr"], params["num_consts"], params["num_carry"]
        xs, ys = len(jaxpr.invars) - consts - carry, len(jaxpr.outvars) - carry
        return {
            "ft_in": groups.pack(tuple(groups.nones(n) for n in (consts, carry, xs))),
            "ft_out": groups.pack(tuple(groups.nones(n) for n in (carry, ys))),
        }


def _counts(ft_in, ft_out) -> dict[str, int]:
    """The counts of consts and of carry in groups of operands and of results."""
    if ft_in is None or ft_out is None:
        raise TypeError(f"scan takes both ft_in and ft_out, or none of them, got {ft_in=}, {ft_out=}")
    ins, outs = ([len(group) for group in ft.unpack()] for ft in (ft_in, ft_out))
    if len(ins) != 3 or len(outs) != 2 or ins[1] != outs[0]:
        raise TypeError(
            "scan takes groups (consts, carry, xs) and (carry, ys) with carries of equal length, "
            f"got groups of {ins} and {outs} values"
        )
    return {"num_consts": ins[0], "num_carry": ins[1]}


# params: jaxpr (consts, carry, x -> carry, y), num_consts, num_carry, length, reverse, unroll
scan_p: Final = _Scan("scan", _FAMILY, multiple_results=True)
# params: cond_jaxpr (cond_consts, carry -> bool), cond_nconsts, body_jaxpr (body_consts, carry -> carry), body_nconsts
while_p: Final = Primitive("while", _FAMILY, multiple_results=True)
# params: branches; arguments: index (int32), operands. If the index is that of the platform, also
# branches_platforms: the platforms of each branch (see `markers.platform_index_p`)
cond_p: Final = Primitive("cond", _FAMILY, multiple_results=True)


def _check_arity(what: str, program: Jaxpr, avals: Sequence) -> None:
    if len(avals) != len(program.invars):
        raise TypeError(f"{what} takes {len(program.invars)} arguments, {len(avals)} are given")


@scan_p.abstract
def _scan_types(*avals, jaxpr, num_consts, num_carry, length, **_):
    _check_arity("scan", jaxpr, avals)
    out = jaxpr.out_avals
    return out[:num_carry] + [a.rows_type(length) for a in out[num_carry:]]


@while_p.abstract
def _while_types(*avals, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    _check_arity("while: the condition", cond_jaxpr, (*avals[:cond_nconsts], *avals[cond_nconsts + body_nconsts :]))
    _check_arity("while: the body", body_jaxpr, avals[cond_nconsts:])
    predicate = cond_jaxpr.out_avals
    if len(predicate) != 1 or predicate[0].shape or predicate[0].dtype != np.bool_:
        raise TypeError(f"while: the condition returns {[a.short() for a in predicate]}, not one boolean")
    return body_jaxpr.out_avals


@cond_p.abstract
def _cond_types(index, *avals, branches, **_):
    if index.shape or not dtypes.is_integer(index.dtype):
        raise TypeError(f"cond: the index of the branch must be an integer scalar, got {index.short()}")
    for branch in branches:
        _check_arity("cond: a branch", branch, avals)
    return branches[0].out_avals


# ---- the programs they hold, and their params when these need fewer operands


@programs.rule(scan_p)
def _scan_programs(params):
    body, consts, carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    operands, results = tuple(range(len(body.invars))), tuple(range(len(body.outvars)))
    carries = tuple(zip(operands[consts:], results[:carry], strict=False))
    return [
        Use(body, operands, results, len(operands) - consts - carry, len(results) - carry, params["length"], carries)
    ]


@with_programs.rule(scan_p)
def _smaller_scan(params, smaller, operands, results):
    return {**params, "jaxpr": smaller[0], "num_consts": count(operands, CONSTANT), "num_carry": count(operands, CARRY)}


@programs.rule(while_p)
def _while_programs(params):
    cond, body, num_cond, num_body = (params[k] for k in ("cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts"))
    edge, results = num_cond + num_body, tuple(range(len(body.outvars)))
    carry = tuple(range(edge, edge + len(results)))
    return [
        Use(cond, (*range(num_cond), *carry), (None,)),
        Use(body, (*range(num_cond, edge), *carry), results, carries=tuple(zip(carry, results))),
    ]


@with_programs.rule(while_p)
def _smaller_while(params, smaller, operands, results):
    return dict(
        cond_jaxpr=smaller[0],
        cond_nconsts=count(operands, CONSTANT, 0),
        body_jaxpr=smaller[1],
        body_nconsts=count(operands, CONSTANT, 1),
    )


@programs.rule(cond_p)
def _cond_programs(params):
    return [Use(b, tuple(range(1, len(b.invars) + 1)), tuple(range(len(b.outvars)))) for b in params["branches"]]


with_programs.add(cond_p, lambda params, smaller, operands, results: {**params, "branches": tuple(smaller)})


# ---- tracing the users' functions


def _check_effects(name: str, *jaxprs: Jaxpr) -> None:
    """Raise NotImplementedError if a function has an effect that is not allowed in control flow."""
    for jaxpr in jaxprs:
        if jaxpr.effects and (refused := effects.control_flow_allowed_effects.filter_not_in(jaxpr.effects)):
            raise NotImplementedError(
                f"Effects not supported in `{name.removesuffix('_loop')}`: {refused}. If they may occur there, add their"
                " class to control_flow_allowed_effects"
            )


def _types(leaves) -> tuple:
    return tuple(abstractify(x) for x in leaves)


def _strengthen(init: list, given: Sequence, produced: Sequence) -> tuple[list, bool] | None:
    """The initial carry as the loop requires it, and whether a dtype is another one; None if the carry fits.

    A weakly typed part becomes strongly typed, or is promoted. A part is cast to vary over more axes. The body is traced
    again for another dtype only; in the other cases, its operations are the same ones.
    """
    changed = promoted = False
    out = []
    for x, g, p in zip(init, given, produced, strict=True):
        if g.is_array and p.is_array and g.weak_type and (not p.weak_type or g.dtype != p.dtype) and g.shape == p.shape:
            dtype, weak = lattice.promote((g.dtype, p.dtype), (g.weak_type, p.weak_type))
            if (dtype, weak) != (g.dtype, g.weak_type):
                x = dtype.type(x) if type(x) in (bool, int, float, complex) else convert_element_type(x, dtype)
                changed, promoted = True, promoted or dtype != g.dtype
        more = varying_axes(p) - varying_axes(g)
        if more:
            x, changed = pvary_p.bind(x, axes=more), True
        out.append(x)
    return (out, promoted) if changed else None


# ---- scan


@api_boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Apply ``f`` along the leading axes of ``xs``, carrying a state along.

    Args:
      f: ``(carry, x) -> (carry, y)``; the carry keeps its structure, shapes and dtypes.
      init: the initial carry, a pytree of arrays.
      xs: pytree of arrays of equal leading axis, or None.
      length: the number of steps; needed where `xs` has no leaves.
      reverse: go from the last element to the first (results keep their places).
      unroll: the number of steps that the compiled loop takes at a time; True: all. 0 and False count as 1.

    Returns:
      (final carry, the ``y`` of all steps stacked along a new leading axis).

    Examples:

      >>> def step(total, x):
      ...     return total + x, 10 * x
      ...
      >>> lax.scan(step, 0, jnp.array([1, 2, 3]))
      (Array(6, dtype=int32), Array([10, 20, 30], dtype=int32))
      >>> lax.scan(lambda x, _: (2 * x, x), 1, length=4)
      (Array(16, dtype=int32, weak_type=True), Array([1, 2, 4, 8], dtype=int32, weak_type=True))
    """
    if not callable(f):
        raise TypeError(f"scan: f is a function (carry, x) -> (carry, y), got {f!r}")
    init_leaves, init_tree = pytree.tree_flatten(init)
    x_leaves, x_tree = pytree.tree_flatten(xs)
    length = _number_of_steps(xs, length)
    unroll = _steps_at_a_time("scan", unroll, length)
    if any(a.mutable for a in _types(x_leaves)):
        return _scan_over_references(f, init, x_leaves, x_tree, length, reverse, unroll)
    if config.disable_jit.value:
        return _scan_in_python(f, init, x_leaves, x_tree, length, reverse)

    x_types = [a.row_type(length) for a in _types(x_leaves)]
    in_tree = pytree.tree_structure(((init, xs), {}))
    untraced = True
    for _ in range(
        3 + len(init_leaves)
    ):  # weak types are final after one or two rounds; variation spreads from part to part
        init_types = _types(init_leaves)
        if untraced:
            jaxpr, consts, out_tree = staging.trace_function(f, in_tree, (*init_types, *x_types))
        else:
            jaxpr = _retyped(jaxpr, (*jaxpr.in_avals[: len(consts)], *init_types, *x_types))
        parts = out_tree.children()
        if len(parts) != 2 or out_tree.node_data()[0] is not tuple:
            got = pytree.tree_unflatten(out_tree, jaxpr.out_avals)
            raise TypeError(
                coded(
                    "BX-SCAN-RESULT",
                    f"scan: f returns a pair (carry, y), got {short(got)}; return (carry, None) to stack nothing",
                )
            )
        carry_tree, y_tree = parts
        num_carry = carry_tree.num_leaves
        if carry_tree == init_tree:
            stronger = _strengthen(init_leaves, init_types, jaxpr.out_avals[:num_carry])
            if stronger is not None:
                init_leaves, untraced = stronger
                continue
        break
    _check_effects("scan", jaxpr)
    check_carry("scan", init_tree, init_types, carry_tree, jaxpr.out_avals[:num_carry], f)
    jaxpr = _match_weak_types(jaxpr, len(consts), num_carry)
    out = scan_p.bind(
        *consts,
        *init_leaves,
        *x_leaves,
        jaxpr=jaxpr,
        num_consts=len(consts),
        num_carry=num_carry,
        length=length,
        reverse=bool(reverse),
        unroll=unroll,
    )
    return pytree.tree_unflatten(carry_tree, out[:num_carry]), pytree.tree_unflatten(y_tree, out[num_carry:])


def _scan_over_references(f, init, x_leaves, x_tree, length, reverse, unroll):
    """`scan` over arrays and references; `f` gets a view of one row of each reference."""
    is_ref = [a.mutable for a in _types(x_leaves)]

    def step(carry, row):
        i, *arrays = row
        rest = iter(arrays)
        views = [x.at[i] if r else next(rest) for x, r in zip(x_leaves, is_ref, strict=True)]
        return f(carry, pytree.tree_unflatten(x_tree, views))

    arrays = [x for x, r in zip(x_leaves, is_ref, strict=True) if not r]
    return scan(step, init, [lax.iota(np.int32, length), *arrays], length, reverse, unroll)


def _number_of_steps(xs: Any, length: Any) -> Any:
    """The size of the leading axes of `xs`; `length` if it is given."""
    sizes = []
    for path, leaf in pytree.tree_flatten_with_path(xs)[0]:
        aval = aval_of(leaf)
        if aval.represented:  # its type does not tell the number
            continue
        shape = aval.shape
        if not shape:
            raise ValueError(
                coded(
                    "BX-SCAN-LENGTH", f"scan: xs{pytree.keystr(path)} has no leading axis to scan over, it is {leaf!r}"
                )
            )
        sizes.append(shape[0])
    if length is not None:
        if isinstance(length, Tracer):
            raise ConcretizationTypeError(length, "scan: `length` is a known int; fori_loop takes computed ones")
        length = length if dims.is_symbolic(length) else dims.whole_number(length, "scan: length")
        for n in sizes:
            if not dims.same_dim(n, length):
                raise ValueError(
                    coded(
                        "BX-SCAN-LENGTH",
                        f"scan: length={length}, but the leading axes have lengths {sizes}; make them equal",
                    )
                )
    elif not sizes:
        raise ValueError(
            coded(
                "BX-SCAN-LENGTH",
                "scan: the number of steps is unknown: xs has no arrays and length is None; pass length",
            )
        )
    else:
        length = sizes[0]
        for n in sizes:
            if not dims.same_dim(n, length):
                paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(xs)[0]]
                listed = ", ".join([f"xs{path}: {n}" for path, n in zip(paths, sizes, strict=True)])
                raise ValueError(
                    coded(
                        "BX-SCAN-LENGTH",
                        f"scan: leading axes have lengths {', '.join([str(n) for n in sizes])}; they must be equal"
                        f" ({listed})",
                    )
                )
    return length


def _steps_at_a_time(name: str, unroll: Any, length: Any) -> int:
    """The number of unrolled steps in a loop of `length` steps; `length` may be symbolic."""
    if unroll is True:
        return max(1, length) if dims.is_constant_dim(length) else 1
    if not is_position(unroll):
        raise TypeError(f"{name}: unroll is a bool or an int, got {unroll!r}")
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError(f"{name}: unroll is the number of steps that are taken at a time, got {unroll}")
    return max(1, unroll)


def _match_weak_types(jaxpr: Jaxpr, num_consts: int, num_carry: int) -> Jaxpr:
    """Set the weakness of the carry results to that of the carry arguments."""
    wanted = jaxpr.in_avals[num_consts : num_consts + num_carry]
    if all(a == b for a, b in zip(wanted, jaxpr.out_avals[:num_carry], strict=True)):
        return jaxpr
    weak = [a.weak_type if a.is_array else None for a in wanted]
    return _with_weak_types(jaxpr, (*weak, *[None] * (len(jaxpr.outvars) - num_carry)))


def _scan_in_python(f, init, x_leaves, x_tree, length, reverse):
    if length == 0:
        raise ValueError(
            "scan: the length is 0, and under disable_jit() f is not called, so the types of the results are unknown; enable"
            " jit"
        )
    carry, ys = init, []
    for i in reversed(range(length)) if reverse else range(length):
        row = pytree.tree_unflatten(x_tree, [lax.index_in_dim(x, i, keepdims=False) for x in x_leaves])
        carry, y = f(carry, row)
        ys.append(y)
    if reverse:
        ys.reverse()

    def stack(*rows):
        return lax.concatenate([lax.expand_dims(lax.asarray(r), (0,)) for r in rows], 0)

    return carry, pytree.tree_map(stack, *ys)


# ---- while


@api_boundary
def while_loop(cond_fun: Callable[[Any], ArrayLike], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Repeat ``val = body_fun(val)`` while ``cond_fun(val)``.

    Args:
      cond_fun: ``val -> bool`` scalar.
      body_fun: ``val -> val`` of the same structure, shapes and dtypes.
      init_val: a pytree of arrays.

    Returns:
      The final value. Differentiable in forward mode; for reverse mode the number of steps
      must be known: use `scan`, or `fori_loop` with fixed bounds.

    Examples:

      >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
      Array(192, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError(f"while_loop: cond_fun and body_fun are functions, got {cond_fun!r} and {body_fun!r}")
    if config.disable_jit.value:
        val = pytree.tree_map(lambda x: lax.asarray(x) if type(x) in (bool, int, float, complex) else x, init_val)
        while _is_known(going := cond_fun(val)):
            if not going:
                return val
            val = body_fun(val)
    leaves, tree = pytree.tree_flatten(init_val)
    in_tree = pytree.tree_structure(((init_val,), {}))
    untraced = True
    for _ in range(3 + len(leaves)):
        types = _types(leaves)
        if untraced:
            cond_jaxpr, cond_consts, cond_tree = staging.trace_function(cond_fun, in_tree, types)
            body_jaxpr, body_consts, body_tree = staging.trace_function(body_fun, in_tree, types)
        else:
            cond_jaxpr = _retyped(cond_jaxpr, (*cond_jaxpr.in_avals[: len(cond_consts)], *types))
            body_jaxpr = _retyped(body_jaxpr, (*body_jaxpr.in_avals[: len(body_consts)], *types))
        if body_tree == tree:
            stronger = _strengthen(leaves, types, body_jaxpr.out_avals)
            if stronger is not None:
                leaves, untraced = stronger
                continue
        break
    if not pytree.treedef_is_leaf(cond_tree) or len(cond_jaxpr.outvars) != 1:
        raise TypeError(
            coded(
                "BX-LOOP-CONDITION", f"while_loop: cond_fun returns one boolean scalar, got the structure {cond_tree}"
            )
        )
    (pred,) = cond_jaxpr.out_avals
    if pred.shape or pred.dtype != np.bool_:
        raise TypeError(
            coded(
                "BX-LOOP-CONDITION",
                f"while_loop: cond_fun returns one boolean scalar, got {pred.str_short()}; write a comparison, such as"
                " x < 10",
            )
        )
    _check_effects("while_loop", cond_jaxpr, body_jaxpr)
    check_carry("while_loop", tree, types, body_tree, body_jaxpr.out_avals, body_fun)
    body_jaxpr = _match_weak_types(body_jaxpr, len(body_consts), len(leaves))
    fixed = _unchanged(body_jaxpr, len(body_consts), dce_for(cond_jaxpr, (True,))[1][len(cond_consts) :])
    moves = [not f for f in fixed]
    if any(fixed):
        cond_jaxpr = _with_parts(cond_jaxpr, len(cond_consts), (), tuple(moves))
        body_jaxpr = _with_parts(body_jaxpr, len(body_consts), tuple(fixed), tuple(moves))
    out = iter(
        while_p.bind(
            *cond_consts,
            *body_consts,
            *kept(leaves, fixed),
            *kept(leaves, moves),
            cond_jaxpr=cond_jaxpr,
            cond_nconsts=len(cond_consts),
            body_jaxpr=body_jaxpr,
            body_nconsts=len(body_consts) + sum(fixed),
        )
    )
    value = lambda x: lax.asarray(x) if aval_of(x).is_array else x
    return pytree.tree_unflatten(tree, [next(out) if m else value(x) for x, m in zip(leaves, moves, strict=True)])


def _unchanged(body: Jaxpr, num_consts: int, tested: Sequence[bool]) -> list[bool]:
    """Mark the parts of the carry that no step changes and that the condition does not read.

    They are constants of the body: their derivatives do not depend on the number of steps.
    """
    carry = body.invars[num_consts:]
    return [out is v and not t for t, v, out in zip(tested, carry, body.outvars, strict=True)]


@cached
def _with_parts(jaxpr: Jaxpr, num_consts: int, fixed: tuple[bool, ...], moves: tuple[bool, ...]) -> Jaxpr:
    """The condition or body of a loop with some parts of the carry; the `fixed` ones are further constants."""
    consts, carry = jaxpr.invars[:num_consts], jaxpr.invars[num_consts:]
    if not fixed:
        return jaxpr.replace(invars=[*consts, *kept(carry, moves)])
    invars = [*consts, *kept(carry, fixed), *kept(carry, moves)]
    return jaxpr.replace(invars=invars, outvars=kept(jaxpr.outvars, moves))


def _made_from(body_fun: Callable, role: str, made: Callable) -> Callable:
    """Return `made`. Its programs are cached for the user's function, and messages have the name of that function."""
    made.__wrapped__, made.__name__ = body_fun, staging.function_name(body_fun)
    made.traces_of = (body_fun, role)
    return made


def _next(i):
    aval = aval_of(i)
    one = aval.dtype.type(1)
    return lax.add(i, one.item() if aval.weak_type else one)  # weak types stay weak: they determine no other type


def _fori_cond(loop_carry):
    i, upper, _ = loop_carry
    return lax.lt(i, upper)


@api_boundary
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Apply ``val = body_fun(i, val)`` for ``i`` from `lower` up to, not including, `upper`.

    Args:
      lower, upper: two integer scalars, or two floating-point scalars, of one dtype. Where both are integers that are
        known while tracing, the loop is a `scan` and can be differentiated in reverse; otherwise it is a `while_loop`.
      body_fun: ``(i, val) -> val``.
      init_val: a pytree of arrays.
      unroll: steps at a time of the compiled loop; needs known bounds.

    Returns:
      The final value.

    Raises:
      TypeError: `lower` and `upper` are not scalars of one dtype.

    Examples:

      >>> lax.fori_loop(1, 5, lambda i, product: product * i, 1)
      Array(24, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError(f"fori_loop: body_fun is a function (i, carry) -> carry, got {body_fun!r}")
    lower, upper = (dims.dim_as_value(n) if dims.is_symbolic(n) else n for n in (lower, upper))
    types = [aval_of(lower), aval_of(upper)]
    if not all((dtypes.is_integer(t.dtype) or dtypes.is_floating(t.dtype)) and not t.shape for t in types):
        raise TypeError(f"fori_loop: lower and upper are real scalars, got {types[0]} and {types[1]}")
    same_kind = dtypes.is_integer(types[0].dtype) == dtypes.is_integer(types[1].dtype)
    if types[0].dtype != types[1].dtype and not (same_kind and (types[0].weak_type or types[1].weak_type)):
        raise TypeError(f"fori_loop: lower and upper have one dtype, got {types[0].dtype} and {types[1].dtype}")
    dtype = lattice.result_type(lower, upper)
    bounds = [_known_int(lower), _known_int(upper)] if dtypes.is_integer(dtype) else [None, None]
    of_type = lambda n: n if aval_of(n).dtype == dtype else lax.convert_element_type(n, dtype)
    if config.disable_jit.value and None not in bounds:
        val = init_val
        for i in range(*bounds):
            val = body_fun(of_type(i), val)
        return val
    if None not in bounds:
        steps = max(0, bounds[1] - bounds[0])

        def step(loop_carry, _):
            i, val = loop_carry
            return (_next(i), body_fun(i, val)), None

        unroll = 1 if unroll is None else _steps_at_a_time("fori_loop", unroll, steps)
        start = of_type(lower), init_val
        (_, result), _ = scan(_made_from(body_fun, "fori_loop as scan", step), start, None, length=steps, unroll=unroll)
        return result
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(f"fori_loop: unroll={unroll} needs known bounds; leave it out, or make them static")

    def body(loop_carry):
        i, upper, val = loop_carry
        return _next(i), upper, body_fun(i, val)

    carry = (of_type(lower), of_type(upper), init_val)
    return while_loop(_fori_cond, _made_from(body_fun, "fori_loop as while", body), carry)[2]


def _known_int(x) -> int | None:
    if isinstance(x, Tracer):
        x = x.concrete()
        if x is None:
            return None
    return operator.index(x.item() if hasattr(x, "item") else x)


# ---- cond

NO_OPERAND: Any = object()  # None is a valid operand


@api_boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = NO_OPERAND,
    linear: Any = None,
) -> Any:
    """Apply `true_fun` or `false_fun` to the operands.

    Args:
      pred: a boolean scalar (a number counts as true unless zero).
      true_fun, false_fun: functions of the operands, with results of equal types.
      operands: pytrees of arrays.
      operand: the only operand, by keyword (older form).
      linear: no effect (older form).

    Returns:
      The chosen function's result. Under `vmap` of `pred`, both are computed and selected. It is weakly typed if that of
      `false_fun` is.

    The older form ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` works, too.

    Examples:

      >>> jax.lax.cond(True, lambda x: x + 1, lambda x: -x, 10)
      Array(11, dtype=int32, weak_type=True)
      >>> jax.jit(lambda x: jax.lax.cond(x > 0, jnp.sqrt, jnp.abs, x))(-4.)
      Array(4., dtype=float32, weak_type=True)
    """
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
        of_true, on_true, (of_false, on_false) = true_fun, false_fun, operands
        return cond(pred, lambda a, b: on_true(a), lambda a, b: on_false(b), of_true, of_false)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError(f"cond: true_fun and false_fun are functions, got {true_fun!r} and {false_fun!r}")
    operands = _operands("cond", operands, operand)
    aval = _scalar("Pred", pred)
    if config.disable_jit.value and _is_known(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    if aval.dtype != np.bool_:
        if not (dtypes.is_integer(aval.dtype) or dtypes.is_inexact(aval.dtype)):
            raise TypeError(f"cond: the predicate is a boolean or a number, got dtype {aval.dtype}")
        pred = lax.ne(pred, aval.dtype.type(0))
    index = np.int32(pred) if type(pred) is bool else lax.convert_element_type(pred, np.dtype(np.int32))
    return branch(index, (false_fun, true_fun), operands, ("false_fun", "true_fun"))


@api_boundary
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any, operand: ArrayLike = NO_OPERAND
) -> Any:
    """Apply the `index`-th of the functions to the operands; the index is clamped to the range.

    Args:
      index: an integer scalar.
      branches: functions of the operands, with results of equal types.
      operands: pytrees of arrays.
      operand: the only operand, by keyword (older form).

    Returns:
      The chosen function's result. It is weakly typed if that of the first branch is.

    Examples:

      >>> branches = [lambda x: x, lambda x: -x, lambda x: 10 * x]
      >>> lax.switch(2, branches, 7)
      Array(70, dtype=int32, weak_type=True)
      >>> lax.switch(99, branches, 7)
      Array(70, dtype=int32, weak_type=True)
    """
    branches = tuple(branches) if isinstance(branches, Iterable) else branches
    if not (isinstance(branches, tuple) and all(callable(b) for b in branches)):
        raise TypeError(f"switch: branches is a sequence of functions, got {branches!r}")
    operands = _operands("switch", operands, operand)
    aval = _scalar("Branch index", index)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(
            coded(
                "BX-SWITCH-INDEX",
                f"switch: the index is an integer scalar, got {index} of dtype {aval.dtype}; convert it with"
                " x.astype(int)",
            )
        )
    if not branches:
        raise ValueError("switch: at least one branch is needed, got none")
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit.value and _is_known(index):
        return branches[min(max(0, int(index)), len(branches) - 1)](*operands)
    last = len(branches) - 1
    if dtypes.itemsize_bits(aval.dtype) >= 32 and aval.dtype != np.int32:  # int32 does not hold every such index
        kind = aval.dtype.type
        index = lax.clamp(kind(0), lax.convert_element_type(index, aval.dtype), kind(last))
    index = lax.convert_element_type(index, np.dtype(np.int32))
    index = lax.clamp(np.int32(0), index, np.int32(last))
    return branch(index, branches, operands, tuple(f"branch {i}" for i in range(len(branches))))


def _operands(name: str, operands: tuple, operand: Any) -> tuple:
    if operand is NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"{name}: operands are given by position or as `operand`, not both")
    return (operand,)


def _is_known(x) -> bool:
    return not isinstance(x, Tracer) or x.concrete() is not None


def _scalar(what: str, x):
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(coded("BX-PREDICATE", f"{what} must be a scalar, got {x!r} of type {type(x)}")) from None
    if aval.shape:
        raise TypeError(
            coded(
                "BX-PREDICATE",
                f"{what} must be a scalar, got an array of shape {aval.shape}; jnp.where chooses for each element,"
                " x.any() and x.all() make one boolean",
            )
        )
    return aval


def branch(
    index: ArrayLike,
    functions: tuple[Callable[..., Any], ...],
    operands: tuple[Any, ...],
    names: tuple[str, ...],
    **params: Any,
) -> Any:
    """Apply the function at `index`; `names`: the names of the functions in messages; `params`: further ones of `cond_p`."""
    leaves, _ = pytree.tree_flatten(operands)
    in_tree = pytree.tree_structure((operands, {}))
    types = _types(leaves)
    traced = [staging.trace_function(f, in_tree, types) for f in functions]
    check_branches(functions, names, [(tree, jaxpr.out_avals) for jaxpr, _, tree in traced])
    _check_effects("cond", *[jaxpr for jaxpr, _, _ in traced])
    consts: dict[int, Any] = {}
    for _, values, _ in traced:
        consts.update((id(c), c) for c in values)
    order = list(consts)
    branches = tuple(_with_consts(jaxpr, values, order, consts) for jaxpr, values, _ in traced)
    branches = _join_weak_types(branches)
    values = [*consts.values(), *leaves]
    differs = varying_axes(aval_of(index))
    if differs:  # devices choose differently, and only outside of the branches all devices run the same operations
        values = [pvary_p.bind(x, axes=differs) if aval_of(x).is_array else x for x in values]  # a reference stays
        branches = tuple([_retyped(b, _types(values)) for b in branches])
    out = cond_p.bind(index, *values, branches=branches, **params)
    return pytree.tree_unflatten(traced[0][2], out)


def _with_consts(jaxpr: Jaxpr, values: list, order: list, consts: dict) -> Jaxpr:
    """The branch with all branches' closed-over values as leading arguments."""
    if [id(v) for v in values] == order:
        return jaxpr
    places, types = tuple(order.index(id(v)) for v in values), [aval_of(c) for c in consts.values()]

    def extended():
        own = dict(zip(places, jaxpr.invars, strict=False))
        leading = [own.get(i) or Var(a) for i, a in enumerate(types)]
        return jaxpr.replace(invars=leading + jaxpr.invars[len(values) :])

    return fact(jaxpr, (_with_consts, places, tuple(types)), extended)


@cached
def _retyped(jaxpr: Jaxpr, types: tuple) -> Jaxpr:
    """The program for arguments that are strongly typed, or vary over more axes. Their dtypes and shapes are the same."""
    return staging.program_of(lambda *args: eval_jaxpr(jaxpr, jaxpr.consts, *args), types, jaxpr.debug_info)


def _join_weak_types(branches: tuple[Jaxpr, ...]) -> tuple[Jaxpr, ...]:
    """Make the branches' result types equal: results are as weakly typed as those of the first branch."""
    weak = [a.weak_type if a.is_array else None for a in branches[0].out_avals]
    if all(a.weak_type == w for b in branches for a, w in zip(b.out_avals, weak, strict=True) if a.is_array):
        return branches
    return tuple([_with_weak_types(b, tuple(weak)) for b in branches])


@cached
def _with_weak_types(jaxpr: Jaxpr, weak: tuple) -> Jaxpr:
    """The program with results of the given weakness (None: unchanged)."""

    def settled(*args):
        return [
            convert_element_type_p.bind(x, new_dtype=aval_of(x).dtype, weak_type=w)
            if w is not None and aval_of(x).is_array and aval_of(x).weak_type != w
            else x
            for x, w in zip(eval_jaxpr(jaxpr, jaxpr.consts, *args), weak, strict=True)
        ]

    return staging.program_of(settled, jaxpr.in_avals, jaxpr.debug_info)


# ---- functions built from the above


@api_boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply `f` to each element along the leading axes, one after another.

    Args:
      f: function of one element.
      xs: pytree of arrays of equal leading axis.
      batch_size: apply ``vmap(f)`` to this many elements at a time; None or 0: one at a time, without `vmap`.

    Returns:
      The results stacked along a leading axis.

    Raises:
      NotImplementedError: `batch_size` is given, and `bedrax.batching` is not imported (the face imports it).

    Examples:

      >>> lax.map(lambda x: x ** 2, jnp.array([1, 2, 3]))
      Array([1, 4, 9], dtype=int32)
      >>> lax.map(lambda x: x ** 2, jnp.arange(6), batch_size=2)
      Array([ 0,  1,  4,  9, 16, 25], dtype=int32)
    """
    if batch_size is None or batch_size == 0:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if not is_position(batch_size) or batch_size < 1:
        raise ValueError(f"lax.map: batch_size must be a positive integer, got {batch_size!r}")
    vmap = offers.offered("vmap")
    if vmap is None:
        raise NotImplementedError("lax.map with batch_size maps with vmap: install bedrax-batching")
    batched = vmap(f)
    leaves, tree = pytree.tree_flatten(xs)
    n, batch_size = _number_of_steps(xs, None), dims.integer(batch_size, "batch_size")
    whole = n // batch_size
    parts = []
    if whole:
        head = [
            lax.reshape(lax.slice_in_dim(x, 0, whole * batch_size), (whole, batch_size, *aval_of(x).shape[1:]))
            for x in leaves
        ]
        ys = scan(lambda _, x: ((), batched(x)), (), pytree.tree_unflatten(tree, head))[1]
        parts.append(pytree.tree_map(lambda y: lax.reshape(y, (whole * batch_size, *aval_of(y).shape[2:])), ys))
    if n % batch_size or not whole:
        tail = [lax.slice_in_dim(x, whole * batch_size, n) for x in leaves]
        parts.append(batched(pytree.tree_unflatten(tree, tail)))
    return parts[0] if len(parts) == 1 else pytree.tree_map(lambda a, b: lax.concatenate([a, b], 0), *parts)


@api_boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefix results of an associative operation, in logarithmically many steps.

    Args:
      fn: ``(a, b) -> c`` on pytrees of arrays, associative, acting on all given slices along `axis` together.
      elems: pytree of arrays of equal size along `axis`.
      reverse: from the end instead.
      axis: the axis of the sequence.

    Returns:
      A pytree like `elems`: element ``i`` combines elements ``0 .. i``.

    Source: Blelloch, "Prefix sums and their applications" (1990), in the odd-even recursive form.

    Examples:

      >>> lax.associative_scan(jnp.multiply, jnp.array([1, 2, 3, 4]))
      Array([ 1,  2,  6, 24], dtype=int32)
      >>> lax.associative_scan(jnp.maximum, jnp.array([1, 5, 2]), reverse=True)
      Array([5, 5, 2], dtype=int32)
    """
    if not callable(fn):
        raise TypeError(f"associative_scan: fn is a function of two elements, got {fn!r}")
    leaves, tree = pytree.tree_flatten(elems)
    if not is_position(axis):
        raise TypeError(f"associative_scan: axis must be an int, got {axis!r}")
    axes = [normalized(axis, len(aval_of(x).shape), "associative_scan: axis", "dimensions")[0] for x in leaves]
    if not leaves:
        raise IndexError(f"associative_scan: elems has no arrays, got {elems!r}; pass at least one")
    n = aval_of(leaves[0]).shape[axes[0]]
    for x, a in zip(leaves, axes, strict=True):
        if aval_of(x).shape[a] != n:
            raise ValueError(f"associative_scan: axis {axis} has one length, got {[aval_of(x).shape for x in leaves]}")
    leaves = [lax.rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)] if reverse else leaves

    def combine(a, b):
        return pytree.tree_leaves(fn(pytree.tree_unflatten(tree, a), pytree.tree_unflatten(tree, b)))

    def piece(xs, start, limit, stride=1):
        return [lax.slice_in_dim(x, start, limit, stride, a) for x, a in zip(xs, axes, strict=True)]

    def prefix(xs):
        count = aval_of(xs[0]).shape[axes[0]]
        if count < 2:
            return xs
        pairs = combine(piece(xs, 0, count - 1, 2), piece(xs, 1, count, 2))
        odd = prefix(pairs)  # results at positions 1, 3, 5, ...
        if count % 2 == 0:
            kept = piece(odd, 0, aval_of(odd[0]).shape[axes[0]] - 1)
        else:
            kept = odd
        even = combine(kept, piece(xs, 2, count, 2)) if count > 2 else [None] * len(xs)
        out = []
        for x, e, o, a in zip(xs, even, odd, axes, strict=True):
            first = lax.slice_in_dim(x, 0, 1, axis=a)
            evens = first if e is None else lax.concatenate([first, e], a)
            out.append(_interleave(evens, o, a))
        return out

    result = prefix(leaves)
    if reverse:
        result = [lax.rev(x, (a,)) for x, a in zip(result, axes, strict=True)]
    return pytree.tree_unflatten(tree, result)


def _interleave(a, b, axis: int):
    """a0 b0 a1 b1 ...; `a` may have one more element."""
    na, nb = aval_of(a).shape[axis], aval_of(b).shape[axis]
    rank = len(aval_of(a).shape)
    dtype = aval_of(a).dtype
    zero = dtype.type(complex(-0.0, -0.0) if dtypes.is_complex(dtype) else -0.0 if dtypes.is_floating(dtype) else 0)
    # The neutral element of sums is -0.0: adding 0.0 would lose the sign of an element -0.0.

    def spread(x, low, high):
        return lax.pad(x, zero, [(low, high, 1) if i == axis else (0, 0, 0) for i in range(rank)])

    spread_a = spread(a, 0, 1 if na == nb else 0)
    spread_b = spread(b, 1, 0 if na == nb else 1)
    join = lax.bitwise_or if dtype == np.bool_ else lax.add
    return join(spread_a, spread_b)
