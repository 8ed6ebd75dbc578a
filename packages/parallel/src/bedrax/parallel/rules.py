"""The transformations of `shard_map_p`: its program is transformed with its mapped axes in scope.

Values that one part of a program computes for another (residuals) are arrays outside of the mapped axes: blocks that
vary are stacked along a new leading axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.autodiff.forward import jvp_jaxpr
from bedrax.autodiff.linearization import linearize_jaxpr, split_jaxpr, split_rules, transpose_jaxpr
from bedrax.autodiff.tables import (
    flags,
    is_undefined,
    jvp_rules,
    linearize_rules,
    live,
    no_tangent,
    spread,
    transpose_rules,
)
from bedrax.batching.tables import batch_rules
from bedrax.batching.trace import batch_jaxpr
from bedrax.core import passes, staging
from bedrax.core.avals import aval_of
from bedrax.core.dead_code import kept
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, run
from bedrax.core.tracing import pvary_p, varying_axes
from bedrax.lax import div, psum, reshape
from bedrax.lax.axes import insert
from bedrax.lax.primitives.collectives import cast
from bedrax.parallel.meshes import AxisType
from bedrax.parallel.primitives import inside, names_in, shard_map_p
from bedrax.parallel.specs import PartitionSpec, axes_of
from bedrax.parallel.sums import tidy, without_axes


def _refuse_values(what: str, avals: Sequence[Any]) -> None:
    """Raise if a derived program would take or return values of libraries' types: their specs have no derived ones."""
    for aval in avals:
        if aval.represented:
            raise NotImplementedError(
                f"{what} of a shard_map with a value of type {aval} is not supported: apply it to the function inside, or let"
                " the function take and return the arrays that represent the value"
            )


def _bind(params: dict, program: Jaxpr, args: Sequence[Any], in_specs: Sequence, out_specs: Sequence) -> list:
    """Bind a derived program. Tracers that its rules closed over become arguments that are equal on all devices."""
    program, consts = staging.close_over(program, every=False)
    in_specs = (PartitionSpec(),) * len(consts) + tuple(in_specs)
    out_specs = tuple(out_specs)
    if params["check_vma"]:
        with inside(params):
            program = varying_results(program, out_specs)
    return shard_map_p.bind(
        *consts, *args, **{**params, "jaxpr": program, "in_specs": in_specs, "out_specs": out_specs}
    )


@jvp_rules.rule(shard_map_p, kind="call")
def _jvp(primals, tangents, **params):
    active = flags(tangents)
    _refuse_values("the derivative", (*params["jaxpr"].in_avals, *params["jaxpr"].out_avals))
    with inside(params):
        pushed, active_out = jvp_jaxpr(params["jaxpr"], active)
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    out = _bind(
        params,
        pushed,
        (*primals, *live(tangents)),
        (*in_specs, *kept(in_specs, active)),
        (*out_specs, *kept(out_specs, active_out)),
    )
    n = len(active_out)
    return out[:n], spread(out[n:], active_out, out[:n])


@cached
def varying_results(program: Jaxpr, specs: tuple[PartitionSpec, ...]) -> Jaxpr:
    """A program whose results vary, by their types, over the axes in their specs. Blocks that are equal are cast.

    The cotangents of the blocks differ: that of the value is their sum, which is the transpose of the cast.
    """
    more = [
        frozenset(names_in(s)) - varying_axes(a) if a.is_array else frozenset()
        for a, s in zip(program.out_avals, specs, strict=True)
    ]
    if not any(more):
        return program
    cast_each = lambda *xs: [pvary_p.bind(x, axes=n) for x, n in zip(run(program, *xs), more, strict=True)]
    return staging.program_of(cast_each, program.in_avals, program.debug_info)


# ---- programs in two parts


def _axes_in_use(params: dict) -> tuple[str, ...]:
    """The mapped axes over which a value inside may vary, if types do not say it.

    Values are equal along an axis that is in no spec of an argument and in no collective. So `vmap` can spread a batch over
    it (`spmd_axis_name`). A program with effects may read other values on each device.
    """
    if params["jaxpr"].effects:
        return tuple(params["manual"])
    used = passes.axes_of(params["jaxpr"]).union(*map(_named, params["in_specs"]))
    return tuple(n for n in params["manual"] if n in used)


def _residual_axes(aval, params: dict) -> tuple[str, ...]:
    """The mapped axes over which a value inside may vary, or is partial sums or a sum."""
    if not params["check_vma"]:
        return _axes_in_use(params)
    return tuple(n for n in params["manual"] if n in varying_axes(aval) | _sums_in(aval))


def _sums_in(aval) -> frozenset:
    """The manual axes over which a value is partial sums or a sum."""
    if getattr(aval, "split", None) is None:
        return frozenset()
    held = aval.manual_axis_type
    return held.unreduced | held.reduced


def _varying(aval):
    """The type of a value of type `aval` that is cast to vary where it is partial sums or a sum."""
    sums = _sums_in(aval)
    if not sums:
        return aval
    return aval.update(vma=aval.vma | sums, sharding=tidy(aval.split, without_axes(aval.split.spec, sums)))


def _cast_back(x, aval):
    """A value that varies, as one of type `aval`."""
    held = aval.manual_axis_type if _sums_in(aval) else None
    if held is None:
        return x
    mesh = aval.split.mesh
    return cast(cast(x, held.unreduced, "unreduced", held.unreduced_kind, mesh), held.reduced, "reduced", None, mesh)


@cached
def _with_axes(program: Jaxpr, axes: tuple, which: str) -> Jaxpr:
    """A program with an axis of length 1 at the front of those of its first arguments, or last results, that vary.

    Args:
      axes: the axes of the mesh over which each varies.
      which: "arguments" or "results".
    """

    def with_axis(x, own):
        return reshape(cast(x, _sums_in(aval_of(x)), "varying"), (1, *aval_of(x).shape)) if own else x

    def without(x, own, aval):
        return _cast_back(reshape(x, aval_of(x).shape[1:]), aval) if own else x

    types = program.in_avals
    if which == "results":
        axes = ((),) * (len(program.outvars) - len(axes)) + axes
        return staging.program_of(lambda *xs: list(map(with_axis, run(program, *xs), axes)), types)
    axes += ((),) * (len(types) - len(axes))
    given = [_varying(a).with_axis(0, 1) if own else a for a, own in zip(types, axes)]
    return staging.program_of(lambda *xs: run(program, *map(without, xs, axes, types)), given)


def _stack_spec(own: tuple) -> PartitionSpec:
    return PartitionSpec(own) if own else PartitionSpec()


@linearize_rules.rule(shard_map_p, kind="program")
def _linearize(primals, tangents, **params):
    active = flags(tangents)
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    _refuse_values("the derivative", (*params["jaxpr"].in_avals, *params["jaxpr"].out_avals))
    with inside(params):
        lin = linearize_jaxpr(params["jaxpr"], active)
        _refuse_values("the derivative", lin.primal.out_avals)
        axes = tuple(_residual_axes(a, params) for a in lin.primal.out_avals[lin.num_out :])
        primal = _with_axes(lin.primal, axes, "results")
        linear = _with_axes(lin.linear, tuple(axes[i] if kind == "new" else () for kind, i in lin.sources), "arguments")
    stacked = list(map(_stack_spec, axes))
    out = _bind(params, primal, primals, in_specs, (*out_specs, *stacked))
    results = out[: lin.num_out]
    if not any(lin.active_out):
        return results, no_tangent(shard_map_p, results)
    # A result that is also a residual is split again as it was assembled. A result that is equal along an axis
    # only according to the specs is treated as equal.
    specs = {"in": in_specs, "out": out_specs, "new": stacked}
    moved = _bind(
        params,
        linear,
        (*lin.residuals(primals, out), *live(tangents)),
        (*(specs[kind][i] for kind, i in lin.sources), *kept(in_specs, active)),
        kept(out_specs, lin.active_out),
    )
    return results, spread(moved, lin.active_out, results)


@split_rules.rule(shard_map_p, kind="program")
def _split(tape, prim, args, params):
    """Record the part that depends on the tape; run the other part now."""
    marked = tuple(tape.owns(x) for x in args)
    with inside(params):
        parts = split_jaxpr(params["jaxpr"], marked)
        if parts is None:
            return tape.record(prim, args, params)
        known, rest, depends_out, count = parts
        axes = tuple(_residual_axes(a, params) for a in known.out_avals[len(known.outvars) - count :])
        known, rest = _with_axes(known, axes, "results"), _with_axes(rest, axes, "arguments")
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    stacked = list(map(_stack_spec, axes))
    unmarked = [not m for m in marked]
    out = _bind(
        params,
        known,
        kept(args, unmarked),
        kept(in_specs, unmarked),
        (*kept(out_specs, [not d for d in depends_out]), *stacked),
    )
    n = len(out) - count
    others = iter(out[:n])
    dependent: Any = iter(())
    if rest.outvars:
        new = {
            **params,
            "jaxpr": rest,
            "in_specs": (*stacked, *kept(in_specs, marked)),
            "out_specs": tuple(kept(out_specs, depends_out)),
        }
        dependent = iter(tape.record(prim, (*out[n:], *kept(args, marked)), new))
    return [next(dependent) if d else next(others) for d in depends_out]


# ---- transposition


@transpose_rules.rule(shard_map_p, kind="program")
def _transpose(cts, *args, **params):
    undefined = tuple(is_undefined(x) for x in args)
    arriving = flags(cts)
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    ct_specs = [spec.to_ct_spec() for spec in kept(out_specs, arriving)]
    with inside(params):
        program, leaving = transpose_jaxpr(params["jaxpr"], undefined, arriving)
        left_specs = [spec.to_ct_spec() for spec in kept(kept(in_specs, undefined), leaving)]
        scope = tuple((k, params[k]) for k in ("mesh", "manual", "check_vma"))
        program = _shared(program, scope, tuple(ct_specs), tuple(left_specs))
    known = [x for x in args if not is_undefined(x)]
    out = iter(
        _bind(
            params, program, (*known, *live(cts)), (*kept(in_specs, [not u for u in undefined]), *ct_specs), left_specs
        )
    )
    here = iter(leaving)
    return [next(out) if u and next(here) else None for u in undefined]


def _named(spec: PartitionSpec) -> set:
    """The axes over which arrays with a spec are split, partial sums, or sums."""
    return {*names_in(spec), *spec.unreduced, *spec.reduced}


@cached
def _shared(program: Jaxpr, scope: tuple, ct_specs: tuple, left_specs: tuple) -> Jaxpr:
    """A transposed program for arguments and results that are equal on all devices.

    If types have the varying axes, there is nothing to do (except for functions with custom rules that leave cotangents
    unsummed). Otherwise every sum transposes to a sum: each device uses its share of the cotangent of such a result,
    and the cotangents of such an argument are summed.
    """
    params = dict(scope)
    typed = params["check_vma"]
    count = len(program.invars) - len(ct_specs)
    sums = [
        tuple(n for n in params["manual"] if n not in _named(spec) and (not typed or n in varying_axes(a)))
        for a, spec in zip(program.out_avals, left_specs, strict=True)
    ]
    if typed and not any(sums):
        return program

    def share(ct, spec):
        parts = math.prod(
            size for n, size in params["mesh"].shape.items() if n in params["manual"] and n not in _named(spec)
        )
        return ct if typed or parts == 1 else div(ct, np.asarray(parts).astype(aval_of(ct).dtype)[()])

    def body(*values):
        cts = map(share, values[count:], ct_specs)
        out = run(program, *values[:count], *cts)
        return [psum(x, own) if own else x for x, own in zip(out, sums, strict=True)]

    return staging.program_of(body, program.in_avals)


# ---- batching


@cached
def _equal_before(program: Jaxpr, axes: frozenset, dims: tuple) -> Jaxpr:
    """A program whose arguments vary over `axes`, with those that are not mapped equal there; they are cast."""
    types = [
        a.update(vma=a.vma - axes) if d is None and a.is_array else a
        for a, d in zip(program.in_avals, dims, strict=True)
    ]
    cast_all = lambda *xs: [pvary_p.bind(x, axes=axes) if aval_of(x).is_array else x for x in xs]
    return staging.program_of(lambda *xs: run(program, *cast_all(*xs)), types)


@batch_rules.rule(shard_map_p, kind="program")
def _batch(axis, args, dims, **params):
    manual, mesh = params["manual"], params["mesh"]
    _refuse_values("vmap", (*params["jaxpr"].in_avals, *params["jaxpr"].out_avals))
    used = {n for s in (*params["in_specs"], *params["out_specs"]) for n in names_in(s)}
    spread_over = axis.spmd_name if isinstance(axis.spmd_name, tuple) else (axis.spmd_name,)
    spread_over = tuple(n for n in spread_over if n in manual)
    split = axis.split
    if split is not None and not spread_over:
        over = axes_of(split.spec[0])
        if set(over) <= set(manual) - used:
            spread_over = over
        elif not set(over) & set(manual):
            kinds = {name: AxisType.Manual for name in split.mesh.axis_names if name in manual}
            split = split.update(mesh=split.mesh.update_axis_types(kinds))
    if split is axis.split:
        split = None  # the axis is cut into blocks, or is whole inside
    if used & set(spread_over):
        raise ValueError(
            f"vmap(spmd_axis_name={axis.spmd_name!r}) of a shard_map whose specs name {sorted(used & set(spread_over), key=str)}"
            " already: an axis splits the batch, or a dimension of its elements"
        )
    named = passes.axes_of(params["jaxpr"])
    if axis.name in named or not named.isdisjoint(spread_over):
        spread_over = ()  # a collective combines elements of the batch, or devices: each device computes the whole batch
    parts = math.prod(mesh.shape[n] for n in spread_over)
    if axis.size % parts:
        raise ValueError(
            f"vmap(spmd_axis_name={axis.spmd_name!r}): a batch of {axis.size} is to be cut into {parts} parts, which does"
            " not divide it"
        )
    varying = frozenset(spread_over) if params["check_vma"] else frozenset()
    own = axis._replace(size=axis.size // parts, split=split, varying=axis.varying | varying)
    with inside(params):
        program, out_dims = batch_jaxpr(params["jaxpr"], own, tuple(dims), bool(spread_over) or None)
        if varying:
            program = _equal_before(program, varying, tuple(dims))

    def with_batch(spec, d):
        if d is None:
            return spec
        entries = [*spec, *[None] * (d - len(spec))]
        return spec.update(insert(entries, d, spread_over or None))

    in_specs = map(with_batch, params["in_specs"], dims)
    return _bind(params, program, args, in_specs, map(with_batch, params["out_specs"], out_dims)), out_dims
