"""Values of each kind, pickled in one process and used in others.

    python values.py make FOLDER                     write the values; print the results of the probes of what was written
    python values.py use FOLDER KINDS [PACKAGE...]   import the packages, read values, print the results of their probes

KINDS are names with commas. The result of a probe is text: what it returns, or the type and the first line of its error.
"""

import importlib
import json
import pickle
import re
import sys
from pathlib import Path

import numpy as np

ROW = np.arange(1, 4, dtype=np.float32)


def double(x):
    return x * 2 + x.sum()


def first(x):
    return (x * 2 + x.sum())[0]


def square(x):
    return x * x


def square_tangent(primals, tangents):
    return square(*primals), 2 * primals[0] * tangents[0]


def square_forward(x):
    return x * x, x


def square_backward(x, ct):
    return (2 * x * ct,)


def made():
    """The values: name -> value."""
    import jax
    import jax.numpy as jnp
    from jax import export
    from jax.experimental import checkify, sparse
    from jax.sharding import NamedSharding, PartitionSpec

    with_jvp = jax.custom_jvp(square)
    with_jvp.defjvp(square_tangent)
    with_vjp = jax.custom_vjp(square)
    with_vjp.defvjp(square_forward, square_backward)
    row, key, mesh = jnp.asarray(ROW), jax.random.key(7), jax.make_mesh((1,), ("x",))
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    try:
        jax.jit(bool)(1.0)
    except jax.errors.TracerBoolConversionError as e:
        error = e
    return {
        "array": row,
        "bfloat16 array": row.astype(jnp.bfloat16),
        "sharded array": jax.device_put(row, sharding),
        "reference": jax.new_ref(row),
        "sparse array": sparse.BCOO.fromdense(jnp.diag(row)),
        "key": key,
        "keys": jax.random.split(key, 3),
        "jit": jax.jit(double),
        "grad": jax.grad(first),
        "value_and_grad": jax.value_and_grad(first),
        "jacfwd": jax.jacfwd(double),
        "hessian": jax.hessian(first),
        "vmap": jax.vmap(double),
        "checkpoint": jax.checkpoint(double),
        "custom_jvp": with_jvp,
        "custom_vjp": with_vjp,
        "linear function": jax.linearize(double, row)[1],
        "Partial": jax.tree_util.Partial(double),
        "ufunc": jnp.add,
        "type of elements": jnp.bfloat16,
        "program": jax.make_jaxpr(double)(row),
        "exported program": export.export(jax.jit(double))(row),
        "primitive": jax.lax.sin_p,
        "mesh": mesh,
        "PartitionSpec": PartitionSpec("x"),
        "NamedSharding": sharding,
        "SingleDeviceSharding": row.sharding,
        "tree": jax.tree.structure({"a": 1, "b": (2, jax.tree_util.Partial(double, 3))}),
        "ShapeDtypeStruct": jax.ShapeDtypeStruct((3,), jnp.float32),
        "symbolic size": export.symbolic_shape("b")[0],
        "error of checkify": checkify.checkify(double)(row)[0],
        "exception": error,
    }


ARRAY = {
    "sum": lambda x: x.sum(),
    "add": lambda x: x + 1,
    "add to NumPy": lambda x: ROW + x,
    "index": lambda x: x[0],
    "slice": lambda x: x[1:],
    "wrong index": lambda x: x[0, 0, 0, 0],
    "wrong shape": lambda x: x + np.ones(2, np.float32),
    "iterate": lambda x: list(x),
    "compare": lambda x: x == x,
    "negate": lambda x: -x,
    "set": lambda x: x.at[0].set(5),
    "set in place": lambda x: x.__setitem__(0, 1),
    "product": lambda x: x @ x,
    "transpose": lambda x: x.T,
    "namespace": lambda x: x.__array_namespace__().__name__,
    "devices": lambda x: x.devices(),
    "sharding": lambda x: x.sharding,
    "convert": lambda x: x.astype(np.int32),
    "no such method": lambda x: x.sums(),
}
FUNCTION = {
    "call": lambda f: f(ROW),
    "wrong call": lambda f: f(),
    "program": lambda f: importlib.import_module("bedrax.core.staging").make_jaxpr(f)(ROW),
}
JIT = {
    **FUNCTION,
    "trace": lambda f: f.trace(ROW).jaxpr,
    "lower": lambda f: f.lower(ROW).as_text(),
    "compile": lambda f: f.lower(ROW).compile()(ROW),
}
KEY = {
    "add": lambda k: k + 1,
    "compare": lambda k: k == k,
    "shape": lambda k: k.shape,
    "flatten": lambda k: k.reshape(-1),
    "devices": lambda k: k.devices(),
    "text": str,
}
TEXT = {"text": str, "repr": repr}
SHARDING = {"devices": lambda s: s.device_set, "shard": lambda s: s.shard_shape((4,)), "text": str}
PROBES = {
    **dict.fromkeys(("array", "bfloat16 array", "sharded array"), ARRAY),
    "reference": {"read": lambda x: x[...], "write": lambda x: (x.__setitem__(0, 9), x[0] + 1), "text": str},
    "sparse array": {
        "sum": lambda x: x.sum(),
        "dense": lambda x: x.todense() + 1,
        "product": lambda x: x @ ROW,
        "add": lambda x: x + 1,
    },
    **dict.fromkeys(("key", "keys"), KEY),
    **dict.fromkeys(
        "grad,value_and_grad,jacfwd,hessian,vmap,checkpoint,custom_jvp,custom_vjp,linear function,Partial".split(","),
        FUNCTION,
    ),
    "jit": JIT,
    "ufunc": {"call": lambda f: f(ROW, ROW) * 2, "reduce": lambda f: f.reduce(ROW).sum()},
    "type of elements": {"call": lambda t: t(1.5) + 1, "name": lambda t: np.dtype(t).name},
    "program": {
        "text": str,
        "equations": lambda p: [str(e.primitive) for e in p.eqns],
        "types": lambda p: [a.update(shape=()) for a in p.in_avals],
        "sharding": lambda p: p.in_avals[0].sharding,
    },
    "exported program": {"call": lambda e: e.call(ROW) + 1, "wrong call": lambda e: e.call(ROW[:2]), "text": str},
    "primitive": {"bind": lambda p: p.bind(ROW).sum(), "wrong": lambda p: p.bind(np.arange(3))},
    "mesh": {"shape": lambda m: dict(m.shape), "devices": lambda m: m.devices, "text": str},
    "PartitionSpec": TEXT,
    "NamedSharding": SHARDING,
    "SingleDeviceSharding": SHARDING,
    "tree": {"make": lambda t: t.unflatten([1, 2, 3]), "text": str, "wrong": lambda t: t.unflatten([1])},
    "ShapeDtypeStruct": {"text": str, "sharding": lambda s: s.sharding},
    "symbolic size": {"add": lambda b: b + 1, "compare": lambda b: b > 0, "undecided": lambda b: b > 2},
    "error of checkify": {"get": lambda e: e.get(), "throw": lambda e: e.throw()},
    "exception": {"text": lambda e: str(e).partition("\n")[0], "type": lambda e: type(e).__mro__},
}


def described(x):
    """A value as text, without addresses."""
    if isinstance(x, list | tuple):
        return f"{type(x).__name__}{[described(y) for y in x]}"
    if hasattr(x, "dtype") and hasattr(x, "__array__") and isinstance(x.dtype, np.dtype):
        return f"{type(x).__name__} {x.dtype} {np.asarray(x).tolist()}"
    return re.sub(r" at 0x\w+", "", f"{type(x).__name__} {x}")


def results(value, probes):
    found = {}
    for name, probe in probes.items():
        try:
            found[name] = described(probe(value))
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return found


def main(what, folder, kinds="", *packages):
    if what == "make":
        import cloudpickle

        for name, value in made().items():
            Path(folder, name).write_bytes(cloudpickle.dumps(value))
    for package in packages:
        importlib.import_module(package)
    names = kinds.split(",") if kinds else PROBES
    print(json.dumps({n: results(pickle.loads(Path(folder, n).read_bytes()), PROBES[n]) for n in names}))


main(*sys.argv[1:])
