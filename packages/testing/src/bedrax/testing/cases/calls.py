"""Records of calls: programs inside programs, functions with rules of their own, identities."""

import functools

import numpy as np

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.jitting import jit, jit_p
from bedrax.lax.primitives import calls as p
from bedrax.testing.records import OpCase, arg


def _wave(x, y):
    return lax.mul(lax.sin(x), y)


def _np_wave(x, y):
    return np.sin(x) * y


def _two_results(x, y):
    """One result depends on `x` alone, and one on nothing that is differentiated."""
    return lax.sin(x), lax.mul(lax.cos(x), y), lax.floor(y)


def _np_two_results(x, y):
    return np.sin(x), np.cos(x) * y, np.floor(y)


def _holding(prim):
    """Apply a primitive that holds a program and nothing else."""

    def fun(x, y):
        jaxpr = staging.program_of(lambda *xs: list(_two_results(*xs)), [aval_of(x), aval_of(y)])
        return prim.bind(x, y, jaxpr=jaxpr)

    return fun


def _with_autodiff(make):
    """The function that `make` makes of functions of bedrax.autodiff, which core's tests have not, when first called."""
    made = functools.cache(make)
    return lambda *args: made()(*args)


@_with_autodiff
def _cube():
    from bedrax.autodiff import custom_jvp

    @custom_jvp
    def cube(x, y):
        return lax.mul(lax.integer_pow(x, 3), y)

    @cube.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        change = lax.mul(lax.mul(lax.mul(lax.square(x), lax.full_like(x, 3)), y), tx)
        return cube(x, y), lax.add(change, lax.mul(lax.integer_pow(x, 3), ty))

    return cube


@_with_autodiff
def _scaled():
    from bedrax.autodiff import custom_vjp

    @custom_vjp
    def scaled(x, y):
        return lax.mul(x, y)

    scaled.defvjp(
        lambda x, y: (lax.mul(x, y), (x, y)), lambda res, ct: (lax.mul(ct, res[1]), lax.mul(ct, res[0]))
    )
    return scaled


def _named(x):
    from bedrax.autodiff import checkpoint_name

    return lax.sin(checkpoint_name(lax.sin(x), "inner"))


@_with_autodiff
def _by_name():
    from bedrax.autodiff import checkpoint, checkpoint_policies

    return checkpoint(_named, policy=checkpoint_policies.save_only_these_names("inner"))


def _checkpointed(fun):
    @_with_autodiff
    def make():
        from bedrax.autodiff import checkpoint

        return checkpoint(fun)

    return make


def _quotient(x, y):
    from bedrax.autodiff.linear_call import linear_call

    return linear_call(lambda r, v: lax.div(v, r), lambda r, ct: lax.div(ct, r), y, x)


def _forward_rule(x, y):
    """As the forward rule of a custom_vjp function: results, then residuals."""
    types = [aval_of(x), aval_of(y)]
    rule = staging.program_of(lambda x, y: [_wave(x, y), lax.cos(x)], types)
    return p.remat_opt_p.bind(x, y, jaxpr=rule, primal=staging.program_of(lambda x, y: [_wave(x, y)], types))


_AD = "bedrax.autodiff"
_X, _Y = arg((2, 3)), arg((2, 3))

CASES = [
    OpCase(jit_p, "one_result", jit(_wave), (_X, _Y), oracle=_np_wave),
    OpCase(jit_p, "several_results", jit(_two_results), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(jit_p, "nested", jit(lambda x: jit(lax.sin)(jit(lax.square)(x))), (_X,), oracle=lambda x: np.sin(x * x)),
    OpCase(jit_p, "constant_result", jit(lambda x: (x, np.float32(2))), (arg((3,)),),
           oracle=lambda x: (x, np.float32(2)), grad=()),
    OpCase(p.remat_p, "plain", _checkpointed(_wave), (_X, _Y), oracle=_np_wave, needs=_AD),
    OpCase(p.remat_p, "by_name", _by_name, (_X,), oracle=lambda x: np.sin(np.sin(x)), needs=_AD),
    OpCase(p.remat_p, "several_results", _checkpointed(_two_results), (_X, _Y), oracle=_np_two_results, grad=(0,),
           needs=_AD),
    OpCase(p.closed_call_p, "several_results", _holding(p.closed_call_p), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.core_call_p, "several_results", _holding(p.core_call_p), (_X, _Y), oracle=_np_two_results, grad=(0,)),
    OpCase(p.composite_p, "attributes",
           lambda x: lax.composite(lambda x, *, by: lax.mul(lax.sin(x), np.array(by, x.dtype)), "my.op")(x, by=3.0),
           (_X,), oracle=lambda x: np.sin(x) * 3),
    OpCase(p.custom_jvp_call_p, "cube", _cube, (_X, _Y), oracle=lambda x, y: x**3 * y, needs=_AD),
    OpCase(p.custom_vjp_call_p, "scaled", _scaled, (_X, _Y), oracle=np.multiply, grad=(), needs=_AD),
    OpCase(p.linear_call_p, "quotient", _quotient, (_X, arg((2, 3), low=1.0)), oracle=np.divide, needs=_AD),
    OpCase(p.remat_opt_p, "wave", _forward_rule, (_X, _Y), oracle=lambda x, y: (_np_wave(x, y), np.cos(x))),
    OpCase(p.optimization_barrier_p, "pair", lambda x, y: lax.optimization_barrier((lax.sin(x), y)),
           (_X, arg((), "int32")), oracle=lambda x, y: (np.sin(x), y)),
    OpCase(p.name_p, "inner", _named, (_X,), oracle=lambda x: np.sin(np.sin(x)), needs=_AD),
]  # fmt: skip

UNSAMPLED = {
    p.custom_lin_p: "it stands in linear programs only, until they are transposed: records of custom_vjp_call reach it",
}
