"""Every record of the surface with arguments of other kinds, on this `jax` and on another, and the differences.

`run OUT [PREFIX...] [=KIND...]` calls the public functions whose names start with a prefix, with the installed `jax`
and some kinds of arguments, and writes the results. `compare THEIRS OURS` prints the differences: in errors,
structure,
type, weak type, shape, and value. It fails on a difference that `expected_differences.py` does not list. `page` prints
that list as the table of `docs/differences.md`.
"""

import collections
import contextlib
import inspect
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


class Holder:
    """An object whose only conversion to an array is `__jax_array__`."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jax.numpy.asarray(self.x)


class Subclass(np.ndarray):
    """A class of NumPy arrays that changes nothing."""


def _keys(x):
    return jax.random.split(jax.random.key(0), x.shape) if x.dtype.kind == "f" and x.size else x


# name -> array of the record -> its replacement
ARRAYS = {
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
    "object": Holder,
    "subclass": lambda x: x.view(Subclass) if isinstance(x, np.ndarray) else x,
    "list": lambda x: x.tolist(),
    "keys": _keys,
}


def _first_array(replaced):
    """A change of a call: its first array is another value."""

    def change(function, args, kwargs):
        for i, x in enumerate(args):
            if isinstance(x, np.ndarray | np.generic):
                return (*args[:i], replaced, *args[i + 1 :]), kwargs
        return None

    return change


def _parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def _with(name, value):
    """A change of a call: it has one more argument, if the function takes it. `value` gets the first array."""

    def change(function, args, kwargs):
        if name not in _parameters(function) or name in kwargs or list(_parameters(function)).index(name) < len(args):
            return None
        arrays = [x for x in jax.tree.leaves(args) if isinstance(x, np.ndarray | np.generic)]
        return args, {**kwargs, name: value(arrays[0] if arrays else np.ones(3, np.float32))}

    return change


def _by_keyword(function, args, kwargs):
    """The arguments that may be keywords are keywords, except the array of a method; operators have none."""
    if getattr(function, "__name__", "").startswith("__"):
        return None
    names = list(_parameters(function).values())[: len(args)]
    method = getattr(function, "__module__", None) == "methods"
    first = next((i for i, p in enumerate(names) if p.kind is p.POSITIONAL_OR_KEYWORD and i >= method), len(args))
    if first == len(args) or any(p.kind is p.VAR_POSITIONAL for p in names):
        return None
    return args[:first], {**{p.name: x for p, x in zip(names[first:], args[first:], strict=False)}, **kwargs}


def _by_position(function, args, kwargs):
    """The keyword arguments that may be positional are positional, as far as none is left out."""
    left = dict(kwargs)
    for p in list(_parameters(function).values())[len(args) :]:
        if p.kind is not p.POSITIONAL_OR_KEYWORD or p.name not in left:
            break
        args = (*args, left.pop(p.name))
    return None if len(left) == len(kwargs) else (args, left)


def _mask(x):
    return np.arange(x.size).reshape(x.shape) % 3 > 0


def _whole(_):
    return jax.sharding.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P())


# name -> function, arguments and keyword arguments of the record -> the others; None: the kind is not for the function
CALLS = {
    "none": _first_array(None),
    "text": _first_array("text"),
    "type": _first_array(float),
    "where": _with("where", _mask),
    "device": _with("device", lambda _: jax.devices()[0]),
    "out_sharding": _with("out_sharding", _whole),
    "dtype": _with("dtype", lambda _: np.float16),
    "wrong axis": _with("axis", lambda x: x.ndim + 1),
    "keepdims": _with("keepdims", lambda _: True),
    "more": lambda function, args, kwargs: (args, {**kwargs, "no_such_argument": 1}),
    "fewer": lambda function, args, kwargs: (args[:-1], kwargs) if args else None,
    "by keyword": _by_keyword,
    "by position": _by_position,
}
# name -> the options in force
OPTIONS = {
    "rank promotion": lambda: jax.numpy_rank_promotion("raise"),
    "strict": lambda: jax.numpy_dtype_promotion("strict"),
    "x64": lambda: jax.enable_x64(True),
}
KINDS = [*ARRAYS, *CALLS, *OPTIONS]


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
        for count, (name, function) in enumerate(records.public_functions()):
            if count % 20 == 0:  # the memory areas of a process are limited, and each compiled program needs some
                jax.clear_caches()
            if name in records.ELSEWHERE or (prefixes and not name.startswith(prefixes)):
                continue
            if (record := records.record(name, function)) is not None:
                for kind in kinds:
                    if (result := _result(record, function, kind)) is not None:
                        pickle.dump(((name, kind), result), file)
                file.flush()


def _result(record, function, kind):
    """("ok", structure, leaves), or ("error", type, text, names of the type and its bases); None: there is no call."""
    args, kwargs = record.args, record.kwargs
    if kind in ARRAYS:
        change = ARRAYS[kind]
        args, kwargs = jax.tree.map(
            lambda x: change(x) if isinstance(x, np.ndarray | np.generic) else x, (args, kwargs)
        )
    elif kind in CALLS:
        changed = CALLS[kind](function, args, kwargs) if record.function is function else None
        if changed is None:
            return None
        args, kwargs = changed
    signal.alarm(30)
    try:
        with OPTIONS.get(kind, contextlib.nullcontext)():
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


def _as_given(key, theirs, ours):
    """The result is that of the arrays of the record; upstream raises an error."""
    given = ours.get((key[0], "given"))
    return theirs[0] == "error" and given is not None and given[0] == "ok" and _difference(given, ours[key]) is None


def _type_error(key, theirs, ours):
    return ours[key][0] == "error" and "TypeError" in ours[key][3]


def _moved_keys(key, theirs, ours):
    """Each element is an element of the arguments, or a key of zeros; upstream raises an error."""
    import records

    record = next(records.record(n, f) for n, f in records.public_functions() if n == key[0])
    leaves = [
        x for x in jax.tree.leaves((record.args, record.kwargs)) if isinstance(x, np.ndarray) and x.dtype.kind == "f"
    ]
    known = [np.asarray(jax.random.key_data(_keys(x))).reshape(-1, 2) for x in leaves if x.size]
    words = {(0, 0), *(tuple(row) for array in known for row in array.tolist())}
    found = [x for x in ours[key][2] if x[0] == "key"] if ours[key][0] == "ok" else []
    moved = {tuple(row) for x in found for row in x[4].reshape(-1, 2).tolist()}
    return theirs[0] == "error" and bool(found) and moved <= words


def _as_numbers(key, theirs, ours):
    """The result is that of the Python numbers, and differs from upstream's in the weak type only."""
    number = ours.get((key[0], "float"))
    if not all(r is not None and r[0] == "ok" for r in (theirs, ours[key], number)):
        return False
    strong = lambda r: (*r[:2], [(*x[:2], False, *x[3:]) for x in r[2]])
    return _difference(number, ours[key]) is None and _difference(strong(theirs), strong(ours[key])) is None


def _nan(key, theirs, ours):
    """All results are NaN, of a median or quantile; upstream raises an error."""
    leaves = [x[4] for x in ours[key][2]] if ours[key][0] == "ok" else []
    named = re.fullmatch(r"numpy\.(nan)?(median|quantile|percentile)", key[0])
    return theirs[0] == "error" and named is not None and bool(leaves) and all(np.isnan(x).all() for x in leaves)


PROPERTIES = {
    "as given": _as_given,
    "as numbers": _as_numbers,
    "TypeError": _type_error,
    "moved keys": _moved_keys,
    "NaN": _nan,
}


def expected(line, key, theirs, ours) -> expected_differences.Difference | None:
    """The expected difference that a printed line belongs to, or None.

    Args:
      key, theirs: the call, and its result on upstream (None: it has no such function).
      ours: all results here.
    """
    for difference in expected_differences.EXPECTED:
        if any(re.match(p, line) for p in difference.patterns):
            return difference
        both = theirs is not None and key in ours
        if both and key[1] in difference.kinds and PROPERTIES[difference.property](key, theirs, ours):
            return difference
    return None


def compare(theirs, ours):
    """Print the unexpected differences, and the number of each expected one. Returns the exit status."""
    first, second = _read(theirs), _read(ours)
    names = {name for name, _ in first} & {name for name, _ in second}
    unexpected, count = 0, collections.Counter()
    for key in sorted(first.keys() | second.keys()):
        if key in first and key in second:
            found = _difference(first[key], second[key])
        elif key[0] in names and key[1] in CALLS:  # parameters are compared by `tests/surface/interface.py`
            continue
        else:
            found = "record", "only " + ("theirs" if key in first else "ours")
        if found is None:
            continue
        line = f"{key[0]} ({key[1]}): {found[0]}: {found[1]}"
        if (difference := expected(line, key, first.get(key), second)) is None:
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
