"""No argument and no option is accepted and ignored, except for the tables with reasons."""

import sys
from pathlib import Path

import arguments
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ignored import IGNORED
from jax.extend.core import mapped_aval

from bedrax.extend.flags import INERT

ROOT = Path(__file__).parents[2]


def unused(x, used, *, kind=None, **options):
    del kind
    return lambda: used


def further(x, **_):
    return x


class Refusing:
    def refuses(self, what):
        raise NotImplementedError(what)


def test_unread_parameters_are_found():
    assert arguments.unread(unused) == ["x", "kind", "options"]
    assert arguments.unread(further) == ["_"]
    assert arguments.unread(Refusing.refuses) == []


@pytest.mark.needs("tensorflow")  # all modules of the face are imported
def test_every_parameter_is_read_or_is_in_the_table():
    found, table = arguments.silent(), {name for names in IGNORED.values() for name in names}
    missing = [sorted(names) for names in found if not names & table]
    assert not missing, f"read them, raise for them, or give the reason in ignored.py: {missing}"
    gone = table.difference(*found)
    assert not gone, f"these are read, or absent: {sorted(gone)}"


def test_each_parameter_has_one_reason():
    names = [name for names in IGNORED.values() for name in names]
    assert len(names) == len(set(names)) and all(len(why) > 15 for why in IGNORED)


def test_the_page_lists_every_ignored_argument_and_option(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    surface = pytest.importorskip("surface")
    page = surface.ignored_page()
    options = [row[0] for rows in INERT.values() for row in rows]
    arguments = [name for names in IGNORED.values() for name in names]
    assert not [name for name in (*arguments, *options) if f"`{name}`" not in page]


# ---- faults that these checks found


def test_sum_match_sums_over_the_mapped_axis():
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    both = jax.vmap(lambda v: (2 * v, v, 3.0), out_axes=(None, 0, None), sum_match=True)(x)
    np.testing.assert_array_equal(both[0], 2 * x.sum(0))
    np.testing.assert_array_equal(both[1], x)
    assert both[2] == 3
    with pytest.raises(ValueError, match="out_axes is None"):
        jax.vmap(lambda v: v, out_axes=None)(x)


def test_host_id_is_the_index_of_a_process():
    with pytest.warns(UserWarning, match="process_index"):
        assert jax.local_devices(host_id=0) == jax.local_devices()
    with pytest.warns(UserWarning, match="process_index"), pytest.raises(ValueError, match="17"):
        jax.local_devices(host_id=17)


def test_an_exported_module_may_be_had_as_a_module():
    exported = jax.export.export(jax.jit(jnp.sin))(np.ones(3, np.float32))
    module = exported.mlir_module(serialized=False)
    assert "stablehlo.sine" in str(module) and type(module) is not str
    assert exported.mlir_module() == module.operation.get_asm(enable_debug_info=True)


def test_sizes_and_names_of_methods_are_checked():
    aval = jax.core.ShapedArray((3, 2), np.float32)
    assert mapped_aval(3, 0, aval).shape == (2,) and mapped_aval(7, None, aval).shape == (3, 2)
    with pytest.raises(ValueError, match="3 elements along axis 0, not 5"):
        mapped_aval(5, 0, aval)
    with pytest.raises(ValueError, match="method"):
        jax.scipy.linalg.expm_frechet(np.eye(2), np.eye(2), method="best")
