"""`jnp.ufunc`: a function of scalars with `reduce`, `accumulate`, `at`, `outer` and `reduceat`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.avals import ShapeDtypeStruct, aval_of
from bedrax.core.staging import eval_shape
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.promotion import broadcast, operand
from bedrax.numpy import creation, manipulation, reductions, selection
from bedrax.numpy.arguments import counting
from bedrax.numpy.functional import vectorize


def _of_numpy(name: str) -> ufunc:
    return getattr(jnp, name)


class ufunc:
    """A function that works elementwise, with broadcasting.

    Args:
      func: function of `nin` arrays (it is given arrays of equal shape) that returns `nout`.
      nin, nout: the numbers of operands and results.
      name: default: that of `func`.
      nargs: ``nin + nout``, if given.
      identity: neutral element, from which an empty reduction starts.
      call, reduce, accumulate, at, reduceat: faster implementations of the call and the methods.

    Examples:

      >>> isinstance(jnp.add, jnp.ufunc)
      True
      >>> jnp.multiply.accumulate(jnp.array([1, 2, 3, 4]))
      Array([ 1,  2,  6, 24], dtype=int32)
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        if not callable(func):
            raise TypeError(f"ufunc: a function is needed, got {func!r}")
        if nargs is not None and nargs != nin + nout:
            raise ValueError(f"ufunc: nargs must be nin + nout = {nin + nout}, got {nargs}")
        self._func = func
        self._nin, self._nout, self._identity = nin, nout, identity
        self.__name__: str
        self.__qualname__: str
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "function")
        self.__doc__ = getattr(func, "__doc__", None) or type(self).__doc__
        self._call = call or self._vectorized
        names = "x" if nin == 1 else [f"x{i + 1}" for i in range(nin)]
        self.__signature__: inspect.Signature = inspect.Signature(
            [
                *(inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names),
                *(inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in ("out", "where")),
            ]
        )
        self._fast = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    @property
    def nin(self) -> int:
        """The number of operands."""
        return self._nin

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._nout

    @property
    def nargs(self) -> int:
        """The number of operands and results."""
        return self._nin + self._nout

    @property
    def identity(self) -> Any:
        """The neutral element, from which an empty reduction starts; None if the function has none."""
        return self._identity

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        if getattr(jnp, self.__name__, None) is self:
            return _of_numpy, (self.__name__,)
        return frompyfunc, (self._func, self.nin, self.nout)

    def __hash__(self) -> int:
        return hash((ufunc, self._func, self.__name__, self.nin, self.nout))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and (
            (self._func, self.__name__, self.nin, self.nout, self.identity)
            == (other._func, other.__name__, other.nin, other.nout, other.identity)
        )

    def __call__(self, *args: Any, out: Any = None, where: Any = None) -> Array:
        """The function of `args`, elementwise.

        Raises:
          NotImplementedError: `out` or `where` is given.
        """
        if out is not None:
            raise NotImplementedError(f"jnp.{self.__name__}: the out argument is not supported; arrays are immutable")
        if where is not None:
            raise NotImplementedError(f"jnp.{self.__name__}: the where argument is not supported; use jnp.where")
        if len(args) != self._nin:
            raise TypeError(f"jnp.{self.__name__} takes {self.nin} operands, got {len(args)}")
        return self._call(*args)

    def _vectorized(self, *args):
        args = [lax.asarray(operand(self.__name__, x, i)) for i, x in enumerate(args)]
        return vectorize(self._func)(*broadcast(self.__name__, args, scalars=False))

    def _need_binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{self.__name__}.{method} folds functions of two operands, this one takes {self.nin}")
        if self.nout != 1:
            raise ValueError(f"{self.__name__}.{method} folds functions of one result, this one gives {self.nout}")

    def _elements(self, a, dtype):
        """The elements to fold, in `dtype`; default: the dtype of the function's results, which are folded further."""
        x = creation.asarray(operand(self.__name__, a), dtype=dtype)
        if dtype is not None:
            return x
        one = ShapeDtypeStruct((), x.dtype)
        return lax.convert_to(x, eval_shape(self, one, one).dtype, False)

    def reduce(
        self,
        a: ArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Combine the elements along an axis, from the first to the last.

        Args:
          a: array.
          axis: the axis, several, or None for all.
          dtype: in which to compute.
          keepdims: keep the reduced axes with length 1.
          initial: a value to start from.
          where: mask of the elements that count; needs `initial` or an identity.
        """
        self._need_binary("reduce")
        _no_out(self, "reduce", out)
        fast = self._fast["reduce"]
        if fast is not None:
            return fast(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        x = self._elements(a, dtype)
        start = self.identity if initial is None else initial
        if where is not None:
            if start is None:
                raise ValueError(f"{self.__name__}.reduce: the mask may choose nothing; pass initial, the result then")
            if self.identity is not None:
                x = selection.choose_where(where, x, creation.asarray(self.identity, dtype=x.dtype))
            else:
                # Without an identity, elements that do not count must be skipped.
                return self._masked_reduce(x, axis, keepdims, start, where)
        axes = reductions.normalize_axes(axis, x.ndim)
        rest = [i for i in range(x.ndim) if i not in axes]
        n = 1
        for i in axes:
            n *= x.shape[i]
        x = lax.reshape(lax.transpose(x, (*axes, *rest)), (n, *[x.shape[i] for i in rest]))
        if initial is None and not (n == 0 and start is not None):
            if n == 0:
                raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
            carry, x = lax.index_in_dim(x, 0, keepdims=False), lax.slice_in_dim(x, 1, None)
        else:
            carry = lax.full(x.shape[1:], creation.asarray(start, dtype=x.dtype))
        out = self._fold(carry, x)
        return manipulation.expand_dims(out, axes) if keepdims else out

    def _fold(self, carry, xs):
        dtype = aval_of(carry).dtype
        step = lambda c, x: (lax.convert_to(self(c, x), dtype, False), None)
        return lax.scan(step, lax.convert_to(carry, dtype, False), xs)[0]

    def _masked_reduce(self, x, axis, keepdims, start, where):
        axes = reductions.normalize_axes(axis, x.ndim)
        rest = [i for i in range(x.ndim) if i not in axes]
        mask = manipulation.broadcast_to(where, x.shape)
        first = lambda a: lax.reshape(lax.transpose(a, (*axes, *rest)), (_count(x, axes), *[x.shape[i] for i in rest]))
        carry = lax.full([x.shape[i] for i in rest], creation.asarray(start, dtype=x.dtype))
        step = lambda c, xm: (selection.choose_where(xm[1], self(c, xm[0]), c), None)
        out = lax.scan(step, carry, (first(x), first(mask)))[0]
        return manipulation.expand_dims(out, axes) if keepdims else out

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: Any = None) -> Array:
        """All partial results of the reduction along an axis; of the shape of `a`."""
        self._need_binary("accumulate")
        _no_out(self, "accumulate", out)
        fast = self._fast["accumulate"]
        if fast is not None:
            return fast(a, axis=axis, dtype=dtype)
        x = self._elements(a, dtype)
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError(f"accumulate does not allow multiple axes, got axis={axis}; pass one integer")
        if not x.ndim:
            raise ValueError("accumulate: array of rank 0 has no axis")
        x = manipulation.moveaxis(x, axis, 0)
        if x.shape[0] == 0:
            return manipulation.moveaxis(x, 0, axis)
        first = lax.index_in_dim(x, 0, keepdims=False)
        kind = aval_of(first).dtype
        step = lambda c, y: (lambda z: (z, z))(lax.convert_to(self(c, y), kind, False))
        rest = lax.scan(step, lax.convert_to(first, kind, False), lax.slice_in_dim(x, 1, None))[1]
        return manipulation.moveaxis(lax.concatenate([lax.expand_dims(first, (0,)), rest], 0), 0, axis)

    def at(
        self,
        a: ArrayLike,
        indices: int | tuple[np.ndarray[Any, Any], int],
        b: int | None = None,
        *,
        inplace: bool = True,
    ) -> Array:
        """``a.at[indices]`` with the function applied once for every index, also for repeated ones.

        Raises:
          NotImplementedError: `inplace` is not False: arrays are immutable.
        """
        if inplace:
            raise NotImplementedError(
                f"jnp.{self.__name__}.at: arrays are immutable; pass inplace=False and use what is returned"
            )
        fast = self._fast["at"]
        if fast is not None:
            return fast(a, indices, b)
        a = creation.asarray(operand(self.__name__, a))
        if self.nin == 1:
            return a.at[indices].apply(self)
        # One after the other: the indices of all elements, flattened.
        places = lax.reshape(lax.iota("int32", a.size), a.shape)[indices]
        values = manipulation.ravel(manipulation.broadcast_to(creation.asarray(b, dtype=a.dtype), places.shape))
        flat = manipulation.ravel(a)

        def step(flat, pair):
            i, value = pair
            return flat.at[i].set(lax.convert_to(self(flat[i], value), a.dtype, False)), None

        return lax.reshape(lax.scan(step, flat, (manipulation.ravel(places), values))[0], a.shape)

    def outer(self, a: ArrayLike, b: ArrayLike, /) -> Array:
        """The function of all pairs of an element of `a` and one of `b`; of shape ``a.shape + b.shape``."""
        self._need_binary("outer")
        x, y = (lax.asarray(operand(f"{self.__name__}.outer", v, i)) for i, v in enumerate((a, b)))
        return self(lax.expand_dims(x, range(x.ndim, x.ndim + y.ndim)), lax.expand_dims(y, range(x.ndim)))

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: Any = None
    ) -> Array:
        """Reductions of the slices that start at `indices` and end at the next index (or the end).

        Where an index is not below the next, the result is the element itself.
        """
        self._need_binary("reduceat")
        _no_out(self, "reduceat", out)
        fast = self._fast["reduceat"]
        if fast is not None:
            return fast(a, indices, axis=axis, dtype=dtype)
        x = self._elements(a, dtype)
        starts = creation.asarray(indices)
        if starts.ndim != 1 or isinstance(axis, (tuple, list)) or axis is None:
            raise ValueError(
                f"reduceat takes one axis and indices of rank 1, got axis={axis} and indices of shape {starts.shape}"
            )
        x = manipulation.moveaxis(x, axis, 0)
        n = x.shape[0]
        starts = counting(starts, n)
        ends = lax.concatenate([lax.slice_in_dim(starts, 1, None), lax.full((1,), n, starts.dtype)], 0)
        first = x[starts]
        shape = (-1,) + (1,) * (x.ndim - 1)
        low, high = manipulation.reshape(starts, shape), manipulation.reshape(ends, shape)

        def step(carry, pair):
            i, row = pair
            inside = (i > low) & (i < high)
            return selection.choose_where(inside, self(carry, row[None]), carry), None

        out = lax.scan(step, first, (lax.iota(starts.dtype, n), x))[0]
        return manipulation.moveaxis(out, 0, axis)


def _count(x, axes) -> int:
    n = 1
    for i in axes:
        n *= x.shape[i]
    return n


def _no_out(self: ufunc, method: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(f"jnp.{self.__name__}.{method}: out is not supported; arrays are immutable")


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` from a function of scalars.

    Args:
      func: function of `nin` scalars, traceable, that returns `nout`.
      nin, nout: the numbers of operands and results.
      identity: neutral element of a function of two operands.

    Examples:

      >>> plus_twice = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1, identity=0)
      >>> plus_twice(jnp.array([1, 2]), 10)
      Array([21, 22], dtype=int32)
      >>> plus_twice.outer(jnp.array([1, 2]), jnp.array([1, 2]))
      Array([[3, 5],
             [4, 6]], dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)
