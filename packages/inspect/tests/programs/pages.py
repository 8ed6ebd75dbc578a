"""Run the two programs of every page, on two CPU devices. Prints one JSON object: code -> [code of the wrong one, error of the right one]."""

import json
import re
import sys
import warnings
from pathlib import Path

from bedrax.core import codes

PAGES = Path(sys.argv[1])


def outcome(program, name):
    """The text and the code of the error that a program raises; None for both if it ends."""
    warnings.simplefilter("ignore")
    try:
        exec(compile(program, f"{name}.py", "exec"), {"__name__": name})
    except Exception as error:
        return f"{type(error).__name__}: {error}", codes.code_of(error)
    return None, None


found = {}
for page in sorted(PAGES.glob("BX-*.md")):
    wrong, right = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    found[page.stem] = (*outcome(wrong, "wrong"), outcome(right, "right")[0])
print(json.dumps(found))
