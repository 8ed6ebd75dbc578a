"""Arguments with memory layouts from the user."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.xla_backend.layout import Format, Layout, explicit_layout, with_layout_constraint

X = np.arange(6, dtype=np.float32).reshape(2, 3)
COLUMNS = Layout((1, 0))


def test_explicit_layout_sets_the_layouts_of_arguments():
    seen = []
    note = explicit_layout(lambda x: seen.append(x.format.layout.major_to_minor), in_layouts=(COLUMNS,))
    note(lax.sin(X))
    assert seen == [(1, 0)] and Layout.for_array(lax.sin(X)).major_to_minor == (0, 1)
    double = explicit_layout(in_layouts=COLUMNS)(lambda x: lax.add(x, x))
    text = jit(double).lower(X).as_text()
    assert "@LayoutConstraint" in text and "operand_layouts = [dense<[0, 1]>" in text
    for run in (double, jit(double)):
        np.testing.assert_array_equal(run(X), 2 * X)
    np.testing.assert_array_equal(grad(lambda x: lax.reduce_sum(double(x), (0, 1)))(X), np.full_like(X, 2))
    np.testing.assert_array_equal(vmap(explicit_layout(lambda x: lax.add(x, x), in_layouts=(Layout((0,)),)))(X), 2 * X)


@pytest.mark.parametrize(
    ("layouts", "error", "text"),
    [
        (None, TypeError, "needs in_layouts="),
        ((COLUMNS, 3), TypeError, "a Layout for each argument, got 3"),
        ((COLUMNS, COLUMNS), ValueError, "has 2 entries, for 1 arguments"),
        ((Layout((0,)),), ValueError, "write each of its axes 0 to 1 once"),
    ],
)
def test_wrong_layouts_of_arguments_are_refused(layouts, error, text):
    with pytest.raises(error, match=text):
        explicit_layout(lambda x: x, in_layouts=layouts)(X)


@pytest.mark.parametrize("wrong", [None, Format(Layout((0,))), "row-major"])
def test_a_constraint_that_is_not_a_layout_is_an_error_with_the_value(wrong):
    with pytest.raises(ValueError, match="a Layout for each array, got") as error:
        jit(lambda x: with_layout_constraint(x, wrong))(np.ones(3, np.float32))
    assert repr(wrong) in str(error.value)
