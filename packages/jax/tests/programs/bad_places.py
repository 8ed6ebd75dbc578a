"""Wrong devices, specs and meshes on eight CPU devices: prints each error without the expected words, and a count."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import mesh_utils, pjit
from jax.experimental.layout import Format, Layout
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from bedrax.parallel.explicit import ShardingTypeError

devices = jax.devices()
assert len(devices) == 8
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
half = Mesh(np.array(devices[:4]).reshape(2, 2), ("x", "y"))
backward = Mesh(np.array(devices[::-1]).reshape(2, 4), ("x", "y"))
M, W = np.ones((6, 8), np.float32), np.ones((8, 8), np.float32)
double = lambda x: x * 2
parts = [jax.device_put(np.ones((3, 8), np.float32), d) for d in devices]

ENTRIES = {
    "device_put": lambda s: jax.device_put(M, s),
    "in_shardings": lambda s: jax.jit(double, in_shardings=s)(M),
    "out_shardings": lambda s: jax.jit(double, out_shardings=s)(M),
    "with_sharding_constraint": lambda s: lax.with_sharding_constraint(M, s),
    "with_sharding_constraint ": lambda s: jax.jit(lambda x: lax.with_sharding_constraint(x, s))(M),
    "out_shardings of reshard": lambda s: jax.sharding.reshard(M, s),
    "make_array_from_callback": lambda s: jax.make_array_from_callback((6, 8), s, lambda i: M[i]),
    "make_array_from_process_local_data": lambda s: jax.make_array_from_process_local_data(s, M, (6, 8)),
    "make_array_from_single_device_arrays": lambda s: jax.make_array_from_single_device_arrays((6, 8), s, parts),
    "device": lambda s: jnp.zeros((6, 8), device=s),
    "device ": lambda s: jnp.array(M, device=s),
    "device  ": lambda s: jnp.full((6, 8), 1.0, device=s),
    "device   ": lambda s: jnp.zeros_like(M, device=s),
    "device    ": lambda s: jnp.eye(6, 8, device=s),
    "out_sharding": lambda s: jax.random.normal(jax.random.key(0), (6, 8), out_sharding=s),
    "out_sharding      ": lambda s: jax.nn.initializers.he_normal()(jax.random.key(0), (6, 8), out_sharding=s),
    "out_sharding ": lambda s: jnp.dot(M, W, out_sharding=s),
    "out_sharding  ": lambda s: jnp.einsum("ij,jk->ik", M, W, out_sharding=s),
    "out_sharding   ": lambda s: lax.broadcasted_iota(np.int32, (6, 8), 0, out_sharding=s),
    "out_sharding    ": lambda s: jnp.reshape(np.ones(48, np.float32), (6, 8), out_sharding=s),
    "ShapeDtypeStruct": lambda s: jax.jit(double).lower(jax.ShapeDtypeStruct((6, 8), np.float32, sharding=s)),
}


keys = jax.random.split(jax.random.key(0), 8)
KEYS = {
    "device_put": lambda s: jax.device_put(keys, s),
    "device_put ": lambda s: jax.jit(lambda k: jax.device_put(k, s))(keys),
    "in_shardings": lambda s: jax.jit(lambda k: k, in_shardings=s)(keys),
    "out_shardings": lambda s: jax.jit(lambda k: k, out_shardings=s)(keys),
    "with_sharding_constraint": lambda s: lax.with_sharding_constraint(keys, s),
    "make_array_from_callback": lambda s: jax.make_array_from_callback((8,), s, lambda i: keys[i]),
    "make_array_from_single_device_arrays": lambda s: jax.make_array_from_single_device_arrays(
        (8,), s, [jax.device_put(keys[:4], d) for d in devices]
    ),
}


def shard(*specs, f=double, **more):
    return lambda: jax.shard_map(f, in_specs=specs[0], out_specs=specs[1], **{"mesh": mesh, **more})(M)


def explicit(f):
    with jax.set_mesh(jax.make_mesh((2, 4), ("x", "y"))):
        return f(jax.device_put(W, P("x", "y")))


tall = Mesh(np.array(devices).reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
compiled = jax.jit(double, in_shardings=NamedSharding(mesh, P("x"))).lower(W).compile()
assert (compiled(jax.device_put(W, NamedSharding(mesh, P("x")))) == 2 * W).all() and (compiled(W) == 2 * W).all()


def over(mesh):
    return jax.device_put(W, NamedSharding(mesh, P("x")))


def within(mesh, entry, place):
    with jax.set_mesh(mesh):
        return entry(place)


whole = jax.jit(double, in_shardings=NamedSharding(mesh, P()))
y, y_whole = over(mesh), jax.device_put(W, NamedSharding(mesh, P()))
batch = jax.device_put(np.ones((2, 8, 8), np.float32), NamedSharding(mesh, P(None, "x")))
for argument in (W, jnp.asarray(W), y_whole, y_whole, jax.device_put(W, NamedSharding(mesh, P(None, None)))):
    assert (whole(argument) == 2 * W).all()
assert (jax.vmap(whole)(jax.device_put(W, NamedSharding(mesh, P("x")))) == 2 * W).all()  # the mapped axis may be split
assert (jax.jit(lambda x: whole(x))(y) == 2 * W).all()  # inside a program it is a constraint
assert (jax.jit(double, in_shardings=NamedSharding(mesh, P(("x",))))(y) == 2 * W).all()


for place in (
    NamedSharding(mesh, P("x")),
    jax.extend.sharding.GSPMDSharding(devices, y.sharding._to_xla_hlo_sharding(1)),
):
    assert jax.device_put(keys, place).sharding.shard_shape((8,)) == (4,)
for wanted in (Layout((0,)), Layout.AUTO):
    for options in ({"in_shardings": Format(wanted)}, {"out_shardings": Format(wanted)}):
        assert (jax.jit(lambda k: k, **options)(keys) == keys).all()
for wanted in ((0, 1), (1, 0)):  # of keys; the words are the fastest axis
    two = keys.reshape(2, 4)
    put = jax.device_put(two, Format(Layout(wanted), jax.sharding.SingleDeviceSharding(devices[0])))
    assert (put == two).all() and jax.random.key_data(put).format.layout.major_to_minor == (*wanted, 2)


def with_pjit():
    with mesh:
        return pjit.pjit(double, in_shardings=P())(y)


def in_turn():
    for _ in range(2):
        whole(y_whole)
    return whole(y)


elsewhere = {
    "jit": lambda: whole(y),
    "in turn": in_turn,
    "pjit": with_pjit,
    "with a mesh": lambda: within(mesh, lambda s: jax.jit(double, in_shardings=s)(y), P()),
    "trees": lambda: jax.jit(lambda a: a, in_shardings=NamedSharding(mesh, P()))({"u": y}),
    "unused": lambda: jax.jit(lambda a: 1, in_shardings=NamedSharding(mesh, P()))(y),
    "static": lambda: jax.jit(lambda n, a: n * a, static_argnums=0, in_shardings=NamedSharding(mesh, P()))(2, y),
    "lower": lambda: whole.lower(y),
    "lower a type": lambda: whole.lower(jax.ShapeDtypeStruct(y.shape, y.dtype, sharding=y.sharding)),
    "trace": lambda: whole.trace(y).lower(lowering_platforms=("cpu", "cuda")),
    "export": lambda: jax.export.export(whole)(y),
    "grad": lambda: jax.grad(lambda x: whole(x).sum())(y),
    "jvp": lambda: jax.jvp(whole, (y_whole,), (y,)),
    "vmap": lambda: jax.vmap(whole)(batch),
    "grad of vmap": lambda: jax.grad(lambda x: jax.vmap(whole)(x).sum())(batch),
}

CASES = [  # what is wrong, the call, the words
    *[
        (
            f"{n}: divides not",
            lambda e=e: e(NamedSharding(mesh, P("y"))),
            [n.strip(), "P('y',)", "axis 0", "(6, 8)", "'y' (of size 4)", "Pad it to 8", "None for this axis"],
        )
        for n, e in ENTRIES.items()
    ],
    *[
        (
            f"{n}: too many entries",
            lambda e=e: e(NamedSharding(mesh, P("x", None, "y"))),
            [n.strip(), "P('x', None, 'y')", "3 dimensions", "write at most 2"],
        )
        for n, e in ENTRIES.items()
    ],
    *[
        (f"{n}: unknown axis", lambda e=e: within(mesh, e, P("z")), [n.strip(), "P('z',)", "'z'", "('x', 'y')"])
        for n, e in ENTRIES.items()
    ],
    *[
        (f"{n}: one axis twice", lambda e=e: within(mesh, e, P("x", "x")), [n.strip(), "P('x', 'x')", "'x' twice"])
        for n, e in ENTRIES.items()
    ],
    *[
        (f"{n}: no mesh", lambda e=e: e(P("x")), [n.strip(), "P('x',)", "jax.set_mesh", "NamedSharding"])
        for n, e in ENTRIES.items()
    ],
    *[(f"{n}: no place", lambda e=e: e("here"), [n.strip(), "'here'", "sharding"]) for n, e in ENTRIES.items()],
    *[
        (
            f"{n}: layout of a compiler",
            lambda e=e: e(Format(Layout.AUTO, NamedSharding(mesh, P("x")))),
            [n.strip(), "Layout.AUTO", "in_shardings or out_shardings"],
        )
        for n, e in ENTRIES.items()
        if n not in ("in_shardings", "out_shardings", "ShapeDtypeStruct")
    ],
    (
        "a layout without a place",
        lambda: jax.make_array_from_callback((6, 8), Format(Layout((1, 0))), lambda i: M[i]),
        ["make_array_from_callback", "has no sharding"],
    ),
    (
        "a layout of parts",
        lambda: ENTRIES["make_array_from_single_device_arrays"](Format(Layout((1, 0)), NamedSharding(mesh, P("x")))),
        ["make_array_from_single_device_arrays takes a sharding", "(1, 0)"],
    ),
    *[
        (
            f"{n} of keys: {spec}",
            lambda e=e, spec=spec: e(NamedSharding(mesh, spec)),
            [n.strip(), f"{spec} has entries for 2 dimensions", "(8,) has rank 1; write at most 1"],
        )
        for n, e in KEYS.items()
        for spec in (P("x", None), P(None, "x"), P(None, None))
    ],
    *[
        (
            f"{n} of keys: layout",
            lambda e=e: e(Format(Layout((0, 1)), jax.sharding.SingleDeviceSharding(devices[0]))),
            ["orders 2 axes", "rank 1"],
        )
        for n, e in KEYS.items()
    ],
    (
        "one key",
        lambda: jax.device_put(keys[0], NamedSharding(mesh, P("x"))),
        ["P('x',)", "array of shape () has rank 0", "write at most 0"],
    ),
    ("axis of no mesh", lambda: NamedSharding(mesh, P("z")), ["'z'", "('x', 'y')"]),
    ("axis twice", lambda: NamedSharding(mesh, P("x", "x")), ["'x' twice"]),
    ("shard_map cut", shard(P("y"), P()), ["in_specs", "argument x", "axis 0, of size 6", "4 parts", "Pad it to 8"]),
    ("shard_map axis", shard(P("z"), P()), ["in_specs", "argument x", "'z'", "('x', 'y')"]),
    ("shard_map result", shard(P(), P("x", None, "y")), ["out_specs", "3 entries", "rank 2", "write at most 2"]),
    ("shard_map result axis", shard(P(), P("z")), ["out_specs", "'z'", "('x', 'y')"]),
    ("shard_map tree", shard((P(), P()), P()), ["in_specs", "2 entries for 1 arguments", "a tuple of one"]),
    ("shard_map mesh", shard((P(),), P(), mesh=None), ["mesh=", "jax.set_mesh"]),
    ("shard_map names", shard(P("x"), P("x"), axis_names={"z"}), ["axis_names", "'z'", "('x', 'y')"]),
    (
        "auto_axes",
        lambda: jax.sharding.auto_axes(double, axes="z", out_sharding=P())(M),
        ["auto_axes", "'z'", "jax.set_mesh"],
    ),
    ("sum", lambda: over(mesh) + over(half), ["argument 0", "argument 1", "[0, 1, 2, 3]", "device_put"]),
    ("order", lambda: over(mesh) + over(backward), ["[7, 6, 5, 4, 3, 2, 1, 0]", "another order", "one mesh"]),
    (
        "in_shardings",
        lambda: jax.jit(double, in_shardings=NamedSharding(half, P("x")))(over(mesh)),
        ["argument 0 (x)", "in_shardings", "[0, 1, 2, 3]", "device_put"],
    ),
    *[
        (f"in_shardings{name}, another order of the devices", call, ["'x'" if name else "(x)", *orders, "device_put"])
        for orders in [["over CPU device ids [0, 1, 2, 3, 4, 5, 6, 7]", "over CPU device ids [7, 6, 5, 4, 3, 2, 1, 0]"]]
        for name, call in {
            "": lambda: jax.jit(double, in_shardings=NamedSharding(backward, P("x")))(over(mesh)),
            " of a compiled program": lambda: compiled(over(backward)),
        }.items()
    ],
    *[
        (
            f"in_shardings of a committed argument: {name}",
            call,
            ["argument", "'x'", "in_shardings say", "spec=P(", "device_put"],
        )
        for name, call in elsewhere.items()
    ],
    (
        "in_shardings of keys",
        lambda: jax.jit(lambda k: k, in_shardings=NamedSharding(mesh, P()))(
            jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("x")))
        ),
        ["argument 0 (k)", "P('x',)", "P()"],
    ),
    (
        "in_shardings, memory",
        lambda: jax.jit(double, in_shardings=NamedSharding(mesh, P("x"), memory_kind="unpinned_host"))(over(mesh)),
        ["argument 0 (x)", "memory_kind=device", "memory_kind=unpinned_host"],
    ),
    (
        "in_shardings, layout",
        lambda: jax.jit(double, in_shardings=Format(Layout((1, 0)), NamedSharding(mesh, P("x"))))(over(mesh)),
        ["argument 0 (x)", "(1, 0)", "(0, 1)", "device_put"],
    ),
    (
        "in_shardings, any layout",
        lambda: jax.jit(double, in_shardings=Format(Layout.AUTO))(over(mesh)),
        ["argument 0 (x)", "Layout.AUTO", "input_formats"],
    ),
    *[
        (
            f"unconstrained {name}",
            lambda name=name: jax.jit(double, **{name: NamedSharding(mesh, P(P.UNCONSTRAINED))})(W),
            [name, "UNCONSTRAINED", "with_sharding_constraint"],
        )
        for name in ("in_shardings", "out_shardings")
    ],
    (
        "order of results",
        lambda: jax.jit(
            double, in_shardings=NamedSharding(mesh, P("x")), out_shardings=NamedSharding(backward, P("x"))
        )(W),
        ["argument 0 (x)", "out_shardings", "another order"],
    ),
    (
        "shard_map devices",
        lambda: jax.shard_map(double, mesh=half, in_specs=P("x"), out_specs=P("x"))(over(mesh)),
        ["argument 0", "shard_map", "[0, 1, 2, 3]"],
    ),
    (
        "constraint devices",
        lambda: lax.with_sharding_constraint(over(mesh), NamedSharding(half, P("x"))),
        ["constrained", "[0, 1, 2, 3]", "device_put"],
    ),
    (
        "abstract",
        lambda: jax.device_put(W, NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("x"))),
        ["no devices", "abstract"],
    ),
    ("too few", lambda: jax.make_mesh((4, 4), ("x", "y")), ["(4, 4)", "16 devices", "8"]),
    ("too few given", lambda: jax.make_mesh((2, 2), ("x", "y"), devices=devices[:3]), ["(2, 2)", "4 devices", "3"]),
    ("names", lambda: Mesh(np.array(devices).reshape(2, 4), ("x",)), ["(2, 4)", "('x',)"]),
    ("one name twice", lambda: Mesh(np.array(devices).reshape(2, 4), ("x", "x")), ["('x', 'x')"]),
    ("psum axis", shard(P("x"), P("x"), f=lambda v: lax.psum(v, "z")), ["'z'", "'x', 'y'", "shard_map"]),
    ("axis_index", shard(P("x"), P("x"), f=lambda v: v * lax.axis_index("z")), ["'z'", "'x', 'y'"]),
    ("ppermute", shard(P("x"), P("x"), f=lambda v: lax.ppermute(v, "x", [(0, 5)])), ["perm", "'x'", "0 to 1", "5"]),
    ("pshuffle", shard(P("x"), P("x"), f=lambda v: lax.pshuffle(v, "x", [0])), ["perm", "'x'", "0 to 1", "[0]"]),
    (
        "all_to_all",
        shard(P("x"), P("x"), f=lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True)),
        ["length 3", "axis 0", "by 2", "'x'"],
    ),
    (
        "all_to_all axis",
        shard(P("x"), P("x"), f=lambda v: lax.all_to_all(v, "x", 1, 7)),
        ["concat_axis", "7", "0 to 1"],
    ),
    (
        "psum_scatter",
        shard(P("x"), P("x"), f=lambda v: lax.psum_scatter(v, "x", tiled=True)),
        ["length 3", "axis 0", "by 2", "'x'"],
    ),
    ("all_gather", shard(P("x"), P("x"), f=lambda v: lax.all_gather(v, "x", axis=5)), ["axis is 5", "0 to 2"]),
    (
        "groups",
        shard(P("x"), P("x"), f=lambda v: lax.psum(v, "x", axis_index_groups=[[0]])),
        ["groups", "'x'", "0 to 1", "[[0]]"],
    ),
    ("equal result", shard(P("x"), P()), ["out_specs", "'x'", "psum"]),
    ("device mesh", lambda: mesh_utils.create_device_mesh((3, 3)), ["(3, 3)", "9 devices", "8"]),
    ("axis types", lambda: jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,)), ["axis_types", "2 names"]),
    ("explicit dot", lambda: explicit(lambda a: a @ a), ["8@x,8@y", "'y'", "'x'", "out_sharding"]),
    (
        "explicit meshes",
        lambda: explicit(lambda a: a + jax.device_put(W, NamedSharding(tall, P("x")))),
        ["'x': 2", "'x': 4", "reshard"],
    ),
    (
        "ShapeDtypeStructs",
        lambda: jax.jit(lambda a, b: a + b).lower(
            *(jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(m, P("x"))) for m in (mesh, half))
        ),
        ["argument 0 (a)", "argument 1 (b)", "[0, 1, 2, 3]"],
    ),
    (
        "compiled",
        lambda: compiled(jax.device_put(W, devices[3])),
        ["argument 'x'", "id=3", "compiled for", "device_put"],
    ),
    (
        "compiled split",
        lambda: compiled(jax.device_put(W, NamedSharding(mesh, P("y")))),
        ["P('y',)", "P('x',)", "device_put"],
    ),
    (
        "parts of NumPy",
        lambda: jax.make_array_from_single_device_arrays((8, 8), NamedSharding(mesh, P("x")), [W]),
        ["arrays[0]", "numpy.ndarray", "device_put"],
    ),
    (
        "size of parts",
        lambda: jax.make_array_from_single_device_arrays((8, 8), NamedSharding(mesh, P("x")), parts),
        ["(4, 8)", "(3, 8)"],
    ),
    (
        "callback",
        lambda: jax.make_array_from_callback((8, 8), NamedSharding(mesh, P("x")), lambda i: np.ones(3)),
        ["(4, 8)", "(3,)"],
    ),
    (
        "unreduced",
        lambda: jax.device_put(W, NamedSharding(mesh, P(unreduced={"x"}))),
        ["unreduced={'x'}", "'x'", "AxisType.Explicit"],
    ),
    ("reduced", shard(P(reduced={"x"}), P()), ["in_specs", "argument x", "reduced={'x'}"]),
    ("no such platform", lambda: jax.devices("gpu"), ["'gpu'", "cpu"]),
    (
        "pmap places",
        lambda: jax.pmap(double, devices=devices[:2])(jax.device_put(W[:2], devices[5])),
        ["argument 0 (x)", "[5]", "[0, 1]"],
    ),
    ("pmap axes", lambda: jax.pmap(double, in_axes=(0, 0))(W), ["in_axes", "2 entries for 1"]),
    ("pmap sizes", lambda: jax.pmap(lambda a, b: a)(W, M), ["8", "(8, 8)", "6", "(6, 8)"]),
    ("pmap", lambda: jax.pmap(double)(np.ones((9, 2))), ["size 9", "8 devices", "jax_num_cpu_devices"]),
    ("pmap devices", lambda: jax.pmap(double, devices=devices[:2])(np.ones((3, 2))), ["size 3", "devices has 2"]),
]

for what, call, words in CASES:
    try:
        call()
    except (
        ValueError,
        TypeError,
        NameError,
        RuntimeError,
        ShardingTypeError,
    ) as error:  # NotImplementedError is a RuntimeError
        missing = [w for w in words if w not in str(error)]
        if missing:
            print(what, "| lacks", missing, "|", str(error)[:300])
    except Exception as error:
        print(what, "|", type(error).__name__, str(error)[:300])
    else:
        print(what, "| is accepted")
print(len(CASES), "cases")
