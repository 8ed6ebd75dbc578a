"""Lists and texts instead of arrays, for each array argument of each public function.

The error names the called public function and the argument, and no internal function.
"""

import importlib
import inspect
import warnings

import jax
import numpy as np
import pytest
import records

FUNCTIONS = {
    name: r
    for name, f in records.public_functions()
    if name not in records.ELSEWHERE and not name.startswith("Array.")
    if (r := records.record(name, f)) is not None and r.function is f
}
# Their arguments are pytrees, and a list is one. The error is that of the user's function, or names the difference.
OF_TREES = {
    "lax.associative_scan",
    "lax.custom_linear_solve",
    "lax.custom_root",
    "lax.fori_loop",
    "lax.map",
    "lax.reduce",
    "lax.reduce_window",
    "lax.scan",
    "lax.while_loop",
    "scipy.sparse.linalg.bicgstab",
    "scipy.sparse.linalg.cg",
    "scipy.sparse.linalg.gmres",
}
OF_NUMPY = {"numpy.array_repr", "numpy.array_str"}  # NumPy's own functions
# They also accept dtypes, or objects of other libraries.
OF_OTHER_THINGS = {
    "lax.dtype",
    "numpy.promote_types",
    "numpy.result_type",
    "numpy.from_dlpack",
    "numpy.logspace",
    "numpy.geomspace",
    "image.scale_and_translate",
}
# They convert their arguments to arrays; the error names the argument that is not a number.
CONVERTED = {
    "numpy.array",
    "numpy.array_equal",
    "numpy.array_equiv",
    "numpy.asarray",
    "numpy.full",
    "lax.sort",
    "random.categorical",
    "random.dirichlet",
    "random.multinomial",
    "random.multivariate_normal",
    "scipy.stats.multinomial.logpmf",
    "scipy.stats.multinomial.pmf",
}


def array_arguments(record):
    for place in [*range(len(record.args)), *record.kwargs]:
        x = record.args[place] if isinstance(place, int) else record.kwargs[place]
        if isinstance(x, np.ndarray | np.generic | jax.Array) and not jax.dtypes.issubdtype(
            x.dtype, jax.dtypes.prng_key
        ):
            yield place, x


def error(record, place, value):
    """The error of a call with `value` at one position, or None."""
    args, kwargs = list(record.args), dict(record.kwargs)
    (args if isinstance(place, int) else kwargs)[place] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            record.function(*args, **kwargs)
        except Exception as error:
            return error
    return None


def places_of(record, place):
    """The possible names of an argument in messages."""
    if isinstance(place, int):
        return {f" at position {place}"}
    names = list(inspect.signature(record.function).parameters)
    return {f" as {place}", *({f" at position {names.index(place)}"} if place in names else ())}


def same(function, name):
    """Whether the name in a message is a name of the function."""
    module, _, last = function.replace("jnp", "jax.numpy").rpartition(".")
    return last == name.rpartition(".")[2] or getattr(importlib.import_module(module), last) is FUNCTIONS[name].function


def as_list(x):
    return np.asarray(x).tolist() if np.ndim(x) else [x.item()]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in OF_TREES | OF_NUMPY])
def test_the_error_names_the_function_and_the_argument(name):
    record = FUNCTIONS[name]
    for place, x in array_arguments(record):
        for value in (as_list(x), "text"):
            found = error(record, place, value)
            if found is None:
                continue
            text = str(found)
            assert isinstance(found, TypeError | ValueError) and "Tracer" not in text and len(text) < 600, text
            if name in OF_OTHER_THINGS or (name in CONVERTED and value == "text"):
                continue
            function, _, rest = text.partition(": ")
            assert isinstance(found, TypeError) and function.startswith("j"), text
            assert same(function, name), text
            assert any(rest.startswith(f"an array or a number is needed{p}") for p in places_of(record, place)), text


def test_every_exception_names_a_function():
    assert {*OF_TREES, *OF_NUMPY, *OF_OTHER_THINGS, *CONVERTED} <= FUNCTIONS.keys()
