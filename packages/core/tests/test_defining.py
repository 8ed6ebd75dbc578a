"""Functions that other functions make: their names, docstrings and parameters."""

import inspect

import pytest

from bedrax.core.defining import REQUIRED, named, taking, with_example


def test_the_example_is_the_last_section():
    doc = """The sum.

    Args:
      x: an array.
    """
    example = """
        >>> from here import f

        >>> f(1)
        2
    """
    assert with_example(doc, example) == (
        "The sum.\n\nArgs:\n  x: an array.\n\nExamples:\n\n  >>> from here import f\n\n  >>> f(1)\n  2\n"
    )
    assert with_example("The sum.", "") == "The sum."


def test_a_named_function_has_its_name_in_tracebacks():
    def function():
        raise ValueError

    made = named(function, "total", "there", "The total.", ">>> total()")
    assert (made.__name__, made.__qualname__, made.__module__) == ("total", "total", "there")
    assert inspect.getdoc(made).endswith("Examples:\n\n  >>> total()")
    with pytest.raises(ValueError) as caught:
        made()
    assert caught.traceback[-1].name == "total"


@pytest.mark.parametrize("count", range(9))
def test_a_function_takes_the_parameters_of_a_table(count):
    names = [f"p{i}" for i in range(count)]
    for by_keyword in range(count + 1):
        plain, last = names[: count - by_keyword], names[count - by_keyword :]
        made = taking(
            lambda *args: args, {n: REQUIRED if i < 2 else i for i, n in enumerate(plain)}, dict.fromkeys(last)
        )
        values = list(range(10, 10 + count))
        by_place = values[: len(plain)]
        assert made(*by_place, **dict(zip(last, values[len(plain) :], strict=True))) == tuple(values)
        assert made(**dict(zip(names, values, strict=True))) == tuple(values)
        assert made(*by_place[:2]) == (*by_place[:2], *range(2, len(plain)), *[None] * len(last))
        shown = inspect.signature(made).parameters
        assert list(shown) == names
        assert [n for n, p in shown.items() if p.kind is p.KEYWORD_ONLY] == last


def test_python_binds_the_arguments():
    made = named(taking(lambda *args: args, {"x": REQUIRED, "loc": 0}, {"place": None}), "pdf", "there", "")
    for args, keywords, message in (
        ((), {}, r"pdf\(\) missing 1 required positional argument: 'x'"),
        ((1, 2, 3), {}, r"pdf\(\) takes from 1 to 2 positional arguments but 3 were given"),
        ((1,), {"x": 2}, r"pdf\(\) got multiple values for argument 'x'"),
        ((1,), {"lok": 2}, r"pdf\(\) got an unexpected keyword argument 'lok'"),
    ):
        with pytest.raises(TypeError, match=message):
            made(*args, **keywords)
