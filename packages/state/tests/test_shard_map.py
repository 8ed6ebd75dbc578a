"""References in functions of blocks, on a mesh without devices."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, state
from bedrax.core.jitting import jit
from bedrax.parallel import AbstractMesh, shard_map
from bedrax.parallel.specs import PartitionSpec as P

MESH = AbstractMesh((4,), ("i",))


def mapped(f, in_specs, out_specs):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs)


@pytest.mark.parametrize("way", ["eager", "jit"])
def test_each_device_writes_to_its_block(way):
    wrap = jit if way == "jit" else lambda f: f
    ref = state.new_ref(jnp.arange(8.0))

    def body(x, ref):
        old = ref[0]
        ref[1] = x[0] * 10 + lax.axis_index("i")
        return old[None]

    out = wrap(mapped(body, (P("i"), P("i")), P("i")))(jnp.arange(4.0), ref)
    np.testing.assert_array_equal(out, [0, 2, 4, 6])
    np.testing.assert_array_equal(ref[...], [0, 0, 2, 11, 4, 22, 6, 33])


def test_references_made_inside_and_loops():
    def body(x):
        total = state.new_ref(jnp.zeros_like(x))

        def step(i, _):
            total[...] += x * i

        lax.fori_loop(0, 3, step, None)
        return lax.psum(state.freeze(total), "i")

    np.testing.assert_array_equal(mapped(body, P("i"), P())(jnp.arange(4.0)), [18])


def test_one_reference_for_all_devices_is_read_only():
    ref = state.new_ref(jnp.ones(2))
    out = mapped(lambda x: x + ref[0], P("i"), P("i"))(jnp.arange(4.0))
    np.testing.assert_array_equal(out, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="not cut into blocks"):
        mapped(lambda x: (ref.set(x[0], 0), x)[1], P("i"), P("i"))(jnp.arange(4.0))


def test_branches_that_devices_choose_write_to_references():
    def body(x):
        own, common = state.new_ref(x), state.new_ref(jnp.zeros(1))

        def write():
            own[...] = x * 3
            common[...] = jnp.ones(1)

        lax.cond(x[0] > 1, write, lambda: None)
        return state.freeze(own) + 10 * state.freeze(common)

    x = jnp.arange(4.0)
    np.testing.assert_array_equal(mapped(body, P("i"), P("i"))(x), [0, 1, 16, 19])
    np.testing.assert_array_equal(jit(mapped(body, P("i"), P("i")))(x), [0, 1, 16, 19])
    with pytest.raises(ValueError, match="by its type it varies"):
        mapped(body, P("i"), P())(x)
