"""Compiled code that travels between versions of jaxlib: an executable as bytes, and a folder of a compilation cache.

python compiled.py write FOLDER    the program is compiled into the cache, and saved
python compiled.py read FOLDER     with any jaxlib: the executable runs, or is refused with both versions named; the
                                   cache holds the program, or holds it after it is compiled
"""

import os
import pathlib
import pickle
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.experimental import serialize_executable

X = np.arange(12, dtype=np.float32).reshape(4, 3)
EXPECTED = np.tanh(X @ X.T / 99).sum(1)


@jax.jit
def program(x):
    return jnp.tanh(x @ x.T / 99).sum(1)


def compiled(folder):
    """The program, compiled or found in the cache, and the number of entries that this added."""
    jax.config.update("jax_compilation_cache_dir", str(folder / "cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_raise_persistent_cache_errors", True)
    entries = lambda: len(list((folder / "cache").glob("*")))
    before = entries()
    made = program.lower(X).compile()
    return made, entries() - before


def main(action, folder):
    folder = pathlib.Path(folder)
    made, added = compiled(folder)
    np.testing.assert_allclose(made(X), EXPECTED, rtol=1e-6)
    saved = folder / "executable"
    if action == "write":
        assert added == 1, added
        saved.write_bytes(pickle.dumps((jaxlib.__version__, serialize_executable.serialize(made)[0])))
        return
    writer, data = pickle.loads(saved.read_bytes())
    same = writer == jaxlib.__version__
    assert added == (0 if same else 1), (writer, jaxlib.__version__, added)
    trees = jax.tree.structure(((X,), {})), jax.tree.structure(EXPECTED)
    try:
        again = serialize_executable.deserialize_and_load(data, *trees)
    except ValueError as error:
        assert not same, error
        for version in (writer, jaxlib.__version__):
            assert re.search(rf"jaxlib {re.escape(version)}\b", str(error)), error
    else:
        assert same, f"jaxlib {jaxlib.__version__} took compiled code of {writer}"
        np.testing.assert_allclose(again(X), EXPECTED, rtol=1e-6)
    print(f"compiled code of jaxlib {writer}, read by {jaxlib.__version__}: {'run' if same else 'refused'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
