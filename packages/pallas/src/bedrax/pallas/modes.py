"""The interpretation of kernels, from the argument of a call or from a setting for all calls."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bedrax.core.jitting import jit
from bedrax.pallas.inside import memory_starts
from bedrax.pallas.specs import InterpretGPUParams, InterpretParams

_set: dict[str, InterpretParams | None] = {"tpu": None, "gpu": None}


class _Forced(threading.local):
    stack: tuple[InterpretParams, ...] = ()


_forced = _Forced()


@contextmanager
def _force(params: InterpretParams | None) -> Iterator[None]:
    saved = _forced.stack
    _forced.stack = (*saved, params) if params is not None else saved
    try:
        yield
    finally:
        _forced.stack = saved


def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Any:
    """Context manager: interpret every called kernel, whatever the argument `interpret` of its call is.

    Args:
      params: the options; None: the defaults of `InterpretParams`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> f = pl.pallas_call(lambda x_ref, out_ref: out_ref.set(-x_ref[...]), jnp.arange(2))
      >>> with pltpu.force_tpu_interpret_mode():
      ...     f(jnp.arange(2))
      Array([ 0, -1], dtype=int32)
    """
    return _force(InterpretParams() if params is None else params)


def force_gpu_interpret_mode(params: InterpretGPUParams | None = None) -> Any:
    """Context manager: interpret every called kernel, whatever the argument `interpret` of its call is.

    Args:
      params: the options; None: the defaults of `InterpretGPUParams`.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> f = plgpu.kernel(lambda x_ref, out_ref: out_ref.set(-x_ref[...]), out_type=jnp.arange(2))
      >>> with plgpu.force_gpu_interpret_mode():
      ...     f(jnp.arange(2))
      Array([ 0, -1], dtype=int32)
    """
    return _force(InterpretGPUParams() if params is None else params)


_DEFAULTS: Any = object()


def set_tpu_interpret_mode(params: InterpretParams | None = _DEFAULTS) -> None:
    """Interpret every later kernel. None: interpret only kernels whose call has the argument `interpret`.

    Args:
      params: the options. Default: the defaults of `InterpretParams`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.set_tpu_interpret_mode(pltpu.InterpretParams(uninitialized_memory="zero"))
      >>> pl.pallas_call(lambda out_ref: None, jnp.arange(2))()
      Array([0, 0], dtype=int32)
      >>> pltpu.set_tpu_interpret_mode(None)
    """
    _set["tpu"] = InterpretParams() if params is _DEFAULTS else params


def set_gpu_interpret_mode(params: InterpretGPUParams | None = _DEFAULTS) -> None:
    """Interpret every later kernel. None: interpret only kernels whose call has the argument `interpret`.

    Args:
      params: the options. Default: the defaults of `InterpretGPUParams`.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.set_gpu_interpret_mode()  # kernels are interpreted from now on
      >>> plgpu.kernel(lambda x_ref, out_ref: out_ref.set(-x_ref[...]), out_type=jnp.arange(2))(jnp.arange(2))
      Array([ 0, -1], dtype=int32)
      >>> plgpu.set_gpu_interpret_mode(None)
    """
    _set["gpu"] = InterpretGPUParams() if params is _DEFAULTS else params


def reset_tpu_interpret_mode_state() -> None:
    """Drop the state of interpreted kernels after an error: nothing, because every call has its own memory.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     raise ValueError("a mistake")
      ...
      >>> try:
      ...     pl.pallas_call(kernel, jnp.arange(2), interpret=pltpu.InterpretParams())(jnp.arange(2))
      ... except ValueError:
      ...     pltpu.reset_tpu_interpret_mode_state()  # the next kernel gets new memory
    """


def mode(interpret: Any) -> Any:
    """The options of the interpretation: the forced ones, or those of the call, or the set ones; false if none."""
    return (_forced.stack[-1] if _forced.stack else None) or interpret or _set["tpu"] or _set["gpu"]


def interpreted(what: str, run: Callable[..., Any], interpret: Any) -> Callable[..., Any]:
    """The function that runs an interpreted kernel, as one program.

    Raises:
      NotImplementedError: in a call, if no option selects interpretation.
    """

    @functools.cache
    def program(zeros: bool) -> Callable[..., Any]:
        def kernel(*args):
            with memory_starts(zeros):
                return run(*args)

        return jit(kernel)

    def call(*args: Any) -> Any:
        how = mode(interpret)
        if not how:
            raise NotImplementedError(
                f"{what}: kernels are not compiled here, on any platform; pass interpret=True to run it as a loop of array"
                " operations"
            )
        return program(getattr(how, "uninitialized_memory", "nan") == "zero")(*args)

    return call
