"""Makes a sampler of its formula: the key, the parameters, the shape and the dtype are read in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from bedrax.core.defining import REQUIRED, named, taking
from bedrax.core.one_program import one_program
from bedrax.core.signatures import signature_of
from bedrax.lax.choices import one_of
from bedrax.lax.primitives.placement import placed
from bedrax.random.arguments import float_dtype, inexact_dtype, int_dtype, joint_shape, shape_of
from bedrax.random.keys import single_key

_DTYPES = {
    float_dtype: "a float dtype; default: the default float.",
    inexact_dtype: "a float or complex dtype; default: the default float.",
    int_dtype: "an integer dtype; default: the default integer.",
}

METHODS = ("exact", "approximate")
_METHOD = """method: ``"exact"``, by rejection; or ``"approximate"``: without loops, faster for many numbers, and
    distributed as documented up to a distance in total variation of 1e-4."""


def sampler(
    formula: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    doc: str = "",
    dtype: Callable[..., Any] = float_dtype,
    shape: tuple[Any, ...] | None = None,
    placement: bool = True,
) -> Callable[..., Any]:
    """Decorator: the sampler ``(key, *parameters, shape, dtype, *, out_sharding)`` of a formula.

    Args:
      formula: ``(key, shape, dtype, *parameters)``, of one typed key, with the shape of the result and its dtype; the
        parameters broadcast to the shape, but may be of any dtype. With a parameter `method` after a star, the sampler
        has one, too: one of `METHODS`. Without a formula, returns a decorator.
      name, doc: of the sampler, if not those of the formula. The lines on the arguments of all samplers are added. An
        "Examples" section stays the last one.
      dtype: the function of `arguments` that reads the dtype.
      shape: the default; None is the joint shape of the parameters, () where there are none.
      placement: whether there is the argument `out_sharding`.
    """
    if formula is None:
        return functools.partial(sampler, name=name, doc=doc, dtype=dtype, shape=shape, placement=placement)
    name, doc = name or formula.__name__, doc or formula.__doc__ or ""
    given = list(signature_of(formula).parameters.values())[3:]
    own = [p for p in given if p.kind is not p.KEYWORD_ONLY]
    has_method = any(p.name == "method" for p in given)
    shape = shape if own else ()
    formula.__name__ = f"_{name}"
    program = one_program(formula, static=("shape", "dtype", *["method"][:has_method]), everywhere=True)
    count = len(own)
    read_dtype = dtype

    def draw(key: Any, *args: Any) -> Any:
        values, shape, dtype = args[:count], args[count], args[count + 1]
        key, _ = single_key(name, key)
        dtype = read_dtype(name, dtype)
        options = {}
        if has_method and args[count + 2] != METHODS[0]:
            one_of(name, "method", args[count + 2], METHODS)
            options["method"] = args[count + 2]
        if values:
            out = program(key, joint_shape(shape, *values), dtype, *values, **options)
        else:
            out = program.of(shape_of(shape), dtype)(key)
        where = args[-1] if placement else None
        return out if where is None else placed(out, where)

    parameters = {"key": REQUIRED, **{p.name: p.default for p in own}, "shape": shape, "dtype": None}
    last = {**({"method": METHODS[0]} if has_method else {}), **({"out_sharding": None} if placement else {})}
    text = _documentation(doc, [p.name for p in own], shape, _DTYPES[dtype], placement, has_method)
    function: Any = named(taking(draw, parameters, last), name, formula.__module__, text)
    function.static, function.formula = program.static, formula
    return function


def _documentation(
    doc: str, parameters: list[str], shape: tuple | None, dtype: str, placement: bool, has_method: bool
) -> str:
    """A docstring that lists the arguments with those of all samplers; its last section has the examples."""
    doc, mark, examples = inspect.cleandoc(doc).partition("\n\nExamples:\n")
    text, _, own = doc.partition("\n\nArgs:\n")
    default = f"the shape of `{parameters[0]}`" if len(parameters) == 1 else "the parameters' joint shape"
    lines = [
        "key: a single key.",
        *([own.strip()] if own else ()),
        "shape: of the result." if shape is not None else f"shape: of the result; default: {default}.",
        f"dtype: {dtype}",
        *([_METHOD] if has_method else ()),
        *(["out_sharding: placement of the result."] if placement else ()),
    ]
    return f"{text}\n\nArgs:\n  " + "\n  ".join(lines) + f"\n{mark[1:]}{examples}"
