"""Native serialization: a program as StableHLO inside one `XlaCallModule` operation.

The module is the portable one of `export`. This file adds TensorFlow's side: a version of StableHLO that it reads,
only operations of this version, its names of platforms, its types, and checks of known sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.ir import jaxpr_as_fun
from bedrax.core.staging import program_of
from bedrax.shape_poly import solve_dims
from bedrax.tf import tensorflow as tf
from bedrax.tf import types
from bedrax.tf.tables import tf_functions
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend import export
from bedrax.xla_backend.lowering import modules
from bedrax.xla_backend.tables import find_rule, lowering_rules

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


CALLING_CONVENTION = 9  # TensorFlow supports it since 2.16

# TensorFlow has one element of these dtypes in a byte, XLA two or more: they cross the border as other dtypes.
_CARRIERS = {"int4": np.dtype(np.int8), "uint4": np.dtype(np.uint8)}
_PACKED = {*_CARRIERS, "int2", "uint2", "float4_e2m1fn"}

# Custom calls of jaxlib that are registered only with jaxlib's runtime.
_NOT_IN_TENSORFLOW = {
    "cpu": ("lapack_", "cpu_", "xla_ffi_python_"),
    "cuda": ("cusolver_", "cu_", "cuhybrid_", "xla_ffi_python_"),
    "rocm": ("hipsolver_", "hip_", "hiphybrid_", "xla_ffi_python_"),
    "tpu": ("xla_python_",),
}


def runner(call: Any, platforms: Sequence[str] | None, disabled_checks: Sequence[Any]) -> Callable[..., Any]:
    """Returns the function from the tensors of a converted call to the tensors of its results.

    Args:
      call: the call: its program `jaxpr`, the types `avals` of its arguments, its `name`.
      platforms: the platforms to lower for. Default: the platform of our default device.
      disabled_checks: `DisabledSafetyCheck`s.

    Raises:
      NotImplementedError: the program needs a feature that TensorFlow's runtime lacks; the message names it.
    """
    jaxpr = _carried(call.jaxpr)
    module, kept, targets, functions = _serialized(jaxpr, call, platforms, disabled_checks)

    def run(tensors) -> list:
        _check_known_sizes(call.avals, tensors)
        given = [_cast(tf.convert_to_tensor(tensors[i]), jaxpr.in_avals[i]) for i in kept]
        outs = call_module(module, given, jaxpr.out_avals, targets, disabled_checks, functions)
        return [_cast(x, aval) for x, aval in zip(outs, call.jaxpr.out_avals, strict=True)]

    return run


def _carried(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose arguments and results have the dtypes in which they cross the border."""
    own = [a.dtype for a in jaxpr.in_avals]
    arguments, results = ([_CARRIERS.get(a.dtype.name) for a in avals] for avals in (jaxpr.in_avals, jaxpr.out_avals))
    if not any((*arguments, *results)):
        return jaxpr

    def converted(values: Any, dtypes: Any) -> list[Any]:
        pairs = zip(values, dtypes, strict=True)
        return [x if dtype is None else lax.convert_element_type(x, dtype) for x, dtype in pairs]

    def carried(*args: Any) -> list[Any]:
        given = converted(args, [c and dtype for c, dtype in zip(arguments, own, strict=True)])
        return converted(jaxpr_as_fun(jaxpr)(*given), results)

    return program_of(carried, [a.update(dtype=c or a.dtype) for a, c in zip(jaxpr.in_avals, arguments, strict=True)])


def _cast(tensor: Any, aval: Any) -> Any:
    """A tensor in the dtype of a type: from its carrier, or into it."""
    dtype = types.tf_dtype(aval.dtype)
    return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)


def call_module(
    module: bytes,
    tensors: Sequence[Any],
    out_avals: Sequence[Any],
    platforms: Sequence[str],
    disabled_checks: Sequence[Any],
    functions: Sequence[Any] = (),
    version: int = CALLING_CONVENTION,
) -> list[Any]:
    """The results of a serialized module for tensors.

    Raises:
      NotImplementedError: an argument or a result has elements of fewer than eight bits.
    """
    narrow = {x.dtype.name for x in (*tensors, *out_avals)} & _PACKED
    if narrow:
        raise NotImplementedError(
            f"jax2tf: TensorFlow cannot exchange arrays of {', '.join(sorted(narrow))} with a native program: XLA has"
            " several elements in a byte; convert them to another dtype first"
        )
    from tensorflow.compiler.tf2xla.python import xla

    outs = xla.call_module(
        list(tensors),
        version=version,
        module=module,
        Tout=[tf.bool if a.dtype == dtypes.float0 else types.tf_dtype(a.dtype) for a in out_avals],
        Sout=[types.static_shape(a) for a in out_avals],
        function_list=list(functions),
        platforms=[p.upper() for p in platforms],
        disabled_checks=[str(c) for c in disabled_checks],
    )
    return [tf.cast(x, tf.int32) if a.dtype == dtypes.float0 else x for x, a in zip(outs, out_avals, strict=True)]


def _serialized(jaxpr, call, platforms, disabled_checks) -> tuple[bytes, tuple[int, ...], tuple[str, ...], list]:
    """The module, the positions of its arguments, its platforms, the TensorFlow functions that it calls by index."""
    targets = tuple(platforms) if platforms else (export.default_export_platform(),)
    kept = modules.solvable_arguments(jaxpr, compile_module.kept_arguments(jaxpr))
    names = [f"args[{i}]" for i in range(len(call.avals))]
    functions: list[Any] = []
    outer = tf_functions.set(functions)
    try:
        lowered = modules.lower(jaxpr, "jit_" + call.name, targets, kept, names=names, find_rule=_find_rule)
    finally:
        tf_functions.reset(outer)
    program = lowered.program
    if program.host_callbacks or program.keepalives:
        raise NotImplementedError(
            f"jax2tf: '{call.name}' calls back into Python, which a native program cannot; remove the callback, or"
            " convert with native_serialization=False"
        )
    modules.decompose(program.module)
    found = set(modules.custom_call_targets(program.module)) - {"tf.call_tf_function"}
    export.check_custom_calls(found, disabled_checks)
    check_kernels(call.name, found, targets)
    return _portable(program.module, call.name), kept, targets, functions


@functools.cache
def stablehlo_version() -> str:
    """Return the version of StableHLO for modules: the newest that the installed TensorFlow reads and jaxlib writes."""
    from tensorflow.compiler.mlir.stablehlo import stablehlo

    return modules.older_version(stablehlo.get_current_version())


def _portable(module: Any, name: str) -> bytes:
    """A module without CHLO operations as an artifact that the installed TensorFlow reads."""
    try:
        return modules.serialize(module, stablehlo_version())
    except NotImplementedError as error:
        raise NotImplementedError(
            f"jax2tf: '{name}' cannot be native: {error}. That version is the newest that TensorFlow {tf.__version__}"
            " reads. Convert with native_serialization=False, which uses TensorFlow's own operations"
        ) from error


def _find_rule(prim: Any, platform: str) -> Callable:
    """The rule for a primitive. If that calls kernels of jaxlib, a rule without them: StableHLO's, or a composition."""
    if prim.family == "linalg" and platform in _NOT_IN_TENSORFLOW and platform != "tpu":
        return lowering_rules[prim]
    return find_rule(prim, platform)


def portable(jaxpr: Jaxpr, name: str, platforms: Sequence[str], kept: tuple[int, ...], names: Sequence[str]) -> bytes:
    """A program without calls of TensorFlow functions as a module that TensorFlow reads."""
    program = modules.lower(jaxpr, name, platforms, kept, names=names, find_rule=_find_rule).program
    modules.decompose(program.module)
    return _portable(program.module, name)


def check_kernels(name: str, found: Any, platforms: Sequence[str]) -> None:
    """Raise NotImplementedError if a program calls kernels that TensorFlow's runtime lacks."""
    for platform in platforms:
        missing = [t for t in sorted(found) if t.startswith(_NOT_IN_TENSORFLOW[platform])]
        if missing:
            raise NotImplementedError(
                f"jax2tf: '{name}' needs {', '.join(missing)}, which TensorFlow's runtime does not have on"
                f" {platform.upper()}: convert with native_serialization=False, which uses TensorFlow's own operations"
            )


def _check_known_sizes(avals, tensors) -> None:
    """Raise now if known sizes do not fit; TensorFlow checks the others when it runs the program."""
    if all(dims.is_constant_shape(a.shape) for a in avals):
        return

    def size(i: int, axis: int):
        known = tensors[i].shape[axis]
        return modules.Unknown() if known is None else int(known)

    solve_dims([a.shape for a in avals], size, actual=str(tuple([t.shape for t in tensors])))
