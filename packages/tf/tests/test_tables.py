"""The columns that both bridges share."""

import pytest

from bedrax.core.tracing import Primitive
from bedrax.tf.tables import tf_calls


def test_an_error_says_how_a_call_is_written():
    with pytest.raises(NotImplementedError, match="list of tensors"):
        tf_calls[Primitive("unknown")]
