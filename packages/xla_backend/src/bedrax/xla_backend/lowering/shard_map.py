"""StableHLO of `shard_map`: a part of the module that every device runs on its own blocks.

The operands are annotated with their shardings and converted to blocks, and the results back. In between, the
partitioner does not change the mapped axes. A device reads its index along an axis from an operand: the
indices of all devices, split over the axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax.core.effects import ordered_effects
from bedrax.core.passes import all_equations
from bedrax.core.tables import named_axes
from bedrax.lax import element_types
from bedrax.lax.primitives.collectives import axis_index_p, ragged_all_to_all_p
from bedrax.parallel.primitives import in_blocks, inside, shard_map_p
from bedrax.parallel.specs import PartitionSpec, axes_of
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.build import Block
from bedrax.xla_backend.lowering.partitioner import annotated, split, target_of
from bedrax.xla_backend.lowering.program import LoweringContext
from bedrax.xla_backend.lowering.types import ir, type_of
from bedrax.xla_backend.tables import lowering_rules


def _annotated(ctx, v: Any, target: str, sharding: Any, result: Any, open_dims: Sequence[int]) -> Any:
    """`v` through a custom call of the partitioner, which may split the dimensions `open_dims` further."""
    return ctx.emit(
        "stablehlo.custom_call",
        (v,),
        result,
        call_target_name=target,
        backend_config=f"unspecified_dims=[{','.join(map(str, open_dims))}]" if open_dims else "",
        **{"mhlo.sharding": str(sharding)},
    )


@lowering_rules.rule(shard_map_p)
def _shard_map(ctx, *operands, jaxpr, mesh, in_specs, out_specs, manual, check_vma):
    if ctx.program.num_partitions == 1:  # one device computes the parts of all
        params = dict(
            jaxpr=jaxpr, mesh=mesh, in_specs=in_specs, out_specs=out_specs, manual=manual, check_vma=check_vma
        )
        types = [element_types.base_aval(a.update(sharding=None)) for a in ctx.avals_in]
        return ctx.lower_fun(in_blocks, *operands, avals=types, **params)
    numbered = sorted(_numbered(jaxpr) & set(manual), key=str)
    ordered = sorted((e for e in jaxpr.effects if e in ordered_effects), key=str)

    def body(block, arguments):
        with inside(dict(mesh=mesh, manual=manual, check_vma=check_vma)):
            return ctx.inline_in(block, jaxpr, arguments)

    types_in, types_out = ([type_of(a) for a in avals] for avals in (jaxpr.in_avals, jaxpr.out_avals))
    return on_blocks(ctx, operands, in_specs, types_in, out_specs, types_out, mesh, manual, numbered, body, ordered)


def on_blocks(
    ctx: LoweringContext,
    operands: Sequence[Any],
    in_specs: Sequence[PartitionSpec],
    block_types: Sequence[Any],
    out_specs: Sequence[PartitionSpec],
    out_types: Sequence[Any],
    mesh: Any,
    manual: tuple[str, ...],
    numbered: Sequence[str],
    body: Callable[..., Any],
    ordered: Sequence[Any] = (),
) -> list[Any]:
    """The results of a part of a module that every device runs on its own blocks.

    Args:
      block_types, out_types: the types of the blocks of operands and results.
      manual: the axes of the mesh that are mapped here.
      numbered: those along which `body` uses the index of the device.
      body: ``(block, arguments) -> results``; inside, ``program.manual`` is the part.
      ordered: the ordered effects of the part.
    """
    program = ctx.program
    outer = program.manual
    around = () if outer is None else outer.manual
    within = (*around, *manual)
    # Each device gets its index from these.
    every = [ctx.constant(np.arange(mesh.shape[n], dtype=np.int32)) for n in numbered]
    known = {} if outer is None else outer.numbers
    region = Region(
        [*operands, *every],
        (*in_specs, *map(PartitionSpec, numbered)),
        [*block_types, *[ctx.tensor_type((1,), np.dtype(np.int32))] * len(numbered)],
        out_specs,
        list(out_types),
        ctx.avals_out,
        mesh,
        around,
        manual,
    )
    count = len(operands)

    def part(block, blocks, handed):
        own = LoweringContext(block, ctx.prim, [], [], {}, ctx.location)
        found = {n: own.reshape(v, ()) for n, v in zip(numbered, blocks[count:], strict=True)}
        program.manual = Manual(mesh, within, {**dict(zip(known, handed, strict=True)), **found})
        try:
            return body(block, blocks[:count])
        finally:
            program.manual = outer

    write = _manual_computation if program.partitioner.shardy else _annotated_function
    return write(ctx, region, part, list(known.values()), list(ordered))


class Region(NamedTuple):
    """A program on blocks.

    Attributes:
      operands, in_specs, block_types: the inputs: whole arrays, their specs, the types of their blocks.
      out_specs, out_types, avals_out: the outputs: the specs of the blocks, their types, the types of the whole arrays.
      mesh, around, manual: the mesh, the axes that were mapped outside, and those that are mapped now.
    """

    operands: list[Any]
    in_specs: Sequence[PartitionSpec]
    block_types: list[Any]
    out_specs: Sequence[PartitionSpec]
    out_types: list[Any]
    avals_out: list[Any]
    mesh: Any
    around: tuple[str, ...]
    manual: tuple[str, ...]

    @property
    def free(self) -> bool:
        """Whether the partitioner manages some axes."""
        return len(self.around) + len(self.manual) < len(self.mesh.axis_names)


def _annotated_function(ctx, region: Region, body: Callable, handed: list, ordered: list) -> list:
    """The form for GSPMD: annotations convert arrays to blocks and back."""
    program, mesh = ctx.program, region.mesh
    within = (*region.around, *region.manual)

    def convert(v, target, before, after, result):
        dims = range(v.type.rank) if region.free else ()
        v = _annotated(ctx, v, "Sharding", before, v.type, dims)
        return _annotated(ctx, v, target, after, result, dims)

    blocks = []
    for v, spec, t in zip(region.operands, region.in_specs, region.block_types, strict=True):
        whole, block = split(mesh, spec, v.type.rank, region.around), split(mesh, _NOTHING, v.type.rank, within)
        blocks.append(convert(v, "SPMDFullToShardShape", whole, block, t))
    if ordered:
        before = len(ctx.block.ip.block.operations)
        out = body(ctx.block, blocks, handed)  # the tokens are those of the surrounding function
        if region.free:
            out = _annotate(list(ctx.block.ip.block.operations)[before:], out, mesh, within)
    else:
        # A separate function. XLA merges equal operations within one function. An operation both inside and outside
        # would be annotated both as a block and as a whole, and the partitioner would abort.
        symbol = program.unique_symbol("shard_map_body")
        given = [*blocks, *handed]
        count = len(blocks)

        def inner(block, arguments):
            out = body(block, arguments[:count], arguments[count:])
            return _annotate(list(block.ip.block.operations), out, mesh, within) if region.free else out

        program.function(symbol, [v.type for v in given], region.out_types, inner)
        out = ctx.emit("func.call", given, region.out_types, callee=ctx.symbol(symbol))
    results = []
    for v, spec, a in zip(out, region.out_specs, region.avals_out, strict=True):
        block, whole = split(mesh, _NOTHING, v.type.rank, within), split(mesh, spec, v.type.rank, region.around)
        results.append(convert(v, "SPMDShardToFullShape", block, whole, type_of(a)))
    return results


_WITH_BLOCKS = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
_MARKS = ("Sharding", "SPMDFullToShardShape")
_ABORTING = ("stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.fft", "stablehlo.rng_bit_generator")


def _annotate(ops: Sequence[Any], out: Sequence[Any], mesh: Any, within: tuple[str, ...]) -> list[Any]:
    """Annotate every value of a part that is mapped over some axes as a block; the partitioner decides the other axes.

    Where GSPMD does not find this by itself (counters of loops), it aborts the process.

    Returns:
      `out`, with the annotated values.

    Raises:
      NotImplementedError: GSPMD aborts at an operation, however it is annotated.
    """
    found: dict[Any, Any] = {}

    def annotate(v, point):
        if isinstance(v.type, ir.RankedTensorType) and not _is_annotated(v):
            rank = v.type.rank
            new = annotated(point, v, "Sharding", split(mesh, _NOTHING, rank, within), v.type, range(rank))
            v.replace_all_uses_except(new, new.owner.operation)
            found[v] = new

    for op, following in itertools.zip_longest(ops, ops[1:]):
        if op.name in _ABORTING:
            raise NotImplementedError(
                f"shard_map over {within}, some axes of a mesh over {mesh.axis_names}: GSPMD does not compile"
                f" {op.name.removeprefix('stablehlo.')} there. Use Shardy, the default: set jax_use_shardy_partitioner to True. Or"
                " map all axes, with axis_names=set(mesh.axis_names)"
            )
        for block in [b for region in op.regions for b in region.blocks] if op.name in _WITH_BLOCKS else ():
            inside = list(block.operations)
            for v in block.arguments:
                annotate(v, ir.InsertionPoint(inside[0]))
            _annotate(inside, (), mesh, within)
        if target_of(op) not in _MARKS:
            point = ir.InsertionPoint(op.operation.block) if following is None else ir.InsertionPoint(following)
            for v in op.results:
                annotate(v, point)
    return [found.get(v, v) for v in out]


def _is_annotated(v: Any) -> bool:
    uses = [use.owner for use in v.uses]
    return len(uses) == 1 and target_of(uses[0]) == "Sharding"


def _manual_computation(ctx, region: Region, body: Callable, handed: list, ordered: list) -> list:
    """The form for Shardy, an operation of its dialect. Tokens of ordered effects pass like arrays of rank 0."""
    count, program = len(ordered), ctx.program

    def shardings(specs, ranks):
        texts = ["<@mesh, []>"] * count
        for spec, rank in zip(specs, ranks, strict=True):
            entries = [axes_of(e) for e in spec] + [()] * (rank - len(spec))
            open_ = ["?"] if region.free else []
            dims = ("{" + ", ".join([*map(program.partitioner.axis, e), *open_]) + "}" for e in entries)
            whole = [n for n in region.manual if not any(n in e for e in entries)] if region.free else []
            fixed = f", replicated={{{', '.join(map(program.partitioner.axis, whole))}}}" if whole else ""
            texts.append(f"<@mesh, [{', '.join(dims)}]{fixed}>")
        return ctx.parse(f"#sdy.sharding_per_value<[{', '.join(texts)}]>")

    axes = ", ".join(map(program.partitioner.axis, region.manual))
    attributes = dict(
        in_shardings=shardings(region.in_specs, [v.type.rank for v in region.operands]),
        out_shardings=shardings(region.out_specs, [t.rank for t in region.out_types]),
        manual_axes=ctx.parse(f"#sdy<manual_axes{{{axes}}}>"),
    )
    tokens = [types.token_type() for _ in range(count)]
    results = tokens + [type_of(a) for a in region.avals_out]
    given = [*map(ctx.token, ordered), *region.operands]
    op = ir.Operation.create("sdy.manual_computation", results, given, attributes, None, 1, ctx.location, ctx.block.ip)
    taken = tokens + region.block_types
    place = op.regions[0].blocks.append(*taken, arg_locs=[types.unknown] * len(taken))
    inner = Block(ctx.program, ir.InsertionPoint(place), dict(zip(ordered, place.arguments)))
    out = body(inner, list(place.arguments)[count:], handed)
    out = [*(inner.tokens[e] for e in ordered), *out]
    ir.Operation.create("sdy.return", operands=out, loc=ctx.location, ip=inner.ip)
    ctx.block.tokens.update(zip(ordered, op.results))
    return list(op.results)[count:]


_NOTHING = PartitionSpec()


def _numbered(jaxpr) -> set:
    """The axes whose device index the program, or a composition in it, uses."""
    return {
        n
        for e in all_equations(jaxpr)
        if e.primitive in (axis_index_p, ragged_all_to_all_p)
        for n in named_axes[e.primitive](e.params)
    }


class Manual:
    """The data for lowering collectives.

    Attributes:
      mesh: the mesh of the devices.
      manual: the axes that are mapped.
      numbers: axis -> this device's index along it.
    """

    __slots__ = ("manual", "mesh", "numbers")

    def __init__(self, mesh: Any, manual: tuple[str, ...], numbers: dict[str, Any]) -> None:
        self.mesh: Any = mesh
        self.manual: tuple[str, ...] = manual
        self.numbers: dict[str, Any] = numbers

    @property
    def free(self) -> tuple[str, ...]:
        """The axes that are not mapped."""
        return tuple(n for n in self.mesh.axis_names if n not in self.manual)

    def groups(self, names: Sequence[str], chosen: Sequence[Sequence[int]] | None = None) -> np.ndarray:
        """The numbers of the devices of each group: a row per group, ordered along the axes `names`, and filled with -1.

        Args:
          chosen: groups of indices along the axes, if not all devices form one group.
        """
        ids = np.arange(self.mesh.size).reshape(self.mesh.axis_sizes)
        places = [self.mesh.axis_names.index(n) for n in names]
        rows = np.moveaxis(ids, places, range(-len(places), 0)).reshape(
            -1, int(np.prod([ids.shape[i] for i in places]))
        )
        if chosen is None:
            return rows
        longest = max(map(len, chosen))
        filled = lambda group: [*group, *[-1] * (longest - len(group))]
        return np.array([filled(row[list(group)]) for row in rows for group in chosen])
