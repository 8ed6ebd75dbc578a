"""Batching of calls: the program they hold is batched."""

from bedrax.batching.tables import batch_rules, elementwise
from bedrax.batching.trace import batch_flat, batch_jaxpr, place
from bedrax.core.ir import Jaxpr, call_flat
from bedrax.core.jitting import jit_p, jit_params
from bedrax.lax.primitives.calls import (
    closed_call_p,
    composite_p,
    core_call_p,
    custom_jvp_call_p,
    custom_lin_p,
    custom_vjp_call_p,
    linear_call_p,
    name_p,
    optimization_barrier_p,
    refuse_forward_mode,
    remat_opt_p,
    remat_p,
)
from bedrax.lax.symbolic_zeros import Zero


@batch_rules.rule(jit_p)
def _jit(axis, args, dims, *, jaxpr, name, **params):
    batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    params = jit_params(batched, name, params, donated_invars=params["donated_invars"])
    return jit_p.bind(*args, **params), out_dims


def _program_rule(prim):
    def rule(axis, args, dims, *, jaxpr, **params):
        batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
        return prim.bind(*args, jaxpr=batched, **params), out_dims

    return rule


for _prim in (remat_p, closed_call_p, core_call_p):
    batch_rules.add(_prim, _program_rule(_prim))


@batch_rules.rule(composite_p)
def _composite(axis, args, dims, *, jaxpr, name, version, attributes):
    # The batched program is no longer the named operation: it is what the name means, batched.
    return batch_flat(lambda *xs: call_flat(jaxpr, xs), axis, args, dims)


@batch_rules.rule(custom_jvp_call_p)
def _custom_jvp(axis, args, dims, *, call_jaxpr, jvp_jaxpr_fun, num_consts, symbolic_zeros, **rest):
    """Batch the function and its rule; the rule's results are placed as the function's are."""
    fun = _batched_function(call_jaxpr, axis, dims)
    own_dims = dims[num_consts:]

    def batched_rule(primals, tangents):
        live = [type(t) is not Zero for t in tangents]
        zero_out: list = []

        def flat(*xs):
            ps, ts = xs[: len(primals)], iter(xs[len(primals) :])
            outs, out_tangents = jvp_jaxpr_fun(
                ps, [next(ts) if here else Zero.of(p) for p, here in zip(ps, live, strict=True)]
            )
            zero_out.append([type(t) is Zero for t in out_tangents])
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        vals, found = batch_flat(
            flat,
            axis,
            [*primals, *(t for t, here in zip(tangents, live, strict=True) if here)],
            [*own_dims, *(d for d, here in zip(own_dims, live, strict=True) if here)],
        )
        placed = [place(x, d, 0, axis.size) for x, d in zip(vals, found, strict=True)]
        zeros = zero_out[-1]
        outs, rest = placed[: len(zeros)], iter(placed[len(zeros) :])
        return outs, [Zero.of(x) if is_zero else next(rest) for x, is_zero in zip(outs, zeros, strict=True)]

    outs = custom_jvp_call_p.bind(
        *args,
        call_jaxpr=fun,
        jvp_jaxpr_fun=batched_rule,
        num_consts=num_consts,
        symbolic_zeros=symbolic_zeros,
        **rest,
    )
    return outs, [0] * len(outs)


def _batched_function(fun, axis, dims):
    """The function on batches. Every result is mapped at 0, whatever the rules around it map."""
    if type(fun) is Jaxpr:
        return batch_jaxpr(fun, axis, tuple(dims), True)[0]

    def batched(*vals):
        outs, found = batch_flat(fun, axis, vals, dims)
        return [place(x, d, 0, axis.size) for x, d in zip(outs, found, strict=True)]

    return batched


@batch_rules.rule(custom_vjp_call_p)
def _custom_vjp(axis, args, dims, *, call_jaxpr, fwd_jaxpr_thunk, bwd, num_consts, symbolic_zeros, **rest):
    fun = _batched_function(call_jaxpr, axis, dims)
    own_dims = dims[num_consts:]
    res_dims: list = []

    def batched_fwd(*vals, **options):
        counts: list = []

        def flat(*xs):
            outs, residuals = fwd_jaxpr_thunk(*xs, **options)
            counts.append(len(outs))
            return [*outs, *residuals]

        vals_out, found = batch_flat(flat, axis, vals, own_dims)
        n = counts[-1]
        res_dims.append(found[n:])
        return [place(x, d, 0, axis.size) for x, d in zip(vals_out[:n], found[:n], strict=True)], vals_out[n:]

    def batched_bwd(residuals, cts):
        from bedrax.lax.primitives.reductions import reduce_sum_p

        live = [type(ct) is not Zero for ct in cts]
        shape_of = [ct for ct, here in zip(cts, live, strict=True) if here]
        zero_out: list = []

        def flat(*xs):
            rs, given = xs[: len(residuals)], iter(xs[len(residuals) :])
            inner = [next(given) if here else ct for ct, here in zip(cts, live, strict=True)]
            outs = bwd(rs, inner)
            zero_out.append([ct is None or type(ct) is Zero for ct in outs])
            return [ct for ct in outs if ct is not None and type(ct) is not Zero]

        vals, found = batch_flat(flat, axis, [*residuals, *shape_of], [*res_dims[-1], *([0] * len(shape_of))])
        leaving = iter(zip(vals, found, strict=True))
        result = []
        for is_zero, d in zip(zero_out[-1], own_dims, strict=True):
            if is_zero:
                result.append(None)
                continue
            ct, got = next(leaving)
            if d is None:  # one argument for the whole batch: its cotangents add up
                from bedrax.batching.tables import to_front

                result.append(reduce_sum_p.bind(to_front(ct, got, axis.size), axes=(0,)))
            else:
                result.append(place(ct, got, d, axis.size))
        return result

    outs = custom_vjp_call_p.bind(
        *args, call_jaxpr=fun, fwd_jaxpr_thunk=batched_fwd, bwd=batched_bwd, num_consts=num_consts,
        symbolic_zeros=symbolic_zeros, **rest,
    )  # fmt: skip
    return outs, [0] * len(outs)


batch_rules.add(
    custom_lin_p, refuse_forward_mode, "error"
)  # in reverse mode it is transposed before it is batched


@batch_rules.rule(remat_opt_p)
def _remat_opt(axis, args, dims, *, jaxpr, primal):
    batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims), True)
    without_residuals, _ = batch_jaxpr(primal, axis, tuple(dims), True)
    return remat_opt_p.bind(*args, jaxpr=batched, primal=without_residuals), out_dims


@batch_rules.rule(linear_call_p)
def _linear_call(axis, args, dims, *, call_jaxpr, transpose, num_res):
    # All that is linear is mapped: what arrives at an unmapped argument would have to be added up.
    args = [
        *args[:num_res],
        *(place(x, d, 0, axis.size) for x, d in zip(args[num_res:], dims[num_res:], strict=True)),
    ]
    res_dims = tuple(dims[:num_res])
    call, out_dims = batch_jaxpr(call_jaxpr, axis, (*res_dims, *[0] * (len(args) - num_res)), True)
    back, _ = batch_jaxpr(transpose, axis, (*res_dims, *[0] * len(out_dims)), True)
    return linear_call_p.bind(*args, call_jaxpr=call, transpose=back, num_res=num_res), out_dims


@batch_rules.rule(optimization_barrier_p)
def _barrier(axis, args, dims):
    return optimization_barrier_p.bind(*args), dims


elementwise(name_p)
