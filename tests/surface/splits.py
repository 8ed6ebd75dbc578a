"""Every record of the surface with split operands, on four CPU devices with two explicit axes.

    python splits.py run OUT [PREFIX...]      types of results and gradients, or errors, with the installed `jax`
    python splits.py compare THEIRS OURS      differences between two such files
    python splits.py check [PREFIX...]        our own properties; prints what violates them

The properties: an error is a `ShardingTypeError` or one that whole operands raise, too. The type of a gradient is that of
its argument. With BEDRAX_ALL_RECORDS=1, all results are compiled and have the values of whole operands; else a sample.
"""

import json
import os
import sys
import warnings
import zlib

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
import records
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
first = lambda axes: lambda n: [axes, *[None] * (n - 1)]
last = lambda axes: lambda n: [*[None] * (n - 1), axes]
whole = lambda n: [None] * n
# The splits of the first operand with axes, the second, and the others.
PLANS = {
    "first axis": [first("x")],
    "last axis": [last("x")],
    "both axes": [lambda n: ["x", *[None] * (n - 2), "y"] if n > 1 else ["x"]],
    "two mesh axes": [last(("x", "y"))],
    "first operand": [first("x"), whole],
    "second operand": [whole, first("x"), whole],
    "first operand, last axis": [last("x"), whole],
    "second operand, last axis": [whole, last("x"), whole],
    "different axes": [last("x"), first("y"), whole],
}


# Differences from upstream, by the name of the record, with the reasons. `docs/differences.md` has them, too.
EXPECTED = {
    "Array.at[all].set": "the value is written everywhere, so the result has its split",
    "lax.with_sharding_constraint": "a gradient has the type of its argument",
    "numpy.frexp": "both results are split like the operand",
    **dict.fromkeys(
        ("random.dirichlet", "random.multivariate_normal"), "samples are split like the parameters, or an error"
    ),
    **dict.fromkeys(
        ("numpy.poly", "numpy.polyval", "image.scale_and_translate"), "each device needs every coefficient: an error"
    ),
    "lax.scaled_dot": "contracted axes that are split in both operands are an error, as in `dot`",
}


def fits(shape, spec):
    """The spec without axes that do not divide the shape."""
    parts = [4 if isinstance(e, tuple) else 2 for e in spec]
    return P(*(e if e is None or (n and n % k == 0) else None for n, e, k in zip(shape, spec, parts, strict=True)))


def text(t):
    """The spec of a type, without None at its end."""
    entries = [e[0] if isinstance(e, tuple) and len(e) == 1 else e for e in getattr(t.sharding, "spec", ())]
    while entries and not entries[-1]:
        entries.pop()
    return str(tuple(entries))


def attempt(fun, *types):
    """The specs of the results of a function, or the classes of an error and its text."""
    try:
        return [text(t) for t in jax.tree.leaves(jax.eval_shape(fun, *types)) if hasattr(t, "sharding")]
    except Exception as error:
        return {"raised": [c.__name__ for c in type(error).__mro__], "text": " ".join(str(error).split())[:200]}


def cases(*prefixes):
    """(name, plan, function of the arrays of a record, the sum of its results, positions of floats, arrays, specs)"""
    warnings.simplefilter("ignore")
    for name, function in records.public_functions():
        record = None if name in records.ELSEWHERE else records.record(name, function)
        if record is None or (prefixes and not name.startswith(prefixes)):
            continue
        leaves, tree = jax.tree.flatten((record.args, record.kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, np.ndarray | np.generic)]
        arrays = [leaves[i] for i in places]
        ranked = [j for j, x in enumerate(arrays) if np.ndim(x)]

        def call(*given, leaves=leaves, tree=tree, places=places, record=record):
            filled = dict(zip(places, given, strict=True))
            args, kwargs = jax.tree.unflatten(tree, [filled.get(i, x) for i, x in enumerate(leaves)])
            return record.function(*args, **kwargs)

        def total(*given, call=call):
            found = [x for x in jax.tree.leaves(call(*given)) if hasattr(x, "dtype")]
            return sum((jnp.abs(x).sum() for x in found if jnp.issubdtype(x.dtype, jnp.inexact)), 0.0)

        floats = tuple(j for j, x in enumerate(arrays) if x.dtype.kind == "f")
        seen = set()
        for plan, splits in PLANS.items():
            count = sum(s is not whole for s in splits)
            specs = {
                j: fits(arrays[j].shape, splits[min(k, len(splits) - 1)](arrays[j].ndim)) for k, j in enumerate(ranked)
            }
            if count <= len(ranked) and any(map(any, specs.values())) and str(specs) not in seen:
                seen.add(str(specs))
                yield name, plan, call, total, floats, arrays, specs


def types_of(arrays, specs=None):
    place = lambda j: NamedSharding(mesh, specs[j]) if specs and j in specs else None
    return [jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=place(j)) for j, x in enumerate(arrays)]


def run(out, *prefixes):
    found = {}
    for name, plan, call, total, floats, arrays, specs in cases(*prefixes):
        types = types_of(arrays, specs)
        for what, fun in {"": call, ": gradient": jax.grad(total, floats) if floats else None}.items():
            if fun is not None and type(attempt(fun, *types_of(arrays))) is list:
                with jax.set_mesh(mesh):
                    found[f"{name}: {plan}{what}"] = attempt(fun, *types)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


def compare(theirs, ours):
    """Print unexpected differences. A result, or a `ShardingTypeError`, in place of an error of upstream is expected."""
    with open(theirs, encoding="utf-8") as a, open(ours, encoding="utf-8") as b:
        theirs, ours = json.load(a), json.load(b)
    wrong = 0
    for name in theirs.keys() & ours.keys():
        a, b = theirs[name], ours[name]
        if type(a) is dict and type(b) is dict:
            same = a["raised"][0] in b["raised"] or b["raised"][0] == "ShardingTypeError"
        else:
            same = type(a) is dict or a == b
        if not same and name.split(":")[0] not in EXPECTED:
            wrong += 1
            print(name, a, b, sep="\n    ")
    print(f"{wrong} of {len(theirs)} differ")
    return bool(wrong)


def difference(call, arrays, types):
    """The fault of the values of the compiled function of split arrays; None if they are those of whole arrays."""
    place = lambda x, t: jax.device_put(x, t.sharding) if t.sharding else x
    try:
        with jax.set_mesh(mesh):
            got = jax.tree.leaves(jax.jit(call)(*map(place, arrays, types)))
            got = [np.asarray(x) if hasattr(x, "dtype") and hasattr(x.dtype, "kind") else x for x in got]
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    for x, y in zip(got, jax.tree.leaves(call(*arrays)), strict=True):
        if isinstance(x, np.ndarray) and x.dtype.kind in "fciub":
            if not np.allclose(x, y, rtol=1e-3, atol=1e-4, equal_nan=True):
                return "values differ"
    return None


def check(*prefixes):
    every = bool(os.environ.get("BEDRAX_ALL_RECORDS"))
    count = compiled = 0
    for name, plan, call, total, floats, arrays, specs in cases(*prefixes):
        types, count = types_of(arrays, specs), count + 1
        for what, fun in {"value": call, "gradient": jax.grad(total, floats) if floats else None}.items():
            if fun is None:
                continue
            plain = attempt(fun, *types_of(arrays))
            with jax.set_mesh(mesh):
                found = attempt(fun, *types)
            if type(found) is dict:
                if type(plain) is not dict and "ShardingTypeError" not in found["raised"]:
                    print("error", name, plan, what, specs, found["raised"][0], found["text"][:120], sep="\t")
                continue
            if what == "gradient" and found != [text(types[j]) for j in floats]:
                print("gradient", name, plan, specs, found, sep="\t")
            if what == "value" and (every or zlib.crc32(f"{name}{plan}".encode()) % 60 == 0):
                compiled += 1
                if (wrong := difference(call, arrays, types)) is not None:
                    print("value", name, plan, specs, wrong, sep="\t")
    print("cases", count, compiled, sep="\t")


if __name__ == "__main__":
    sys.exit({"run": run, "compare": compare, "check": check}[sys.argv[1]](*sys.argv[2:]))
