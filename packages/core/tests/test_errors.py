"""Messages of the errors about traced values, and the registry of effects."""

import numpy as np
import pytest

from bedrax.core import effects, errors, source


class Aval:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, np.dtype(dtype)


class Traced:
    def __init__(self, shape=(3,), dtype="float32", origin=None, place=None):
        self.aval, self.origin, self.source = Aval(shape, dtype), origin, place


PHRASES = [
    (
        errors.ConcretizationTypeError,
        TypeError,
        "the concrete value of an abstract tracer, a traced array of type float32[3], is needed",
    ),
    (
        errors.TracerBoolConversionError,
        errors.ConcretizationTypeError,
        "Python needs the boolean value of a traced array of type float32[3].",
    ),
    (errors.TracerArrayConversionError, TypeError, "NumPy needs the elements of a traced array of type float32[3]"),
    (errors.TracerIntegerConversionError, TypeError, "the integer value of a traced array of type float32[3]"),
]


@pytest.mark.parametrize("cls, base, phrase", PHRASES, ids=lambda x: getattr(x, "__name__", ""))
def test_message(cls, base, phrase):
    place = source.user_frame()
    error = cls(Traced(origin="While tracing f for jit; it depends on x.", place=place))
    text = str(error)
    assert isinstance(error, base)
    assert phrase in text
    assert "While tracing f for jit; it depends on x." in text
    assert source.describe(place) in text and "test_errors.py" in text


@pytest.mark.parametrize("cls, base, phrase", PHRASES, ids=lambda x: getattr(x, "__name__", ""))
def test_documentation_shows_a_failure_and_its_repair(cls, base, phrase):
    assert f"raises {cls.__name__}" in cls.__doc__
    assert "Repaired" in cls.__doc__


def test_bare_tracers_and_lazy_origins():
    class Bare:
        aval = Aval((), "bool")

    assert "boolean value of a traced array of type bool[]." in str(errors.TracerBoolConversionError(Bare()))
    assert "because of f" in str(errors.TracerBoolConversionError(Traced(origin=lambda: "because of f")))
    assert "float(x)" in str(errors.ConcretizationTypeError(Bare(), "float(x) was called"))


def test_escaped_tracer():
    place = source.user_frame()
    error = errors.escaped_tracer_error(Traced((), place=place, origin="f at f.py:1"), "more")
    text = str(error)
    assert isinstance(error, errors.UnexpectedTracerError)
    assert "a traced value of type float32[], a Traced, is used outside of the transformation" in text
    assert "leaked from the transformed function" in text
    assert source.describe(place) in text and "f at f.py:1" in text and "more" in text
    assert "checking_leaks" in text and text.endswith("BX-LEAKED")


def test_hierarchy():
    for cls in (
        errors.ConcretizationTypeError,
        errors.TracerArrayConversionError,
        errors.UnexpectedTracerError,
        errors.TracerIntegerConversionError,
    ):
        assert issubclass(cls, errors.JAXTypeError)
    assert issubclass(errors.InconclusiveDimensionOperation, TypeError)


def test_effect_classes():
    class Loud(effects.Effect):
        pass

    class Louder(Loud):
        pass

    class Quiet(effects.Effect):
        pass

    allowed = effects.EffectTypeSet("a test")
    assert Loud() not in allowed
    allowed.add_type(Loud)
    loud, louder, quiet = Loud(), Louder(), Quiet()
    assert loud in allowed and louder in allowed and not allowed.contains(quiet)
    assert allowed.filter_in([quiet, louder, loud]) == [louder, loud]
    assert allowed.filter_not_in([quiet, louder]) == [quiet]
    with pytest.raises(TypeError, match="effect class"):
        allowed.add_type(int)
    assert effects.join() is effects.no_effects is effects.join([], frozenset())
    assert effects.join({loud}, {quiet}) == {loud, quiet}
