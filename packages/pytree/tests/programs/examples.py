"""Run the examples of the package's docstrings with this package alone: it prints the numbers of failures and examples."""

import doctest
import importlib
import pkgutil
from types import SimpleNamespace

from bedrax import pytree
from bedrax.pytree import tree

# The names of the public interface that the examples use.
NAMES = {"jax": SimpleNamespace(tree=tree, tree_util=pytree)}

failed = attempted = 0
for found in pkgutil.iter_modules(pytree.__path__, "bedrax.pytree."):
    if found.name == "bedrax.pytree.engine_native":  # it needs jaxlib
        continue
    results = doctest.testmod(importlib.import_module(found.name), extraglobs=NAMES)
    failed, attempted = failed + results.failed, attempted + results.attempted
print((failed, attempted))
