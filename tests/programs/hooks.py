"""Print the hooks: the values in modules of lower packages that imports of higher packages change.

Imports all modules of the named packages, from the lowest package to the highest. After each package, it compares the
globals of the modules of the packages below with those before: a global (or an attribute of a class or object of the
kernel) that has another value, or a collection with another number of members. Columns are left out, and names that a
module imports at their first use.

    python hooks.py PACKAGE...
"""

import importlib
import os
import pkgutil
import sys
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def state(module):
    """The globals of a module and the attributes of its objects: name -> (value, number of members)."""
    found = {}

    def add(name, value):
        found[name] = value, len(value) if isinstance(value, (dict, list, set)) else None

    for name, value in list(vars(module).items()):
        if name.startswith("__") or isinstance(value, types.ModuleType) or is_column(value):
            continue
        add(name, value)
        inside = {}
        if isinstance(value, type):
            inside = vars(value) if value.__module__ == module.__name__ else {}
        elif type(value).__module__.startswith("bedrax.") and not isinstance(value, types.FunctionType):
            inside = getattr(value, "__dict__", {})
        for attribute, its_value in list(inside.items()):
            if not is_column(its_value):
                add(f"{name}.{attribute}", its_value)
    return found


def is_column(value):
    return type(value).__name__ == "Column"


def modules():
    return {n: m for n, m in list(sys.modules.items()) if n.startswith("bedrax.") and isinstance(m, types.ModuleType)}


changed = []  # (module, name, value)
for package in sys.argv[1:]:
    before = {name: state(module) for name, module in modules().items()}
    top = importlib.import_module(package if package == "jax" else f"bedrax.{package}")
    for info in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
        try:
            importlib.import_module(info.name)
        except ModuleNotFoundError as error:  # TensorFlow has no wheels for this Python
            if error.name != "tensorflow":
                raise
    for name, old in before.items():
        if name.split(".")[1] == package:
            continue
        new = state(sys.modules[name])
        for key, (value, size) in new.items():
            owner = key.partition(".")[0]
            if owner not in old or old[owner][0] is not new[owner][0] and "." in key:
                continue  # a name that the module imported just now
            if key not in old or old[key][0] is not value or old[key][1] != size:
                holder = id(new[owner][0]) if "." in key else name
                changed.append((name, key, id(value) if size is not None else (holder, key.rpartition(".")[2])))

first = {name: i for i, name in enumerate(modules())}
homes = {}  # an object is shown once, in the module that was imported first
for name, key, what in sorted(changed, key=lambda c: first[c[0]]):
    homes.setdefault(what, f"{name}:{key}")
print("\n".join(sorted(set(homes.values()))))
