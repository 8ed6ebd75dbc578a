"""The names in messages, as the user can write them here.

Messages are written with the names of the interface, `jax`. A package can be installed without it. Then `public` puts
the names of the installed packages in their place, when a message is made.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from bedrax.core import offers

_INSTEAD: Final[Mapping[str, str]] = {
    "all": "lax.reduce_and",
    "array": "numpy.array",
    "broadcast_to": "lax.broadcast_in_dim",
    "where": "lax.select",
}
"""Function of ``jax.numpy`` -> what to write without `bedrax-numpy`."""

_NAME: Final = re.compile(r"(?<![\w./-])(?:(?:jnp|jax)(?:\.[A-Za-z_]\w*)+|jnp\b)")


def has_interface() -> bool:
    """Return whether the interface `jax` is installed."""
    return offers.target("interface") is not None


def public(text: str) -> str:
    """Return a message with the names under which the user reaches functions here.

    Args:
      text: the message. Its names are those of `jax`; ``jnp`` stands for ``jax.numpy``.

    Returns:
      The same text if the interface `jax` is installed. Otherwise, names of the installed packages are in it:
      ``bedrax.autodiff.custom_jvp`` in place of ``jax.custom_jvp``. A name that no installed package has is followed by
      the name of the package to install.

    Examples:

      >>> from bedrax.core.public import public
      >>> public("use jax.custom_jvp")
      'use jax.custom_jvp'
    """
    return text if has_interface() else _NAME.sub(lambda found: reached(found[0]), text)


def reached(name: str) -> str:
    """Return the name, in the installed packages, of a function of `jax`.

    Examples:

      >>> from bedrax.core.public import reached
      >>> reached("jax.custom_jvp"), reached("jax.numpy.sin"), reached("jnp.sin"), reached("jax.lax.cond")
      ('bedrax.autodiff.custom_jvp', 'bedrax.numpy.sin', 'jnp.sin', 'lax.cond')
    """
    first, *path = name.split(".")
    if first == "jnp":
        path = ["numpy", *path]
    own = sys.modules.get(f"bedrax.{path[0]}") or _imported(path[0])
    if own is not None and (len(path) == 1 or path[1] in own.__all__):
        if first == "jnp":  # `import bedrax.numpy as jnp`
            return name
        return ".".join(path if path[0] == "lax" else ["bedrax", *path])
    if path[0] == "numpy":
        return _INSTEAD.get(path[-1]) or f"{'.'.join(['bedrax', *path])} (of the package bedrax-numpy)"
    for start in range(len(path)):
        for package, names in _packages():
            if path[start] in names:
                return ".".join([package, *path[start:]])
    return f"{name} (of the package bedrax)"


def has_package(name: str) -> bool:
    """Return whether the package ``bedrax.<name>`` is installed. It is not imported."""
    return any(found.name == name for found in pkgutil.iter_modules(sys.modules["bedrax"].__path__))


def _imported(name: str) -> object:
    return importlib.import_module(f"bedrax.{name}") if has_package(name) else None


def _packages() -> Iterator[tuple[str, list[str]]]:
    """The installed packages and their public names: first those that are imported."""
    found = [f"bedrax.{package.name}" for package in pkgutil.iter_modules(sys.modules["bedrax"].__path__)]
    for package in sorted(found, key=lambda name: (name not in sys.modules, name)):
        try:
            yield package, getattr(importlib.import_module(package), "__all__", [])
        except ImportError:  # a bridge without TensorFlow
            continue
