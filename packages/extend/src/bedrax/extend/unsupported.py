"""Names that programs and libraries import, and that are not supported.

Such a name can be imported, derived from, and used with ``isinstance``. Any other use raises a NotImplementedError with
the reason and an alternative. `reasons` is the table: name -> reason. The rest of the module is made from it, or is a
declaration for it. The page of coverage prints the table. `bedrax.extend.refused` has the names of
modules of kernels.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any, Final

from bedrax.core.defining import named
from bedrax.extend import refused

_MESHES = (
    "kernels run one after the other here (pallas_call with interpret=True): there are no cores, and nothing to compile"
)
_SPLASH = "kernels for TPUs do not run here; jax.nn.dot_product_attention computes attention on every platform"
_ATTENTION = ("CausalMask", "MultiHeadMask", "NumpyMask", "SegmentIds", "make_splash_mha")

_HINTS = ("attr_get", "control_dep", "schedule")
_ROOFLINE = ("register_roofline", "register_standard_roofline", "roofline", "roofline_and_grad")

reasons: dict[str, str] = {
    **dict.fromkeys(
        _HINTS, "programs carry no hints for the schedulers of TPUs and GPUs; leave it out, results are the same"
    ),
    **dict.fromkeys(
        _ROOFLINE, "jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes"
    ),
    "make_error_array": "arrays are values; an error is raised at its detection",
    **dict.fromkeys(("GridMapping", "register_lowering_rule"), _MESHES),
    "fused": "the compilers of these platforms choose their fusions; jax.jit compiles a function as a whole",
    **dict.fromkeys(_ATTENTION, _SPLASH),
    "register_hlo_module_transformation": "this version of jaxlib has no such hook in XLA's pipeline",
}

# Public names that are absent: their path, or a pattern of paths -> reason. The page of coverage also prints this
# table.
missing: dict[str, str] = {
    "jax.experimental.pallas.ops.gpu.*": "kernels for GPUs: jax.nn.dot_product_attention, jax.nn.softmax, jax.numpy.matmul, jax.lax.ragged_dot and collectives under jax.shard_map compute the same on every platform",
    "jax.experimental.pallas.ops.tpu.*": "kernels for TPUs: jax.nn.dot_product_attention, jax.numpy.matmul, jax.lax.ragged_dot, jax.lax.all_gather and jax.random compute the same on every platform",
    "jax.experimental.roofline.roofline.*": "upstream's module inside jax.experimental.roofline; its public names are in that package",
    "jax.experimental.colocated_python.func_backend.SINGLETON_RESULT_STORE": "results are returned by the call that makes them; no store keeps them",
    "jax.experimental.colocated_python.func.jax_register_backend_cache": "a name that upstream's module imports: this package clears its own caches",
    "jax.experimental.colocated_python.serialization.cloudpickle": "the optional library that sends functions to other hosts; here they run on this host",
    "jax.experimental.fused.fused_p": "fused is not supported, so no program has such an operation",
    **dict.fromkeys(
        (f"jax.experimental.rnn.rnn_{name}" for name in ("fwd_p", "bwd_p", "abstract_eval", "bwd_abstract_eval")),
        "the kernels of cuDNN: here an LSTM is a loop on every platform, which can be differentiated and transformed",
    ),
    "jax.experimental.jax2tf.jax2tf.NativeSerializationImpl": "a helper class of upstream's convert: here convert uses functions",
    "jax.experimental.jet.call_param_updaters": "the parameters of calls need no change for series: a call is processed as its program",
    "jax.experimental.scheduling_groups.dce_jaxpr_xla_metadata_rule": "a rule that upstream's module registers: here dead code is removed from all calls by one rule",
    "jax.experimental.sparse.transform.prim": "the variable of a loop in upstream's module",
    "jax.experimental.sparse.transform.sparsify_subtrace": "an inner function of sparsify_fun, which is one function here",
    "jax.extend.core.primitives.empty2_p": "memory that is not written yet is made by empty_p for arrays and by empty_ref_p for references",
    "jax.interpreters.batching.batch_subtrace": "an inner function of a batched function; jax.vmap and batching.batch_jaxpr_axes are one function here",
    "jax.interpreters.partial_eval.lower_jaxpr": "it takes the types of a program's parts from a private class; lower_jaxpr2 takes the program alone",
    "jax.interpreters.partial_eval.new_eqn_recipe": "equations of a trace of known and unknown values: programs are not split into known and unknown halves",
    "jax.interpreters.ad.linearize": "it uses a private class of flattened trees; jax.linearize and jax.vjp compute the same",
    **dict.fromkeys(
        (
            "jax.interpreters.partial_eval.custom_partial_eval_rules",
            "jax.interpreters.partial_eval.partial_eval_jaxpr_custom_rules",
        ),
        "programs are not split into known and unknown halves: linear operations are recorded while the others run (the column `split`)",
    ),
    "jax.custom_remat": "upstream 0.12.0.1 has no such name, although notes on 0.11 list it; the policy of jax.checkpoint chooses the values that are kept, and a rule of jax.custom_vjp those that are computed again",
    # Private names that libraries use.
    "jax._src.cudnn": "attention is one composition of operations on every platform; the module is absent on purpose: Keras then disables flash attention",
    "jax._src.interpreters.pxla": "results of a library's element dtypes are made as EArray directly; Flax imports this module for a handler that would never be called",
    "jax._src.sharding_impls.UnspecifiedValue": "a placement that is left open is None: `jax._src.sharding_impls.UNSPECIFIED`",
}


def why(path: str) -> str | None:
    """The reason why a public name of upstream, ``jax.module.name``, is not supported or absent; None if no table has
    it."""
    if path in refused.reasons:
        return refused.reasons[path]
    return next((text for pattern, text in missing.items() if fnmatch.fnmatchcase(path, pattern)), None)


def refusal(name: str) -> NotImplementedError:
    """The error for a use of a name in the table."""
    return NotImplementedError(f"{name}: {reasons[name]}")


def _function(name: str, example: str) -> Callable[..., Any]:
    """A function that raises when it is called."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise refusal(name)

    arguments = "Args:\n  args, kwargs: not read. Every call raises the error."
    return named(function, name, __name__, f"Raises NotImplementedError: {reasons[name]}.\n\n{arguments}", example)


register_hlo_module_transformation: Final = _function(
    "register_hlo_module_transformation",
    example="""
    >>> from jax.extend import xla

    >>> xla.register_hlo_module_transformation("fold_my_pattern", lambda module: module)
    Traceback (most recent call last):
      ...
    NotImplementedError: register_hlo_module_transformation: this version of jaxlib has no such hook in XLA's pipeline
    """,
)

attr_get: Final = _function(
    "attr_get",
    example="""
    >>> from jax.experimental import scheduling_groups

    >>> try:
    ...     scheduling_groups.attr_get(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    attr_get: programs carry no hints for the schedulers of TPUs and GPUs; leave it out, results are the same
    """,
)
control_dep: Final = _function(
    "control_dep",
    example="""
    >>> from jax.experimental import control_deps

    >>> try:
    ...     control_deps.control_dep(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    control_dep: programs carry no hints for the schedulers of TPUs and GPUs; leave it out, results are the same
    """,
)
schedule: Final = _function(
    "schedule",
    example="""
    >>> from jax.experimental import control_deps

    >>> try:
    ...     control_deps.schedule(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    schedule: programs carry no hints for the schedulers of TPUs and GPUs; leave it out, results are the same
    """,
)
register_roofline: Final = _function(
    "register_roofline",
    example="""
    >>> from jax.experimental import roofline

    >>> try:
    ...     roofline.register_roofline(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    register_roofline: jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes
    """,
)
register_standard_roofline: Final = _function(
    "register_standard_roofline",
    example="""
    >>> from jax.experimental import roofline

    >>> try:
    ...     roofline.register_standard_roofline(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    register_standard_roofline: jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes
    """,
)
roofline: Final = _function(
    "roofline",
    example="""
    >>> from jax.experimental import roofline

    >>> try:
    ...     roofline.roofline(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    roofline: jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes
    """,
)
roofline_and_grad: Final = _function(
    "roofline_and_grad",
    example="""
    >>> from jax.experimental import roofline

    >>> try:
    ...     roofline.roofline_and_grad(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    roofline_and_grad: jax.jit(f).lower(*args).compile().cost_analysis() has XLA's estimate of operations and bytes
    """,
)
make_error_array: Final = _function(
    "make_error_array",
    example="""
    >>> from jax.experimental import transfer

    >>> try:
    ...     transfer.make_error_array(lambda x: x)
    ... except NotImplementedError as error:
    ...     print(error)
    ...
    make_error_array: arrays are values; an error is raised at its detection
    """,
)

# ---- kernels: names that need cores, and the kernels for TPUs that keras imports

fused: Final = _function(
    "fused",
    example="""
    >>> from jax.experimental.fused import fused

    >>> try:
    ...     fused(lambda x: x, out_spaces=None)
    ... except NotImplementedError as error:
    ...     print("jax.jit compiles a function as a whole" in str(error))
    ...
    True
    """,
)
GridMapping: Final = _function(
    "GridMapping",
    example="""
    >>> from jax.extend.pallas import GridMapping
    >>> GridMapping(grid=(4,))
    Traceback (most recent call last):
      ...
    NotImplementedError: GridMapping: kernels run one after the other here (pallas_call with interpret=True)...
    """,
)
register_lowering_rule: Final = _function(
    "register_lowering_rule",
    example="""
    >>> from jax.extend.pallas import register_lowering_rule
    >>> register_lowering_rule(lax.sin_p)
    Traceback (most recent call last):
      ...
    NotImplementedError: register_lowering_rule: kernels run one after the other here (pallas_call with interpret=True)...
    """,
)
CausalMask: Final = _function(
    "CausalMask",
    example="""
    >>> from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    >>> masks.CausalMask((3, 3))
    Traceback (most recent call last):
        ...
    NotImplementedError: CausalMask: kernels for TPUs do not run here; jax.nn.dot_product_attention computes ...
    >>> q, v = jnp.zeros((3, 1, 1)), jnp.array([2., 4., 9.])[:, None, None]
    >>> jax.nn.dot_product_attention(q, q, v, is_causal=True).ravel()
    Array([2., 3., 5.], dtype=float32)
    """,
)
MultiHeadMask: Final = _function(
    "MultiHeadMask",
    example="""
    >>> from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    >>> seen = np.array([[[True, False], [True, True]], [[False, True], [True, False]]])  # one of each head
    >>> masks.MultiHeadMask(list(seen))
    Traceback (most recent call last):
        ...
    NotImplementedError: MultiHeadMask: kernels for TPUs do not run here; jax.nn.dot_product_attention computes ...
    >>> q, v = jnp.zeros((2, 2, 1)), jnp.array([4., 8.])[:, None, None] * jnp.ones((2, 1))
    >>> jax.nn.dot_product_attention(q, q, v, mask=jnp.asarray(seen))[..., 0].T
    Array([[4., 6.],
           [8., 4.]], dtype=float32)
    """,
)
NumpyMask: Final = _function(
    "NumpyMask",
    example="""
    >>> from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    >>> seen = np.array([[True, False], [True, True]])
    >>> masks.NumpyMask(seen)
    Traceback (most recent call last):
        ...
    NotImplementedError: NumpyMask: kernels for TPUs do not run here; jax.nn.dot_product_attention computes ...
    >>> q, v = jnp.zeros((2, 1, 1)), jnp.array([4., 8.])[:, None, None]
    >>> jax.nn.dot_product_attention(q, q, v, mask=jnp.asarray(seen)[None]).ravel()
    Array([4., 6.], dtype=float32)
    """,
)
SegmentIds: Final = _function(
    "SegmentIds",
    example="""
    >>> from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels

    >>> segments = jnp.array([0, 0, 1, 1])
    >>> kernels.SegmentIds(q=segments, kv=segments)
    Traceback (most recent call last):
        ...
    NotImplementedError: SegmentIds: kernels for TPUs do not run here; jax.nn.dot_product_attention computes ...
    >>> mask = segments[:, None] == segments  # to attend inside of segments only
    >>> v = jnp.array([1., 3., 10., 30.])[:, None, None]
    >>> jax.nn.dot_product_attention(jnp.zeros((4, 1, 1)), jnp.zeros((4, 1, 1)), v, mask=mask[None]).ravel()
    Array([ 2.,  2., 20., 20.], dtype=float32)
    """,
)
make_splash_mha: Final = _function(
    "make_splash_mha",
    example="""
    >>> from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernels

    >>> kernels.make_splash_mha(mask=None, head_shards=1, q_seq_shards=1)
    Traceback (most recent call last):
        ...
    NotImplementedError: make_splash_mha: kernels for TPUs do not run here; jax.nn.dot_product_attention computes ...
    >>> q = k = jnp.zeros((3, 1, 4))  # equal keys: each result is the mean of the values up to it
    >>> v = jnp.array([2., 4., 9.])[:, None, None] * jnp.ones(4)
    >>> jax.nn.dot_product_attention(q, k, v, is_causal=True)[:, 0, 0]
    Array([2., 3., 5.], dtype=float32)
    """,
)
