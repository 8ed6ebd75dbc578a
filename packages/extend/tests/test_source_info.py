"""Names of scopes, as libraries read and replace them."""

import numpy as np

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.extend import source_info
from bedrax.xla_backend.metadata import set_xla_metadata

ONES = np.ones(3, np.float32)


def test_scopes():
    with source_info.extend_name_stack("a"):
        with source_info.transform_name_stack("jvp"):
            assert str(source_info.current_name_stack()) == "jvp(a)"
        with source_info.reset_name_stack():
            assert str(source_info.current_name_stack()) == ""
            with source_info.user_context(None, name_stack=source_info.new_name_stack("b")):
                assert str(source_info.current().name_stack) == "b"
        assert str(source_info.current_name_stack()) == "a"
    assert source_info.new_source_info().traceback is None
    stack = source_info.new_name_stack("a") + source_info.new_name_stack("b")
    assert str(stack) == "a/b" and str(stack[1:]) == "b" and stack[0] == "a"


def test_scopes_among_hints_to_the_compiler():
    def f(x):
        with set_xla_metadata(color="red"), source_info.extend_name_stack("a"):
            assert str(source_info.current_name_stack()) == str(source_info.current().name_stack) == "a"
            with source_info.transform_name_stack("jvp"):
                assert str(source_info.current_name_stack()) == "jvp(a)"
                return lax.sin(x)

    assert 'color = "red"' in jit(f).lower(ONES).as_text()
