"""Calls with pairs for the compiler, and orders of operations: modules have the text of those of upstream 0.12.0.1."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.xla_backend.compute_on import compute_on
from bedrax.xla_backend.metadata import (
    fuse_limit,
    must_fuse_call,
    program_order,
    scheduling_group,
    xla_metadata_call,
    xla_metadata_call2,
)
from bedrax.xla_backend.sharding import Space

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def wave(x):
    return lax.mul(lax.sin(x), lax.cos(x))


def total(f):
    return lambda x: lax.reduce_sum(f(x), (0, 1))


def calls(f, *args) -> list[str]:
    """The attributes of the calls in the module of a function."""
    text = jit(f).lower(*args).as_text()
    return [
        " ".join(re.findall(r'\w+ = "[^"]*"', line)) for line in text.splitlines() if "call @xla_metadata_call" in line
    ]


def test_a_call_has_its_pairs_and_the_same_values():
    marked = xla_metadata_call(wave, tag="b", n=3, b=True, f=1.5)
    assert calls(marked, X) == ['b = "true" f = "1.5" n = "3" tag = "b"']
    np.testing.assert_allclose(marked(X), np.sin(X) * np.cos(X), rtol=1e-6)
    assert calls(must_fuse_call("1")(wave), X) == ['MUST_FUSE = "1"']
    assert calls(scheduling_group("g")(wave), X) == ['scheduling_group = "g"']
    assert calls(vmap(marked), X) == calls(marked, X)


@pytest.mark.parametrize(("of_derivatives", "backward"), [("same", 'tag = "b"'), ("drop", ""), ({"q": 2}, 'q = "2"')])
def test_derivatives_have_the_given_metadata(of_derivatives, backward):
    marked = xla_metadata_call2(wave, {"tag": "b"}, ad_metadata=of_derivatives)
    assert calls(grad(total(marked)), X) == ['tag = "b"', backward]
    assert calls(lambda x: jvp(marked, (x,), (x,)), X) == ['tag = "b"']
    np.testing.assert_allclose(grad(total(marked))(X), np.cos(2 * X), rtol=1e-5, atol=1e-6)


def test_a_block_that_is_not_fused_with_others():
    def f(x):
        with fuse_limit():
            y = lax.sin(x)
        return lax.cos(y)

    (line,) = [line for line in jit(f).lower(X).as_text().splitlines() if "FUSE_LIMIT" in line]
    assert "stablehlo.sine" in line and 'FUSE_LIMIT = "true"' in line


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: xla_metadata_call(wave, tag=[1]), "tag is a boolean, a number or a string"),
        (lambda: xla_metadata_call2(wave, 3), "metadata is a dictionary, got 3"),
        (
            lambda: xla_metadata_call2(wave, {"a": 1}, ad_metadata="foo"),
            "ad_metadata is 'same', 'drop' or a dictionary",
        ),
        (lambda: compute_on(wave, compute_type="device"), "needs compute_type= and out_memory_spaces="),
    ],
)
def test_wrong_metadata_is_refused(make, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


# ---- orders


def ordered(x, y):
    return lax.dot(lax.sin(x), y), lax.cos(y)


def barriers(f, *args) -> list[tuple[str, int]]:
    """The operations of the module of a function, in order; a barrier with the number of its operands."""
    text = jit(f).lower(*args).as_text()
    return [
        (name, rest.split(" : ")[0].count("%") if name == "optimization_barrier" else 0)
        for name, rest in re.findall(r"= stablehlo\.(\w+) ?(.*)", text)
    ]


def test_an_order_is_enforced_by_barriers():
    args = (X, X.T)
    plain = [("sine", 0), ("dot_general", 0), ("cosine", 0)]
    assert barriers(program_order(ordered, enforce=False, exclude_argnames="y"), *args) == plain
    between = lambda n: ("optimization_barrier", n)
    assert barriers(program_order(ordered, enforce=True), *args) == [
        plain[0],
        between(2),
        plain[1],
        between(2),
        plain[2],
    ]
    assert barriers(program_order(enforce=True, strict_in_out=True)(ordered), *args) == [
        between(2),
        plain[0],
        between(2),
        plain[1],
        between(2),
        plain[2],
        between(2),
    ]
    assert len(barriers(program_order(ordered, enforce=True, strict_in_out=(False, True)), *args)) == 6
    for found, wanted in zip(program_order(ordered, enforce=True)(*args), ordered(*args), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_derivative_is_ordered_too():
    count = lambda enforce: len(
        barriers(grad(lambda x: lax.reduce_sum(program_order(wave, enforce=enforce)(x), (0, 1))), X)
    )
    assert count(True) > count(False) + 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"enforce": False, "strict_in_out": True}, "needs enforce=True"),
        ({"enforce": True, "exclude_argnames": "y"}, "needs enforce=False"),
        ({"enforce": False, "exclude_argnames": ["z"]}, "has 'z', but the arguments are x, y"),
        ({"enforce": True, "strict_in_out": (True,)}, "one or a pair"),
        ({"enforce": 3}, "enforce is a boolean"),
    ],
)
def test_wrong_program_orders_are_refused(options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        program_order(ordered, **options)


# ---- places


@pytest.mark.parametrize(
    ("kind", "pairs"),
    [
        ("device_host", '_xla_compute_type = "host"'),
        ("device", '_xla_compute_type = "dense"'),
        ("tpu_sparsecore", '_xla_compute_type = "sparseoffload"'),
        ("gpu_stream:1", '_xla_stream_annotation = "1" inlineable = "false"'),
    ],
)
def test_a_call_is_marked_with_its_compute_type(kind, pairs):
    placed = compute_on(lambda x: {"a": lax.sin(x)}, compute_type=kind, out_memory_spaces=Space.Device)
    text = jit(placed).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count(pairs.split(" = ")[0]) == 2  # of the call, and of the operation in it
    assert calls(placed, X) == [pairs]


def test_results_of_a_call_are_in_the_given_memory_spaces():
    both = lambda x: (lax.sin(x), {"a": lax.cos(x)})
    placed = compute_on(both, compute_type="device_host", out_memory_spaces=(Space.Host, Space.Device))
    for run in (placed, jit(placed)):
        first, rest = run(X)
        assert first.sharding.memory_kind == "pinned_host" and rest["a"].sharding.memory_kind == "device"
        np.testing.assert_allclose(first, np.sin(X), rtol=1e-6)
    one = compute_on(compute_type="device_host", out_memory_spaces=Space.Device, compiler_options={"a": "b"})(wave)
    assert 'backend_config = "{\\22a\\22: \\22b\\22}"' in jit(one).lower(X).as_text()
    np.testing.assert_allclose(grad(total(one))(X), np.cos(2 * X), rtol=1e-5, atol=1e-6)
    for options in (
        {"compute_type": "foo", "out_memory_spaces": Space.Device},
        {"compute_type": "device", "out_memory_spaces": "pinned_host"},
    ):
        with pytest.raises(ValueError, match="compute_on"):
            compute_on(wave, **options)
