"""What is not supported, by the names that programs and libraries import.

Such a name can be imported, derived from and asked about with ``isinstance``; whoever uses it gets a
NotImplementedError that says why, and what to do instead. `reasons` is the table: name -> why. Everything below is
made from it or is a declaration beside it, and the page of coverage prints it. `bedrax.extend.refused` has the names of
whole modules of kernels.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from bedrax.extend import refused

_TYPES = (
    "values of a library's types are Python objects here, which hold arrays: how these are spread, their shardings say"
)

_MESHES = (
    "kernels run one after the other here (pallas_call with interpret=True): there are no cores, and nothing to compile"
)
_SPLASH = "kernels for TPUs do not run here; jax.nn.dot_product_attention computes attention on every platform"
_ATTENTION = ("CausalMask", "MultiHeadMask", "NumpyMask", "SegmentIds", "make_splash_mha")

_HINTS = ("attr_get", "control_dep", "schedule")
_ROOFLINE = ("register_roofline", "register_standard_roofline", "roofline", "roofline_and_grad")

reasons: dict[str, str] = {
    **dict.fromkeys(_HINTS, "programs carry no hints for the schedulers of TPUs and GPUs; leave it out, results are the same"),
    **dict.fromkeys(_ROOFLINE, "jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes"),
    "make_error_array": "arrays are values; an error is raised where it is found",
    "HiPspec": _TYPES,
    **dict.fromkeys(("GridMapping", "register_lowering_rule"), _MESHES),
    "fused": "no compiler of these platforms is told what to fuse; jax.jit compiles a function as a whole",
    **dict.fromkeys(_ATTENTION, _SPLASH),
    "register_hlo_module_transformation": "this version of jaxlib has no such hook in XLA's pipeline",
}  # fmt: skip

# Public names that are not there at all: where they would be, or a pattern of such places -> why. The page of coverage prints this table, too.
missing: dict[str, str] = {
    "jax.experimental.pallas.ops.gpu.*": "kernels for GPUs that are written out: jax.nn.dot_product_attention, jax.nn.softmax, jax.numpy.matmul, jax.lax.ragged_dot and collectives under jax.shard_map compute the same on every platform",
    "jax.experimental.pallas.ops.tpu.*": "kernels for TPUs that are written out: jax.nn.dot_product_attention, jax.numpy.matmul, jax.lax.ragged_dot, jax.lax.all_gather and jax.random compute the same on every platform",
    "jax.experimental.roofline.roofline.*": "the module that jax.experimental.roofline is made of upstream: its public names are in that package",
    "jax.experimental.colocated_python.func_backend.SINGLETON_RESULT_STORE": "results are returned by the call that makes them; no store keeps them until they are asked for",
    "jax.experimental.colocated_python.func.jax_register_backend_cache": "a name that the module imports there: the caches of this package are cleared where they are",
    "jax.experimental.colocated_python.serialization.cloudpickle": "the optional library that functions are sent by to other hosts; they run on this host here",
    "jax.experimental.fused.fused_p": "fused is refused, so that no program has such an operation",
    **dict.fromkeys(
        (f"jax.experimental.rnn.rnn_{name}" for name in ("fwd_p", "bwd_p", "abstract_eval", "bwd_abstract_eval")),
        "the kernels of cuDNN: an LSTM is a loop here on every platform, which derivatives and transformations read"),
    "jax.experimental.jax2tf.jax2tf.NativeSerializationImpl": "a class that convert works with there: convert does its work in functions of one call here",
    "jax.experimental.jet.call_param_updaters": "the parameters of calls need no change for series: a call is read as the program that it holds",
    "jax.experimental.sparse.transform.prim": "the variable of a loop, left over in that module",
    "jax.experimental.sparse.transform.sparsify_subtrace": "the inner half of sparsify_fun, which is whole here",
    "jax.extend.core.primitives.empty2_p": "memory that is not written yet is made by empty_p for arrays and by empty_ref_p for references",
    "jax.interpreters.batching.batch_subtrace": "the inner half of a batched function; jax.vmap and batching.batch_jaxpr_axes are whole",
    "jax.interpreters.partial_eval.lower_jaxpr": "it takes the types of a program's parts from a private class; lower_jaxpr2 takes the program alone",
    "jax.interpreters.partial_eval.new_eqn_recipe": "equations of a trace of known and unknown values: programs are not split into known and unknown halves",
    "jax.interpreters.ad.linearize": "it takes and gives a private class of flattened trees; jax.linearize and jax.vjp do what it does",
    **dict.fromkeys(
        ("jax.interpreters.partial_eval.custom_partial_eval_rules", "jax.interpreters.partial_eval.partial_eval_jaxpr_custom_rules"),
        "programs are not split into known and unknown halves: what is linear is recorded while the rest runs (the column `split`)"),
    "jax.custom_remat": "upstream 0.12.0.1 has no such name, although notes on 0.11 list it; the policy of jax.checkpoint chooses the values that are kept, and a rule of jax.custom_vjp those that are computed again",
    # Private names that libraries reach for.
    "jax._src.cudnn": "attention is one composition of operations on every platform; Keras takes the missing module for: no flash attention",
    "jax._src.interpreters.pxla": "results of element dtypes of a library's own are made as EArray at once; Flax asks for this module for a handler that nothing would call",
    **dict.fromkeys(
        ("jax._src.sharding_impls.UNSPECIFIED", "jax._src.sharding_impls.UnspecifiedValue"),
        "jit_p holds no shardings: where values are is said by equations of reshard_p (Oryx rewrites parameters that are not there)"),
}  # fmt: skip


def why(path: str) -> str | None:
    """Why a public name of upstream, ``jax.module.name``, is refused or not there; None if nothing says so."""
    if path in refused.reasons:
        return refused.reasons[path]
    return next((text for pattern, text in missing.items() if fnmatch.fnmatchcase(path, pattern)), None)


def refusal(name: str) -> NotImplementedError:
    """The error of using a name of the table."""
    return NotImplementedError(f"{name}: {reasons[name]}")


def refuse_options(function: str, **options: Any) -> None:
    """Raise NotImplementedError for what libraries may pass by name, but what has no meaning here, if it was passed."""
    given = sorted(name for name, value in options.items() if value not in (None, False))
    if given:
        raise NotImplementedError(f"{function} knows no {', '.join(given)} here: leave it out")


def _function(name: str) -> Callable[..., Any]:
    """A function that raises when it is called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise refusal(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplementedError: {reasons[name]}."
    return function


register_hlo_module_transformation = _function("register_hlo_module_transformation")

attr_get, control_dep, schedule = map(_function, _HINTS)
register_roofline, register_standard_roofline, roofline, roofline_and_grad = map(_function, _ROOFLINE)
make_error_array = _function("make_error_array")

# ---- kernels: what needs cores, and the kernels for TPUs that keras imports

fused = _function("fused")
GridMapping, register_lowering_rule = _function("GridMapping"), _function("register_lowering_rule")
CausalMask, MultiHeadMask, NumpyMask, SegmentIds, make_splash_mha = map(_function, _ATTENTION)

# ---- types of a library's own. Flax declares some when it is imported (nnx.variablelib)


class HiPspec:
    """How values of a `HiType` are spread over a mesh. None exists: making one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise refusal("HiPspec")
