"""Name and docstring of a mapped function: those of the function, if it has them."""

import numpy as np

from bedrax import lax
from bedrax.batching import vmap


class Named:
    """A callable of a library."""

    __name__ = 3
    __annotations__ = property(lambda self: 3)

    def __call__(self, x):
        return lax.add(x, x)


def test_objects_whose_name_is_no_text():
    function = vmap(Named())
    np.testing.assert_array_equal(function(np.arange(3)), [0, 2, 4])
    assert function.__doc__ == "A callable of a library."

    def plain(x):
        return x

    assert vmap(plain).__name__ == "plain" and vmap(plain).__wrapped__ is plain
