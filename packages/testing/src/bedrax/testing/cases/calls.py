"""Records of calls: programs inside programs, functions with custom rules, identities."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit, jit_p
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import calls as p
from bedrax.testing.records import OpCase, arg


def wave(x: ArrayLike, y: ArrayLike) -> Any:
    return lax.mul(lax.sin(x), y)


def np_wave(x: ArrayLike, y: ArrayLike) -> Any:
    return np.sin(x) * y


def _two_results(x, y):
    """One result depends on `x` alone, and one on nothing that is differentiated."""
    return lax.sin(x), lax.mul(lax.cos(x), y), lax.floor(y)


def _np_two_results(x, y):
    return np.sin(x), np.cos(x) * y, np.floor(y)


def _holding(prim, **params):
    """Apply a primitive that holds a program, with its other params."""

    def fun(x, y):
        jaxpr = staging.program_of(lambda *xs: list(_two_results(*xs)), [aval_of(x), aval_of(y)])
        return prim.bind(x, y, jaxpr=jaxpr, **params)

    return fun


def with_autodiff(make: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `make` returns. `make` uses bedrax.autodiff, which core's tests lack, so it runs at the first call."""
    made = functools.cache(make)
    return lambda *args: made()(*args)


def _named(x):
    from bedrax.autodiff import checkpoint_name

    return lax.sin(checkpoint_name(lax.sin(x), "inner"))


@with_autodiff
def _by_name():
    from bedrax.autodiff import checkpoint, checkpoint_policies

    return checkpoint(_named, policy=checkpoint_policies.save_only_these_names("inner"))


def _checkpointed(fun):
    @with_autodiff
    def make():
        from bedrax.autodiff import checkpoint

        return checkpoint(fun)

    return make


_AD = "bedrax.autodiff"
_X, _Y = arg((2, 3)), arg((2, 3))

CASES = [
    OpCase(jit_p, "one_result", jit(wave), (_X, _Y), oracle=np_wave),
    OpCase(jit_p, "several_results", jit(_two_results), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(jit_p, "nested", jit(lambda x: jit(lax.sin)(jit(lax.square)(x))), (_X,), oracle=lambda x: np.sin(x * x)),
    OpCase(jit_p, "constant_result", jit(lambda x: (x, np.float32(2))), (arg((3,)),),
           oracle=lambda x: (x, np.float32(2)), grad=()),
    OpCase(p.remat_p, "plain", _checkpointed(wave), (_X, _Y), oracle=np_wave, needs=_AD),
    OpCase(p.remat_p, "by_name", _by_name, (_X,), oracle=lambda x: np.sin(np.sin(x)), needs=_AD),
    OpCase(p.remat_p, "several_results", _checkpointed(_two_results), (_X, _Y), oracle=_np_two_results, grad=(0,),
           needs=_AD),
    OpCase(p.closed_call_p, "several_results", _holding(p.closed_call_p), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.core_call_p, "several_results", _holding(p.core_call_p), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.xla_metadata_call_p, "same", _holding(p.xla_metadata_call_p, xla_metadata=(("group", "a"),), ad_metadata="same"),
           (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.xla_metadata_call_p, "others", _holding(p.xla_metadata_call_p, xla_metadata=(("group", "a"),), ad_metadata=()),
           (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.program_order_p, "as written", _holding(p.program_order_p, enforce=False, strict_in=False, strict_out=False),
           (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.program_order_p, "strict", _holding(p.program_order_p, enforce=True, strict_in=True, strict_out=True),
           (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.composite_p, "attributes",
           lambda x: lax.composite(lambda x, *, by: lax.mul(lax.sin(x), np.array(by, x.dtype)), "my.op")(x, by=3.0),
           (_X,), oracle=lambda x: np.sin(x) * 3),
    OpCase(p.optimization_barrier_p, "pair", lambda x, y: lax.optimization_barrier((lax.sin(x), y)),
           (_X, arg((), "int32")), oracle=lambda x, y: (np.sin(x), y)),
    OpCase(p.name_p, "inner", _named, (_X,), oracle=lambda x: np.sin(np.sin(x)), needs=_AD),
]  # fmt: skip

UNSAMPLED = {
    p.custom_partitioning_p: "it is for many devices; its tests are in xla_backend's test_custom_partitioning.py"
}
