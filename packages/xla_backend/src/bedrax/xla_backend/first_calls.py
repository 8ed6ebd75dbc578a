"""The first calls of eager operations on CPU arrays, which run without a new program of XLA.

To compile a program takes as long as thousands of evaluations by NumPy. So the first calls of an operation are evaluated
by NumPy, if NumPy gives the same bits (`numpy_backend.exactness`). They are counted by their time: an operation that has
taken as long as a compilation is compiled.

The elements of elementwise operations do not depend on the shape. Such an operation, or the elementwise end of a program
(a sampler's, after its random bits), is compiled for `_BLOCK` elements, once for all shapes.
"""

from __future__ import annotations

import itertools
import marshal
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import config
from bedrax.core.avals import ShapedArray
from bedrax.core.context import trace_context
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.conversions import bitcast_convert_type_p
from bedrax.numpy_backend import exactness
from bedrax.numpy_backend.host_array import HostArray, to_numpy
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend import flags, placement, program_key, turns
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import ArrayImpl, copy_to_host, device_of, sharding_of
from bedrax.xla_backend.door.runtime import JaxRuntimeError
from bedrax.xla_backend.placement import NOTHING_REQUESTED, Placement
from bedrax.xla_backend.sharding import SingleDeviceSharding, make_single_device_sharding

_LARGEST: Final = 1 << 22  # bytes of a value
_SECONDS: Final = 0.003  # until an exact program is compiled: a fraction of a compilation, some fifty calls
_SECONDS_BY_BLOCKS: Final = 0.012  # such a program is larger
_SECONDS_OF_A_CALL: Final = 3e-5  # outside of the evaluation; C++ dispatch would not call Python
_PATIENCE: Final = 0.01  # seconds; a compilation would block the caller as long as this
_BLOCK: Final = 4096  # elements


# Options under which every operation is run by XLA.
_WATCHING: Final = (config.debug_nans, config.debug_infs, flags.no_execution)
_GUARDS: Final = (
    flags.transfer_guard,
    flags.transfer_guard_host_to_device,
    flags.transfer_guard_device_to_host,
    flags.transfer_guard_device_to_device,
)


class _Calls:
    """The evaluation of the first calls of one program.

    Attributes:
      found: its parts. None: it is compiled.
      blocks: the end of the program, for blocks of elements; None: NumPy evaluates all.
      left: the seconds until the program is compiled.
      begun: whether a call was evaluated.
    """

    __slots__ = ("begun", "blocks", "found", "left")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.found: exactness.Parts | None = None
        self.blocks: _Blocks | None = None
        self.left = _SECONDS
        self.begun = False
        if jaxpr.effects or not all(v.aval.is_array and _is_small(v.aval) for v in (*jaxpr.invars, *jaxpr.outvars)):
            return
        found = exactness.parts(jaxpr, _LARGEST)
        if found.rest:
            self.blocks = _blocks_of(found)
            self.left = _SECONDS_BY_BLOCKS
        if not found.rest or self.blocks is not None:
            self.found = found


def _is_small(aval: Any) -> bool:
    return type(aval.size) is int and aval.size * aval.dtype.itemsize <= _LARGEST


@cached
def _calls(jaxpr: Jaxpr) -> _Calls:
    return _Calls(jaxpr)


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], requested: Any) -> list[Any] | None:
    """The results of an eager operation on arguments for which it is not compiled; None: it must be compiled."""
    calls = _calls(jaxpr)
    if calls.found is None or calls.left <= 0 or requested != NOTHING_REQUESTED or not flags.first_calls_by_numpy.value:
        return None
    if any(flag.value for flag in _WATCHING) or any(flag.value not in (None, "allow") for flag in _GUARDS):
        return None
    where = placement.choose_placement(jaxpr, args)
    if where.several or where.mesh is not None or where.layouts is not None or where.devices[0].platform != "cpu":
        return None
    operands = _operands(args, where.devices[0])
    if operands is None:
        return None
    elements = None
    if calls.blocks is not None and (elements := calls.blocks.program(where)) is None:
        return None
    started = time.thread_time()
    values = exactness.evaluate(calls.found, operands)
    if values is None:
        return None
    if calls.blocks is not None:
        calls.blocks.finish(values, elements)
    calls.left -= time.thread_time() - started + _SECONDS_OF_A_CALL
    calls.begun = True
    place = make_single_device_sharding(where.devices[0])
    return [
        _placed(values.read(v), old.aval, place, where.committed)
        for v, old in zip(calls.found.program.outvars, jaxpr.outvars, strict=True)
    ]


def end(jaxpr: Jaxpr) -> bool:
    """End the first calls: the program is compiled. Returns whether any call was evaluated here.

    If so, C++ dispatch calls Python until its cache is cleared.
    """
    calls = _calls(jaxpr)
    begun, calls.begun, calls.left = calls.begun, False, 0.0
    return begun


def _operands(args: Sequence[Any], device: Any) -> list[np.ndarray] | None:
    """The operands as NumPy arrays; None if they are on another device, are not computed, or cannot be."""
    deadline = time.monotonic() + _PATIENCE
    values = []
    for x in args:
        if type(x) is not ArrayImpl and isinstance(getattr(x, "aval", None), ShapedArray) and type(x) is not HostArray:
            dtype = x.aval.dtype
            if not hasattr(dtype, "physical_value"):
                return None
            x = dtype.physical_value(x)
        if type(x) is not ArrayImpl:
            values.append(np.asarray(to_numpy(x)[0]))
            continue
        sharding = sharding_of(x)
        if type(sharding) is not SingleDeviceSharding or device_of(sharding) is not device or x.is_deleted():
            return None
        while not x.is_ready():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.0001)
        try:
            values.append(copy_to_host(x)[0])
        except JaxRuntimeError:  # the results report the error when they are read
            return None
    return values


def _placed(value: np.ndarray, aval: ShapedArray, place: SingleDeviceSharding, committed: bool) -> Any:
    """A result as an array in memory of the device, which no NumPy array shares."""
    if not isinstance(aval.dtype, np.dtype):
        data = ShapedArray(value.shape, value.dtype)
        return aval.dtype.from_physical(_put(value, data, place, committed), aval)
    return _put(value, placement.placed_type(aval, place), place, committed)


def _put(value, aval, place, committed):
    turns.stop_at_the_end()
    return runtime.put_copy(aval, place, np.asarray(value, order="C"), device_of(place), committed)


# ---- blocks of elements ----


class _Blocks:
    """The end of a program as an elementwise program of blocks.

    Attributes:
      shape: of the elements in the program.
      operands, results: variables of the program.
      block: the program of one block; all results have its shape.
      key: determines the block's program.
      first: whether blocks are used from the first call on.
    """

    def __init__(
        self, shape: tuple[int, ...], operands: list[Var], results: list[Var], block: Jaxpr, key: bytes, first: bool
    ) -> None:
        self.shape, self.operands, self.results, self.block, self.key = shape, operands, results, block, key
        self.first = first

    def program(self, where: Placement) -> Any:
        """The compiled program of a block, made at first use. None: the whole program is compiled."""
        key = self.key, where.devices[0], trace_context()
        found = _compiled.get(key)
        if found is None:
            if len(_compiled) > 1024 or len(_shapes) > 8192:
                forget()
            if not self.first and _shapes.setdefault(key, self.shape) == self.shape:
                return None  # there may be no call with another shape
            place, donated = Placement(where.devices, False), [False] * len(self.operands)
            found = _compiled[key] = compile_module.load(self.block, "jit_elements", place, donated, True, (), None)
        return found

    def finish(self, values: exactness.Values, program: Any) -> None:
        """Compute the results, in blocks."""
        size = int(np.prod(self.shape, dtype=np.int64))
        given = [values[v].reshape(-1) if values[v].shape else values[v] for v in self.operands]
        made: list[list[np.ndarray]] = [[] for _ in self.results]
        for begin in range(0, size, _BLOCK):
            part = [_block(x, begin) if x.shape else x for x in given]
            for parts, out in zip(made, program.run(part), strict=True):
                parts.append(copy_to_host(out)[0][: size - begin])
        for v, parts in zip(self.results, made, strict=True):
            values[v] = np.concatenate(parts).reshape(self.shape)


_compiled: dict[Any, Any] = {}
_shapes: dict[Any, tuple[int, ...]] = {}  # the first shape of an elementwise program


def forget() -> None:
    """Forget the programs of blocks."""
    _compiled.clear()
    _shapes.clear()


def _block(x: np.ndarray, begin: int) -> np.ndarray:
    part = x[begin : begin + _BLOCK]
    return part if len(part) == _BLOCK else np.concatenate([part, np.zeros(_BLOCK - len(part), x.dtype)])


def _blocks_of(found: exactness.Parts) -> _Blocks | None:
    """The rest of a program as a program of blocks; None if it is not elementwise."""
    program, rest = found.program, found.rest
    made = {v for eqn in rest for v in eqn.outvars}
    results = [v for v in dict.fromkeys(program.outvars) if v in made]
    shapes = {v.aval.shape for v in results}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    size = int(np.prod(shape, dtype=np.int64))
    if not shape or size == 0 or not all(_is_elementwise(eqn, shape) for eqn in rest):
        return None
    names: dict[Any, Any] = {}

    def in_block(v: Any) -> Any:
        if type(v) is Literal:
            return v
        if v not in names:
            names[v] = Var(ShapedArray((_BLOCK,) if v.aval.shape else (), v.aval.dtype))
        return names[v]

    needed = [v for eqn in rest for v in eqn.invars if type(v) is not Literal and v not in made]
    operands = list(dict.fromkeys(needed))
    invars = [in_block(v) for v in operands]
    eqns = []
    for eqn in rest:
        params = eqn.params
        if eqn.primitive is shaping.broadcast_in_dim_p:
            params = {**params, "shape": (_BLOCK,)}
        eqns.append(Eqn(eqn.primitive, [in_block(v) for v in eqn.invars], [in_block(v) for v in eqn.outvars], params))
    block = Jaxpr(invars, [in_block(v) for v in results], eqns)
    try:
        key = marshal.dumps(program_key.lines(block, "cpu"), 2)
    except (program_key.NoBytes, ValueError):
        return None
    return _Blocks(shape, operands, results, block, key, first=bool(found.exact))


def _is_elementwise(eqn: Eqn, shape: tuple[int, ...]) -> bool:
    if eqn.effects or not all(
        v.aval.is_array and isinstance(v.aval.dtype, np.dtype) for v in (*eqn.invars, *eqn.outvars)
    ):
        return False
    if any(v.aval.shape not in ((), shape) for v in itertools.chain(eqn.invars, eqn.outvars)):
        return False
    if eqn.primitive is shaping.broadcast_in_dim_p:
        return eqn.invars[0].aval.shape == () and eqn.outvars[0].aval.shape == shape
    return eqn.primitive.family in ("elementwise", "special") or (
        eqn.primitive.family == "conversions" and eqn.primitive is not bitcast_convert_type_p
    )
