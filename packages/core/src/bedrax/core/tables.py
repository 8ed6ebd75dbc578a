"""The columns of the kernel: properties of a primitive that it looks up. The module of a primitive has its rules.

`programs` lists the programs that an equation holds and how they are applied. The type checker, dead code
elimination, effects, inlining and walks over programs use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bedrax.core.columns import Column
from bedrax.core.effects import Effects, moved

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


class Use(NamedTuple):
    """The application of a program that an equation holds.

    Attributes:
      program: a `Jaxpr`.
      operands: for each argument of the program, the number of the equation's operand; None for one that is made inside
        (a scalar that a reduction combines). `operands` is None if this is unknown.
      results: for each result of the program, the number of the equation's result, or None. May be None, too.
      slices: the number of last arguments that are slices of their operands along the first axis.
      stacks: the number of last results that are stacked to the equation's along a new first axis.
      rounds: length of these axes.
      axes: pairs (name, size) of axes that are in scope in the program.
      carries: pairs (operand, result) of the equation: the result of one round is the argument of the next.
    """

    program: Any
    operands: tuple[int | None, ...] | None = None
    results: tuple[int | None, ...] | None = None
    slices: int = 0
    stacks: int = 0
    rounds: Any = None
    carries: tuple[tuple[int, int], ...] = ()
    axes: tuple[tuple[Any, int], ...] = ()


def calls(program: Jaxpr) -> Use:
    """Return the use of a program that maps the equation's operands to its results."""
    return Use(program, tuple(range(len(program.invars))), tuple(range(len(program.outvars))))


# ---- the columns

shape_rules: Final = Column(
    "types",
    signature="rule(*avals, **params) -> aval, or list of them",
    purpose="the types of its results, which tracing needs",
    interface=(
        "",
        "primitive.def_abstract_eval(rule)",
        "rule(*types, **params) -> ShapedArray(shape, dtype), or a list of them",
    ),
)

eval_rules: Final = Column("evaluation in place of the executor", signature="rule(*arrays, **params) -> array, or list")

print_rules: Final = Column("printing", signature="rule(params) -> params to print")


def nothing(params: dict[str, Any]) -> tuple[Any, ...]:
    """The rule of a primitive without programs, named axes or places: an empty tuple."""
    return ()


def _found_programs(params) -> list[Use]:
    """The rule of a library's primitive without a declaration: programs are found in its params."""
    values = (v for p in params.values() for v in (p if isinstance(p, tuple | list) else (p,)))
    # A program has `eqns`. This module is below the one that defines the class.
    return [Use(v) for v in values if hasattr(v, "eqns") and hasattr(v, "constvars")]


programs: Final = Column(
    "programs", signature="rule(params) -> [Use, ...]", otherwise=lambda p: nothing if p.family else _found_programs
)

with_programs: Final = Column(
    "params with other programs", signature="rule(params, programs, operands, results) -> params: of `Wire`"
)


# The kinds of operands and results, in their order. An INDEX is an operand that no program takes; it selects the
# program that runs. A CARRY is the argument of one round and the result of the round before. Each round takes or gives
# one element of a ROW along the first axis. Any other is a CONSTANT.
INDEX, CONSTANT, CARRY, ROW = range(4)


class Wire(NamedTuple):
    """An operand or a result of an operation that holds programs.

    Attributes:
      kind: INDEX, CONSTANT, CARRY or ROW.
      source: the source of its value: ``("operand", i)`` or ``("result", i)`` of the old operation, or a position among
        values of another name.
      readers: the numbers of the programs that take an operand.
    """

    kind: int
    source: tuple[str, int]
    readers: tuple[int, ...] = ()


def wires(uses: list[Use], operands: int, results: int) -> tuple[list[Wire], list[Wire]]:
    """Return the wires of the operands and results of an operation, given their numbers and its uses of programs."""
    of_operands, of_results = [INDEX] * operands, [CONSTANT] * results
    readers: list[tuple[int, ...]] = [()] * operands
    for n, use in enumerate(uses):
        edge = len(use.operands) - use.slices
        for k, o in enumerate(use.operands):
            if o is not None:
                readers[o] += (n,)
                of_operands[o] = ROW if k >= edge else max(of_operands[o], CONSTANT)
        if use.stacks:
            for r in use.results[-use.stacks :]:
                of_results[r] = ROW
        for o, r in use.carries:
            of_operands[o] = of_results[r] = CARRY
    ins = [Wire(kind, ("operand", o), readers[o]) for o, kind in enumerate(of_operands)]
    return ins, [Wire(kind, ("result", r)) for r, kind in enumerate(of_results)]


def count(wires: Sequence[Wire], kind: int, *readers: int) -> int:
    """Return the number of operands or results of a kind; with `readers`, of those that these programs take."""
    found = 0
    for wire in wires:
        found += wire.kind == kind and (not readers or wire.readers == readers)
    return found


# For `bedrax.core.represented`.
represent_rules: Final = Column(
    "operations on values of libraries' types", signature="rule(*values, **params) -> values"
)
identities: Final[set[Any]] = set()  # primitives that return their operands, of any types

line_rules: Final = Column("printing as a line", signature="rule(eqn, name of a variable or literal) -> text")


def pure(*avals: Any, **params: Any) -> frozenset[Any]:
    """The rule of a primitive without effects."""
    return frozenset()


def _at_operands(use: Use) -> Effects:
    """Return the effects of a use of a program. Effects on its arguments become effects on the equation's operands."""
    program, operands = use.program, use.operands
    if not program.effects or operands is None:
        return program.effects
    constants = len(program.constvars)
    return moved(program.effects, lambda n: operands[n - constants] if n >= constants else None)


def _effects_of_programs(prim) -> Callable:
    """Return the effects of a primitive without a rule: those of the programs it holds."""
    uses = programs.get(prim)
    if not programs.states(prim):
        return pure

    def rule(*avals, **params):
        return frozenset().union(*(_at_operands(use) for use in uses(params)))

    return rule


effect_rules: Final = Column(
    "effects", signature="rule(*avals, **params) -> set of effects", otherwise=_effects_of_programs
)

named_axes: Final = Column(
    "named axes", signature="rule(params) -> tuple of axis names", otherwise=lambda prim: nothing
)

device_rules: Final = Column("devices", signature="rule(params) -> tuple of places", otherwise=lambda prim: nothing)


def _varying(prim) -> Callable:
    """The default rule: results vary over the axes of all operands; results of programs as in the programs."""

    def together(axes, params):
        every = frozenset().union(*axes)
        return every, every

    def by_programs(axes, params):
        uses = programs[prim](params)
        if not uses or any(use.operands is None or None in use.operands for use in uses):
            return together(axes, params)
        # Every result depends on the operands that decide which program runs, or how often.
        given = {o for use in uses for o in use.operands}
        common = frozenset().union(*(a for o, a in enumerate(axes) if o not in given))
        found: dict[Any, Any] = {}
        for use in uses:
            for aval, result in zip(use.program.out_avals, use.results, strict=True):
                vma = getattr(aval, "vma", frozenset())
                if result is None:
                    common |= vma
                else:
                    found[result] = found.get(result, frozenset()) | vma
        return None, [found[r] | common for r in range(len(found))]

    return by_programs if programs.states(prim) else together


varying_rules: Final = Column(
    "varying axes",
    signature="rule(axes of each operand, params) -> (axes that operands are cast to, or None, axes of results)",
    otherwise=_varying,
)

# ---- facts about whole families, stated in the families' own files

# Modules whose primitives have shape rules that read only their arguments, and treat equal numbers alike. A primitive
# of a library may belong to the same family, and have another rule.
pure_shapes: set[str] = set()
families_on_bases: set[str] = {""}  # families whose rules take the bases of arrays of an extended dtype
