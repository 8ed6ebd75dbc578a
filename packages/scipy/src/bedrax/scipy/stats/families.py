"""Distributions from formulas of their standard form.

A distribution states the formulas that are known: the logarithm of its density and some distribution functions, for
location 0 and scale 1. `location_scale` and `discrete` make from them the functions of every `jax.scipy.stats` module:
they promote the arguments, shift and scale, give the values outside of the support, and derive the other functions
(``sf = 1 - cdf``, ``logcdf = log(cdf)``, ...). Floats narrower than float32 are computed in float32.

A formula is only ever evaluated inside the support: outside, it gets an inner point and its value is replaced, so that
derivatives there are zero and not NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.defining import REQUIRED, named, taking, with_example
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.scipy.defining import floats, widened

_WHAT = {
    "logpdf": "The logarithm of the density of {1} at `x`.",
    "pdf": "The density of {1} at `x`.",
    "logpmf": "The logarithm of the probability of `k` in {1}.",
    "pmf": "The probability of `k` in {1}.",
    "cdf": "The probability of a value up to `{0}` in {1}.",
    "logcdf": "The logarithm of the probability of a value up to `{0}` in {1}.",
    "sf": "The probability of a value above `{0}` in {1}.",
    "logsf": "The logarithm of the probability of a value above `{0}` in {1}.",
    "ppf": "The value of {1} with probability `{0}` below it.",
    "isf": "The value of {1} with probability `{0}` above it.",
}
# The values of a function below the support and above it.
_OUTSIDE = {
    "logpdf": (-jnp.inf, -jnp.inf),
    "pdf": (0, 0),
    "cdf": (0, 1),
    "logcdf": (-jnp.inf, 0),
    "sf": (1, 0),
    "logsf": (0, -jnp.inf),
}


def _exp(x):
    """`exp` that returns NaN for NaN. XLA for CPUs returns undefined values for an operand that is always NaN."""
    return jnp.where(jnp.isnan(x), jnp.nan, jnp.exp(x))


def log1p_of_square(x: Array, unit: ArrayLike = 1) -> Array:
    """``log1p(x * x / unit)``, also where the square overflows."""
    large = abs(x) > jnp.sqrt(unit) / jnp.finfo(x.dtype).eps
    near = jnp.where(large, 0, x)
    far = 2 * jnp.log(abs(jnp.where(large, x, 1))) - jnp.log(unit)
    return jnp.where(large, far, jnp.log1p(near * near / unit))


# The formulas of one function from another: the first that is stated is used.
_DERIVED: dict[str, tuple[tuple[str, Callable[..., Any]], ...]] = {
    "pdf": (("logpdf", _exp),),
    "cdf": (("logcdf", _exp), ("sf", lambda p: 1 - p), ("logsf", lambda p: -jnp.expm1(p))),
    "sf": (("logsf", _exp), ("cdf", lambda p: 1 - p), ("logcdf", lambda p: -jnp.expm1(p))),
    "logcdf": (("cdf", jnp.log), ("sf", lambda p: jnp.log1p(-p))),
    "logsf": (("sf", jnp.log), ("cdf", lambda p: jnp.log1p(-p))),
}


def _function(
    fun: Callable[..., Any], name: str, module: str, parameters: Mapping[str, Any], doc: str
) -> Callable[..., Any]:
    """`fun`, which takes all arguments by position, as a public function with these parameters and defaults."""
    fun.__name__ = fun.__qualname__ = name
    return named(taking(one_program(fun, everywhere=True), parameters), name, module, doc)


_PLACE = {"loc": "the shift of the distribution", "scale": "the unit of the distribution, positive"}


def _documentation(name: str, first: str, distribution: str, parameters: Mapping[str, str], example: str) -> str:
    given = "a probability, in [0, 1]" if name in ("ppf", "isf") else "a value of the distribution"
    outside = f" The result is NaN where `{first}` is not in [0, 1]." if name in ("ppf", "isf") else ""
    listed = "".join(f"  {n}: {meaning}.\n" for n, meaning in {first: given, **parameters}.items())
    text = (
        f"{_WHAT[name].format(first, distribution)}\n\nThe arguments are real arrays or scalars, broadcast against each"
        f" other.\nIntegers become floats.{outside}\n\nArgs:\n{listed}"
    )
    return with_example(text, example)


def _stated_or_derived(name: str, stated: dict[str, Callable]) -> Callable:
    if name in stated:
        return stated[name]
    for source, transform in _DERIVED[name]:
        if source in stated:
            return lambda *args, f=stated[source], g=transform: g(f(*args))
    raise KeyError(name)


def location_scale(
    module: str,
    distribution: str,
    examples: Mapping[str, str],
    *,
    parameters: Mapping[str, str] = MappingProxyType({}),
    support: Callable[..., Any] | None = None,
    scaled: bool = True,
    first: str | None = None,
    **stated: Callable[..., Any],
) -> list[Callable[..., Any]]:
    """The functions of a continuous distribution.

    Args:
      module: the ``__name__`` of the module.
      distribution: its name, for the documentation.
      examples: the functions to make, with the example of each.
      parameters: the shape parameters, which follow the first argument, with their meanings.
      support: ``support(*shape parameters) -> (low, high, an inner point)`` for location 0 and scale 1; None is the
        whole line.
      scaled: whether there are `loc` and `scale`.
      first: the name of the first argument of ``ppf`` and ``isf``, if not q.
      **stated: formulas by the name of the function, of the standardized variable and the shape parameters.

    Returns:
      The functions, in the order of `examples`.
    """
    places = {"loc": 0, "scale": 1} if scaled else {}
    tail = {**dict.fromkeys(parameters, REQUIRED), **places}
    meanings = {**parameters, **{n: _PLACE[n] for n in places}}
    count = len(parameters)

    def function(name: str) -> Callable:
        if name in ("ppf", "isf"):
            argument = first or "q"
            formula = stated.get(name) or (lambda q, *rest: stated["ppf"](1 - q, *rest))
            evaluate = _inverse(formula, count)
        else:
            argument, formula = "x", _stated_or_derived(name, stated)
            evaluate = _inside(name, formula, count, support, scaled)
        title = f"{distribution.split()[-1]}.{name}"
        return _function(
            lambda *args: widened(evaluate)(*floats(title, *args)),
            name,
            module,
            {argument: REQUIRED, **tail},
            _documentation(name, argument, distribution, meanings, examples[name]),
        )

    return [function(name) for name in examples]


def _inside(name: str, formula: Callable, count: int, support: Callable | None, scaled: bool) -> Callable:
    """A function of `x`, `count` shape parameters, location and scale, with the values outside of the support."""
    # A derived formula applies to values that are already right at the edges.
    below, above = _OUTSIDE[name]

    def evaluate(x, *rest):
        shape_values, scale = rest[:count], None
        z = x
        if scaled:
            loc, scale = rest[count:]
            z = (x - loc) / scale
        if support is None:
            out = formula(z, *shape_values)
        else:
            low, high, inner = support(*shape_values)
            # At the ends, logarithms of 0 have no derivative either.
            under = z <= low if name == "logcdf" else z < low
            over = z >= high if name == "logsf" else z > high
            out = formula(jnp.where(under | over, inner, z), *shape_values)
            out = jnp.where(under, below, jnp.where(over, above, out))
        if scale is None or name not in ("logpdf", "pdf"):
            return out
        return out - jnp.log(scale) if name == "logpdf" else out / scale

    return evaluate


def _inverse(formula: Callable, count: int) -> Callable:
    """A quantile function, NaN outside of [0, 1]."""

    def evaluate(q, *rest):
        loc, scale = rest[count:]
        outside = ~((q >= 0) & (q <= 1))
        out = formula(jnp.where(outside, 0.5, q), *rest[:count]) * scale + loc
        return jnp.where(outside, jnp.nan, out)

    return evaluate


def discrete(
    module: str,
    distribution: str,
    examples: Mapping[str, str],
    *,
    parameters: Mapping[str, str],
    **stated: Callable[..., Any],
) -> list[Callable[..., Any]]:
    """The functions of a distribution of integers; arguments as for `location_scale`.

    A formula gets ``k - loc`` and the parameters, and gives the values outside of the support itself. In `examples`,
    ``name:argument`` names the first argument, if not k, and ``!`` at the end leaves out `loc`.
    """

    def function(spec: str) -> Callable:
        name, _, argument = spec.partition(":")
        argument = argument or "k"
        located = not argument.endswith("!")
        argument = argument.rstrip("!") or "k"
        places = {"loc": 0} if located else {}
        tail = {argument: REQUIRED, **dict.fromkeys(parameters, REQUIRED), **places}
        meanings = {**parameters, **{n: _PLACE[n] for n in places}}
        formula = stated[name] if name in stated else (lambda *args: jnp.exp(stated["logpmf"](*args)))
        if name in ("logpmf", "pmf", "cdf"):
            # A comparison with NaN does not hold, so that NaN would be a value without probability.
            formula = lambda k, *rest, f=formula: jnp.where(jnp.isnan(k), jnp.nan, f(k, *rest))

        def evaluate(*args):
            if not located:
                return formula(*args)
            *args, loc = args
            return formula(args[0] - loc, *args[1:])

        title = f"{distribution.split()[-1]}.{name}"
        fun = lambda *args: widened(evaluate)(*floats(title, *args))
        return _function(
            fun, name, module, tail, _documentation(name, argument, distribution, meanings, examples[spec])
        )

    return [function(spec) for spec in examples]


def whole(k: Any) -> Array:
    """Whether `k` is an integer, elementwise."""
    return k == lax.floor(k)
