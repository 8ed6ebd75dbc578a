"""What is not supported can be imported and asked about, and refuses to be used."""

import numpy as np
import pytest

from bedrax.extend import unsupported

# Declarations: libraries derive from these and register them when they are imported.
DECLARED: set = set()


@pytest.mark.parametrize("name", sorted(set(unsupported.reasons) - DECLARED))
def test_using_a_name_says_why_not(name):
    thing = getattr(unsupported, name)
    with pytest.raises(NotImplementedError) as error:
        thing(np.ones(3))
    assert str(error.value) == f"{name}: {unsupported.reasons[name]}"


def test_every_name_of_the_table_exists():
    assert all(hasattr(unsupported, name) for name in unsupported.reasons)
