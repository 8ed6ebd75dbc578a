"""The first use of a deprecated name warns, and `import jax` does not: python deprecated_name.py NAME TEXT"""

import importlib
import sys
import warnings

name, text = sys.argv[1:]
with warnings.catch_warnings():
    warnings.simplefilter("error")
    import jax  # noqa: F401  must not warn
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        getattr(importlib.import_module(module), attribute)
texts = [str(w.message) for w in found if w.category is DeprecationWarning and str(w.message).startswith("jax.")]
assert texts == [text], texts
