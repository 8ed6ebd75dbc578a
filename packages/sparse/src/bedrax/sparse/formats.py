"""The common parts of all sparse formats: the base class, descriptions, warnings, and maps over batches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.linearization import backward_pass
from bedrax.autodiff.tables import is_undefined, jvp_rules, transpose_rules
from bedrax.batching import vmap
from bedrax.batching.api import Vmappable, vmappable
from bedrax.batching.tables import batch_rules
from bedrax.batching.trace import batch_flat
from bedrax.core import dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Primitive
from bedrax.core.typing import T
from bedrax.lax.tables import decompositions

Shape = tuple[int, ...]
Dtype = Any


class SparseEfficiencyError(ValueError):
    """The result would take far more memory than the sparse array.

    Examples:

      >>> from jax.experimental import sparse

      >>> issubclass(sparse.SparseEfficiencyError, ValueError)
      True
    """


class SparseEfficiencyWarning(UserWarning):
    """The result takes far more memory than the sparse array.

    Examples:

      >>> from jax.experimental import sparse

      >>> issubclass(sparse.SparseEfficiencyWarning, UserWarning)
      True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A kernel of a GPU library cannot be used. Never given here: there are no such kernels.

    Examples:

      >>> from jax.experimental import sparse

      >>> issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
      True
    """


class SparseInfo(NamedTuple):
    """The static data of a sparse array: its shape, and properties of its indices.

    Examples:

      >>> from jax.experimental import sparse

      >>> mat = sparse.BCOO.fromdense(jnp.eye(2))
      >>> mat._info
      SparseInfo(shape=(2, 2), indices_sorted=True, unique_indices=True)
    """

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse:
    """Base class of sparse arrays: pytrees of arrays, with the shape as static data.

    Args:
      args: the arrays of the format.
      shape: the shape of the array.

    Examples:

      >>> from jax.experimental import sparse

      >>> isinstance(sparse.eye(2), sparse.JAXSparse)
      True
    """

    data: Any
    shape: Shape
    __hash__: None  # type: ignore[assignment]
    __hash__ = None
    __array_priority__ = 100

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def nse(self) -> int:
        """The number of stored elements (per element of the batch)."""
        return self.data.shape[-1]

    T = property(lambda self: self.transpose())

    def _layout(self) -> str:
        return ""

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            return f"{name}({self.dtype.name}{list(self.shape)}, nse={self.nse}{self._layout()})"
        except (AttributeError, IndexError):  # a tree with leaves that are not arrays
            return f"{name}(<invalid>)"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a sparse array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _refuse(self, what: str) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} has no {what}: use its todense(), or a BCOO array, which has all operations"
        )

    def __getitem__(self, index: int) -> Any:
        return self._refuse("indexing")

    _arrays: tuple[str, ...] = ("data",)
    _static: tuple[str, ...] = ("shape",)

    def tree_flatten(self) -> tuple[Any, ...]:
        """(arrays, static data)."""
        return tuple(getattr(self, n) for n in self._arrays), tuple(getattr(self, n) for n in self._static)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Sequence[Any]) -> Any:
        """The array of `tree_flatten`'s results; the arrays may be any objects."""
        obj = object.__new__(cls)
        for name, value in zip((*cls._static, *cls._arrays), (*aux_data, *children), strict=True):
            setattr(obj, name, value)
        return obj

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes permuted, or reversed."""
        return self._refuse("transpose")

    def todense(self) -> Any:
        """The dense array."""
        raise NotImplementedError

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum over some axes."""
        return self._refuse("sum")

    def block_until_ready(self) -> Any:
        """Wait for the computation of the arrays. Returns `self`."""
        for x in pytree.tree_leaves(self):
            x.block_until_ready()
        return self

    def __pos__(self) -> Any:
        return self


def _element(x: JAXSparse, axes: Sequence[int | None]) -> JAXSparse:
    """`x`, whose arrays are those of one element of the batch, with the shape of this element."""
    axis = axes[0]
    if len(set(axes)) > 1 or axis is None or not 0 <= axis <= x.n_batch:
        raise ValueError(
            f"vmap of a {type(x).__name__} array maps a batch dimension, got the axes {axes} of its arrays"
        )
    return _reshaped(x, x.shape[:axis] + x.shape[axis + 1 :])


def _batch(x: JAXSparse, axes: Sequence[int | None], size: int) -> JAXSparse:
    """`x`, whose arrays are those of a whole batch, with the shape of the batch."""
    axis = axes[0]
    if len(set(axes)) > 1 or axis is None or not 0 <= axis < x.n_batch:
        raise ValueError(f"vmap makes a batch dimension of a {type(x).__name__} array, got out_axes {axes}")
    return _reshaped(x, (*x.shape[:axis], size, *x.shape[axis:]))


def _reshaped(x: JAXSparse, shape: Shape) -> JAXSparse:
    """An array with other static data."""
    arrays, (_, *rest) = x.tree_flatten()
    return type(x).tree_unflatten((shape, *rest), arrays)


def mapped_by_batch(cls: T) -> T:
    """Class decorator: `vmap` of arrays of the class maps a batch dimension."""
    vmappable[cls] = Vmappable(_element, _batch)
    return cls


def _refusing(what: str) -> Callable:
    return lambda self, *others: self._refuse(what)


for _name in (
    "abs",
    "neg",
    "matmul",
    "rmatmul",
    "mul",
    "rmul",
    "add",
    "radd",
    "sub",
    "rsub",
    "pow",
    "rpow",
    "truediv",
    "rtruediv",
    "floordiv",
    "mod",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
):
    setattr(JAXSparse, f"__{_name}__", _refusing(f"operator __{_name}__"))
JAXSparse.__hash__ = None


def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """`vmap` in which a mapped axis of size 1 counts as one of any size.

    Args:
      fun: a function of positional arguments.
      in_axes: the mapped axis of each argument, an array, or one for all; None: the argument is not mapped.
      out_axes: as in `jax.vmap`.

    Raises:
      ValueError: mapped axes have different sizes, and both are not 1; raised when the function is called.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import util

      >>> f = util.broadcasting_vmap(lambda x, y: x + y)
      >>> f(jnp.array([1., 2., 3.]), jnp.array([10.]))
      Array([11., 12., 13.], dtype=float32)
    """

    @functools.wraps(fun)
    def mapped(*args):
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) or in_axes is None else tuple(in_axes)
        sizes = {np.shape(x)[a] for x, a in zip(args, axes) if a is not None}
        size = max(sizes, default=1) if sizes - {1} else 1
        if sizes - {1, size}:
            raise ValueError(f"axes of different sizes are mapped together: {sorted(sizes)}")
        if size == 1 and 0 not in sizes:
            return vmap(fun, axes, out_axes)(*args)
        size = 0 if 0 in sizes else size
        stays = [None if a is None or np.shape(x)[a] == size else a for x, a in zip(args, axes)]
        args = [x if s is None else x.reshape(x.shape[:s] + x.shape[s + 1 :]) for x, s in zip(args, stays)]
        return vmap(fun, tuple(None if s is not None else a for s, a in zip(stays, axes)), out_axes)(*args)

    return mapped


def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable[..., Any]:
    """Apply `vmap` `N` times, for the first `N` axes of the arguments.

    Args:
      fun: a function of positional arguments.
      N: the number of applications.
      broadcasted: use `broadcasting_vmap`, in which an axis of size 1 counts as one of any size.
      in_axes: as in `jax.vmap`, for each application.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import util

      >>> f = util.nfold_vmap(jnp.dot, 2)
      >>> f(jnp.ones((2, 3, 4)), jnp.ones((2, 1, 4))).shape
      (2, 3)
    """
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun


def composed(name: str, fun: Callable[..., Any], multiple_results: bool = False) -> Primitive:
    """A primitive for a function of arrays and static parameters; the function is its decomposition in every column."""
    prim = Primitive(name, multiple_results=multiple_results)

    def flat(params):
        return lambda *xs: list(fun(*xs, **params)) if multiple_results else [fun(*xs, **params)]

    @prim.abstract
    def types(*avals, **params):
        run = flat(params)
        out = staging.trace_to_jaxpr(lambda *xs: (run(*xs), None), avals, types_only=True)[0].out_avals
        return out if multiple_results else out[0]

    @batch_rules.rule(prim, kind="composed")
    def batch(axis, args, dims, **params):
        outs, out_dims = batch_flat(flat(params), axis, args, dims)
        return (outs, out_dims) if multiple_results else (outs[0], out_dims[0])

    @jvp_rules.rule(prim, kind="composed")
    def jvp(primals, tangents, **params):
        outs, moved = jvp_flat(flat(params), primals, tangents)
        return (outs, moved) if multiple_results else (outs[0], moved[0])

    @transpose_rules.rule(prim, kind="composed")
    def transpose(ct, *args, **params):
        program = staging.program_of(flat(params), [x.aval if is_undefined(x) else aval_of(x) for x in args])
        back = iter(backward_pass(program, args, ct if multiple_results else [ct]))
        return [next(back) if is_undefined(x) else None for x in args]

    decompositions.add(prim, lambda *xs, **params: flat(params)(*xs) if multiple_results else fun(*xs, **params))
    return prim


def counting_dtype(dtype: Any, *sizes: Any) -> np.dtype:
    """The dtype of indices up to these sizes: `dtype`, or int32 if it is too narrow. The sizes themselves mark padding."""
    dtype = np.dtype(dtype)
    if not dtypes.is_integer(dtype) or dtype.itemsize >= 4:
        return dtype
    limit = dtypes.iinfo(dtype).max
    return dtype if all(type(n) is int and n <= limit for n in sizes) else np.dtype(np.int32)


def shape_of(x: Any) -> Shape:
    """The shape of an array or tracer."""
    return tuple(aval_of(x).shape)


__all__ = [
    "CuSparseEfficiencyWarning",
    "Dtype",
    "JAXSparse",
    "Shape",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "broadcasting_vmap",
    "nfold_vmap",
]
