"""The names of operations: named scopes, within the transformations, the loops and the functions around them."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_vjp, grad, jvp, linearize, vjp
from bedrax.batching import vmap
from bedrax.core.names import named_scope
from bedrax.core.staging import make_jaxpr
from bedrax.xla_backend import jit

ONE, THREE = np.float32(1), np.ones(3, np.float32)


def scoped(x):
    with named_scope("first"):
        y = lax.sin(x)
    with named_scope("loop"):
        return lax.scan(lambda c, _: (lax.cos(c), None), y, None, length=3)[0]


def nested(x):
    def inner(z):
        with named_scope("inner"):
            return lax.sin(z)

    with named_scope("outer"):
        return lax.reduce_sum(vmap(inner)(x), (0,))


@custom_vjp
def ruled(x):
    return lax.sin(x)


def _forward(x):
    with named_scope("forward"):
        return lax.sin(x), x


def _backward(x, g):
    with named_scope("backward"):
        return (lax.mul(lax.cos(x), g),)


ruled.defvjp(_forward, _backward)


def in_scope(x):
    with named_scope("outside"):
        return grad(nested)(x)


def of_rule(x):
    with named_scope("model"):
        return ruled(x)


def names(fun, x):
    return [(e.primitive.name, str(e.source_info.name_stack)) for e in make_jaxpr(fun)(x).eqns]


@pytest.mark.parametrize(
    ("fun", "x", "expected"),
    [
        (lambda x: jvp(scoped, (x,), (x,)), ONE, ["jvp(first)", "jvp(first)", "jvp(first)", "jvp(loop)"]),
        (grad(scoped), ONE, ["jvp(first)"] * 2 + ["jvp(loop)", "transpose(jvp(loop))", "transpose(jvp(first))"]),
        (vmap(scoped), THREE, ["vmap(first)", "vmap(loop)"]),
        (vmap(vmap(lax.sin)), np.ones((2, 2), np.float32), ["vmap(vmap())"]),
        (
            grad(nested),
            THREE,
            ["jvp(outer)/vmap(inner)"] * 2
            + ["jvp(outer)", "transpose(jvp(outer))", "transpose(jvp(outer))/vmap(inner)"],
        ),
        (
            in_scope,
            THREE,
            ["outside/jvp(outer)/vmap(inner)"] * 2
            + ["outside/jvp(outer)", "outside/transpose(jvp(outer))", "outside/transpose(jvp(outer))/vmap(inner)"],
        ),
        (grad(of_rule), ONE, ["jvp(model)/forward"] + ["transpose(jvp(model))/backward"] * 2),
        (vmap(grad(of_rule)), THREE, ["vmap(jvp(model))/forward"] + ["vmap(transpose(jvp(model)))/backward"] * 2),
    ],
)
def test_names_in_programs(fun, x, expected):
    assert [name for _, name in names(fun, x)] == expected


def test_maps_keep_the_names():
    pulled = vjp(nested, THREE)[1]
    assert [name for _, name in names(pulled, ONE)] == ["transpose(jvp(outer))", "transpose(jvp(outer))/vmap(inner)"]
    pushed = names(lambda x: linearize(scoped, x)[1](x), ONE)
    assert [name for _, name in pushed] == ["jvp(first)"] * 2 + ["jvp(loop)", "jvp(first)", "jvp(loop)"]


def test_programs_inside_have_their_own_scopes_only():
    def outer(x):
        with named_scope("around"):
            return jit(scoped)(x)

    (eqn,) = make_jaxpr(outer)(ONE).eqns
    assert str(eqn.source_info.name_stack) == "around"
    assert [str(e.source_info.name_stack) for e in eqn.params["jaxpr"].eqns] == ["first", "loop"]
    for e in make_jaxpr(grad(outer))(ONE).eqns:
        inside = {str(inner.source_info.name_stack) for inner in e.params["jaxpr"].eqns}
        assert inside == {"first", "loop"}


def test_an_error_ends_the_transformation():
    def wrong(x):
        raise KeyError

    for transformed in (lambda x: jvp(wrong, (x,), (x,)), grad(wrong), lambda x: vmap(wrong)(THREE)):
        with pytest.raises(KeyError):
            transformed(ONE)
    assert names(lax.sin, ONE) == [("sin", "")]


def paths(fun, x):
    return set(re.findall(r'loc\("(jit\([^"]*)"', jit(fun).lower(x).as_text(debug_info=True)))


def branching(x):
    return lax.cond(lax.gt(x, np.float32(0)), scoped, lax.tanh, x)


def repeating(x):
    return lax.while_loop(lambda c: lax.lt(c, np.float32(3)), lambda c: lax.add(c, lax.exp(c)), x)


def test_names_in_modules():
    found = paths(grad(scoped), ONE)
    loop = "while/body/closed_call"
    assert {"jit(scoped)/jvp(first)/sin", f"jit(scoped)/jvp(loop)/{loop}/cos"} <= found
    assert {"jit(scoped)/transpose(jvp(first))/mul", f"jit(scoped)/transpose(jvp(loop))/{loop}/mul"} <= found
    assert "jit(branching)/cond/branch_1_fun/first/sin" in paths(branching, ONE)
    assert "jit(branching)/cond/branch_0_fun/tanh" in paths(branching, ONE)
    assert {"jit(repeating)/while/cond/lt", "jit(repeating)/while/body/exp"} <= paths(repeating, ONE)
    assert "jit(scoped)/jvp(jit(scoped))" in paths(grad(jit(scoped)), ONE)
    assert "jit(scoped)/transpose(jvp(jit(scoped)))" in paths(grad(jit(scoped)), ONE)
    assert "jit(scoped)/transpose(jvp())/checkpoint/rematted_computation/first/cos" in paths(
        grad(checkpoint(scoped)), ONE
    )


def test_names_in_compiled_programs():
    text = jit(vmap(grad(scoped))).lower(THREE).compile().as_text()
    found = set(re.findall(r'op_name="([^"]*)"', text))
    assert {"jit(scoped)/vmap(jvp(first))/cos", "jit(scoped)/vmap(transpose(jvp(first)))/mul"} <= found
