"""TensorFlow functions inside StableHLO: compiled by TensorFlow and embedded, or called by name in a TensorFlow
program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.call_tf import border
from bedrax.call_tf.function import LIMITATIONS, TfFunction, has_symbolic
from bedrax.call_tf.primitive import call_tf_ordered_effect, call_tf_p, call_tf_tangent_p, forward_call
from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray
from bedrax.tf import tensorflow as tf
from bedrax.tf.tables import tf_functions
from bedrax.xla_backend.tables import lowering_rules

_TF_PLATFORMS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


@lowering_rules.rule(call_tf_p)
def _lower(ctx, *operands, fun, has_side_effects, ordered, call_tf_graph, **_):
    in_tensorflow = tf_functions.get() is not None
    symbolic = has_symbolic([*ctx.avals_in, *ctx.avals_out])
    if call_tf_graph or (symbolic and in_tensorflow):
        return emit_tf_embedded_graph_custom_call(
            ctx, fun.concrete(ctx.avals_in), operands, has_side_effects, ordered, ctx.avals_out
        )
    if ordered:
        raise NotImplementedError(
            "ordered=True is not supported in the jitted context without `call_tf_graph=True`: XLA has no order between"
            " the calls that are embedded in a program. Call the function outside jit, or give up the order."
        )
    if symbolic:
        raise ValueError(
            f"Error compiling TensorFlow function '{fun.name}': call_tf can be used in a staged context only with"
            f" arguments and results of static shapes, got {[a.str_short() for a in ctx.avals_in]} ->"
            f" {[a.str_short() for a in ctx.avals_out]}. {LIMITATIONS}"
        )
    from bedrax.xla_backend.lowering.linking import call_hlo

    hlo, captured = compile_tf(fun, ctx.avals_in, len(ctx.avals_out), ctx.platform)
    values = [*operands, *map(ctx.constant, captured)]
    return _as_declared(ctx, fun, call_hlo(ctx, f"call_tf_{fun.name}", hlo, values))


lowering_rules.add(call_tf_tangent_p, lambda ctx, *operands, **params: _lower(ctx, *operands, **forward_call(params)))


def compile_tf(
    fun: TfFunction, avals: Sequence[ShapedArray], num_results: int, platform: str
) -> tuple[bytes, list[np.ndarray]]:
    """TensorFlow's HLO for a function.

    Returns:
      (serialized ``HloModuleProto``, values of the captured variables and tensors: its last parameters).

    Raises:
      ValueError: TensorFlow cannot compile the function, or the function writes to variables.
    """
    concrete = fun.concrete(avals)
    captured = _captured_values(fun.name, concrete)
    device = _TF_PLATFORMS[platform]
    if not tf.config.list_physical_devices(device):
        device = "CPU"  # HLO is the same for all platforms, except for a few operations with special kernels
    specs = [border.tensor_spec(a) for a in avals]
    compiler = fun.staged().experimental_get_compiler_ir
    try:
        hlo = border.outside_graphs(lambda: compiler(*specs)(stage="hlo_serialized", platform_name=device))
    except Exception as error:
        raise ValueError(
            f"Error compiling TensorFlow function '{fun.name}'. call_tf can be used in a staged context (under jit, scan,"
            " ...) only with compilable functions with static output shapes. Outside of such contexts TensorFlow runs the"
            f" function eagerly. {LIMITATIONS}\n\nCaught TensorFlow exception: {error}"
        ) from error
    shape = _program_shape(hlo)
    parameters, results = len(shape.parameter_shapes()), shape.result_shape()
    returned = len(results.tuple_shapes()) if results.is_tuple() else 1
    if returned != num_results:
        raise ValueError(
            f"The TensorFlow function '{fun.name}' writes to variables ({_variable_names(concrete)}), which call_tf cannot do"
            " in a staged context (under jit, scan, ...). Pass the variables' values as arguments, return the new ones as"
            f" results, and assign them outside; or call the function outside jit. {LIMITATIONS}"
        )
    if parameters != len(avals) + len(captured):
        raise ValueError(
            f"Error compiling TensorFlow function '{fun.name}': it has {len(avals)} arguments and {len(captured)}"
            f" captured values, but TensorFlow compiled it for {parameters} parameters. {LIMITATIONS}"
        )
    return hlo, captured


def _program_shape(hlo: bytes):
    from bedrax.xla_backend.door import runtime

    return runtime.XlaComputation(hlo).program_shape()


def _variable_names(concrete) -> str:
    return ", ".join(v.name for v in concrete.graph.variables) or "resources"


def _captured_values(name: str, concrete: Any) -> list[np.ndarray]:
    """Current values of captured variables and tensors, in the order of their parameters."""
    values = []
    for x in concrete.captured_inputs:
        if x.dtype == tf.resource:
            variable = next((v for v in concrete.graph.variables if v.handle is x), None)
            if variable is None:
                raise ValueError(
                    f"The TensorFlow function '{name}' captures {x}, which is not a variable: call_tf in a staged context"
                    f" (under jit, scan, ...) cannot pass tables and other resources to XLA. {LIMITATIONS}"
                )
            x = border.outside_graphs(variable.read_value)
        if not hasattr(x, "numpy"):
            raise ValueError(
                f"The TensorFlow function '{name}' captures the tensor {x} of a TensorFlow graph, whose value is not"
                f" known yet. call_tf works best with functions that capture nothing: pass it as an argument. {LIMITATIONS}"
            )
        values.append(np.asarray(x))
    return values


def _as_declared(ctx, fun: TfFunction, results: list) -> list:
    for i, (x, aval) in enumerate(zip(results, ctx.avals_out, strict=True)):
        if not x.type.has_static_shape or tuple(x.type.shape) != aval.shape:
            raise ValueError(
                "call_tf cannot call functions whose output has dynamic shape: TensorFlow compiled result"
                f" {i} of '{fun.name}' to {x.type}, {aval.str_short()} is expected. {LIMITATIONS}"
            )
    return results


# ---- functions that a native TensorFlow program calls by name


def add_to_call_tf_concrete_function_list(concrete_tf_fn: Any, call_tf_concrete_function_list: list[Any]) -> int:
    """Return the index of a concrete function in the list of a native program's functions.

    Args:
      concrete_tf_fn: a concrete TensorFlow function.
      call_tf_concrete_function_list: the list of functions. A function that the list does not have is appended.

    Examples:

      >>> import tensorflow as tf
      >>> import importlib
      >>> from jax.experimental import jax2tf
      >>> call_tf = importlib.import_module("jax.experimental.jax2tf.call_tf")  # its name in the package is the function

      >>> functions = []
      >>> f = tf.function(tf.sin).get_concrete_function(tf.TensorSpec([]))
      >>> call_tf.add_to_call_tf_concrete_function_list(f, functions), call_tf.add_to_call_tf_concrete_function_list(f, functions)
      (0, 0)
    """
    for i, known in enumerate(call_tf_concrete_function_list):
        if known is concrete_tf_fn:
            return i
    call_tf_concrete_function_list.append(concrete_tf_fn)
    return len(call_tf_concrete_function_list) - 1


def emit_tf_embedded_graph_custom_call(
    ctx: Any,
    concrete_function_flat_tf: Any,
    operands: Sequence[Any],
    has_side_effects: bool,
    ordered: bool,
    output_avals: Any,
) -> list[Any]:
    """Call a concrete function from a program that TensorFlow's ``XlaCallModule`` will run.

    Args:
      ctx: the context of the equation.
      concrete_function_flat_tf: the function of flat arguments; captured values become constants.
      operands: a value per argument.
      output_avals: types of the results.
      has_side_effects: whether the call stays although its results are not used.
      ordered: whether the call keeps its order among others with `ordered`.

    Returns:
      A value per result.

    Raises:
      ValueError: no native TensorFlow program is made now.
    """
    functions = tf_functions.get()
    if functions is None:
        raise ValueError(
            "call_tf_graph=True only supports programs that jax2tf.convert exports (native serialization): only"
            " TensorFlow can call a TensorFlow function that XLA has not compiled. Leave call_tf_graph out under jit."
        )
    if any(x.dtype.name == "resource" for x in concrete_function_flat_tf.captured_inputs):
        from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

        # An operand of the program cannot be a resource: variables become constants.
        concrete_function_flat_tf = border.outside_graphs(
            functools.partial(convert_variables_to_constants_v2, concrete_function_flat_tf, lower_control_flow=False)
        )
    captured = _captured_values(concrete_function_flat_tf.name, concrete_function_flat_tf)
    index = add_to_call_tf_concrete_function_list(concrete_function_flat_tf, functions)
    tokens = [ctx.token(call_tf_ordered_effect)] if ordered else []
    operands = [*tokens, *operands, *map(ctx.constant, captured)]
    attributes: dict[str, Any] = {
        "tf.backend_config": {"called_index": ctx.i64(index), "has_token_input_output": ordered}
    }
    if has_symbolic(output_avals):
        # Further operands have the shapes of the results; they vanish when shapes become known.
        if ordered:
            raise NotImplementedError("ordered=True of call_tf is not supported for results of symbolic shapes")
        first = len(operands)
        operands += [ctx.shape_tensor(a.shape) for a in output_avals]
        attributes["indices_of_shape_operands"] = np.arange(first, len(operands), dtype=np.int64)
    types = [*(t.type for t in tokens), *map(ctx.type_of, output_avals)]
    out = ctx.custom_call(
        "tf.call_tf_function",
        operands,
        types,
        api_version=2,
        has_side_effect=has_side_effects or ordered,
        extra_attributes=attributes,
    )
    if ordered:
        ctx.set_token(call_tf_ordered_effect, out[0])
    return out[len(tokens) :]


def check_tf_result(idx: int, r_tf: Any, r_aval: ShapedArray | None) -> Any:
    """Return a tensor after a check that it has the type of result `idx`.

    Args:
      idx: the index of the result, for the message of an error.
      r_tf: the tensor.
      r_aval: the expected type, a `ShapedArray` (its shape may have symbolic dimensions); None: no check.

    Raises:
      ValueError: it has another dtype or shape.

    Examples:

      >>> import tensorflow as tf
      >>> import importlib
      >>> from jax.experimental import jax2tf
      >>> call_tf = importlib.import_module("jax.experimental.jax2tf.call_tf")  # its name in the package is the function

      >>> tensor = call_tf.check_tf_result(0, tf.constant([1., 2.]), jax.core.ShapedArray((2,), jnp.float32))
      >>> try:
      ...     call_tf.check_tf_result(0, tensor, jax.core.ShapedArray((3,), jnp.float32))
      ... except ValueError as error:
      ...     print("(2,)" in str(error) or "[2]" in str(error))
      ...
      True
    """
    if r_aval is None:
        return r_tf
    wanted = border.tensor_spec(r_aval)
    dtype = border.numpy_dtype(r_tf)
    if (
        dtype is None
        or dtype != dtypes.canonicalize_dtype(r_aval.dtype)
        or not r_tf.shape.is_compatible_with(wanted.shape)
    ):
        raise ValueError(
            "The shapes or dtypes returned by the TensorFlow function do not match the declared output_shape_dtype:\n"
            f"Result[{idx}] is {r_tf.dtype.name}{r_tf.shape} vs. expected {r_aval.str_short()}"
        )
    return r_tf
