"""The codes of errors: short names of classical mistakes, each with a page that shows the wrong and the right program.

`coded` makes the text of such an error. Its last line has the user's line and ends with the code. So the code survives
everything that keeps the text: shortened tracebacks, pickling, logs. `bedrax-inspect` has the pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bedrax.core import source
from bedrax.core.public import has_interface, has_package, public

TITLES: Final[dict[str, str]] = {
    # tracing
    "BX-TRACED-BOOL": "Python needs the boolean of a traced value",
    "BX-TRACED-INTEGER": "Python needs the integer of a traced value",
    "BX-TRACED-NUMPY": "NumPy needs the elements of a traced value",
    "BX-TRACED-VALUE": "the value of a traced array is needed",
    "BX-TRACED-MASK": "an array is indexed by a traced mask",
    "BX-LEAKED": "a traced value is used outside of its function",
    "BX-LEAK-CHECK": "a traced value is stored outside of its function",
    "BX-SHAPE-VALUE": "a shape is made of known integers",
    # jit
    "BX-JIT-ARGUMENT": "an argument of jit is not an array",
    "BX-JIT-RESULT": "a traced function returns a value that is not an array",
    "BX-JIT-GENERATOR": "a generator function has no result to compile",
    "BX-STATIC-DONATED": "an argument is both static and donated",
    "BX-ARGUMENT-POSITION": "a position names no argument of the function",
    "BX-NOT-CALLABLE": "a transformation needs a function",
    "BX-DELETED": "an array is used after it was donated or deleted",
    # derivatives
    "BX-GRAD-SCALAR": "grad needs a function with one scalar result",
    "BX-GRAD-INPUT": "an argument has no derivative, because of its dtype",
    "BX-GRAD-OUTPUT": "a result has no derivative, because of its dtype",
    "BX-GRAD-LOOP": "reverse mode needs a known number of rounds",
    "BX-AUX-PAIR": "has_aux needs a function that returns a pair",
    "BX-TANGENT": "a tangent does not fit its primal",
    "BX-COTANGENT": "a cotangent does not fit the result",
    "BX-RULE-ABSENT": "an operation has no rule for a transformation",
    "BX-CUSTOM-RULE": "a function with custom rules has no rule yet",
    # loops and branches
    "BX-CARRY-TYPES": "a loop changes the type of its carry",
    "BX-CARRY-STRUCTURE": "a loop changes the structure of its carry",
    "BX-SCAN-RESULT": "the body of scan does not return a pair",
    "BX-SCAN-LENGTH": "the number of steps of a scan is unknown",
    "BX-LOOP-CONDITION": "the condition of a loop is not a boolean",
    "BX-BRANCH-TYPES": "branches return different types",
    "BX-BRANCH-STRUCTURE": "branches return different structures",
    "BX-PREDICATE": "the predicate of cond is not a scalar",
    "BX-SWITCH-INDEX": "the index of switch is not an integer",
    # vmap and named axes
    "BX-VMAP-SIZES": "mapped axes have different lengths",
    "BX-VMAP-AXIS": "an argument does not have the mapped axis",
    "BX-VMAP-IN-AXES": "in_axes does not fit the arguments",
    "BX-VMAP-UNMAPPED": "vmap maps no argument",
    "BX-VMAP-OUT-AXES": "out_axes does not fit the results",
    "BX-AXIS-NAME": "no enclosing function has an axis of this name",
    # shapes
    "BX-BROADCAST": "shapes do not broadcast together",
    "BX-BROADCAST-TO": "a shape does not broadcast to another one",
    "BX-DOT": "the axes of a product have different lengths",
    "BX-RESHAPE": "reshape changes the number of elements",
    "BX-CONCATENATE": "concatenated arrays differ in another axis",
    "BX-STACK": "stacked arrays have different shapes",
    "BX-SPLIT": "an axis cannot be split into equal parts",
    "BX-SQUEEZE": "squeeze removes only axes of length 1",
    "BX-TRANSPOSE": "the axes of transpose are not a permutation of all axes",
    "BX-AXIS-RANGE": "an array does not have this axis",
    "BX-NEGATIVE-SIZE": "a size is negative",
    "BX-EMPTY": "a reduction of no elements has no result",
    "BX-EINSUM": "subscripts of einsum do not fit the operands",
    "BX-SQUARE": "a matrix must be square",
    "BX-SOLVE": "a matrix and a right-hand side do not fit",
    "BX-CONVOLUTION": "the features of a convolution do not fit",
    "BX-PADDING": "a padding has no such name",
    "BX-SLICE": "a slice reaches beyond the array",
    # values and dtypes
    "BX-NOT-AN-ARRAY": "an array or a number is needed",
    "BX-VALUE-TYPE": "a value is not an array",
    "BX-ARRAY-OF": "an array holds only numbers and booleans",
    "BX-DTYPES": "operands have different dtypes",
    "BX-DTYPE": "an operation does not take this dtype",
    "BX-TRUTH": "an array of several elements is neither true nor false",
    "BX-NUMBER": "an array of several elements is no Python number",
    "BX-IMMUTABLE": "arrays cannot be written to",
    "BX-NAN": "an operation made a NaN or an infinity",
    # indices
    "BX-INDEX-COUNT": "there are more indices than axes",
    "BX-INDEX-LIST": "a list is not an index",
    "BX-INDEX-DTYPE": "an index is an integer or a mask",
    "BX-MASK": "a mask has another shape than the array",
    "BX-UPDATE": "new values do not fit the indexed part",
    # random numbers
    "BX-KEY": "a random key is needed",
    "BX-KEY-REUSED": "a random key is used twice",
    "BX-KEY-ARITHMETIC": "a key is not a number",
    "BX-SEED": "a seed is an integer",
    "BX-SAMPLES": "there are fewer members than samples without replacement",
    "BX-SAMPLE-DTYPE": "a distribution does not have this dtype",
    # devices
    "BX-MESH-DEVICES": "a mesh needs more devices than there are",
    "BX-MESH-NAMES": "a mesh needs one name per axis",
    "BX-SPEC-AXIS": "a spec names an axis that the mesh does not have",
    "BX-SHARD": "an axis cannot be cut into equal parts",
    "BX-DEVICES-DIFFER": "arguments of one program are on different devices",
    "BX-DEVICE-PUT": "an array is put on what is not a device",
    # symbolic dimensions
    "BX-DIM-VALUE": "the value of a symbolic dimension is needed",
    "BX-DIM-SCOPES": "symbolic dimensions of different scopes meet",
    "BX-DIM-UNSOLVABLE": "no shape of an argument determines a symbolic dimension",
    "BX-DIM-SHAPE": "the shape of an argument does not fit its symbolic shape",
    # other programs
    "BX-CALLBACK": "a callback returns another shape than it declares",
    "BX-EXPORT": "data are not an exported program",
}
"""Code -> title. `packages/inspect/src/bedrax/inspect/errors` has a page for each."""

_LAST: Final = re.compile(
    r"\n(?:At [^\n]*\. )?(?:To read more: python -m \S+|bedrax-inspect has the page of) (BX-[A-Z-]+)$", re.MULTILINE
)


def coded(code: str, message: str, facts: Sequence[str] = (), place: source.Source | None = None) -> str:
    """Return the text of an error: the message, facts, the user's line, and the code at the end.

    The names in it are those that the user can write here (see `public`).

    Args:
      place: the user's line; by default, that which is running.
    """
    place = place or source.user_frame(2)
    where = source.describe(place) if place is not None else "an unknown line"
    return f"{public(chr(10).join([message, *facts]))}\nAt {where}. {page_of(code)}"


def page_of(code: str) -> str:
    """Return the sentence that leads to the page of a code, for a text that does not come from a line of the user."""
    if has_interface():
        return f"To read more: python -m jax.explain {code}"
    if has_package("inspect"):
        return f"To read more: python -m bedrax.inspect.explaining {code}"
    return f"bedrax-inspect has the page of {code}"


def with_facts(error: Exception, facts: list[str]) -> None:
    """Add sentences to the text of an error, before the line with the code if there is one."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else None
    if text is None or not facts:
        return
    last = _LAST.search(text)
    end = last.start() if last else len(text)
    error.args = ("\n".join([text[:end], *facts]) + text[end:], *error.args[1:])


def plain(error: BaseException) -> str:
    """Return the text of an error without the line with the code, for the text of another error."""
    return _LAST.sub("", str(error))


def code_of(error: BaseException) -> str | None:
    """Return the code of an error; None if it has none."""
    found = _LAST.search(str(error))
    return found[1] if found and found[1] in TITLES else None
