"""Values of dimension variables from the sizes of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core import dims
from bedrax.core.codes import coded, page_of
from bedrax.shape_poly.expressions import SymbolicDim, raw
from bedrax.shape_poly.specs import scope_of
from bedrax.shape_poly.terms import add_to, terms_of

Assertion = Callable[[str, Any, Any, str, Sequence[Any]], None]


class _Equation:
    """`dim == value`; `where` names the dimension with this size."""

    __slots__ = ("dim", "solved", "value", "where")

    def __init__(self, dim: SymbolicDim, value: int, where: str) -> None:
        self.dim, self.value, self.where = dim, value, where
        self.solved = False  # whether a variable was computed from it, so that it holds


def solve_dims(
    symbolic_shapes: Sequence[Sequence[Any]],
    size: Callable[[int, int], Any],
    *,
    assertion: Assertion | None = None,
    names: Sequence[str] | None = None,
    actual: str | None = None,
) -> dict[str, Any]:
    """Values of all dimension variables in `symbolic_shapes`.

    Each variable must follow from an equation that is linear in it once the variables before it are known,
    or from linear equations with constant coefficients.

    Args:
      symbolic_shapes: a shape per argument.
      size: ``size(argument, axis)`` is the actual size: an int, or a value with arithmetic.
      assertion: called for a check that needs values, because sizes are not ints, as
        ``assertion(relation, x, y, message, values)``: it should raise `message` (with ``values[0]`` for ``{0}``,
        and so on) unless `x` and `y` are in the relation (``"=="`` or ``">="``). None: no such checks.
      names: the names of arguments in messages. Default: ``args[0]`` and so on.
      actual: the actual shapes, for messages.

    Raises:
      ValueError: a variable is not determined, or the sizes do not fit the shapes.
    """
    names = [f"args[{i}]" for i in range(len(symbolic_shapes))] if names is None else names
    specs = ", ".join(
        f"{name}.shape = ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        for name, shape in zip(names, symbolic_shapes, strict=True)
        if not dims.is_constant_shape(shape)
    )
    check = _Checker(f"Using the following polymorphic shapes specifications: {specs}.", assertion)
    scope = scope_of(symbolic_shapes)
    equations = []
    for i, shape in enumerate(symbolic_shapes):
        for axis, d in enumerate(shape):
            where, value = f"{names[i]}.shape[{axis}]", size(i, axis)
            if isinstance(d, SymbolicDim):
                equations.append(_Equation(d, value, where))
            elif type(value) is not int or value != d:
                problem = f"Expected the constant {d} for dimension {where}, found {{0}}."
                check("==", value, d, problem, [value])
    if scope is not None:
        _solve_all(scope, equations, check)
        _check_equations(equations, check, symbolic_shapes, actual)
        _check_constraints(scope, check)
    return check.env


def _solve_all(scope, equations: Sequence[_Equation], check: _Checker) -> None:
    """Compute every variable in the equations.

    Variables that equalities replaced in the shapes are not needed. They are checked later.
    """
    env = check.env
    wanted = set().union(*(e.dim.variables for e in equations))
    left = list(equations)
    while left:
        progress = [e for e in left if _solve(e, env, check)]
        left = [e for e in left if e not in progress]  # solved, or without unknowns: these are checked later
        if not wanted - env.keys():
            break
        if not progress:
            more = _eliminate(scope, left, env)
            if more is None:
                unknown = ", ".join(map(repr, sorted(wanted - env.keys())))
                open_ones = ", ".join(f"'{e.dim}' for dimension size {e.where}" for e in left)
                text = (
                    f"Cannot solve for values of dimension variables {{{unknown}}}. We can only solve linear uni-variate"
                    " constraints, and systems of linear ones with constant coefficients."
                    f" {check.using} Unprocessed specifications: {open_ones}."
                )
                raise ValueError(coded("BX-DIM-UNSOLVABLE", text))
            left.append(more)


def _check_equations(equations, check: _Checker, symbolic_shapes, actual: str | None) -> None:
    """Check the equations from which no variable was computed."""
    env = check.env
    for e in equations:
        if e.solved:
            continue
        found = e.dim.evaluate(env)
        several = ""
        if len(e.dim.terms) == 1 and str(e.dim) in env:
            written = tuple([", ".join(map(str, shape)) for shape in symbolic_shapes])
            several = (
                f" That is, polymorphic shape {written} has dimension variable '{e.dim}' corresponding to multiple values"
                " {{{1}, {0}}}" + (f", for argument shapes {actual}." if actual else ".")
            )
        check(
            "==",
            e.value,
            found,
            f"Found inconsistency between dimension size {e.where} (= {{0}}) and the specification '{e.dim}' (= {{1}}).{several}",
            [e.value, found],
        )


def _check_constraints(scope, check: _Checker) -> None:
    """Check the constraints of the scope, as far as their variables are known."""
    env = check.env
    for text, x, relation, y in scope.checks:
        needed = set().union(*(d.variables for d in (x, y) if type(d) is not int))
        if needed <= env.keys():
            low, high = (x, y) if relation == "<=" else (y, x)
            difference = raw(scope, add_to(dict(terms_of(high)), terms_of(low), -1))
            if type(difference) is int:
                continue
            value = difference.evaluate(env)
            kind = ("equal to", "==") if relation == "==" else ("greater or equal to", ">=")
            message = (
                f"the symbolic shape constraint {text}. Expected '{difference}' to be {kind[0]} 0, but found {{0}}."
            )
            check(kind[1], value, 0, message, [value], "Input shapes do not match ")


class _Checker:
    """Checks relations of ints now, and lets the program check the others at run time."""

    def __init__(self, using: str, assertion: Assertion | None) -> None:
        self.using = using
        self.assertion = assertion
        self.env: dict[str, Any] = {}
        self.obtained: list[tuple[str, str, str, Any]] = []

    def __call__(
        self,
        relation: str,
        x: Any,
        y: Any,
        problem: str,
        values: Sequence[Any],
        start: str = "Input shapes do not match the polymorphic shapes specification. ",
    ) -> None:
        known = type(x) is int and type(y) is int
        if known and (x == y if relation == "==" else x >= y):
            return
        if not known and self.assertion is None:
            return
        values = list(values)
        obtained = []
        for name, spec, where, value in self.obtained:
            obtained.append(
                f"'{name}' = {{{len(values)}}} from specification '{spec}' for dimension {where} (= {{{len(values) + 1}}})"
            )
            values += [self.env[name], value]
        message = f"{start}{problem} {self.using} Obtained dimension variables: {', '.join(obtained) or 'none'}."
        if known:
            raise ValueError(coded("BX-DIM-SHAPE", message.format(*values)))
        plain = message.replace("{{", "").replace("}}", "")  # programs use braces for values only
        self.assertion(relation, x, y, f"{plain}\n{page_of('BX-DIM-SHAPE')}", values)

    def found(self, name: str, value: Any, e: _Equation) -> None:
        """Record the value of a variable; it must be at least 1."""
        self.env[name] = value
        self.obtained.append((name, str(e.dim), e.where, e.value))
        self(
            ">=",
            value,
            1,
            f"Expected value >= 1 for dimension variable '{name}'. Dimension variable {name} must have integer value"
            f" >= 1. Found value {{0}} when solving {e.dim} == {{1}}.",
            [value, e.value],
        )


def _solve(e: _Equation, env: dict[str, Any], check: _Checker) -> bool:
    """Solve an equation with one unknown variable, which is linear. Returns whether the equation is finished."""
    unknown = e.dim.variables - env.keys()
    if not unknown:
        return True
    if len(unknown) > 1:
        return False
    (name,) = unknown
    factor: dict[Any, Any] = {}
    rest: dict[Any, Any] = {}
    for m, c in e.dim.terms:
        powers = dict(m)
        if name in powers:
            if powers.pop(name) != 1:
                return False
            m = tuple(powers.items())
            factor[m] = c
        else:
            rest[m] = c
        for atom in powers:
            if type(atom) is not str and name in _variables_of_atom(atom):
                return False
    scope = e.dim.scope
    slope, offset = (_value(raw(scope, part), env) for part in (factor, rest))
    value = e.value - offset if type(offset) is not int or offset else e.value
    if type(slope) is int and slope < 0:
        slope, value = -slope, -value
    if type(slope) is int and slope == 0:
        return False
    if type(slope) is not int or slope != 1:
        if type(slope) is not int or slope > 0:
            check(
                ">=",
                slope,
                1,
                f"Expected a positive divisor when computing the value of '{name}', found {{0}}.",
                [slope],
            )
        remainder = value % slope
        check("==", remainder, 0, f"Division had remainder {{0}} when computing the value of '{name}'.", [remainder])
        value = value // slope
    check.found(name, value, e)
    e.solved = True
    return True


def _variables_of_atom(atom) -> set[str]:
    return set().union(*(d.variables for d in (atom.x, atom.y) if type(d) is not int))


def _value(x, env):
    return x if type(x) is int else x.evaluate(env)


def _eliminate(scope, equations: list[_Equation], env) -> _Equation | None:
    """A new equation with one unknown, by elimination among those that are linear with constant coefficients."""
    rows = []
    for e in equations:
        row: dict[str, int] = {}
        known: dict[Any, Any] = {}
        for m, c in e.dim.terms:
            if not m or set().union(*(_names(a) for a, _ in m)) <= env.keys():
                known[m] = c
            elif len(m) == 1 and type(m[0][0]) is str and m[0][1] == 1:
                row[m[0][0]] = c
            else:
                break
        else:
            offset = _value(raw(scope, known), env)
            rows.append((row, e.value - offset, e))
    reduced: list[Any] = []
    for row, value, e in rows:
        for pivot, prow, pvalue in reduced:
            if row.get(pivot):
                a, b = prow[pivot], row[pivot]
                row = add_to({k: v * a for k, v in row.items()}, prow.items(), -b)
                value = value * a - pvalue * b
        if len(row) == 1:
            ((name, c),) = row.items()
            return _Equation(raw(scope, {((name, 1),): c}), value, e.where)
        if row:
            reduced.append((next(iter(row)), row, value))
    return None


def _names(atom) -> set[str]:
    return {atom} if type(atom) is str else _variables_of_atom(atom)
