"""Records of functions with custom rules."""

import numpy as np

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import custom_rules as p
from bedrax.testing.cases.calls import np_wave, wave, with_autodiff
from bedrax.testing.records import OpCase, arg


@with_autodiff
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


@with_autodiff
def _scaled():
    from bedrax.autodiff import custom_vjp

    @custom_vjp
    def scaled(x, y):
        return lax.mul(x, y)

    scaled.defvjp(lambda x, y: (lax.mul(x, y), (x, y)), lambda res, ct: (lax.mul(ct, res[1]), lax.mul(ct, res[0])))
    return scaled


def _quotient(x, y):
    from bedrax.autodiff.linear_call import linear_call

    return linear_call(lambda r, v: lax.div(v, r), lambda r, ct: lax.div(ct, r), y, x)


def _forward_rule(x, y):
    """As the forward rule of a custom_vjp function: results, then residuals."""
    types = [aval_of(x), aval_of(y)]
    rule = staging.program_of(lambda x, y: [wave(x, y), lax.cos(x)], types)
    return p.remat_opt_p.bind(x, y, jaxpr=rule, primal=staging.program_of(lambda x, y: [wave(x, y)], types))


_AD = "bedrax.autodiff"
_X, _Y = arg((2, 3)), arg((2, 3))

CASES = [
    OpCase(p.custom_jvp_call_p, "cube", _cube, (_X, _Y), oracle=lambda x, y: x**3 * y, needs=_AD),
    OpCase(p.custom_vjp_call_p, "scaled", _scaled, (_X, _Y), oracle=np.multiply, grad=(), needs=_AD),
    OpCase(p.linear_call_p, "quotient", _quotient, (_X, arg((2, 3), low=1.0)), oracle=np.divide, needs=_AD),
    OpCase(p.remat_opt_p, "wave", _forward_rule, (_X, _Y), oracle=lambda x, y: (np_wave(x, y), np.cos(x))),
]

UNSAMPLED = {
    p.custom_lin_p: "it stands in linear programs only, until they are transposed: records of custom_vjp_call reach it"
}
