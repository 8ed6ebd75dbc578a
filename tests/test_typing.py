"""The values of `tests/typing/interface.py` have the types of its annotations; mypy checks the annotations."""

import runpy
import types
import typing
import warnings
from pathlib import Path

import jax
import jax.numpy
import jax.scipy.special
import jax.scipy.stats.norm
import numpy as np
import pytest

MODULES = [
    jax,
    jax.numpy,
    jax.numpy.linalg,
    jax.numpy.fft,
    jax.lax,
    jax.random,
    jax.nn,
    jax.tree,
    jax.tree_util,
    jax.scipy.special,
    jax.scipy.linalg,
    jax.scipy.stats.norm,
    jax.image,
    jax.ops,
    jax.custom_batching,
    jax.debug,
    jax.dlpack,
]


def test_the_annotated_program_runs_and_its_values_have_the_types_it_claims():
    results = runpy.run_path(str(Path(__file__).parent / "typing" / "interface.py"))["main"]()
    assert results["shape"] == results["described"].shape == results["host"].shape == (5, 2)
    assert isinstance(results["dtype"], np.dtype)
    assert results["dtype"] == results["described"].dtype == np.float32
    assert np.abs(results["host"]).min() > 0
    assert results["number"] == pytest.approx(results["host"].sum(dtype=np.float64), rel=1e-5)


def test_the_right_uses_run():
    runpy.run_path(str(Path(__file__).parent / "typing" / "right.py"))


def test_the_annotations_of_public_functions_resolve():
    """`typing.get_type_hints` finds the names in the annotations of the functions of the face."""
    unresolved = {}
    for module in MODULES:
        for name in module.__all__:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                value = getattr(module, name)
            if isinstance(value, types.FunctionType):
                try:
                    typing.get_type_hints(value)
                except NameError as error:
                    unresolved[f"{module.__name__}.{name}"] = str(error)
    assert not unresolved
