"""Host callbacks and ordered effects, through a primitive defined in the test."""

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import effects
from bedrax.core.avals import ShapeDtypeStruct, typeof
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.callbacks import debug_callback
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.export import export
from bedrax.xla_backend.tables import lowering_rules


class Noise(effects.Effect):
    def __init__(self, ordered):
        self.ordered = ordered

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))


class OrderedNoise(Noise):
    pass


effects.lowerable_effects.add_type(Noise)
effects.control_flow_allowed_effects.add_type(Noise)
effects.ordered_effects.add_type(OrderedNoise)

EFFECTS = {False: Noise(False), True: OrderedNoise(True)}

tap_p = Primitive("tap")
tap_p.abstract(lambda a, *, f, ordered: a)
effect_rules.add(tap_p, lambda a, *, f, ordered: {EFFECTS[ordered]})


@lowering_rules.rule(tap_p)
def _tap(ctx, x, *, f, ordered):
    (out,) = ctx.host_callback(lambda a: [f(a)], [x], ctx.avals_out, EFFECTS[True] if ordered else None)
    return out


@pytest.mark.parametrize("ordered", [False, True])
def test_callbacks_run_in_jit_scan_and_cond(ordered):
    seen = []

    def double(x):
        seen.append(x.tolist())
        return x * 2

    def tap(x):
        return tap_p.bind(x, f=double, ordered=ordered)

    x = np.arange(2, dtype=np.float32)
    f = xla.jit(lambda x: lax.add(tap(x), x))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(f(x)), 3 * x)
    assert seen == [[0.0, 1.0]] * 2
    seen.clear()
    g = xla.jit(lambda x: lax.scan(lambda c, _: (tap(c), None), x, None, length=3)[0])
    np.testing.assert_array_equal(np.asarray(g(x)), 8 * x)
    assert seen == [[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    seen.clear()
    h = xla.jit(lambda p, x: lax.cond(p, tap, lambda x: x, x))
    np.testing.assert_array_equal(np.asarray(h(False, x)), x)
    assert seen == []
    np.testing.assert_array_equal(np.asarray(h(True, x)), 2 * x)
    while_ = xla.jit(
        lambda x: lax.while_loop(lambda s: lax.lt(s[0], 2), lambda s: (lax.add(s[0], 1), tap(s[1])), (0, x))[1]
    )
    np.testing.assert_array_equal(np.asarray(while_(x)), 4 * x)
    xla.effects_barrier()


def test_wrong_results_of_callbacks_are_errors():
    for f, message in (
        (lambda x: x[:1], "expected"),
        (lambda x: x.astype(np.int32), "expected"),
        (lambda x: 1 / 0, "division"),
    ):
        with pytest.raises(Exception, match=message):
            xla.jit(lambda x, f=f: tap_p.bind(x, f=f, ordered=False))(np.ones(2, np.float32)).block_until_ready()


def test_an_effect_without_an_implementation_is_an_error():
    class Unknown(effects.Effect):
        pass

    prim = Primitive("mystery")
    prim.abstract(lambda a: a)
    effect_rules.add(prim, lambda a: {Unknown()})
    with pytest.raises(ValueError, match="Cannot lower jaxpr with effects"):
        xla.jit(prim.bind)(1.0)


@pytest.mark.parametrize(("error", "left"), [(ValueError, ["last"]), (KeyboardInterrupt, ["failing", "last"])])
def test_a_barrier_that_raises_leaves_the_other_programs_to_the_next_one(error, left, monkeypatch):
    waited = []

    class Token:
        def __init__(self, name):
            self.name = name

        def block_until_ready(self):
            if self.name == "failing" and not waited.count("failing"):
                waited.append("failing")
                raise error
            waited.append(self.name)

    tokens = {name: Token(name) for name in ("first", "failing", "last")}
    monkeypatch.setattr(compile_module, "_runtime_tokens", tokens)
    with pytest.raises(error):
        compile_module.effects_barrier()
    assert waited == ["first", "failing"]
    compile_module.effects_barrier()
    assert waited[2:] == left
    assert not tokens


@pytest.mark.parametrize("keep_unused", [False, True])
def test_a_program_takes_and_returns_tokens_among_arrays(keep_unused):
    def f(token, x):
        return lax.after_all(token), x + 1, lax.create_token(), 2 * x

    token, x = lax.create_token(), np.ones(3, np.float32)
    jitted = xla.jit(f, keep_unused=keep_unused)
    compiled = jitted.lower(token, x).compile()
    outer = xla.jit(lambda token, x: jitted(token, x), keep_unused=keep_unused)
    for run in (jitted, jitted, outer, compiled):
        begin, y, end, z = run(token, x)
        assert typeof(begin) == typeof(end) == typeof(token)
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(z, 2 * x)
    assert typeof(xla.jit(lax.create_token)()) == typeof(token)
    _, n = lax.fori_loop(0, 3, lambda i, c: (lax.after_all(c[0]), c[1] + 1), (token, 0))
    assert n == 3
    places = compiled.output_shardings
    assert len(places) == 4 and [f.sharding for f in compiled.output_formats] == list(places)
    assert len(compiled.input_shardings[0]) == len(compiled.input_formats[0]) == 2
    with pytest.raises(
        TypeError, match=r"'token': expected Tok, got float32\[3\]\n.*'x': expected float32\[3\], got Tok"
    ):
        compiled(x, token)
    with pytest.raises(NotImplementedError, match="takes or returns a token"):
        export(jitted)(token, x)


def test_the_type_of_an_array_in_place_of_an_array_is_named():
    wanted = ShapeDtypeStruct((2,), np.float32)
    for call in (
        lambda: debug_callback(print, wanted),
        lambda: debug_callback(print, x=wanted),
        lambda: xla.jit(lambda: debug_callback(print, wanted))(),
        lambda: lax.sin(wanted),
        lambda: xla.jit(lax.sin)(wanted),
        lambda: xla.device_put(wanted),
    ):
        with pytest.raises(
            TypeError, match=r"ShapeDtypeStruct\(shape=\(2,\), dtype=float32\) is the type of an array and has"
        ):
            call()
