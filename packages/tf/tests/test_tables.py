"""The columns that both bridges share."""

import pytest

from bedrax.core.tracing import Primitive
from bedrax.tf.tables import tf_calls


def test_the_error_of_a_missing_call_shows_its_form():
    with pytest.raises(NotImplementedError, match="list of tensors"):
        tf_calls[Primitive("unknown")]
