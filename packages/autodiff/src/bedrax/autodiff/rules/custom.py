"""Differentiation of `custom_vmap` functions: their programs are differentiated; the rule stays for the primal part."""

from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.tables import jvp_rules, transpose_rules
from bedrax.batching.custom import custom_vmap_p
from bedrax.core.ir import call_flat


@jvp_rules.rule(custom_vmap_p)
def _jvp(primals, tangents, *, call, rule, num_consts):
    return jvp_flat(lambda *xs: call_flat(call, xs), primals, tangents)


transpose_rules.absent(custom_vmap_p, why="its derivative is that of its program, which holds no custom_vmap")
