"""`python -m jax.explain CODE`: the page of an error. Without `jax`, it is `python -m bedrax.inspect.explaining CODE`.

The pages are the files `errors/BX-....md` of this package. The codes and their titles are in `bedrax.core.codes`.
"""

from __future__ import annotations

import difflib
import importlib.resources
import sys

from bedrax.core.codes import TITLES
from bedrax.core.public import has_interface


def codes() -> dict[str, str]:
    """Return the codes of errors and their titles.

    Examples:

      >>> from bedrax import inspect
      >>> inspect.codes()["BX-CARRY-TYPES"]
      'a loop changes the type of its carry'
    """
    return dict(TITLES)


def explanation(code: str) -> str:
    """Return the page of a code, in Markdown: the meaning, a wrong program, the reason, the right program.

    Args:
      code: such as ``"BX-CARRY-TYPES"``. Small letters, and a missing ``BX-``, are accepted.

    Raises:
      ValueError: no error has this code.

    Examples:

      >>> from bedrax import inspect
      >>> print(inspect.explanation("carry-types").splitlines()[0])
      # BX-CARRY-TYPES: a loop changes the type of its carry
    """
    name = code.strip().upper()
    name = name if name.startswith("BX-") else f"BX-{name}"
    if name not in TITLES:
        near = difflib.get_close_matches(name, TITLES, 3, 0.5)
        hint = f"; similar codes are {', '.join(near)}" if near else "; without a code, the command lists all"
        raise ValueError(f"no error has the code {code!r}{hint}")
    page = importlib.resources.files(__package__) / "errors" / f"{name}.md"
    return page.read_text(encoding="utf-8")


def main(argv: list[str]) -> int:
    """Print the pages of the given codes, or the list of all codes. Returns the exit status."""
    if argv and argv[0] in ("-h", "--help"):
        name = "jax.explain" if has_interface() else __spec__.name
        print(f"usage: python -m {name} [CODE ...]\n\nPrints the page of an error, or the list of all codes.")
        return 0
    if not argv:
        width = max(map(len, TITLES))
        print("\n".join(f"{code:{width}}  {title}" for code, title in TITLES.items()))
        return 0
    try:
        pages = [explanation(code) for code in argv]
    except ValueError as error:
        print(f"explain: {error}", file=sys.stderr)
        return 2
    _show("\n".join(pages))
    return 0


def _show(text: str) -> None:
    """Print Markdown, typeset on a terminal if `rich` is installed. Otherwise, print its text unchanged."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.markdown import Markdown
        except ImportError:
            pass
        else:
            Console().print(Markdown(text))
            return
    print(text, end="")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
