"""Derivatives and transposes of conversions: tangents are converted as their primals are."""

from bedrax.autodiff.tables import Zero, jvp_rules, linear, transpose_rules, zero
from bedrax.core.avals import aval_of
from bedrax.core.dtypes import is_inexact
from bedrax.lax.primitives import conversions as p


@jvp_rules.rule(p.convert_element_type_p, kind="linear")
def _convert_jvp(primals, tangents, *, new_dtype, weak_type, **params):
    (x,), (t,) = primals, tangents
    ans = p.convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type, **params)
    if type(t) is Zero or not is_inexact(new_dtype) or not is_inexact(aval_of(x).dtype):
        return ans, Zero.of(ans)
    return ans, p.convert_element_type_p.bind(t, new_dtype=new_dtype, weak_type=weak_type, **params)


@transpose_rules.rule(p.convert_element_type_p, kind="linear")
def _convert_transpose(ct, x, **params):
    return [p.convert_to(ct, x.aval.dtype, x.aval.weak_type)]


# The bits of a float are not a differentiable function of it.
zero(p.bitcast_convert_type_p)

# Rounding is the identity up to rounding, of tangents as of values.
linear(p.reduce_precision_p, lambda ct, x, **params: [p.reduce_precision_p.bind(ct, **params)])
