"""Programs for absent devices, or for several platforms: they can be read, and cannot be run."""

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.lax.primitives.linalg import cholesky_p
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel.meshes import AbstractMesh
from bedrax.xla_backend.sharding import NamedSharding

WHERE = NamedSharding(AbstractMesh((4,), ("x",)), P("x", None))
SPLIT = ShapeDtypeStruct((8, 3), np.float32, sharding=WHERE)
X = np.ones((8, 3), np.float32)


def f(x, y=1.0):
    return lax.sin(x)


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu",), ("gpu",), ("cpu", "tpu")])
def test_arrays_split_over_an_abstract_mesh_are_lowered_split(platforms):
    lowered = xla.jit(f).trace(SPLIT).lower(lowering_platforms=platforms)
    text = lowered.as_text()
    assert "mhlo.num_partitions = 4" in text and "devices=[4,1]<=[4]" in text and text.count("stablehlo.sine") == 1
    assert ("_platform_index" in text) == (len(platforms) > 1)
    assert len(platforms) > 1 or "devices=[4,1]<=[4]" in lowered.as_text("hlo")
    assert lowered.out_info.shape == (8, 3)
    for use in (lowered.compile, lowered.cost_analysis):
        with pytest.raises(ValueError, match="can be read only"):
            use()


def test_results_are_split_too_and_arguments_may_be_donated():
    traced = xla.jit(f, out_shardings=WHERE, donate_argnums=0).trace(SPLIT)
    main = next(line for line in traced.lower(lowering_platforms=("cpu",)).as_text().splitlines() if "@main" in line)
    assert main.count("devices=[4,1]<=[4]") == 2 and "tf.aliasing_output = 0" in main
    unused = xla.jit(f, keep_unused=True).trace(SPLIT, 2.0).lower(lowering_platforms=("cpu",)).as_text()
    assert "%arg1: tensor<f32>" in unused


def test_several_platforms_choose_among_their_rules():
    lowered = xla.jit(lambda x: cholesky_p.bind(x)).trace(X[:3, :3]).lower(lowering_platforms=("cpu", "cuda"))
    text = lowered.as_text()
    assert "stablehlo.case" in text and "lapack" in text and "cusolver" in text
    with pytest.raises(ValueError, match="can be read only"):
        lowered.compile()


def test_programs_for_an_abstract_mesh_do_not_run():
    calls = [
        lambda: xla.jit(f).lower(SPLIT),
        lambda: xla.jit(f).trace(SPLIT).lower(),
        lambda: xla.jit(f, in_shardings=WHERE)(X),
        lambda: xla.jit(f, out_shardings=WHERE)(X),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="AbstractMesh of 4 devices"):
            call()
    one = NamedSharding(AbstractMesh((1,), ("x",)), P("x", None))  # any single device
    np.testing.assert_allclose(xla.jit(f, out_shardings=one)(X), np.sin(X), rtol=1e-6)
