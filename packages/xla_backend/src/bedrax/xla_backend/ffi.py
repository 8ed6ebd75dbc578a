"""Separately compiled functions as operations of programs: XLA's foreign function interface (`jax.ffi`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax import pytree
from bedrax.autodiff import tables as autodiff_tables
from bedrax.batching import tables as batching_tables
from bedrax.core import dtypes, effects
from bedrax.core.avals import AbstractValue, ShapedArray, Token, abstract_token, abstractify
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.placement import placed
from bedrax.parallel.explicit import nowhere, sharding_rules
from bedrax.xla_backend.door import kernels
from bedrax.xla_backend.tables import lowering_rules

_VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class FfiEffect(effects.Effect):
    """A call that must happen even if its results are not used."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is FfiEffect

    def __hash__(self) -> int:
        return hash(FfiEffect)

    def __repr__(self) -> str:
        return "FFI"


_effect = FfiEffect()
for _set in (effects.lowerable_effects, effects.control_flow_allowed_effects):
    _set.add_type(FfiEffect)

# params: target_name, result_avals, attributes (pairs of a name and a hashable value), has_side_effect, vmap_method,
# input_layouts, output_layouts (major to minor, or None), input_output_aliases (pairs), custom_call_api_version,
# legacy_backend_config
ffi_call_p: Final = Primitive("ffi_call", multiple_results=True)
ffi_call_p.abstract_eval = lambda *avals, result_avals, **_: list(result_avals)
effect_rules.add(ffi_call_p, lambda *avals, has_side_effect, **_: {_effect} if has_side_effect else set())
sharding_rules.add(ffi_call_p, nowhere)  # the effect on shards is unknown; `ffi_call` places its results


def include_dir() -> str:
    """The directory of the headers that compiled functions include (``xla/ffi/api/ffi.h``).

    Examples:

      >>> import pathlib
      >>> pathlib.Path(jax.ffi.include_dir()).exists()
      True
    """
    return kernels.include_directory()


def pycapsule(funcptr: Any) -> Any:
    """A function of a `ctypes` library as a capsule for `register_ffi_target`.

    Examples:

      >>> import ctypes.util
      >>> library = ctypes.CDLL(ctypes.util.find_library("m"))
      >>> capsule = jax.ffi.pycapsule(library.cos)
      >>> type(capsule).__name__
      'PyCapsule'
    """
    destroy = ctypes.CFUNCTYPE(None, ctypes.py_object)
    build = ctypes.pythonapi.PyCapsule_New
    build.restype, build.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, destroy)
    return build(ctypes.cast(funcptr, ctypes.c_void_p), None, destroy(0))


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a compiled function with XLA.

    Args:
      name: the name for `ffi_call`.
      fn: a capsule (see `pycapsule`), or a dictionary of capsules by stage (``"execute"``, ``"instantiate"``, ...).
      platform: ``"cpu"``, ``"cuda"``, ...
      api_version: 1 for the typed interface, 0 for the older one.
      kwargs: only `traits`, the traits of the handler.

    Examples:

      >>> import ctypes.util
      >>> library = ctypes.CDLL(ctypes.util.find_library("m"))
      >>> jax.ffi.register_ffi_target("cosine_of_c", jax.ffi.pycapsule(library.cos), platform="cpu", api_version=0)
      >>> f = lambda x: jax.ffi.ffi_call("cosine_of_c", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
      >>> "@cosine_of_c" in jax.jit(f).lower(jnp.ones(2)).as_text()
      True
    """
    kernels.register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register with XLA a type of the state of compiled functions: a dictionary of capsules.

    Args:
      name: its name.
      type_registration: the dictionary of capsules.
      platform: the platform.
    """
    kernels.register_custom_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Register a type with XLA by the capsule of its identity.

    Args:
      name: its name.
      obj: the capsule.
      platform: the platform.
    """
    kernels.register_custom_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that the function may be applied to shards of arrays that are split along leading axes.

    Examples:

      >>> import ctypes.util
      >>> library = ctypes.CDLL(ctypes.util.find_library("m"))
      >>> jax.ffi.register_ffi_target("sine_of_c", jax.ffi.pycapsule(library.sin), api_version=0)
      >>> jax.ffi.register_ffi_target_as_batch_partitionable("sine_of_c")
    """
    kernels.register_as_batch_partitionable(name)


class _Value:
    """An attribute that is not hashable, compared by its value."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        if isinstance(value, np.ndarray):
            self.key: Any = (value.dtype.str, value.shape, value.tobytes())
        else:
            self.key = tuple(sorted((k, _hashable(v)) for k, v in value.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Value and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


def _hashable(x: Any) -> Any:
    return _Value(x) if isinstance(x, np.ndarray | dict) else tuple(x) if isinstance(x, list) else x


def _type_of(x: Any) -> AbstractValue:
    """The type of an argument or result: an array, an object with a shape and a dtype, or a token."""
    if x is abstract_token or getattr(x, "aval", None) is abstract_token or isinstance(x, Token):
        return abstract_token
    return abstractify(x)


def check_aliases(aliases: dict[int, int], operands: Sequence[AbstractValue], results: Sequence[AbstractValue]) -> None:
    """Check that each pair of a flat operand and a flat result exists and has one type.

    Raises:
      ValueError: it does not.
    """
    for i, j in aliases.items():
        for what, position, types in (("operand", i, operands), ("result", j, results)):
            if not 0 <= position < len(types):
                raise ValueError(
                    f"input_output_aliases={aliases}: there is no {what} {position}; there are {len(types)} {what}s"
                )
        if operands[i].str_short() != results[j].str_short():
            raise ValueError(
                f"input_output_aliases={aliases}: operand {i} of type {operands[i].str_short()} and result {j} of type"
                f" {results[j].str_short()} share memory, and need one type"
            )


def _layout(given: Any, aval: ShapedArray) -> tuple[int, ...] | None:
    """Major to minor, or None for row-major."""
    if given is None:
        return None
    order = tuple(getattr(given, "major_to_minor", given))
    if sorted(order) != list(range(len(aval.shape))):
        raise ValueError(f"ffi_call: the layout {order} is not a permutation of the axes of {aval.str_short()}")
    return order


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered compiled function.

    Args:
      target_name: the name given to `register_ffi_target`.
      result_shape_dtypes: an object with ``shape`` and ``dtype``, or `jax.ffi.abstract_token` for a token, which orders
        calls; or a sequence of them. If its sharding is over
        explicit axes, the result has that sharding; otherwise it is replicated.
      has_side_effect: the call happens even if its results are not used.
      vmap_method: the behaviour under `vmap`, as for `pure_callback`.
      input_layouts, output_layouts: for each array the order of its axes in memory, major to minor; None: row-major.
      input_output_aliases: argument -> result that may use its memory.
      custom_call_api_version: 4 for the typed interface.
      legacy_backend_config: the string that older interfaces take instead of attributes.

    Returns:
      A function of arrays, with attributes as keyword arguments: booleans, numbers, members of an `IntEnum`, strings,
      dtypes, NumPy arrays, and sequences and dictionaries of them. The dtype of a NumPy scalar is the type of the
      attribute; Python's numbers have 64 bits. Not differentiable.

    Raises:
      ValueError: aliases or layouts do not fit the operands or results, or a result has no shape and dtype.

    Examples:

      >>> call = jax.ffi.ffi_call("my_kernel", jax.ShapeDtypeStruct((3,), jnp.float32))
      >>> callable(call)
      True
      >>> def f(x):
      ...     first = jax.ffi.ffi_call("first", jax.ffi.abstract_token, has_side_effect=True)
      ...     second = jax.ffi.ffi_call("second", jax.ShapeDtypeStruct((3,), jnp.float32))
      ...     return second(first(x), x)
      ...
      >>> text = jax.jit(f).lower(jnp.ones(3)).as_text()
      >>> "@second(%0, %arg0)" in text, "-> !stablehlo.token" in text
      (True, True)
    """
    if vmap_method is not None and vmap_method not in _VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {_VMAP_METHODS}, got {vmap_method!r}")
    leaves, tree = pytree.tree_flatten(result_shape_dtypes)
    for position, x in enumerate(leaves):
        if x is not abstract_token and not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ValueError(
                f"ffi_call to {target_name}: result_shape_dtypes has {x!r} at position {position}; a result is described"
                " by an object with the attributes shape and dtype, such as jax.ShapeDtypeStruct"
            )
    avals = [_type_of(x) for x in leaves]
    # The function writes elements of the described dtype, whether x64 is on or off.
    result_avals = tuple(
        [
            ShapedArray(a.shape, dtypes.as_dtype(x.dtype)) if a.is_array else a
            for a, x in zip(avals, leaves, strict=True)
        ]
    )
    if output_layouts is None:
        out_layouts: tuple[Any, ...] = (None,) * len(result_avals)
    else:
        given = output_layouts if isinstance(result_shape_dtypes, list | tuple) else [output_layouts]
        if len(given) != len(result_avals):
            raise ValueError(f"ffi_call to {target_name}: {len(given)} output_layouts for {len(result_avals)} results")
        out_layouts = tuple(_layout(o, a) for o, a in zip(given, result_avals, strict=True))
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; pass attributes as keyword"
            " arguments of the function"
        )

    def call(*args: Any, **attributes: Any) -> Any:
        if attributes and custom_call_api_version < 4:
            raise ValueError("Attributes need custom_call_api_version=4; older interfaces take legacy_backend_config")
        in_avals = [_type_of(x) for x in args]
        layouts = (None,) * len(args) if input_layouts is None else input_layouts
        if len(layouts) != len(args):
            raise ValueError(f"ffi_call to {target_name}: {len(layouts)} input_layouts for {len(args)} arguments")
        check_aliases(input_output_aliases or {}, in_avals, result_avals)
        out = ffi_call_p.bind(
            *args,
            target_name=target_name,
            result_avals=result_avals,
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
            output_layouts=out_layouts,
            input_layouts=tuple(_layout(o, a) for o, a in zip(layouts, in_avals, strict=True)),
            input_output_aliases=tuple((input_output_aliases or {}).items()),
            attributes=tuple(sorted((k, _hashable(v)) for k, v in attributes.items())),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
        )
        in_types = [
            None if not a.is_array or a.split is None else x.sharding for a, x in zip(avals, leaves, strict=True)
        ]
        return pytree.tree_unflatten(tree, [placed(x, where) for x, where in zip(out, in_types, strict=True)])

    return call


def _plain(x: Any) -> Any:
    value = x.value if type(x) is _Value else x
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _minor_to_major(layouts, avals) -> list:
    return [
        () if not a.is_array else tuple(reversed(range(len(a.shape)) if order is None else order))
        for order, a in zip(layouts, avals, strict=True)
    ]


@lowering_rules.rule(ffi_call_p)
def _lower(
    ctx,
    *operands,
    target_name,
    attributes,
    has_side_effect,
    input_layouts,
    output_layouts,
    input_output_aliases,
    custom_call_api_version,
    legacy_backend_config,
    **_,
):
    typed = {name: _plain(value) for name, value in attributes}
    return ctx.custom_call(
        target_name,
        operands,
        list(ctx.avals_out),
        typed if custom_call_api_version >= 4 else legacy_backend_config or "",
        api_version=custom_call_api_version,
        has_side_effect=has_side_effect,
        operand_layouts=_minor_to_major(input_layouts, ctx.avals_in),
        result_layouts=_minor_to_major(output_layouts, ctx.avals_out),
        operand_output_aliases={result: operand for operand, result in input_output_aliases},
    )


@batching_tables.batch_rules.rule(ffi_call_p)
def _batch(axis, args, dims, *, vmap_method, result_avals, input_layouts, output_layouts, **params):
    from bedrax.batching.rules import callbacks

    def with_axis(layouts):
        return tuple(None if o is None else (0, *(i + 1 for i in o)) for o in layouts)

    return callbacks.batch_call(
        ffi_call_p,
        "ffi_call",
        axis,
        args,
        dims,
        vmap_method,
        result_avals,
        params,
        per_element=dict(input_layouts=input_layouts, output_layouts=output_layouts),
        per_batch=dict(
            input_layouts=tuple(
                o if d is None and vmap_method == "legacy_vectorized" else n
                for o, n, d in zip(input_layouts, with_axis(input_layouts), dims, strict=True)
            ),
            output_layouts=with_axis(output_layouts),
        ),
    )


@autodiff_tables.jvp_rules.rule(ffi_call_p, kind="error")
def _jvp(primals, tangents, **params):
    if any(type(t) is not autodiff_tables.Zero for t in tangents):
        raise ValueError(
            f"ffi_call to {params['target_name']!r} has no derivative; give one with jax.custom_jvp or jax.custom_vjp"
        )
    out = ffi_call_p.bind(*primals, **params)
    return out, [autodiff_tables.Zero.of(x) for x in out]


autodiff_tables.transpose_rules.absent(ffi_call_p, why="it has no derivative, so it is never part of a linear program")


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Any = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule, for `jax.interpreters.mlir.register_lowering`, that calls a compiled function.

    Args:
      call_target_name: the name given to `register_ffi_target`.
      operand_layouts, result_layouts: for each array the order of its axes, major to minor (with
        `skip_ffi_layout_processing`: minor to major); None: row-major.
      backend_config: attributes that are the same in every call.
      lowering_args: has_side_effect, operand_output_aliases.

    Returns:
      ``rule(ctx, *values, **attributes)``.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir
      >>> prim = Primitive("called_outside")
      >>> _ = prim.def_abstract_eval(lambda x, rate: x)
      >>> rule = jax.ffi.build_ffi_lowering_function("library_function", has_side_effect=True)
      >>> _ = mlir.register_lowering(prim, rule)
      >>> text = jax.jit(lambda x: prim.bind(x, rate=np.float32(0.5))).lower(jnp.ones(2)).as_text()
      >>> "@library_function" in text, "rate = 5.000000e-01 : f32" in text, "has_side_effect = true" in text
      (True, True, True)
    """

    def rule(ctx, *operands, **attributes):
        inner = getattr(ctx, "inner", ctx)

        def layouts(given, avals):
            given = [None] * len(avals) if given is None else given
            if skip_ffi_layout_processing:
                return [
                    _minor_to_major([None], [a])[0] if o is None else tuple(o)
                    for o, a in zip(given, avals, strict=True)
                ]
            return _minor_to_major([_layout(o, a) for o, a in zip(given, avals, strict=True)], avals)

        return inner.custom_call(
            call_target_name,
            operands,
            list(inner.avals_out),
            {**(backend_config or {}), **attributes},
            operand_layouts=layouts(operand_layouts, inner.avals_in),
            result_layouts=layouts(result_layouts, inner.avals_out),
            **lowering_args,
        )

    return rule


build_ffi_lowering_function = ffi_lowering

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]
