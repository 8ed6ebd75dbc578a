"""Taylor mode: a function of truncated power series.

A value is a list of coefficients ``c_0, ..., c_K`` of a path ``x(t) = sum c_k t^k``. Linear operations act
on each coefficient, bilinear ones convolve them (Cauchy's product), and division solves for them. Any other
operation needs no rule of its own: where ``y = f(x)``, the path of the derivative is
``y'(t) = df(x(t))[x'(t)]``. The operation's jvp rule computes it when it runs on series of order
``K - 1``; integrating the series of ``y'`` gives that of ``y``.

Source: Griewank and Walther, "Evaluating Derivatives" (2008), chapter 13.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax import pytree
from bedrax.autodiff.tables import Zero, instantiate, jvp_rules
from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.ir import run
from bedrax.core.tracing import Primitive, Trace, Tracer, current, entered, set_trace
from bedrax.core.typing import ArrayLike
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives import conversions, elementwise, indexing, special
from bedrax.lax.promotion import promote_pair

# Rules of libraries. They take precedence over the rule derived from the jvp rule:
# ``rule(primals, series, **params) -> (result, series)``, where a series is the list of a path's derivatives.
jet_rules: dict[Primitive, Callable[..., Any]] = {}

# Linear but for the fill value of a gather, and for rounding to integers. Their derivatives are without these.
_CONSTANTS: Final = frozenset((indexing.gather_p, conversions.convert_element_type_p))


class ZeroTerm:
    """A vanishing term of a series, as an argument of `jet` or a result of a rule; `zero_term` is one.

    Examples:

      >>> from jax.experimental.jet import ZeroTerm, jet, zero_term
      >>> isinstance(zero_term, ZeroTerm)
      True
      >>> _, terms = jet(lambda x: x ** 3, (2.,), ((1., zero_term, zero_term),))
      >>> print(*terms)
      12.0 12.0 6.0
    """


class ZeroSeries:
    """All terms of a constant path, in place of their list; `zero_series` is one.

    Examples:

      >>> from jax.experimental.jet import ZeroSeries, jet, zero_series
      >>> isinstance(zero_series, ZeroSeries)
      True
      >>> _, terms = jet(lambda x, y: x * y, (2., 3.), ((1., 0.), zero_series))
      >>> print(*terms)
      3.0 0.0
    """


zero_term: Final = ZeroTerm()
zero_series: Final = ZeroSeries()


class SeriesTracer(Tracer):
    """A path: `terms` are its coefficients, the first one is the value.

    Examples:

      >>> from jax.experimental import jet
      >>> def f(x):
      ...     print(type(x) is jet.JetTracer, *x.terms)
      ...     return x * x
      ...
      >>> value, terms = jet.jet(f, (3.,), ((1., 4.),))
      True 3.0 1.0 2.0
      >>> print(value, *terms)
      9.0 6.0 26.0
    """

    __slots__ = ("terms",)

    def __init__(self, trace: SeriesTrace, terms: list[Any]) -> None:
        self._trace = trace
        self.terms: list[Any] = terms

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self.terms[0])

    def concrete(self) -> Any:
        value = self.terms[0]
        return value.concrete() if isinstance(value, Tracer) else value


class SeriesTrace(Trace):
    """Runs operations on series of one order.

    Examples:

      >>> from jax.experimental import jet
      >>> paths = []
      >>> def f(x):
      ...     paths.append(x)
      ...     return jnp.sin(x)
      ...
      >>> _ = jet.jet(f, (3.,), ((1., 0., 0.),))
      >>> trace = paths[0]._trace
      >>> isinstance(trace, jet.JetTrace), trace.order, trace.alive
      (True, 3, False)
    """

    __slots__ = ("order",)
    sees_constants = False

    def __init__(self, parent: Trace, order: int) -> None:
        self.parent: Trace = parent
        self.alive = True
        self.order: int = order

    def terms_of(self, x: Any) -> list[Any] | None:
        """The coefficients of a path; None for a constant value."""
        return x.terms if type(x) is SeriesTracer and x._trace is self else None

    def wrap(self, terms: list[Any] | None, value: Any) -> Any:
        return value if terms is None else SeriesTracer(self, terms)

    def process(self, prim: Primitive, args: tuple[ArrayLike, ...], params: dict[str, Any]) -> Any:
        """Apply an operation to series: by the kind of its jvp row, or by its derivative (see above)."""
        series = [self.terms_of(x) for x in args]
        with set_trace(self.parent):
            if all(s is None for s in series):
                return self.parent.process(prim, args, params)
        if prim in jet_rules:
            with set_trace(self.parent):
                return self._by_rule(prim, args, series, params)
        kind = jvp_rules.kind(prim)
        if kind == "call":
            return run(params["jaxpr"], *args)
        if kind == "reverse only":  # expanded operation by operation
            return run(params["call_jaxpr"], *args)
        with set_trace(self.parent):
            if prim in _CONSTANTS:
                return self._up_to_a_constant(prim, args, series, params)
            if kind == "linear":
                return self._linear(prim, args, series, params)
            if kind == "bilinear":
                x, y = map(_padded, series[:2], args[:2])
                multiply = lambda x, y: prim.bind(x, y, *args[2:], **params)  # further operands are integers
                return SeriesTracer(self, _product(x, y, self.order, multiply))
            if prim is elementwise.div_p:
                return SeriesTracer(self, _quotient(*map(_padded, series, args), self.order))
        return self._by_derivative(prim, args, series, params)

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Pass a function of constant values to the parent; run the program of any other on series."""
        if any(self.terms_of(x) is not None for x in args):
            return super().call(prim, rule, args)
        with set_trace(self.parent):
            return self.parent.call(prim, rule, args)

    def _by_rule(self, prim, args, series, params):
        """The result of a library's rule, which takes and returns derivatives."""
        scales = [math.factorial(k) for k in range(1, self.order + 1)]
        paths = [s or [x, *(instantiate(Zero.of(x)) for _ in scales)] for s, x in zip(series, args, strict=True)]
        derivatives = [[_scaled(t, f) if _moves(t) else t for t, f in zip(p[1:], scales)] for p in paths]
        out, terms = jet_rules[prim]([p[0] for p in paths], derivatives, **params)

        def path(x, terms):
            if terms is zero_series:
                return x
            terms = [zeros_of(aval_of(x)) if t is zero_term else t for t in terms]
            return SeriesTracer(self, [x, *(_divided(t, f) for t, f in zip(terms, scales, strict=True))])

        return [path(*pair) for pair in zip(out, terms, strict=True)] if prim.multiple_results else path(out, terms)

    def _linear(self, prim, args, series, params):
        steps = []
        for k in range(self.order + 1):
            terms = [
                s[k] if s is not None else (x if k == 0 or not _moves(x) else zeros_of(aval_of(x)))
                for s, x in zip(series, args, strict=True)
            ]
            steps.append(prim.bind(*terms, **params))
        if not prim.multiple_results:
            return SeriesTracer(self, steps)
        return [SeriesTracer(self, list(column)) for column in zip(*steps, strict=True)]

    def _up_to_a_constant(self, prim, args, series, params):
        """A term of the result is the derivative applied to this term of the operand."""
        primals = [x if s is None else s[0] for s, x in zip(series, args, strict=True)]
        out, terms = None, []
        for k in range(1, self.order + 1):
            tangents = [Zero.of(x) if s is None else s[k] for s, x in zip(series, args, strict=True)]
            out, tangent = jvp_rules[prim](primals, tangents, **params)
            terms.append(tangent)
        return out if any(type(t) is Zero for t in terms) else SeriesTracer(self, [out, *terms])

    def _by_derivative(self, prim, args, series, params):
        """The series of ``y' = df(x)[x']``, one order lower, integrated."""
        inner = SeriesTrace(self.parent, self.order - 1)
        primals, tangents = [], []
        for s, x in zip(series, args, strict=True):
            if s is None:
                primals.append(x)
                tangents.append(Zero.of(x))
            elif inner.order == 0:
                primals.append(s[0])
                tangents.append(s[1])
            else:
                with set_trace(self.parent):
                    derivative = [s[1], *(_scaled(s[k], k) for k in range(2, self.order + 1))]
                primals.append(SeriesTracer(inner, s[:-1]))
                tangents.append(SeriesTracer(inner, derivative))
        with set_trace(self.parent) if inner.order == 0 else entered(inner):
            out, slope = jvp_rules[prim](primals, tangents, **params)

        def integrated(y, z):
            if type(z) is Zero:
                return y if inner.terms_of(y) is None else inner.terms_of(y)[0]
            terms = inner.terms_of(z) or [z, *(zeros_of(aval_of(z)) for _ in range(inner.order))]
            first = inner.terms_of(y)
            return SeriesTracer(
                self,
                [
                    y if first is None else first[0],
                    terms[0],
                    *(_divided(terms[k - 1], k) for k in range(2, self.order + 1)),
                ],
            )

        with set_trace(self.parent):
            if not prim.multiple_results:
                return integrated(out, slope)
            return [integrated(y, z) for y, z in zip(out, slope, strict=True)]


def _moves(x: Any) -> bool:
    """Whether a value could have a path (the selector of a `select` could not)."""
    return dtypes.is_inexact(aval_of(x).dtype)


def _padded(terms: list | None, value: Any) -> list:
    """Coefficients, None where they vanish."""
    return [value] if terms is None else terms


def _plus(x: Any, y: Any) -> Any:
    return y if x is None else elementwise.add_p.bind(x, y)


def _product(a: list, b: list, order: int, mul: Callable) -> list:
    out: list[Any] = []
    for k in range(order + 1):
        total = None
        for i in range(k + 1):
            if i < len(a) and k - i < len(b):
                total = _plus(total, mul(a[i], b[k - i]))
        out.append(total if total is not None else zeros_of(aval_of(out[0])))
    return out


def _quotient(a: list, b: list, order: int) -> list:
    """From ``a = q b``: ``q_k = (a_k - sum of q_i b_{k-i} over i < k) / b_0``."""
    q: list[Any] = []
    for k in range(order + 1):
        total = None
        for i in range(k):
            if k - i < len(b):
                total = _plus(total, elementwise.mul_p.bind(q[i], b[k - i]))
        if k < len(a):
            top = a[k] if total is None else elementwise.sub_p.bind(a[k], total)
        elif total is not None:
            top = elementwise.neg_p.bind(total)
        else:
            q.append(zeros_of(aval_of(q[0])))
            continue
        q.append(elementwise.div_p.bind(top, b[0]))
    return q


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else elementwise.mul_p.bind(x, aval_of(x).dtype.type(factor))


def _divided(x: Any, factor: float) -> Any:
    return x if factor == 1 else elementwise.div_p.bind(x, aval_of(x).dtype.type(factor))


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[Any, ...]:
    """Push truncated Taylor series through a function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: one entry per argument: where the paths start.
      series: one list per argument, of the higher terms of its path, each a pytree like the argument; all
        lists have the same length, the order.
      factorial_scaled: terms are derivatives of the paths (the coefficients times ``k!``), rather than the
        coefficients.

    Returns:
      ``(result, terms)``: where `result` has an array, `terms` has the list of the terms of its path.

    Raises:
      ValueError: `series` does not fit `primals`.
      NotImplementedError: an operation in `fun` has no derivative.

    Examples:

      >>> from jax.experimental.jet import jet
      >>> value, terms = jet(lambda x: x ** 3, (jnp.array(2.),), ((1., 0., 0.),))
      >>> value
      Array(8., dtype=float32, weak_type=True)
      >>> print(*terms)
      12.0 12.0 6.0
    """
    leaves, tree = pytree.tree_flatten(tuple(primals))
    series = _written_out(primals, series)
    columns = _checked_terms(leaves, tree, primals, series)
    order = len(columns)
    scales = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    if not order:
        out, out_tree = pytree.tree_flatten(fun(*primals))
        return pytree.tree_unflatten(out_tree, out), pytree.tree_unflatten(out_tree, [[] for _ in out])
    trace = SeriesTrace(current.trace, order)
    args = []
    for p, *terms in zip(leaves, *columns, strict=True):
        path = [p, *(_divided(t, f) for t, f in zip(terms, scales, strict=True))] if _moves(p) else None
        args.append(trace.wrap(path, p))
    with entered(trace):
        out, out_tree = pytree.tree_flatten(fun(*pytree.tree_unflatten(tree, args)))
    paths = [trace.terms_of(x) or [x] + [instantiate(Zero.of(x))] * order for x in out]
    terms_out = [[_scaled(t, f) if _moves(t) else t for t, f in zip(path[1:], scales, strict=True)] for path in paths]
    return pytree.tree_unflatten(out_tree, [path[0] for path in paths]), pytree.tree_unflatten(out_tree, terms_out)


def jet2(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, factorial_scaled: bool = False
) -> tuple[Any, ...]:
    """`jet` with other units: by default, terms are the coefficients of the paths and not their derivatives.

    Args:
      fun, primals, series: as in `jet`.
      factorial_scaled: True: terms are derivatives of the paths, ``k!`` times the coefficients.

    Returns:
      ``(result, terms)``, as `jet`.

    Examples:

      >>> from jax.experimental.jet import jet2
      >>> value, terms = jet2(lambda x: x ** 3, (jnp.array(2.),), ((1., 0., 0.),))
      >>> print(value, *terms)
      8.0 12.0 6.0 1.0
    """
    return jet(fun, primals, series, factorial_scaled=factorial_scaled)


def _written_out(primals: Sequence[Any], series: Sequence[Any]) -> list:
    """The series with arrays for zeros."""
    order = max((len(s) for s in series if s is not zero_series), default=0)
    zeros = lambda p: pytree.tree_map(lambda x: zeros_of(aval_of(x)), p)
    return (
        [
            [zeros(p)] * order if s is zero_series else [zeros(p) if t is zero_term else t for t in s]
            for p, s in zip(primals, series)
        ]
        if len(primals) == len(series)
        else list(series)
    )


# ---- rules of libraries


def fact(n: Any) -> Any:
    """n!, exact for a Python int; for arrays of integers or floats gamma(n + 1), elementwise, in floats.

    >>> fact(5)
    120
    """
    return (
        math.factorial(n)
        if isinstance(n, int)
        else elementwise.exp(special.lgamma(elementwise.add(*promote_pair("fact", n, 1.0))))
    )


def linear_prop(
    prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Sequence[Any]], **params: Any
) -> tuple[Any, ...]:
    """The result and its series for an operation that is linear in all of its operands together.

    Args:
      prim: the primitive of the operation.
      primals_in: the operands.
      series_in: per operand, the list of the terms of its path, equally many.
      params: the parameters of the operation.

    Returns:
      (result, list of terms); both are lists, one entry per result, if the primitive has several.

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.lax import neg_p
      >>> value, terms = jet.linear_prop(neg_p, [2.], [[1., 5.]])
      >>> print(value, *terms)
      -2.0 -1.0 -5.0
    """
    out = prim.bind(*primals_in, **params)
    terms = [prim.bind(*column, **params) for column in zip(*series_in, strict=True)]
    if prim.multiple_results:
        return out, [list(column) for column in zip(*terms, strict=True)]
    return out, terms


def zero_prop(
    prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Sequence[Any]], **params: Any
) -> tuple[Any, ...]:
    """Return the result, and `zero_series` as its series, for an operation whose derivative is zero.

    Args:
      prim: the primitive of the operation.
      primals_in: the operands.
      series_in: per operand, the list of the terms of its path. They do not change the result.
      params: the parameters of the operation.

    Returns:
      (result, `zero_series`); both are lists, one entry per result, if the primitive has several.

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.lax import floor_p
      >>> value, terms = jet.zero_prop(floor_p, [2.5], [[1., 5.]])
      >>> value, terms is jet.zero_series
      (Array(2., dtype=float32, ...), True)
    """
    out = prim.bind(*primals_in, **params)
    return out, [zero_series] * len(out) if prim.multiple_results else zero_series


def deriv_prop(
    prim: Primitive, deriv: Callable[..., Any], primals_in: Sequence[Any], series_in: Sequence[Sequence[Any]]
) -> tuple[Any, ...]:
    """The result and its series for a function of one operand, whose derivative is the function `deriv`.

    Terms are derivatives of the paths. Leibniz's rule for ``f'(x) x'`` gives those of the result.

    Args:
      prim: the primitive of the operation.
      deriv: ``x -> f'(x)``, elementwise, made of operations that `jet` supports.
      primals_in, series_in: lists with one entry, as for `linear_prop`.

    Returns:
      (result, list of terms).

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.lax import sin_p
      >>> value, terms = jet.deriv_prop(sin_p, jnp.cos, [0.], [[2., 0., 0.]])
      >>> print(value, *terms)
      0.0 2.0 0.0 -8.0
    """
    (x,), (terms,) = primals_in, series_in
    first, rest = jet(deriv, (x,), (terms[:-1],))
    slopes = [first, *rest]
    out = []
    for k in range(len(terms)):
        total = None
        for j in range(k + 1):
            product = elementwise.mul_p.bind(_scaled(slopes[k - j], math.comb(k, j)), terms[j])
            total = _plus(total, product)
        out.append(total)
    return prim.bind(x), out


def deflinear(prim: Primitive) -> None:
    """Register `linear_prop` as the rule of `jet` for a primitive.

    Examples:

      >>> from jax.experimental import jet
      >>> triple_p = jax.extend.core.Primitive("triple")
      >>> _ = triple_p.def_impl(lambda x: 3 * x)
      >>> jet.deflinear(triple_p)
      >>> value, terms = jet.jet(triple_p.bind, (2.,), ((1., 5.),))
      >>> print(value, *terms)
      6.0 3.0 15.0
    """
    jet_rules[prim] = functools.partial(linear_prop, prim)


def defzero(prim: Primitive) -> None:
    """Register `zero_prop` as the rule of `jet` for a primitive.

    Examples:

      >>> from jax.experimental import jet
      >>> down_p = jax.extend.core.Primitive("round_down")
      >>> _ = down_p.def_impl(jnp.floor)
      >>> jet.defzero(down_p)
      >>> value, terms = jet.jet(down_p.bind, (2.5,), ((1., 5.),))
      >>> print(value, *terms)
      2.0 0.0 0.0
    """
    jet_rules[prim] = functools.partial(zero_prop, prim)


def def_deriv(prim: Primitive, deriv: Callable[..., Any]) -> None:
    """Register the rule of `jet` for a primitive of one operand by its derivative.

    Args:
      prim: an elementwise primitive of one operand, without parameters.
      deriv: ``operand -> derivative``, elementwise, made of operations that `jet` supports.

    Examples:

      >>> from jax.experimental import jet
      >>> wave_p = jax.extend.core.Primitive("wave")
      >>> _ = wave_p.def_impl(jnp.sin)
      >>> jet.def_deriv(wave_p, jnp.cos)
      >>> value, terms = jet.jet(wave_p.bind, (0.,), ((1., 0., 0.),))
      >>> print(value, *terms)
      0.0 1.0 0.0 -1.0
    """
    jet_rules[prim] = functools.partial(deriv_prop, prim, deriv)


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Register ``comp(*operands, **kwargs)`` as the rule of `jet` for a primitive.

    `comp` does not get the parameters of the operation: its result must not depend on them.

    Args:
      prim: a primitive.
      comp: a function of the operands with the same results, made of operations that `jet` supports.
      kwargs: keyword arguments for each call of `comp`.

    Examples:

      >>> from jax.experimental import jet
      >>> cube_p = jax.extend.core.Primitive("cube_by_parts")
      >>> _ = cube_p.def_impl(lambda x: x ** 3)
      >>> jet.def_comp(cube_p, lambda x: x * x * x)
      >>> value, terms = jet.jet(cube_p.bind, (2.,), ((1., 0., 0.),))
      >>> print(value, *terms)
      8.0 12.0 12.0 6.0
    """
    jet_rules[prim] = lambda primals, series, **params: jet(functools.partial(comp, **kwargs), primals, series)


def _checked_terms(leaves: list, tree, primals, series) -> list[list]:
    """The leaves of the terms of each order."""
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals need as many lists of terms, got {len(series)}")
    orders = {len(terms) for terms in series}
    if len(orders) != 1:
        raise ValueError(f"jet: the terms of all arguments must be equally many, got {sorted(orders)}")
    columns = []
    for k in range(orders.pop()):
        terms, term_tree = pytree.tree_flatten(tuple(s[k] for s in series))
        if term_tree != tree:
            raise ValueError(f"jet: the terms of order {k + 1} have structure {term_tree}, but the primals have {tree}")
        for p, t in zip(leaves, terms, strict=True):
            if aval_of(p).shape != aval_of(t).shape:
                raise ValueError(f"jet: term {k + 1} has shape {aval_of(t).shape}, its primal {aval_of(p).shape}")
        columns.append(terms)
    return columns


__all__ = [
    "ZeroSeries",
    "ZeroTerm",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet2",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
    "zero_term",
]
