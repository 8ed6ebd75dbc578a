"""`convert`: a function of arrays as a function of TensorFlow tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core import tracing
from bedrax.core.jitting import jit_p
from bedrax.core.staging import function_name
from bedrax.jax2tf import arguments, checks, flags, gradients, graph, nests
from bedrax.jax2tf.call import Call
from bedrax.jax2tf.options import Options
from bedrax.tf import tensorflow as tf

_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def convert(
    fun_jax: Callable[..., Any],
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool | int = True,
    enable_xla: bool = True,
    native_serialization: bool | str | None = None,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that TensorFlow can run, differentiate and save.

    Args:
      fun_jax: takes and returns pytrees of arrays. Keys among them are their words (`key_data`) for TensorFlow.
      polymorphic_shapes: one shape specification per positional argument, e.g. ``["(b, _, _)", None]``: identifiers are
        dimensions that are unknown during the conversion, ``_`` are those of the actual argument, ``...`` stands for
        the remaining ``_``. A pytree prefix of the arguments; None: every dimension is known. Graphs raise for sizes
        that do not fit.
      polymorphic_constraints: constraints on the dimension variables, e.g. ``("a >= b",)``.
      with_gradient: make the function differentiable by TensorFlow, with our derivative. If False, its
        gradient is an error. A number is the highest order of the gradients in a saved model (True: one);
        a function that is not saved is differentiable to any order.
      enable_xla: permit TensorFlow's XLA operations if no plain operation fits. TFLite and
        TF.js have only plain operations.
      native_serialization: put the program as StableHLO into one ``XlaCallModule``
        operation, instead of as TensorFlow operations (the default; see the configuration
        option ``jax2tf_default_native_serialization``).
      native_serialization_platforms: platforms for which a native program is lowered.
      native_serialization_disabled_checks: `DisabledSafetyCheck`s that programs omit. The check of sizes,
        ``shape_assertions``, also applies to graphs of plain operations.

    Returns:
      A function of TensorFlow tensors (or NumPy arrays) with the structure of `fun_jax`.

    Raises:
      TypeError: `fun_jax` is not a function.
      ValueError: options contradict each other.

    Raises (when called):
      NotImplementedError: an operation has no counterpart; the message names it.
      ValueError: shapes do not fit `polymorphic_shapes`; or the function is called inside a transformation.

    Examples:

      >>> import tensorflow as tf
      >>> from jax.experimental import jax2tf

      >>> f = tf.function(jax2tf.convert(lambda x: jnp.sin(x) + x, polymorphic_shapes=["(b,)"], with_gradient=True), autograph=False)
      >>> print(f(tf.constant([0., 1.])).numpy())
      [0.       1.841471]
      >>> x = tf.Variable([0., 0.])
      >>> with tf.GradientTape() as tape:
      ...     y = f(x)
      ...
      >>> print(tape.gradient(y, x).numpy())
      [2. 2.]
    """
    if not callable(fun_jax):
        raise TypeError(f"jax2tf.convert expects a function of arrays, got {fun_jax!r} of type {type(fun_jax)}")
    if native_serialization is None or native_serialization == "default":
        native_serialization = flags.default_native_serialization.value
    if not enable_xla and native_serialization:
        raise ValueError("native_serialization is not supported with enable_xla=False")
    if native_serialization_platforms is not None:
        if not native_serialization:
            raise ValueError("native_serialization_platforms is only supported with native_serialization")
        if not isinstance(native_serialization_platforms, list | tuple) or not all(
            p in _PLATFORMS for p in native_serialization_platforms
        ):
            raise ValueError(
                "native_serialization_platforms must be a sequence containing a subset of {'cpu', 'cuda', 'rocm', 'tpu'}."
                f" Got: {native_serialization_platforms}"
            )
    disabled = tuple(native_serialization_disabled_checks)
    if not native_serialization and any(str(c) != checks.SHAPE_ASSERTIONS for c in disabled):
        raise ValueError(
            "native_serialization_disabled_checks is only supported with native_serialization, but for"
            f" DisabledSafetyCheck.shape_assertions(); got {list(disabled)}"
        )
    options = Options(
        enable_xla,
        bool(native_serialization),
        native_serialization_platforms,
        disabled,
        int(with_gradient) if with_gradient else None,
    )
    nests.install()
    return _converted(fun_jax, polymorphic_shapes, polymorphic_constraints, options)


def _converted(fun, polymorphic_shapes, constraints, options: Options, guarded: bool = True) -> Callable:
    def converted_fun_tf(*args_tf, **kwargs_tf):
        if not tracing.trace_state_clean():
            raise ValueError(
                f"{arguments.OUTSIDE} Call the function that was converted instead, or wrap the converted one with"
                " jax2tf.call_tf."
            )
        call = Call(fun, args_tf, kwargs_tf, polymorphic_shapes, constraints)
        own = options
        if flags.compile_jitted.value and [eqn.primitive for eqn in call.jaxpr.eqns] == [jit_p]:
            own = dataclasses.replace(options, compiled=True)  # also for the derivative, which is not a jitted function
        return call.unflatten(gradients.with_derivative(call, _runner(call, own), own, _converted, guarded))

    name = function_name(fun)
    # Not functools.wraps: tf.function would follow it to the signature of `fun_jax`, and pass its defaults as tensors.
    converted_fun_tf.__name__ = f"jax2tf_{name}" if name.isidentifier() else "jax2tf"
    converted_fun_tf.__doc__ = getattr(fun, "__doc__", None)
    return tf.autograph.experimental.do_not_convert(converted_fun_tf)


def _runner(call: Call, options: Options) -> Callable:
    """Returns the function from the tensors of a call's arguments to those of its results."""
    if options.native:
        from bedrax.jax2tf import native

        return native.runner(call, options.platforms, options.disabled_checks)

    def run(tensors) -> list:
        env, values = checks.checked_sizes(call, [tf.convert_to_tensor(t) for t in tensors], options)
        ctx = graph.Context(options.enable_xla, env)
        return [tf.identity(x) for x in graph.run_program(ctx, call.jaxpr, values)]

    if options.compiled:
        compiled = tf.function(lambda *tensors: tuple(run(tensors)), autograph=False, jit_compile=True)
        return lambda tensors: list(compiled(*tensors))
    return run
