"""Functions of files, and public functions that always raise."""

import importlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bedrax.extend import unsupported


def test_arrays_in_files(tmp_path):
    x = jnp.arange(6.0).reshape(2, 3)
    jnp.save(tmp_path / "x.npy", x)
    again = jnp.load(tmp_path / "x.npy")
    assert isinstance(again, jax.Array) and again.dtype == x.dtype
    np.testing.assert_array_equal(again, x)
    jnp.savez(tmp_path / "both.npz", x=x, y=x[0])
    both = jnp.load(tmp_path / "both.npz")
    np.testing.assert_array_equal(both["y"], x[0])
    jnp.savez(io.BytesIO(), x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (jnp.fromfile, "jnp.fromfile.*not a pure function"),
        (jnp.fromiter, "jnp.fromiter.*not a pure function"),
        (jax.lax.psend, "lax.psend"),
        (jax.lax.precv, "lax.precv"),
    ],
)
def test_unsupported_functions_raise_the_reason(function, message):
    with pytest.raises(NotImplementedError, match=message):
        function(1, 2)


@pytest.mark.parametrize("name", [n for n in unsupported.missing if "jax2tf" not in n and "*" not in n])
def test_names_in_the_table_of_missing_names_are_missing(name):
    home, _, last = name.rpartition(".")
    assert not hasattr(importlib.import_module(home), last), f"{name} is there now; take its row out of the table"
