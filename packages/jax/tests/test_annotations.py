"""Functions with annotations of undefined names, which Python 3.14 allows, and annotations of returned functions.

Before Python 3.14 the same holds for annotations stored as strings.
"""

import __future__

import sys
import typing
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "undefined_annotations.py"
FUTURE = 0 if sys.version_info >= (3, 14) else __future__.annotations.compiler_flag
SPACE: dict = {}
exec(compile(PROGRAM.read_text(encoding="utf-8"), PROGRAM, "exec", FUTURE), SPACE)
f = SPACE["f"]
P = jax.P


def with_jvp():
    g = jax.custom_jvp(f)
    g.defjvp(SPACE["jvp"])
    return jax.grad(g)(3.0, y=2.0)


def with_vjp():
    g = jax.custom_vjp(f)
    g.defvjp(SPACE["fwd"], SPACE["bwd"])
    return jax.grad(g)(3.0, y=2.0)


def with_batching_rule():
    g = jax.custom_batching.custom_vmap(f)
    g.def_vmap(SPACE["rule"])
    return jax.vmap(lambda x: g(x, y=2.0))(jnp.ones(2))[0]


def one_device(**options):
    mesh = jax.make_mesh((1,), ("a",))
    out = jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"), **options)(jnp.ones(2), jnp.full(2, 2.0))
    return np.asarray(out)[0]


USES = {  # use -> (function, result)
    "jit": (lambda: jax.jit(f)(3.0), 6.0),
    "static by position": (lambda: jax.jit(f, static_argnums=1)(3.0, 2.0), 6.0),
    "static by name": (lambda: jax.jit(f, static_argnames="y")(3.0, y=2.0), 6.0),
    "donated by name": (lambda: jax.jit(f, donate_argnames="x")(jnp.float32(3.0)), 6.0),
    "lower": (lambda: jax.jit(f).lower(3.0).compile()(3.0), 6.0),
    "callable object": (lambda: jax.jit(SPACE["Scaled"]())(3.0), 6.0),
    "vmap": (lambda: jax.vmap(f, in_axes=(0, None))(jnp.ones(2), 2.0)[1], 2.0),
    "pmap": (lambda: jax.pmap(f)(jnp.ones(1), jnp.full(1, 2.0))[0], 2.0),
    "shard_map": (one_device, 2.0),
    "grad": (lambda: jax.grad(f, argnums=1)(3.0, 2.0), 3.0),
    "checkpoint": (lambda: jax.grad(jax.checkpoint(f, static_argnums=1))(3.0, 2.0), 2.0),
    "custom_jvp": (with_jvp, 2.0),
    "custom_vjp": (with_vjp, 2.0),
    "custom_vmap": (with_batching_rule, 2.0),
    "scan": (lambda: jax.lax.scan(lambda c, x: (f(c, x), None), 1.0, jnp.full(3, 2.0))[0], 8.0),
    "export": (lambda: jax.export.export(jax.jit(f))(np.float32(3.0)).call(np.float32(3.0)), 6.0),
}


@pytest.mark.parametrize("use", USES)
def test_the_names_in_annotations_need_not_exist(use):
    function, expected = USES[use]
    assert function() == expected


WRONG = {
    "vmap": (lambda: jax.vmap(f)(jnp.ones(2), jnp.ones(3)), ValueError, "y.*3"),
    "shard_map": (lambda: one_device(axis_names={"b"}), ValueError, "b"),
    "carry": (lambda: jax.lax.while_loop(lambda x: True, SPACE["pair"], 1.0), TypeError, r"\bx\b"),
    "static": (lambda: jax.jit(f, static_argnums=7)(1.0), ValueError, "static_argnums"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_explained(mistake):
    function, kind, text = WRONG[mistake]
    with pytest.raises(kind, match=text):
        function()


WRAPPERS = [
    jax.jit,
    jax.vmap,
    jax.grad,
    jax.value_and_grad,
    jax.checkpoint,
    jax.custom_jvp,
    jax.custom_vjp,
    jax.custom_batching.custom_vmap,
    jax.custom_batching.sequential_vmap,
    jax.named_call,
]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda w: w.__name__)
def test_annotations_are_those_of_the_function(wrapper):
    def square(x: "np.ndarray", n: int = 2) -> float:
        return x**n

    assert typing.get_type_hints(wrapper(square)) == {"x": np.ndarray, "n": int, "return": float}
