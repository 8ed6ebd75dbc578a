"""Every record of the surface with arguments of other kinds, on this `jax` and on another, and the differences.

`run OUT [PREFIX...] [=KIND...]` calls the public functions whose names start with a prefix, with the installed `jax`
and some kinds of arguments, and writes the results. `compare THEIRS OURS` prints the differences: in errors,
structure,
type, weak type, shape, and value. It fails on a difference that `expected_differences.py` does not list. `page` prints
that list as the table of `docs/differences.md`.
"""

import collections
import contextlib
import pickle
import re
import signal
import sys
import warnings
from pathlib import Path

import expected_differences
import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "surface"))
VALUES = {"bfloat16": 0.1, "float16": 2e-2, "float32": 2e-3, "complex64": 2e-3}  # tolerance of values, by dtype


def _first(x):
    return x.reshape(-1)[0]


def _number(x, kind=None):
    return (kind or (lambda v: v))(_first(x).item()) if x.size else x


def _floats(change):
    return lambda x: change(x) if x.dtype.kind == "f" else x


# name -> array of the record -> its replacement
KINDS = {
    "given": lambda x: x,
    "0-d": lambda x: np.asarray(_first(x)) if x.size else x,
    "empty": lambda x: x[:0] if x.ndim else x,
    "float": _number,
    "int": _floats(lambda x: _number(x, lambda v: int(5 * v))),
    "int8": _floats(lambda x: (5 * x).astype(np.int8)),
    "uint8": _floats(lambda x: (5 * x).astype(np.uint8)),
    "bool": _floats(lambda x: x > 0.5),
    "float16": _floats(lambda x: x.astype(np.float16)),
    "bfloat16": _floats(lambda x: x.astype(jax.numpy.bfloat16)),
}


def _described(x):
    """(kind, dtype, weak type, shape, values) of a leaf."""
    if isinstance(x, jax.Array):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            return "key", str(x.dtype), False, x.shape, np.asarray(jax.random.key_data(x))
        wide = x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x
        return "array", x.dtype.name, bool(x.aval.weak_type), x.shape, np.asarray(wide)
    if isinstance(x, np.ndarray | np.generic | bool | int | float | complex):
        return type(x).__name__, str(np.asarray(x).dtype), False, np.shape(x), np.asarray(x)
    return type(x).__name__, "", False, (), None


def _late(*_):
    raise TimeoutError


def run(out, *chosen):
    """Write the result of each record for each kind of arguments."""
    import records

    prefixes = tuple(x for x in chosen if not x.startswith("="))
    kinds = [x[1:] for x in chosen if x.startswith("=")] or KINDS

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    with open(out, "wb") as file:
        for name, function in records.public_functions():
            if name in records.ELSEWHERE or (prefixes and not name.startswith(prefixes)):
                continue
            if (record := records.record(name, function)) is not None:
                for kind in kinds:
                    pickle.dump(((name, kind), _result(record, KINDS[kind])), file)
                file.flush()


def _result(record, change):
    """("ok", structure, leaves), or ("error", type, text, names of the type and its bases)."""
    args, kwargs = jax.tree.map(
        lambda x: change(x) if isinstance(x, np.ndarray | np.generic) else x, (record.args, record.kwargs)
    )
    signal.alarm(30)
    try:
        leaves, tree = jax.tree.flatten(record.function(*args, **kwargs))
        return "ok", str(tree), [_described(x) for x in leaves]
    except Exception as e:
        return "error", type(e).__name__, " ".join(str(e)[:120].split()), [c.__name__ for c in type(e).__mro__]
    finally:
        signal.alarm(0)


def _read(path):
    found = {}
    with open(path, "rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            key, result = pickle.load(file)
            found[key] = result
    return found


def _difference(theirs, ours):
    """The difference between two results of one call, or None."""
    if theirs[0] != ours[0]:
        outcome = lambda r: "returns " + str([d[:4] for d in r[2]]) if r[0] == "ok" else f"raises {r[1]}: {r[2]}"
        return "error", f"theirs {outcome(theirs)}; ours {outcome(ours)}"
    if theirs[0] == "error":
        return None if theirs[1] in ours[3] else ("error type", f"{theirs[1]}: {theirs[2]} / {ours[1]}: {ours[2]}")
    if len(theirs[2]) != len(ours[2]):
        return "structure", f"{theirs[1]} / {ours[1]}"
    for a, b in zip(theirs[2], ours[2], strict=True):
        for i, what in enumerate(("class", "dtype", "weak type", "shape")):
            if a[i] != b[i]:
                return what, f"{a[:4]} / {b[:4]}"
        tolerance = VALUES.get(a[1], 1e-6)
        if a[4] is not None and a[4].dtype.kind in "biufc":
            if not np.allclose(a[4], b[4], rtol=tolerance, atol=tolerance, equal_nan=True):
                return "value", f"{a[1]} {a[4].reshape(-1)[:3]} / {b[4].reshape(-1)[:3]}"
    return None


def expected(line: str) -> expected_differences.Difference | None:
    """The expected difference that a printed line belongs to, or None."""
    return next((d for d in expected_differences.EXPECTED if any(re.match(p, line) for p in d.patterns)), None)


def compare(theirs, ours):
    """Print the unexpected differences, and the number of each expected one. Returns the exit status."""
    first, second = _read(theirs), _read(ours)
    unexpected, count = 0, collections.Counter()
    for key in sorted(first.keys() | second.keys()):
        if key in first and key in second:
            found = _difference(first[key], second[key])
        else:
            found = "record", "only " + ("theirs" if key in first else "ours")
        if found is None:
            continue
        line = f"{key[0]} ({key[1]}): {found[0]}: {found[1]}"
        if (difference := expected(line)) is None:
            unexpected += 1
            print(line)
        else:
            count[difference] += 1
    for difference in expected_differences.EXPECTED:
        print(f"expected {count[difference]:4}: {difference.subject}: {difference.here}")
    print(f"{len(first.keys() & second.keys())} calls compared; {unexpected} unexpected differences")
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(
        {"run": run, "compare": compare, "page": lambda: print(expected_differences.page())}[sys.argv[1]](*sys.argv[2:])
    )
