"""Commitment, the default device and current meshes on eight CPU devices: python placement.py NAME"""

import itertools
import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
from bedrax.parallel import Mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel import meshes as s
from bedrax.parallel.specs import axes_of
from bedrax.xla_backend import flags
from bedrax.xla_backend.sharding import NamedSharding

d = xla.devices()
assert len(d) == 8
X = np.ones(8, np.float32)
new = lambda: lax.add(xla.device_put(X), np.float32(0))  # on the default device, not committed
tall, wide = (Mesh(np.array(d).reshape(shape), ("x", "y")) for shape in ((4, 2), (2, 4)))


def refuses(action, message):
    try:
        action()
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)


def constraints_with_layouts():
    from bedrax.xla_backend.layout import Format, Layout

    where = NamedSharding(tall, P("x"))
    M = np.ones((8, 8), np.float32)
    requested = Format(Layout((0, 1)), where)
    assert xla.with_sharding_constraint(xla.device_put(M, where), requested).sharding == where
    refuses(lambda: xla.with_sharding_constraint(xla.device_put(M, d[3]), requested), "is constrained to")


def set_mesh_places_what_nothing_else_places():
    from bedrax import numpy as jnp
    from bedrax.parallel import AxisType

    f = xla.jit(lambda x: lax.add(x, np.float32(1)))
    make = xla.jit(lambda: lax.full((4, 4), 1.0))
    there = xla.device_put(X, d[5])
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = Mesh(tall.devices, ("x", "y"), axis_types=(kind, kind))
        for _ in range(2):  # and what is compiled for one place is not run at the other
            assert f(X).devices() == f(new()).devices() == make().devices() == lax.full((3,), 1.0).devices() == {d[0]}
            with s.set_mesh(mesh):
                for y in (
                    f(X),
                    f(np.ones((8, 4), np.float32)),
                    make(),
                    lax.sin(X),
                    lax.full((3,), 1.0),
                    grad(lax.sin)(1.0),
                    jnp.asarray(X),
                    jnp.array([1, 2]),
                    jnp.array(2.0),
                    jnp.copy(X),
                ):
                    assert y.sharding.mesh == mesh and y.sharding.is_fully_replicated and y.committed, y.sharding
                    assert y.devices() == set(d)
                np.testing.assert_array_equal(f(X), X + 1)
                # What is committed, or requested to be elsewhere, is there.
                assert f(there).devices() == jnp.asarray(there).devices() == {d[5]}
                assert xla.jit(lambda x: x + jnp.asarray(X))(there).devices() == {d[5]}
                assert xla.device_put(X, d[2]).devices() == {d[2]}
                assert f(xla.device_put(X, NamedSharding(mesh, P("x")))).sharding.spec == P("x")
        assert not f(X).committed
    with tall:  # such a block names axes only
        assert f(X).devices() == {d[0]}


def filled_like_an_array():
    import bedrax.numpy as jnp
    from bedrax import random
    from bedrax.core import avals

    class Described:
        def __init__(self, x):
            self.shape, self.dtype, self.sharding = x.shape, x.dtype, x.sharding

    class Converted:
        def __init__(self, x):
            self.x = x

        def __jax_array__(self):
            return self.x

    M = jnp.ones((8, 8))
    for where in (
        NamedSharding(tall, P("x", "y")),
        NamedSharding(wide, P()),
        NamedSharding(tall, P(None, "x")),
        xla.sharding.make_single_device_sharding(d[3]),
    ):
        x = xla.device_put(M, where)
        for y in (
            jnp.zeros_like(x),
            jnp.ones_like(x),
            jnp.empty_like(x),
            jnp.full_like(x, 2.0),
            lax.full_like(x, 2),
            jnp.zeros_like(x, dtype=np.int32),
        ):
            assert y.sharding == where and y.committed, (y.sharding, where)
        # An object with the shape of the array and its sharding, or with `__jax_array__`, is as the array.
        for like in (Described(x), Converted(x), avals.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)):
            for y in (jnp.zeros_like(like), jnp.ones_like(like, shape=(8, 8)), jnp.full_like(like, 2, dtype=int)):
                assert y.sharding == where and y.committed, (like, y.sharding, where)
        # Another shape, or a place of its own, is not that of the array; nor is what a program computes.
        for y in (jnp.zeros_like(x, shape=(2, 2)), xla.jit(lambda: jnp.zeros_like(x).sum() + 1)()):
            assert y.shape in ((2, 2), ()), y
        assert jnp.zeros_like(x, device=d[5]).devices() == {d[5]}
        keys = xla.device_put(random.split(random.key(0), (8, 8)), where)
        assert jnp.zeros_like(keys).shape == (8, 8)
        np.testing.assert_array_equal(jnp.full_like(x, 2.0), np.full((8, 8), 2))
    assert not jnp.zeros_like(M).committed and jnp.zeros_like(np.ones(3)).devices() == {d[0]}
    assert jnp.zeros_like(x, shape=(2, 2)).devices() == {d[3]}  # one device holds any shape
    assert jnp.zeros_like(xla.device_put(M, NamedSharding(wide, P())), shape=(2, 2)).devices() == {d[0]}
    assert not jnp.zeros_like(Converted(M)).committed

    def inside(x):
        return jnp.zeros_like(x) + x

    np.testing.assert_array_equal(grad(lambda x: inside(x).sum())(x), np.ones((8, 8)))


def specs_over_several_kinds_of_axes():
    """The spec of a result has an entry for each dimension, unless the compiler splits it over an automatic axis."""
    from bedrax.parallel import AxisType

    A = np.zeros((8, 8), np.float32)
    for kinds in itertools.product((AxisType.Auto, AxisType.Explicit), repeat=2):
        mesh = Mesh(tall.devices, ("x", "y"), axis_types=kinds)
        automatic = {n for n, kind in zip("xy", kinds, strict=True) if kind is AxisType.Auto}
        with s.set_mesh(mesh):
            for spec in (P(), P("x"), P("y"), P("x", None), P(None, "y"), P("x", "y")):
                x = xla.device_put(A, NamedSharding(mesh, spec))
                split = {n for entry in x.aval.split.spec for n in axes_of(entry)} if x.aval.split else set()
                assert split == {n for n in spec if n} - automatic, (kinds, spec, x.aval)
                if not automatic.intersection(spec):
                    y = lax.neg(x)
                    full = P(*spec, *(None,) * (2 - len(spec))) if AxisType.Explicit in kinds else spec
                    assert y.sharding.spec == full, (kinds, spec, y.sharding.spec)
                    assert hash(y.sharding) == hash(NamedSharding(mesh, full))


def specs_of_results():
    from bedrax.parallel import shard_map

    twice = xla.jit(lambda x: lax.add(x, x))
    both = xla.jit(lambda y, x: (lax.reduce_sum(y, axes=(0,)), lax.mul(x, x)))
    M = np.ones((8, 8), np.float32)
    one = Mesh(np.array(d[:1]), ("x",))
    for mesh in (tall, wide, one):
        for spec in (P(), P(None), P(None, None), P("x"), P("x", None), P(None, "x"), P(("x",), None)):
            x = xla.device_put(M, NamedSharding(mesh, spec))
            # As the argument is written, not as a tile assignment is read back.
            for same in (twice(x), lax.neg(x), lax.mul(x, np.float32(2)), both(X, x)[1]):
                assert same.sharding.spec == spec, (same.sharding, spec)
            where = NamedSharding(mesh, spec)
            assert xla.jit(lax.sin, out_shardings=where)(x).sharding.spec == spec
            for block in (shard_map(lax.neg, mesh=mesh, in_specs=spec, out_specs=spec)(M),):
                assert block.sharding.spec == spec, (block.sharding, spec)
                np.testing.assert_array_equal(block, -M)
    # What no argument is split as has no trailing None.
    x = xla.device_put(M, NamedSharding(tall, P(None, "x")))
    turned = xla.jit(lambda x: lax.transpose(x, (1, 0)))(x)
    assert turned.sharding.spec == P("x"), turned.sharding
    assert xla.jit(lambda x: lax.reduce_sum(x, axes=(0, 1)))(x).sharding.spec == P()
    assert xla.jit(lambda x: xla.with_sharding_constraint(lax.sin(x), NamedSharding(tall, P("y", None))))(
        x
    ).sharding.spec == P("y")


def put_commits():
    moved = xla.device_put(new(), d[2])
    assert moved.committed and new().to_device(d[1]).committed and not new().committed
    assert lax.sin(moved).devices() == lax.add(moved, new()).devices() == {d[2]}
    refuses(lambda: lax.add(moved, xla.device_put(new(), d[3])), "incompatible devices")


def default_device_before():
    f = xla.jit(lambda x: lax.add(x, np.float32(1)))
    assert f(np.float32(1)).devices() == {d[0]}
    with flags.default_device(d[1]):
        assert f(np.float32(1)).devices() == lax.full((3,), 1.0).devices() == {d[1]}
    assert f(np.float32(1)).devices() == lax.full((3,), 1.0).devices() == {d[0]}


def default_device_inside():
    f = xla.jit(lambda x: lax.add(x, np.float32(1)))
    with flags.default_device(d[1]):
        assert f(np.float32(1)).devices() == {d[1]}
    assert f(np.float32(1)).devices() == {d[0]}


def meshes_in_force():
    x = xla.device_put(X, NamedSharding(tall, P()))
    for enter in (lambda m: m, s.set_mesh):
        f = xla.jit(lambda x: xla.with_sharding_constraint(lax.add(x, x), P("x")))
        for mesh, part in ((tall, 2), (wide, 4), (tall, 2)):
            with enter(mesh):
                assert f(x).sharding.shard_shape((8,)) == (part,)
        assert s.get_mesh().empty and s.physical_mesh().empty
    refuses(lambda: xla.with_sharding_constraint(x, P("x")), "none is in force")
    with s.set_mesh(wide):
        assert xla.device_put(X, P("x")).sharding == NamedSharding(wide, P("x"))
        with tall:
            s.set_mesh(tall)
        assert s.get_mesh() == tall


def derivatives_go_back():
    twice = lambda x: lax.mul(xla.device_put(x, d[1]), xla.device_put(x, d[1]))
    total = lambda x: lax.reduce_sum(x, axes=(0,))
    for x in (xla.device_put(X, d[0]), new()):
        assert grad(lambda x: total(twice(x)))(x).devices() == {d[0]}
        g = grad(lambda x: total(lax.add(xla.device_put(twice(x), d[0]), x)))(x)
        np.testing.assert_array_equal(np.asarray(g), 3 * X)


def inside_transformations():
    f = lambda x: lax.sin(xla.device_put(x, d[1]))
    x = xla.device_put(X, d[0])
    assert f(x).devices() == vmap(f)(x).devices() == {d[1]}
    np.testing.assert_allclose(np.asarray(vmap(f)(x)), np.sin(X), rtol=1e-6)
    value, tangent = jvp(f, (x,), (x,))
    assert value.devices() == tangent.devices() == {d[1]}
    assert grad(lambda x: lax.reduce_sum(f(x), axes=(0,)))(x).devices() == {d[0]}
    split = NamedSharding(wide, P("x"))
    constrained = xla.jit(lambda x: xla.with_sharding_constraint({"a": lax.sin(x)}, split))
    result = constrained(xla.device_put(X, NamedSharding(wide, P())))["a"]
    assert result.sharding.shard_shape((8,)) == (4,)
    np.testing.assert_allclose(np.asarray(result), np.sin(X), rtol=1e-6)


def what_stages_say():
    split = NamedSharding(wide, P("x"))
    f = xla.jit(lambda x, y: (lax.neg(x), lax.neg(y)), out_shardings=(split, None))
    traced = f.trace(X, X)
    assert [info.sharding for info in traced.out_info] == [split, None]
    compiled = xla.jit(lax.neg, in_shardings=split).lower(X).compile()
    ((where,), _) = compiled.input_formats
    assert where.sharding == split and where.layout.major_to_minor == (0,)


def programs_say_where():
    split = NamedSharding(wide, P("x"))
    assert xla.jit(lambda x: lax.sin(xla.device_put(x, d[1])))(X).devices() == {d[1]}
    assert xla.jit(lambda x: xla.with_sharding_constraint(lax.sin(x), split))(X).sharding == split
    assert xla.jit(lambda: lax.full((8,), 1.0, sharding=split))().sharding == split
    inner = xla.jit(lambda x: lax.add(x, x), out_shardings=split)
    outer = xla.jit(lambda x: lax.add(inner(x), x))
    assert outer(X).sharding == outer(xla.device_put(X, NamedSharding(wide, P()))).sharding == split
    assert vmap(inner)(np.stack([X, X])).sharding.spec == P(None, "x")

    def loop(x):
        return lax.fori_loop(0, 3, lambda i, x: xla.with_sharding_constraint(lax.add(x, x), split), x)

    assert xla.jit(loop)(X).sharding == split
    on_one = xla.jit(lambda x: xla.device_put(x, d[1]))
    refuses(lambda: on_one(xla.device_put(X, d[2])), "argument 0 (x), of shape (8,) is on CPU device ids [2]")
    refuses(lambda: on_one(xla.device_put(X, d[2])), f"'reshard' at {__file__}:")
    refuses(lambda: xla.jit(lambda x: on_one(xla.device_put(x, d[3])))(X), "incompatible devices")
    refuses(
        lambda: xla.jit(lambda x: xla.with_sharding_constraint(x, split))(
            xla.device_put(X, NamedSharding(Mesh(np.array(d[::-1]).reshape(2, 4), ("x", "y")), P()))
        ),
        "another order",
    )


def captured_arrays():
    k = xla.device_put(X, d[2])
    f = xla.jit(lambda x: lax.add(x, k))
    assert f(X).devices() == {d[2]} and f(X).committed
    refuses(lambda: f(xla.device_put(X, d[3])), "a captured array of shape (8,) on CPU device ids [2]")
    assert xla.jit(lambda x: lax.cond(x, lambda: k, lambda: k))(True).devices() == {d[2]}


def keys():
    from bedrax import random

    key = xla.device_put(random.key(0), d[1])
    draw = xla.jit(lambda k: random.normal(k, (3,)))
    for x in (draw(key), random.normal(key), random.split(key)):
        assert x.devices() == {d[1]}
    keys = xla.device_put(random.split(random.key(0), 8), NamedSharding(tall, P("x")))
    numbers = xla.jit(vmap(lambda k: random.normal(k)))(keys)
    assert numbers.sharding.spec == P("x")
    np.testing.assert_array_equal(numbers, vmap(lambda k: random.normal(k))(random.split(random.key(0), 8)))
    other = NamedSharding(tall, P("y"))
    moved = xla.jit(lambda k: xla.with_sharding_constraint(k, other))(keys)
    assert moved.sharding.spec == P("y")
    np.testing.assert_array_equal(random.key_data(moved), random.key_data(keys))


def results_are_placed():
    from bedrax import numpy as jnp
    from bedrax import random
    from bedrax.parallel import AxisType

    split = NamedSharding(Mesh(tall.devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2), P("x"))
    A = np.arange(64, dtype=np.float32).reshape(8, 8)
    made = {
        "normal": lambda: random.normal(random.key(0), (8,), out_sharding=split),
        "dot": lambda: jnp.dot(A, A, out_sharding=split),
        "einsum": lambda: jnp.einsum("ij,jk->ki", A, A, out_sharding=split),
        "reshape": lambda: jnp.reshape(A, (4, 16), out_sharding=split),
        "sum": lambda: lax.reduce_sum(A, (0,), out_sharding=split),
        "zeros": lambda: jnp.zeros(8, out_sharding=split),
        "iota": lambda: lax.broadcasted_iota(np.int32, (8, 2), 0, out_sharding=split),
        "percentile": lambda: jnp.percentile(A, np.arange(8) * 10.0, out_sharding=split),
        "bincount": lambda: jnp.bincount(np.arange(8), length=8, out_sharding=split),
        "repeat": lambda: jnp.repeat(A, 2, axis=0, out_sharding=split),
    }
    for name, make in made.items():
        for x in (make(), xla.jit(make)()):
            assert x.sharding.shard_shape(x.shape)[0] == x.shape[0] // 4, (name, x.sharding)
        # The axes of an `out_sharding` are explicit.
        explicit, split = split, NamedSharding(tall, P("x"))
        refuses(make, "names the axis 'x', which is Auto. Only Explicit axes are in the types of arrays")
        split = explicit
    np.testing.assert_array_equal(made["einsum"](), np.einsum("ij,jk->ki", A, A))


def callbacks():
    from bedrax.lax.primitives.callbacks import debug_callback, io_callback, pure_callback

    x = xla.device_put(X * np.arange(8, dtype=np.float32), NamedSharding(wide, P("x")))
    seen = []

    def see(v):
        seen.append(np.asarray(v))
        return np.asarray(v) * 2

    for ordered in (False, True):
        f = xla.jit(lambda x: (debug_callback(see, x, ordered=ordered), io_callback(see, x, x, ordered=ordered))[1])
        for y in (f(x), xla.jit(lambda x: pure_callback(see, x, x))(x)):
            np.testing.assert_array_equal(y, 2 * np.arange(8))
        xla.effects_barrier()
        assert len(seen) == 3 and all((v == np.arange(8)).all() for v in seen), seen
        seen.clear()
    order = []

    def rounds(x):
        return lax.fori_loop(0, 3, lambda i, x: (debug_callback(order.append, i, ordered=True), lax.add(x, x))[1], x)

    xla.jit(rounds)(x)
    xla.effects_barrier()
    assert [int(i) for i in order] == [0, 1, 2]
    one = xla.jit(lambda x: io_callback(see, x, x, sharding=xla.SingleDeviceSharding(d[3])))
    np.testing.assert_array_equal(one(x), 2 * np.arange(8))


def callbacks_that_call():
    from bedrax.lax.primitives.callbacks import pure_callback

    split = xla.device_put(np.arange(8, dtype=np.float32), NamedSharding(wide, P("x")))
    total = xla.jit(lambda x: lax.reduce_sum(x, (0,)))
    total(split)
    calls = lambda over: xla.jit(lambda x: pure_callback(lambda v: np.asarray(total(over)) + v, x, x))
    np.testing.assert_array_equal(calls(X)(split), 8 + np.arange(8))  # the callback calls a program on one device
    np.testing.assert_array_equal(calls(split)(X), 28 + X)  # the callback belongs to one device
    try:
        np.asarray(calls(split)(split))
    except Exception as error:
        assert "compute with NumPy in the callback" in str(error), error
    else:
        raise AssertionError("the callback called a program over all devices")


def batches():
    A = np.ones((8, 8), np.float32)
    constrain = lambda v: xla.with_sharding_constraint(v, NamedSharding(wide, P("y")))
    over = lambda **how: xla.jit(vmap(constrain, **how))
    assert over(spmd_axis_name="x")(A).sharding.spec == P("x", "y")
    assert over()(xla.device_put(A, NamedSharding(wide, P("x")))).sharding.spec == P("x", "y")
    assert over(in_axes=1, out_axes=1)(A).sharding.spec[0] == "y"
    refuses(lambda: over(spmd_axis_name="y")(A), "spmd_axis_name 'y'")
    free = xla.jit(lambda x: xla.with_sharding_constraint(x, NamedSharding(wide, P(P.UNCONSTRAINED))))
    assert free(xla.device_put(X, NamedSharding(wide, P("x")))).sharding.spec == P("x")


def computation_follows_data():
    # what the documents for users say of data, devices and commitment
    one, two = xla.device_put(X, d[1]), xla.device_put(X, d[2])
    assert not new().committed and new().devices() == {d[0]}
    assert lax.add(new(), new()).devices() == {d[0]} and not lax.add(new(), new()).committed
    assert xla.device_put(1, d[2]).devices() == {d[2]} and one.committed
    assert lax.add(one, new()).devices() == {d[1]} and lax.add(one, new()).committed
    refuses(lambda: lax.add(one, two), "incompatible devices")
    f = xla.jit(lambda x, y: lax.add(x, y))
    assert f(one, new()).devices() == f(X, one).devices() == {d[1]} and f(one, X).committed
    refuses(lambda: f(one, two), "argument 0 (x), of shape (8,) is on CPU device ids [1], argument 1 (y)")
    assert xla.device_put(one) is one and xla.device_put(new()).committed is False
    with flags.default_device(d[5]):
        assert new().devices() == xla.device_put(X).devices() == {d[5]} and not xla.device_put(X).committed
        assert f(X, X).devices() == {d[5]} and f(one, X).devices() == {d[1]}
    assert xla.default_backend() == "cpu"


def loops_and_factorizations():
    from bedrax.lax.primitives import linalg

    split = NamedSharding(wide, P("x"))
    A = np.random.default_rng(0).normal(size=(8, 3, 3)).astype(np.float32)
    A = A @ A.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32)
    put = lambda x: xla.device_put(x, split)
    L = xla.jit(vmap(lambda a: linalg.cholesky(a)))(put(A))
    np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=1e-4, atol=1e-5)
    w = xla.jit(lambda a: linalg.eigh(a)[1])(put(A))
    np.testing.assert_allclose(w, np.linalg.eigvalsh(A), rtol=1e-4)
    body = lambda x: lax.mul(x, np.float32(2))
    loop = xla.jit(lambda x: lax.while_loop(lambda x: lax.lt(lax.reduce_max(x, (0,)), np.float32(100)), body, x))
    y = loop(put(np.arange(8, dtype=np.float32)))
    np.testing.assert_array_equal(y, np.arange(8) * 16)
    assert y.sharding == split


def partitioners():

    split = NamedSharding(wide, P("x"))
    put = lambda x: xla.device_put(x, split)
    two_meshes = lambda x: xla.with_sharding_constraint(lax.sin(x), NamedSharding(tall, P("y")))
    f = lambda x: xla.with_sharding_constraint(lax.sin(x), split)
    assert "sdy.sharding_constraint" in xla.jit(f).lower(put(X)).as_text()
    assert "@Sharding" in xla.jit(two_meshes).lower(put(X)).as_text()  # in one mesh's terms only
    with flags.use_shardy_partitioner(False):
        assert "@Sharding" in xla.jit(f).lower(put(X)).as_text() and xla.jit(f)(put(X)).sharding == split
    for g in (f, two_meshes):
        np.testing.assert_allclose(xla.jit(g)(put(X)), np.sin(X), rtol=1e-6)
    assert xla.jit(lambda x: lax.erf(x))(put(X)).sharding == split


def bad_specs():
    put = lambda shape, *spec: xla.device_put(np.zeros(shape, np.float32), NamedSharding(wide, P(*spec)))
    refuses(
        lambda: put((6,), "y"),
        "splits axis 0 of an array of shape (6,) into 4 parts, over the mesh axes 'y' (of size 4)",
    )
    refuses(
        lambda: put((6, 8), ("x", "y")), "'x' (of size 2) and 'y' (of size 4), but its size 6 is not a multiple of 8"
    )
    refuses(lambda: put((8,), None, "y"), "rank 1")
    refuses(lambda: put((8,), "z"), "'z', which the mesh does not have; it has ('x', 'y')")
    f = xla.jit(lambda u, v: v, in_shardings=(None, NamedSharding(wide, P("y"))))
    refuses(lambda: f(X, np.ones(6)), "in_shardings of jit(<lambda>): P('y',) splits axis 0")
    inside = xla.jit(lambda v: xla.with_sharding_constraint(v, NamedSharding(wide, P("y"))))
    refuses(lambda: inside(np.ones(6)), "with_sharding_constraint: P('y',) splits axis 0")
    refuses(lambda: xla.with_sharding_constraint(xla.device_put(X, d[3]), NamedSharding(wide, P())), "device ids [3]")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
