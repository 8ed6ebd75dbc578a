"""Values in other memories than the default memory of a device."""

import numpy as np
import pytest

pytest.importorskip("jaxlib")

import bedrax.xla_backend  # noqa: F401  the executor
from bedrax import lax, pytree
from bedrax.autodiff import checkpoint, checkpoint_name, checkpoint_policies, grad, vjp
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.xla_backend import device_put, devices, export, make_array_from_callback
from bedrax.xla_backend.layout import Format, Layout, with_layout_constraint
from bedrax.xla_backend.sharding import NamedSharding, Space

AWAY = checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["away"], offload_src="device", offload_dst="pinned_host"
)
X = np.arange(3, dtype=np.float32)


def device():
    return devices()[0]


def f(x):
    return lax.sin(checkpoint_name(lax.sin(x), "away"))


def test_offloaded_residuals_are_on_the_host():
    _, pullback = vjp(checkpoint(f, policy=AWAY), X)
    kept = [x for x in pytree.tree_leaves(pullback) if hasattr(x, "sharding")]
    assert {x.sharding.memory_kind for x in kept} == {"device", "pinned_host"}
    (ct,) = pullback(np.ones_like(X))
    assert ct.sharding.memory_kind == "device"
    np.testing.assert_allclose(ct, np.cos(np.sin(X)) * np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("platform, count", [("cpu", 0), ("cuda", 2), ("tpu", 2)])
def test_compiled_programs_say_where(platform, count):
    g = jit(grad(lambda x: lax.reduce_sum(checkpoint(f, policy=AWAY)(x), axes=(0,))))
    text = export.export(g, platforms=[platform])(X).mlir_module()
    placed = [line for line in text.splitlines() if "@annotate_device_placement" in line]
    assert len(placed) == count
    if count:
        assert '_xla_buffer_placement = "pinned_host"' in placed[0]
        assert '_xla_buffer_placement = "device"' in placed[1]


@pytest.mark.parametrize("where", ["sharding", "space"])
def test_memories_of_results(where):
    there = device_put(X, device()).sharding.with_memory_kind("pinned_host") if where == "sharding" else Space.Host
    for x in (device_put(X, there), jit(lambda x: device_put(lax.sin(x), there))(X)):
        assert x.sharding.memory_kind == "pinned_host"
    back = jit(lambda x: device_put(x, Space.Device))(x)
    assert back.sharding.memory_kind == "device"
    np.testing.assert_allclose(back, np.sin(X), rtol=1e-6)


def test_memories_of_jit():
    there = device_put(X, device()).sharding.with_memory_kind("pinned_host")
    f = jit(lax.sin, in_shardings=there, out_shardings=there)
    for _ in range(2):
        assert f(X).sharding == there
    assert f.lower(X).as_text().count('mhlo.memory_kind = "pinned_host"') == 2


@pytest.mark.parametrize("serialized", [False, True])
def test_memories_of_exported_programs(serialized):
    there = device_put(X, device()).sharding.with_memory_kind("pinned_host")
    f = jit(
        lambda x: (lax.sin(x), device_put(x, Space.Host), lax.cos(x)),
        in_shardings=there,
        out_shardings=(there, None, None),
    )
    exported = export.export(f)(X)
    assert exported.mlir_module().count('mhlo.memory_kind = "pinned_host"') == 3
    if serialized:
        exported = export.deserialize(exported.serialize(vjp_order=1))
    for call in (exported.call, jit(exported.call)):
        for x in (X, device_put(X, there)):
            results = call(x)
            assert [r.sharding.memory_kind for r in results] == ["pinned_host", "pinned_host", "device"]
            np.testing.assert_allclose(results[0], np.sin(X), rtol=1e-6)
    gradient = grad(lambda x: lax.reduce_sum(exported.call(x)[0], axes=(0,)))(device_put(X, there))
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)
    assert gradient.sharding.memory_kind == "pinned_host"


M = np.arange(6, dtype=np.float32).reshape(2, 3)
TURNED = Layout((1, 0))


def turned(x):
    return x.format.layout.major_to_minor == (1, 0)


def test_layouts():
    here = device_put(M, device()).sharding
    y = device_put(M, Format(TURNED, here))
    assert turned(y) and not turned(device_put(M, here))
    np.testing.assert_array_equal(y, M)
    assert device_put(y, Format(TURNED, here)) is y
    f = jit(lambda x: lax.add(x, x))
    for x in (M, y, device_put(M, here), y):  # alternating, through C++ dispatch
        np.testing.assert_array_equal(f(x), 2 * M)
    out, into = jit(f, out_shardings=Format(TURNED, here)), jit(f, in_shardings=Format(TURNED, here))
    for x in (M, y):
        assert turned(out(x))
        np.testing.assert_array_equal(out(x), 2 * M)
        np.testing.assert_array_equal(into(x), 2 * M)
    assert 'layout_mode = "{0,1}"' in into.lower(M).as_text()
    ((fmt,), _) = into.lower(M).compile().input_formats
    assert fmt.layout.major_to_minor == (1, 0)
    compiled = f.lower(M).compile()
    np.testing.assert_array_equal(compiled(y), 2 * M)
    auto = jit(f, in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO)).lower(M).compile()
    assert auto.output_formats.layout.major_to_minor in ((0, 1), (1, 0))
    for any_layout in (Format(Layout.AUTO), Format(Layout.AUTO, here)):
        g = jit(f, in_shardings=any_layout, out_shardings=any_layout)  # below another transformation, too
        for way in (vmap(g), jit(g), jit(vmap(g)), vmap(vmap(g))):
            np.testing.assert_array_equal(way(M[..., None, None]), 2 * M[..., None, None])
        with pytest.raises(ValueError, match=r"device_put: Layout\.AUTO leaves .* write a Layout"):
            device_put(M, any_layout)


def test_layout_of_an_array_from_a_callback():
    where = Format(TURNED, device_put(M, device()).sharding)
    made = make_array_from_callback(M.shape, where, lambda index: M[index])
    assert turned(made) and made.sharding == where.sharding
    np.testing.assert_array_equal(made, M)


def test_layouts_inside():
    f = jit(lambda x: with_layout_constraint(lax.sin(lax.transpose(x, (1, 0))), TURNED))
    assert turned(f(M)) and turned(with_layout_constraint(M, TURNED))
    np.testing.assert_allclose(f(M), np.sin(M.T), rtol=1e-6)
    assert "@LayoutConstraint" in f.lower(M).as_text()
    mapped = vmap(lambda x: with_layout_constraint(x, TURNED))(np.stack([M, M]))
    assert mapped.format.layout.major_to_minor == (0, 2, 1)
    g = grad(lambda x: lax.reduce_sum(with_layout_constraint(lax.sin(x), TURNED), axes=(0, 1)))(M)
    np.testing.assert_allclose(g, np.cos(M), rtol=1e-6)
    with pytest.raises(ValueError, match="orders 2 axes, the array has rank 1"):
        with_layout_constraint(X, TURNED)
    with pytest.raises(TypeError, match="layout must be a Layout"):
        Format((1, 0))


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
@pytest.mark.parametrize("named", [False, True])
def test_exported_programs_keep_the_memories_of_arguments_and_results(kind, named):
    where = device_put(X, device()).sharding.with_memory_kind(kind)
    if named:
        where = NamedSharding(Mesh(np.array([device()]), ("x",)), PartitionSpec("x"), memory_kind=kind)
    exported = export.export(jit(lambda x: x + x, in_shardings=where, out_shardings=where))(X)
    read = export.deserialize(exported.serialize(1))
    assert read.vjp()._in_memories == exported.vjp()._in_memories
    for program in (exported, read):
        assert set(program._in_memories + program._out_memories) == {None if kind == "device" else kind}
    assert read.call(device_put(X, where)).sharding.memory_kind == kind
    np.testing.assert_array_equal(read.call(device_put(X, where)), 2 * X)
