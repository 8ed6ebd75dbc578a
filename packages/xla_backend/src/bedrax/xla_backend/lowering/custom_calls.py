"""Calls of compiled functions that XLA finds by name, and of Python functions from running programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.core.codes import coded
from bedrax.xla_backend import platforms
from bedrax.xla_backend.door import kernels
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.build import Builder
from bedrax.xla_backend.lowering.types import ir, type_of


class Caller(Builder):
    """A builder that calls functions from outside the module."""

    __slots__ = ()

    def custom_call(
        self,
        target: str,
        operands: Sequence[Any],
        result_types: Any = None,
        backend_config: Any = None,
        api_version: int = 4,
        has_side_effect: bool = False,
        operand_layouts: Any = None,
        result_layouts: Any = None,
        operand_output_aliases: dict[int, int] | None = None,
        called_computations: Sequence[str] = (),
        extra_attributes: dict[str, Any] | None = None,
        result_shapes: Sequence[Any] | None = None,
    ) -> Any:
        """A call of a function that XLA finds by name.

        Args:
          backend_config: a dict of typed attributes (`api_version` 4) or a string (older versions).
          operand_layouts, result_layouts: minor-to-major orders. If a layout is required and `None` is given, it is
            row-major.
          operand_output_aliases: result index -> operand index.
          result_shapes: shapes of the results if some are symbolic. They are computed when the program is
            specialized to known shapes.
        """
        operands = list(operands)
        kernels.require(target)
        attributes: dict[str, Any] = {
            "call_target_name": types.string(target),
            "has_side_effect": bool(has_side_effect),
            "api_version": types.i32(api_version),
        }
        if api_version == 4:
            attributes["backend_config"] = types.ffi_attribute(dict(backend_config or {}))
        elif backend_config is not None:
            if isinstance(backend_config, bytes):
                backend_config = backend_config.decode("latin-1")
            attributes["backend_config"] = types.string(backend_config)
        if called_computations:
            attributes["called_computations"] = tuple(types.symbol(c) for c in called_computations)
        results = [type_of(t) for t in _listed(self.own_results()[0] if result_types is None else result_types)]
        if operand_output_aliases:
            attributes["output_operand_aliases"] = _aliases(operand_output_aliases, len(results))
        if operand_layouts is not None or result_layouts is not None:
            attributes["operand_layouts"] = _layouts(operand_layouts, [v.type for v in operands])
            attributes["result_layouts"] = _layouts(result_layouts, results)
        attributes.update(extra_attributes or {})
        if result_shapes is not None and not all(map(dims.is_constant_shape, result_shapes)):
            count = len(operands)
            operands += [self.shape_tensor(shape) for shape in result_shapes]
            attributes["indices_of_shape_operands"] = np.arange(count, len(operands), dtype=np.int64)
            if "operand_layouts" in attributes:
                attributes["operand_layouts"] = _layouts(
                    [*operand_layouts, *[None] * len(result_shapes)], [v.type for v in operands]
                )
        return self.emit("stablehlo.custom_call", operands, result_types, **attributes)

    def with_sharding(self, v: Any, sharding: Any, unconstrained: Sequence[int] = ()) -> Any:
        """`v` with the constraint of an `HloSharding` (None: the partitioner's choice).

        Args:
          unconstrained: dimensions that the partitioner may split freely.
        """
        if sharding is None or self.program.num_partitions == 1:
            return v
        free = f"unspecified_dims=[{','.join(map(str, unconstrained))}]" if unconstrained else None
        return self.emit(
            "stablehlo.custom_call",
            (v,),
            v.type,
            call_target_name="Sharding",
            api_version=types.i32(1),
            backend_config=free,
            **{"mhlo.sharding": str(sharding)},
        )

    def add_host_callback(self, function: Any) -> int:
        """Index of `function` among the executable's host callbacks."""
        self.program.host_callbacks.append(function)
        return len(self.program.host_callbacks) - 1

    def host_callback(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        result_types: Sequence[Any],
        effect: Any = None,
        has_side_effect: bool = True,
        device: Any = None,
    ) -> list[Any]:
        """Call ``function(*arrays) -> sequence of arrays`` on the host at run time. Returns a value per result.

        Args:
          function: receives a `numpy.ndarray` per operand. Its results are checked against `result_types`.
          result_types: types or avals of the results.
          effect: an ordered effect. The call takes its token and replaces it.
          has_side_effect: false lets the compiler drop or repeat the call.
          device: a sharding over the device that makes the call; by default the first device of the program.
        """
        target = platforms.of(self.platform).callback_target
        if target is None:
            raise NotImplementedError(f"callbacks into Python cannot be compiled for platform {self.platform!r}")
        wanted = [type_of(t) for t in result_types]
        checked = _checked_callback(function, wanted, effect is not None)
        config_of_call = {"index": np.uint64(self.add_host_callback(checked))}
        tokens = [] if effect is None else [self.token(effect)]
        results = [t.type for t in tokens] + wanted
        once = {}
        manual = self.program.manual
        if manual is not None and manual.free:
            raise NotImplementedError(
                f"a call into Python inside shard_map over some axes of its mesh, but not {manual.free}, and ordered (or on a"
                " device): it would get parts of blocks. Call with ordered=False, or let axis_names have all axes"
            )
        if self.program.num_partitions > 1:
            # Inside `shard_map` every device makes the call. Elsewhere one device does, with whole arrays, for all.
            position = None if manual is not None else self.program.position(device)
            once = self.program.partitioner.on_one(self.program, position, len(results))
        out = self.custom_call(
            target,
            [*tokens, *operands],
            results,
            config_of_call,
            has_side_effect=has_side_effect,
            extra_attributes=once,
        )
        if effect is not None:
            self.set_token(effect, out[0])
        out = out[len(tokens) :]
        return [self.program.partitioner.whole(self, v) for v in out] if once and manual is None else out

    def keep_alive(self, x: Any) -> None:
        """Keep `x` alive at least as long as the executable."""
        self.program.keepalives.append(x)


def _checked_callback(function: Callable, wanted: Sequence[Any], takes_token: bool) -> Callable:
    """The function that XLA calls. It checks number, shapes and dtypes of the results, which XLA does not."""
    types_of_results = [(tuple(t.shape), types.dtype_of(t.element_type)) for t in wanted]

    def call(*arrays):
        out = tuple(function(*arrays[1:] if takes_token else arrays))
        if len(out) != len(types_of_results):
            raise ValueError(f"a callback returned {len(out)} results, {len(types_of_results)} are expected")
        checked = []
        for i, (value, (shape, dtype)) in enumerate(zip(out, types_of_results)):
            value = np.asarray(value)
            if value.shape != shape or value.dtype != dtype:
                raise ValueError(
                    coded(
                        "BX-CALLBACK",
                        f"result {i} of a callback is {value.dtype}{list(value.shape)}, {dtype}{list(shape)} is expected",
                    )
                )
            checked.append(value)
        return (None, *checked) if takes_token else tuple(checked)

    return call


def _listed(x) -> Sequence[Any]:
    return x if isinstance(x, list | tuple) else [x]


def _aliases(aliases, result_count: int) -> tuple:
    pairs = aliases.items() if isinstance(aliases, dict) else aliases
    return tuple(
        types.parse(
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if result_count > 1 else ''}],"
            f" operand_index = {arg}, operand_tuple_indices = []>"
        )
        for out, arg in pairs
    )


def _layouts(given, tensor_types) -> Any:
    given = [None] * len(tensor_types) if given is None else given
    found = []
    for order, t in zip(given, tensor_types, strict=True):
        if order is None:
            order = () if t == types.token_type() else tuple(range(t.rank - 1, -1, -1))
        found.append(types.layout(order))
    return ir.ArrayAttr.get(found, types.context)
