"""Every function of `jax.numpy` along axes, on arrays without elements: NumPy's answer, or an error where NumPy has one."""

import inspect
import warnings

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import grad, jvp
from bedrax.core.jitting import jit

SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3)]
KEYWORD = inspect.Parameter.KEYWORD_ONLY
# NumPy divides by the number of elements of an empty result.
OTHERWISE = {"average"}
OF_VALUES = {"trim_zeros", "unique", "unstack"}  # the shapes of their results depend on values


def along_axes() -> list[str]:
    """The functions of NumPy with an `axis` and one required array, and those that also require a quantile `q`."""
    found = []
    for name in sorted(set(dir(jnp)) & set(dir(np)) - OTHERWISE):
        f = getattr(jnp, name)
        if not callable(f) or isinstance(f, type) or isinstance(getattr(np, name), np.ufunc):
            continue
        parameters = inspect.signature(f).parameters
        needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind is not KEYWORD]
        if "axis" in parameters and (len(needed) == 1 or needed[1:] == ["q"]):
            found.append(name)
    return found


NAMES = along_axes()


def result(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(x)
        except (ValueError, IndexError) as error:
            return error


def test_the_functions_are_found():
    assert not OTHERWISE & set(NAMES)
    expected = {"sum", "max", "argmin", "ptp", "median", "nanmedian", "quantile", "nanpercentile", "cumsum", "sort"}
    assert expected <= set(NAMES)


def cases(name):
    """Calls: shape, axis, and the function of NumPy or ours and an array."""
    parameters = inspect.signature(getattr(jnp, name)).parameters
    more = (np.float32(0.25),) if "q" in parameters else ()
    vectors = name == "trim_zeros" and "axis" not in inspect.signature(np.trim_zeros).parameters  # NumPy before 2.2
    for shape in [shape for shape in SHAPES if len(shape) == 1 or not vectors]:
        for axis in [None, *range(len(shape))]:
            keywords = {} if axis is None else {"axis": axis}
            yield shape, axis, lambda xp, x, k=keywords: getattr(xp, name)(x, *more, **k)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
@pytest.mark.parametrize("name", NAMES)
def test_as_numpy(name, dtype):
    for shape, axis, call in cases(name):
        x = np.zeros(shape, dtype)
        try:
            expected = result(lambda x, call=call: call(np, x), x)
        except TypeError:  # sequences of arrays, other dtypes
            continue
        ours = lambda x, call=call: call(jnp, x)
        for f in (ours,) if name in OF_VALUES else (ours, jit(ours)):
            found, case = result(f, x), f"{name} of {shape} along {axis}"
            assert isinstance(found, Exception) == isinstance(expected, Exception), f"{case}: {found!r}"
            if not isinstance(found, Exception):
                several = isinstance(expected, tuple | list)
                for a, b in zip(found, expected, strict=True) if several else [(found, expected)]:
                    assert np.shape(a) == np.shape(b), case
                    np.testing.assert_array_equal(a, b, err_msg=case)


def test_errors_name_the_empty_axis():
    with pytest.raises(IndexError, match=r"jnp.quantile: axis 0 of an array of shape \(0, 3\) has no elements"):
        jnp.quantile(np.zeros((0, 3), np.float32), 0.5, axis=0)
    assert jnp.quantile(np.zeros((0, 3), np.float32), np.zeros(0, np.float32), axis=0).shape == (0, 3)
    assert np.isnan(jnp.nanquantile(np.zeros((0, 3), np.float32), np.array([0.1, 0.5], np.float32), axis=0)).all()


def test_covariance_without_degrees_of_freedom():
    for x in (np.zeros((3, 0), np.float32), np.ones((2, 1), np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)):
        for ddof in (0, 1, 5):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = np.cov(x, ddof=ddof)
            np.testing.assert_array_equal(jnp.cov(x, ddof=ddof), expected)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_derivatives_of_sorts_without_elements(shape):
    x = np.zeros(shape, np.float32)
    size = min(shape[-1], 2)
    for function in (jnp.sort, lambda x: lax.top_k(x, size)[0], lambda x: lax.sort((x, x))[1]):
        value, tangent = jvp(function, (x,), (x,))
        assert value.shape == tangent.shape == function(x).shape
        assert grad(lambda x, f=function: f(x).sum())(x).shape == shape
