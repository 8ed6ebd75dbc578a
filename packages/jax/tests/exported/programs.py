"""The programs that travel between implementations: written by one, called by the other.

python programs.py write FILE [NAME ...]    with an implementation of `jax`: each program, and its results
python programs.py read FILE                with another one: calls them, and compares
python programs.py move FILE                the same, with arguments moved by one unit in the last place: names those
                                            whose results move more than the tolerance

A reader may refuse a program that has operations of a later version of StableHLO than that of its jaxlib, if it names
both versions; those are listed.
"""

import base64
import collections
import json
import os
import pathlib
import re
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src import effects
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir.dialects import stablehlo

Point = collections.namedtuple("Point", "x y")
export.register_namedtuple_serialization(Point, serialized_name="tests.exported.Point")


class Tagged:
    def __init__(self, value, tag):
        self.value, self.tag = value, tag


jax.tree_util.register_pytree_node(Tagged, lambda t: ((t.value,), t.tag), lambda tag, c: Tagged(c[0], tag))
export.register_pytree_node_serialization(
    Tagged,
    serialized_name="tests.exported.Tagged",
    serialize_auxdata=str.encode,
    deserialize_auxdata=lambda data: bytes(data).decode(),
)


def arange(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape).astype(dtype)


def symbolic(text, dtype=np.float32, **options):
    return jax.ShapeDtypeStruct(export.symbolic_shape(text, **options), dtype)


AUTO = (AxisType.Auto,) * 2  # releases differ in the default
MESH = AbstractMesh((4, 2), ("a", "b"), axis_types=AUTO)


def split(*partitions, shape=(8, 4)):
    """A type that is sharded over an abstract mesh."""
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(MESH, PartitionSpec(*partitions)))


def placed(x, *partitions):
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"), axis_types=AUTO)
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*partitions)))


DTYPES = (
    "bool int8 int16 int32 uint8 uint16 uint32 float16 float32 complex64 bfloat16 int4 uint4 float8_e4m3fn"
    " float8_e5m2 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e3m4 float8_e4m3 float8_e8m0fnu float4_e2m1fn"
).split()


def every_dtype(xs):
    return {name: jnp.flip(x) for name, x in xs.items()}


def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w["w"] + w["b"]) ** 2)


def normalized(x):
    return (x - x.mean(0)) / x.shape[0], jnp.concatenate([x, x[: x.shape[0] // 2]])


class _Told(effects.Effect):
    __eq__ = lambda self, other: type(self) is type(other)
    __hash__ = lambda self: hash(type(self))


class Told(_Told):
    """An ordered effect."""


class ToldToo(Told):
    """Another ordered effect."""


class Seen(_Told):
    """An unordered effect."""


for known in (Told, ToldToo, Seen):
    effects.lowerable_effects.add_type(known)
    effects.control_flow_allowed_effects.add_type(known)
    if known is not Seen:
        effects.ordered_effects.add_type(known)

tell_p = Primitive("tell")
tell_p.def_effectful_abstract_eval(lambda x, *, effect: (x, {effect}))
tell_p.def_impl(lambda x, *, effect: 2 * x)


def lower_tell(ctx, x, *, effect):
    if effects.ordered_effects.contains(effect):
        token = stablehlo.AfterAllOp([ctx.tokens_in.get(effect)]).result
        ctx.set_tokens_out(mlir.TokenSet({effect: token}))
    return [stablehlo.AddOp(x, x).result]


mlir.register_lowering(tell_p, lower_tell)


def told(x, n):
    """Operations with effects that double `x`, some of them in a loop."""
    x = tell_p.bind(tell_p.bind(x, effect=Told()), effect=Seen())
    x = lax.fori_loop(0, n, lambda _, c: tell_p.bind(c, effect=ToldToo()), x)
    return tell_p.bind(x, effect=Told()) * x.shape[0]


def on_blocks(x):
    around = lambda x: lax.ppermute(x, "a", [(0, 1), (1, 2), (2, 3), (3, 0)])
    body = lambda x: (lax.psum(x, "a") + lax.axis_index("b"), around(x), lax.all_gather(x, "b", axis=1, tiled=True))
    specs = PartitionSpec(None, "b"), PartitionSpec("a", "b"), PartitionSpec("a")
    return jax.shard_map(body, mesh=MESH, in_specs=PartitionSpec("a", "b"), out_specs=specs, check_vma=False)(2 * x)


@jax.jit
def sine(x):
    return lax.with_sharding_constraint(jnp.sin(x), NamedSharding(MESH, PartitionSpec(None, "b")))


def on_some_blocks(x):
    """Blocks along one axis; a function that is called inside and outside."""
    body = lambda x: sine(lax.psum(x, "a") * 2) + lax.axis_index("a")
    blocks = PartitionSpec("a")
    return jax.shard_map(body, mesh=MESH, in_specs=blocks, out_specs=blocks, axis_names={"a"})(sine(x) * 2)


def on_blocks_of_blocks(x):
    columns, rows = PartitionSpec(None, "b"), PartitionSpec("a")
    inner = lambda x: lax.psum(x + lax.axis_index("b"), "b")
    body = lambda x: jax.shard_map(inner, in_specs=columns, out_specs=PartitionSpec(), axis_names={"b"})(x)
    return jax.shard_map(body, mesh=MESH, in_specs=rows, out_specs=rows, axis_names={"a"})(x * 2)


# name: (function, its types, its arguments, options of export, order of derivatives)
PROGRAMS = {
    "plain": (lambda x, y: jnp.sin(x) @ y, None, (arange(2, 3), arange(3, 2)), {}, 0),
    "trees": (
        lambda a, *, k: {"out": [Point(a[0]["x"], (k,)), a[1], None], "tag": Tagged(a[0]["x"] + 1, "right")},
        None, (({"x": arange(2), "y": None}, collections.OrderedDict(z=arange(1), b=arange(3))),), {}, 0,
    ),
    "dtypes": (every_dtype, None, ({name: arange(3, dtype=jnp.dtype(name)) for name in DTYPES},), {}, 0),
    "keys": (lambda k: jax.random.uniform(k, (4,)), None, "key", {}, 0),
    "symbolic": (normalized, lambda: (symbolic("2*b, c", constraints=["b >= 2"]),), (arange(6, 3),), {}, 0),
    "dimensions": (
        lambda *xs: sum(x.sum() for x in xs),
        lambda: [symbolic(t, scope=s) for s in [export.SymbolicScope()] for t in (
            "a", "b", "floordiv(a, 2) + 1", "mod(a, 3) + 1", "max(a, b)", "b^2 - 1", "3*a*b - 2*a")],
        (arange(5), arange(3), arange(3), arange(3), arange(5), arange(8), arange(35)), {}, 0,
    ),
    "platforms": (lambda x: lax.cumsum(jnp.sin(x)), lambda: (symbolic("b"),), (arange(4),), {"platforms": ("cuda", "cpu")}, 0),
    "derivatives": (loss, None, ({"w": arange(3, 2) / 7, "b": arange(2)}, arange(4, 3) / 9), {}, 2),
    "integers": (lambda x, n: x * n, None, (arange(3), arange(3, dtype=np.int32)), {}, 1),
    "disabled": (
        lambda x: x + 1, None, (arange(2),),
        {"disabled_checks": [export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("mine")]}, 0,
    ),
    "lapack": (lambda x: jnp.linalg.eigh(x @ x.T)[0], None, (arange(3, 3),), {}, 0),
    "convention 9": (lambda x: jnp.cos(x), lambda: (symbolic("b"),), (arange(3),), {}, 0),
    "loops": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(2), x), None, (arange(5, 2),), {}, 0),
    "split": (
        lambda x, y: (x @ y, jnp.sum(x)), lambda: (split("a", "b"), split(None, ("a", "b"), shape=(4, 8))),
        "placed", {}, 1,
    ),
    "effects": (told, None, (arange(3), np.int32(2)), {}, 0),
    "effects of any size": (
        told, lambda: (symbolic("b"), np.int32(0)), (arange(3), np.int32(2)), {"platforms": ("tpu", "cpu")}, 0,
    ),
    "blocks": (on_blocks, lambda: (split("a", "b"),), "a placed one", {}, 1),
    "some blocks": (on_some_blocks, lambda: (split("a", "b"),), "a placed one", {}, 1),
    "blocks of blocks": (on_blocks_of_blocks, lambda: (split("a", "b"),), "a placed one", {}, 0),
}  # fmt: skip


MOVES = np.random.default_rng(0)


def moved(x):
    """An array of 32-bit floats with each element moved by one unit in the last place, up or down."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        return x
    return np.where(x == 0, x, np.nextafter(x, MOVES.choice(np.float32([np.inf, -np.inf]), x.shape)))


def values(name, move=False):
    given = PROGRAMS[name][2]
    if move and not isinstance(given, str):
        return jax.tree.map(moved, given)
    if given == "key":
        return (jax.random.key(7),)
    if given == "a placed one":
        return (placed(arange(8, 4), "a", "b"),)
    if given == "placed":
        return placed(arange(8, 4), "a", "b"), placed(arange(4, 8), None, ("a", "b"))
    return given


def exported(name):
    function, specs, _, options, _ = PROGRAMS[name]
    jax.config.update("jax_export_calling_convention_version", 9 if name == "convention 9" else 10)
    keywords = {"k": np.float32(3)} if name == "trees" else {}
    return export.export(jax.jit(function), **options)(*(specs() if specs else values(name)), **keywords)


def computed(program, name, move=False):
    """The results of a program, and its derivatives, as lists of numbers."""
    args, order = values(name, move), PROGRAMS[name][4]
    keywords = {"k": np.float32(3)} if name == "trees" else {}
    call = lambda *args: program.call(*args, **keywords)
    results = [call(*args)]
    for _ in range(order):
        call = jax.grad(lambda *args, call=call: sum(jnp.sum(x) for x in jax.tree.leaves(call(*args))))
        results.append(call(*args))
    leaves = [np.asarray(x) for x in jax.tree.leaves(results)]
    wide = [x.astype(np.complex64) for x in leaves]
    return {
        "trees": [str(jax.tree.map(lambda _: 0, jax.tree.leaves(r))) for r in results],
        "dtypes": [x.dtype.name for x in leaves],
        "shapes": [list(x.shape) for x in leaves],
        "values": [[[float(v.real), float(v.imag)] for v in x.ravel()] for x in wide],
    }


def facts(program):
    """The attributes of a program that all implementations share."""
    return {
        "fun_name": program.fun_name,
        "in_avals": [a.str_short(short_dtypes=True) for a in program.in_avals],
        "out_avals": [a.str_short(short_dtypes=True) for a in program.out_avals],
        "nr_devices": program.nr_devices,
        "platforms": list(program.platforms),
        "checks": [str(c) for c in program.disabled_safety_checks],
        "kept": list(program.module_kept_var_idx),
        "version": program.calling_convention_version,
        "effects": [
            sorted(type(e).__name__ for e in some) for some in (program.ordered_effects, program.unordered_effects)
        ],
        "symbolic": program.uses_global_constants,
    }


def written(name):
    program = exported(name)
    blob = bytes(program.serialize(PROGRAMS[name][4]))
    return {"blob": base64.b64encode(blob).decode(), "facts": facts(program), "computed": computed(program, name)}


def check(name, entry, move=False):
    """Read a program that another implementation wrote; raise AssertionError if it differs."""
    program = export.deserialize(bytearray(base64.b64decode(entry["blob"])))
    found = {name: fact for name, fact in facts(program).items() if name in entry["facts"]}
    assert found == entry["facts"], (found, entry["facts"])
    got, expected = computed(program, name, move), entry["computed"]
    for what in ("trees", "dtypes", "shapes"):
        assert got[what] == expected[what], (what, got[what], expected[what])
    for x, y in zip(got["values"], expected["values"], strict=True):
        # An eigenvalue near zero has the absolute error of the largest one: tolerances scale with the largest value.
        largest = np.max(np.abs(y), where=np.isfinite(y), initial=1.0)
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=max(1e-5, 1e-6 * largest), err_msg=name)
    assert program.has_vjp() == (PROGRAMS[name][4] > 0)


def newer(error):
    """Whether an error states that a program has a later version of StableHLO than the installed jaxlib."""
    found = re.search(
        r"in version ([\d.]+) of StableHLO and has .* newer than version ([\d.]+), which jaxlib", str(error)
    )
    return found is not None and int(found[1].split(".")[1]) > int(found[2].split(".")[1])


def main(action, file, *names):
    if action == "write":
        entries = {name: written(name) for name in names or PROGRAMS}
        pathlib.Path(file).write_text(json.dumps(entries), encoding="utf-8")
        return None
    entries = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    bad, refused = 0, []
    for name, entry in entries.items():
        try:
            check(name, entry, action == "move")
        except Exception as error:
            if newer(error):
                refused.append(name)
                continue
            bad += 1
            print(name, type(error).__name__, str(error)[:1500])
    print("refused:", json.dumps(refused))
    return f"{bad} of {len(entries)} programs" if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
