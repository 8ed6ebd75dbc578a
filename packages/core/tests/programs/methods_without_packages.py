"""Uses of an array without the packages that have its operators and methods: each error names the package."""

from bedrax.core import offers
from bedrax.core.array import Array

offers.name_all({})


class Value(Array):
    def __init__(self):
        pass


x = Value()
for use, kind, text in (
    (lambda: x.sum(), AttributeError, "array methods come from bedrax-numpy: install it"),
    (lambda: x[0], AttributeError, "array methods come from bedrax-numpy: install it"),
    (lambda: -x, AttributeError, "operators of arrays come from bedrax-lax: install it"),
    (lambda: x + 1, TypeError, "unsupported operand"),
    (lambda: 1 - x, TypeError, "unsupported operand"),
    (lambda: x < 1, TypeError, "not supported between"),
    (lambda: x.sums, AttributeError, "'Value' object has no attribute 'sums'"),
):
    try:
        use()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
assert x == x and not hasattr(x, "sum") and x != Value()
