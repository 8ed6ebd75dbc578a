"""Whole modules: the main function, for one platform or several; symbolic shapes; portable bytes.

`lower` makes a module. Its main function computes the dimension variables from the shapes of its
arguments, checks them, and (for several platforms) takes the index of the running platform.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bedrax import shape_poly
from bedrax.core import dims
from bedrax.core.ir import Jaxpr
from bedrax.xla_backend import tables
from bedrax.xla_backend.door import mlir, versions
from bedrax.xla_backend.lowering import for_platforms, types
from bedrax.xla_backend.lowering.build import Builder
from bedrax.xla_backend.lowering.dimensions import DimValue
from bedrax.xla_backend.lowering.program import Program, add_main
from bedrax.xla_backend.lowering.types import ir

_I32 = np.dtype(np.int32)
PLATFORM_INDEX = "_platform_index"


class Portable(NamedTuple):
    """A lowered program: its module, the arguments it takes, and whether it must be specialized."""

    program: Program
    kept: tuple[int, ...]
    symbolic: bool


def all_static(avals: Any) -> bool:
    """Whether all shapes are static."""
    return all(not a.is_array or dims.is_constant_shape(a.shape) for a in avals)


def solvable_arguments(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[int, ...]:
    """The arguments that a program needs: those it uses, and those that determine dimension variables."""
    kept = tuple([i for i, u in enumerate(used) if u])
    avals = jaxpr.in_avals
    if not all_static(avals):
        try:
            shape_poly.solve_dims([avals[i].shape for i in kept], lambda i, k: Unknown())
            known = set().union(set(), *(d.variables for i in kept for d in avals[i].shape if dims.is_symbolic(d)))
        except ValueError:
            known = set()
        every = set().union(set(), *(d.variables for a in avals for d in a.shape if dims.is_symbolic(d)))
        if known != every:
            return tuple([i for i, a in enumerate(avals) if used[i] or not dims.is_constant_shape(a.shape)])
    return kept


class Unknown:
    """A number with arithmetic but without a value."""

    def _same(self, *_: Any) -> Any:
        return self

    if not TYPE_CHECKING:
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = max = min = _same


def lower(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    kept: tuple[int, ...],
    num_partitions: int = 1,
    names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
    mark_shardings: Callable[..., Any] | None = None,
    ordered: Sequence[Any] = (),
    find_rule: Callable[..., Any] = tables.find_rule,
) -> Portable:
    """Make a portable module.

    Args:
      platforms: one platform, or several. With several, main's first argument is the index of the running platform.
      kept: positions of the arguments that main takes.
      names: names of the arguments in messages about their shapes.
      mark_shardings: ``mark_shardings(arg_attrs, res_attrs, partitioner)`` adds to the attributes of arguments
        and results that are kept.
      find_rule: ``(primitive, platform) -> rule``.
      ordered: effects whose tokens main takes after the index, and returns before the results.
    """
    several = len(platforms) > 1
    symbolic = not all_static(jaxpr.in_avals)
    program = Program(name, platforms[0], num_partitions, for_platforms.lower_equation if several else None)
    program.symbolic = symbolic or several
    program.find_rule = find_rule
    if symbolic:
        program.module.operation.attributes["jax.uses_shape_polymorphism"] = types.attribute(True)
    avals = [jaxpr.invars[i].aval for i in kept]
    arg_attrs: list[dict[str, Any]] = [{} for _ in avals]
    res_attrs: list[dict[str, Any]] = [
        {"jax.result_info": n} for n in (result_names or ["result"] * len(jaxpr.outvars))
    ]
    if mark_shardings is not None:
        mark_shardings(arg_attrs, res_attrs, program.partitioner)
    token_attrs = [{"jax.token": True} for _ in ordered]
    arg_attrs, res_attrs = token_attrs + arg_attrs, token_attrs + res_attrs
    if several:
        arg_attrs.insert(0, {"jax.global_constant": PLATFORM_INDEX})

    def begin(block, values):
        if several:
            program.platforms = tuple(platforms)
            program.platform_index = values.pop(0)
        if symbolic:
            given = [names[i] for i in kept] if names is not None else None
            program.dim_values = _dimension_values(Builder(block), avals, values[len(ordered) :], given)
        return values

    add_main(
        program,
        jaxpr,
        kept,
        arg_attrs,
        res_attrs,
        begin=begin,
        ordered=ordered,
        extra=[types.tensor_type((), _I32)] if several else [],
    )
    if program.scratch is not None:
        program.scratch.erase()
        program.scratch = None
    program.module.operation.verify()
    return Portable(program, kept, symbolic or several)


def _dimension_values(ctx, avals, values, names) -> dict[str, Any]:
    """Values of the dimension variables, with assertions that the shapes of the arguments match."""
    scalar = types.tensor_type((), _I32)

    def size(i, axis):
        d = types.physical(avals[i])[0][axis]
        if dims.is_constant_dim(d):
            return int(d)
        return DimValue(ctx, ctx.emit("stablehlo.get_dimension_size", (values[i],), scalar, dimension=axis))

    def value(x):
        return x.value if isinstance(x, DimValue) else ctx.constant(int(x), _I32)

    def assertion(relation, x, y, message, details):
        holds = ctx.compare(value(x), value(y), "EQ" if relation == "==" else "GE")
        attributes = {
            "call_target_name": types.string("shape_assertion"),
            "has_side_effect": True,
            "api_version": types.i32(2),
            "error_message": types.string(message),
        }
        ctx.emit("stablehlo.custom_call", [holds, *map(value, details)], [], **attributes)

    found = shape_poly.solve_dims([a.shape for a in avals], size, assertion=assertion, names=names)
    return {name: value(x) for name, x in found.items()}


# ---- bytes ----


_OF_ANOTHER_VERSION = re.compile(r"failed to legalize operation 'vhlo\.(\w+)_v\d+'|failed to convert VHLO to v")


def older_version(version: str) -> str:
    """Return the older of two versions of StableHLO: `version`, and the newest that the installed jaxlib writes."""
    return min(version, mlir.stablehlo().get_current_version(), key=versions.parts)


def serialize(module: Any, version: str | None = None) -> bytes:
    """A module as a portable StableHLO artifact, by default of a version that consumers 12 weeks old can read.

    Raises:
      NotImplementedError: the module has operations, or forms of operations, that this version lacks; the message names
        them.
    """
    stablehlo = mlir.stablehlo()
    if version is None:
        version = stablehlo.get_version_from_compatibility_requirement(
            stablehlo.StablehloCompatibilityRequirement.WEEK_12
        )
    copy = ir.Module.parse(mlir.bytecode(module), types.context)  # serialization changes its argument
    missing: set[str] = set()
    thread = threading.get_ident()

    def note(diagnostic: Any) -> bool:  # the error has no names; other threads may use the context
        found = _OF_ANOTHER_VERSION.match(diagnostic.message) if threading.get_ident() == thread else None
        if found is not None and found[1]:
            missing.add(f"stablehlo.{found[1]}")
        return found is not None  # MLIR would print it

    handler = types.context.attach_diagnostic_handler(note)
    try:
        return stablehlo.serialize_portable_artifact(copy, version, True)
    except ValueError as error:
        if not missing:
            raise
        raise NotImplementedError(
            f"version {version} of StableHLO lacks {', '.join(sorted(missing))}, or an attribute that it has here"
        ) from error
    finally:
        handler.detach()


def deserialize(artifact: bytes) -> Any:
    """The module of a portable artifact.

    Raises:
      ValueError: the artifact has operations of a later version of StableHLO than that of the installed jaxlib, or it
        is damaged.
    """
    with types.context:
        try:
            return mlir.stablehlo().deserialize_portable_artifact(types.context, artifact)
        except ValueError as error:
            mlir.explain_newer(artifact, error)
            raise


_CAST = "builtin.unrealized_conversion_cast"


def operations(module: Any) -> list[Any]:
    """All operations of a module, inner ones first."""
    found: list[Any] = []

    def visit(op):
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def decompose(module: Any) -> None:
    """Replace CHLO operations (`erf`, `top_k`, `asinh`...) by StableHLO operations, in place.

    Raises:
      NotImplementedError: some of them cannot be replaced; the message names them.
    """
    passes = "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo))"
    with types.context:
        mlir.pass_manager(passes).run(module.operation)
    casts = [op for op in operations(module) if op.name == _CAST]
    # The passes leave casts: inverse pairs, and casts without uses.
    for op in casts:
        maker = op.operands[0].owner
        if getattr(maker, "name", "") == op.name and maker.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(maker.operands[0])
    for op in reversed(casts):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()

    names = {op.name for op in operations(module)}
    left = {n for n in names if n == _CAST or not n.startswith(("stablehlo.", "func.", "builtin."))}
    if left:
        raise NotImplementedError(
            f"the program has operations that portable StableHLO lacks, at these shapes: {', '.join(sorted(left))}"
        )


def custom_call_targets(module: Any) -> set[str]:
    """Names of the custom calls in a module."""
    calls = [op for op in operations(module) if op.name == "stablehlo.custom_call"]
    return {ir.StringAttr(op.attributes["call_target_name"]).value for op in calls}
