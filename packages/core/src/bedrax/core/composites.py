"""Named composites: programs that compute a known function.

A function of the library that is decorated with ``one_program(composite="nn.softmax")`` is recorded as a `jit` equation.
The program of the equation keeps the name and the arguments of the function. A backend that has an operation for the
function finds it by this name. All others use the program.

A transformation makes another program, which has no name. Batching keeps the name if only the first argument is mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bedrax import pytree
from bedrax.core.ir import Jaxpr, Var
from bedrax.core.staging import StagedTracer, StagingTrace
from bedrax.core.tracing import current


class Composite(NamedTuple):
    """The function that a program computes.

    Attributes:
      name: of the function, such as ``"nn.softmax"``.
      args, kwargs: the arguments of the call. Arrays are the variables of the program's arguments.
      mapped: pairs (axis of the first argument, axis of the result): the axes over which the function is mapped, the
        innermost first.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mapped: tuple[tuple[int, int], ...] = ()

    def with_values(self, program: Jaxpr, values: Sequence[Any]) -> Composite:
        """Return the composite with values in place of the variables of the program's arguments."""
        of = dict(zip(program.invars, values, strict=True))
        args, kwargs = pytree.tree_map(lambda x: of[x] if isinstance(x, Var) else x, (self.args, self.kwargs))
        return self._replace(args=args, kwargs=kwargs)


def name_program(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Give a name to the program that is being recorded. It applies the function of this name to the arguments.

    The equations have no lines: users' calls in different lines share the program. The equation of a call has its line.
    """
    trace = current.trace
    if isinstance(trace, StagingTrace):
        mine = lambda x: x.variable if isinstance(x, StagedTracer) and x._trace is trace else x
        trace.places = False
        trace.facts[Composite] = Composite(name, *pytree.tree_map(mine, (args, kwargs)))


def composite_of(program: Jaxpr) -> Composite | None:
    """Return the function that a program computes, if it has a name."""
    return program.cache.get(Composite)


def name_batched(program: Jaxpr, batched: Jaxpr, dims: Sequence[int | None], out_dims: Sequence[int | None]) -> None:
    """Give the name of a program to the batched program, if only the first argument of the function is mapped.

    Args:
      dims, out_dims: the mapped axes of the program's arguments and results, None for those that are not mapped.
    """
    known = composite_of(program)
    if known is None or not known.args or len(out_dims) != 1 or out_dims[0] is None:
        return
    mapped = [v for v, d in zip(program.invars, dims, strict=True) if d is not None]
    if mapped == [known.args[0]]:
        pair = (dims[program.invars.index(mapped[0])], out_dims[0])
        named = known.with_values(program, batched.invars)
        batched.cache[Composite] = named._replace(mapped=(*known.mapped, pair))
