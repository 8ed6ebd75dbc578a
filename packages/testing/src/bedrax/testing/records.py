"""Records: one sample of one primitive, from which every column's tests are made.

A family's records are in `bedrax.testing.cases.<family>`, in a list `CASES`, and are found by
file name. A primitive that has none fails a test, unless the file names it in a dictionary
`UNSAMPLED` with the reason.

    CASES = [
        OpCase(p.sin_p, "vector", lax.sin, (arg((3,)),), oracle=np.sin),
        OpCase(p.add_p, "int", lax.add, (arg((2, 3), "int32"), arg((), "int32")), oracle=np.add),
    ]
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes  # noqa: F401  (its dtypes are known to NumPy by name once it is imported)
import numpy as np

from bedrax.core import dtypes
from bedrax.core.jitting import jit_p
from bedrax.core.tracing import Primitive


@dataclass(frozen=True)
class ArgSpec:
    """A random operand: uniform in [low, high), of any dtype; distinct values where `distinct`."""

    shape: tuple[Any, ...] = ()
    dtype: Any = "float32"
    low: float = -2.0
    high: float = 2.0
    distinct: bool = False

    def make(self, rng: np.random.Generator) -> np.ndarray:
        """The array; equal generators give equal arrays."""
        dtype = dtypes.as_dtype(self.dtype)
        if dtype == np.bool_:
            return rng.random(self.shape) < 0.5
        size = int(np.prod(self.shape))
        if self.distinct:
            # Evenly spaced and shuffled, so that finite differences cannot change the order.
            values = rng.permutation(np.linspace(self.low, self.high, size, endpoint=False))
            values = values.reshape(self.shape)
        else:
            values = rng.uniform(self.low, self.high, self.shape)
        if dtypes.is_integer(dtype):
            return np.floor(values).astype(np.int64).astype(dtype)
        if dtypes.is_complex(dtype):
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(values).astype(dtype)


def arg(shape: Sequence[int] = (), dtype: Any = "float32", low: float = -2.0, high: float = 2.0, **kw: Any) -> ArgSpec:
    """Short for `ArgSpec`."""
    return ArgSpec(tuple(shape), dtype, low, high, **kw)


@dataclass(frozen=True)
class OpCase:
    """A sample of a primitive.

    Attributes:
      primitive: what it is a sample of; `fun` must bind it.
      name: distinguishes the samples of a primitive.
      fun: from arrays to an array, or to a tuple or list of arrays. Parameters are closed over.
      args: `ArgSpec`s, or arrays where the values matter.
      oracle: the same function of NumPy arrays, written without Bedrax, if there is one. It returns
        something like an array, or a tuple of such where `fun` has several results.
      grad: positions of the operands to differentiate; None for all that are float or complex, () for none.
      second: whether second derivatives are tested.
      transpose: whether reverse mode is tested (a primitive may have a jvp and no transpose).
      batch: positions of the operands to map; None for all, () for none.
      xla: whether XLA can run it; a string is the reason why not.
      rtol, atol: tolerances of comparisons of values; None for the dtype's default.
      grad_rtol: tolerance of derivatives (they are tested in 64 bits).
      equal_nan: whether nan equals nan.
      needs: the package above core that `fun` is written with; without it the record is skipped.
      exact: why the result does not depend on rounding, although it moves more than its tolerance if an operand moves
        by one unit in the last place; None for results that `check_conditioned` compares.
    """

    primitive: Primitive
    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    oracle: Callable[..., Any] | None = None
    grad: tuple[int, ...] | None = None
    second: bool = True
    transpose: bool = True
    batch: tuple[int, ...] | None = None
    xla: bool | str = True
    rtol: float | None = None
    atol: float | None = None
    grad_rtol: float = 1e-5
    equal_nan: bool = True
    needs: str | None = None
    exact: str | None = None

    @property
    def id(self) -> str:
        return f"{self.primitive.family}-{self.primitive}-{self.name}"

    def rng(self) -> np.random.Generator:
        """A generator that depends on the record's name only."""
        return np.random.default_rng(zlib.crc32(self.id.encode()))

    def make_args(self, wide: bool = False) -> list[np.ndarray]:
        """The operands; with `wide`, floats are float64 and complex numbers complex128."""
        rng = self.rng()
        out = []
        for a in self.args:
            if isinstance(a, ArgSpec):
                if wide:
                    a = replace(a, dtype=widened(dtypes.as_dtype(a.dtype)))
                out.append(a.make(rng))
            else:
                a = np.asarray(a)
                out.append(a.astype(widened(a.dtype)) if wide else a)
        return out

    def diff_args(self, args: Sequence[np.ndarray]) -> tuple[int, ...]:
        """Positions of the operands to differentiate."""
        if self.grad is not None:
            return self.grad
        return tuple(i for i, a in enumerate(args) if dtypes.is_inexact(a.dtype))


def into(cases: list[OpCase]) -> Callable[..., None]:
    """A function that adds a record to `cases`: ``(prim, name, fun, args, oracle=None, **others)``."""

    def add(prim, name, fun, args, oracle=None, **others):
        cases.append(OpCase(prim, name, fun, tuple(args), oracle=oracle, **others))

    return add


def widened(dtype: np.dtype) -> np.dtype:
    """The 64-bit counterpart of a float or complex type; other types unchanged."""
    if dtypes.is_complex(dtype):
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtypes.is_floating(dtype) else dtype


def _modules(package: str):
    root = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(root.__path__), key=lambda m: m.name):
        yield info.name, importlib.import_module(f"{package}.{info.name}")


def all_cases() -> list[OpCase]:
    """Every record of every family."""
    return [case for _, module in _modules("bedrax.testing.cases") for case in module.CASES]


def case_params(cases: Sequence[OpCase] | None = None) -> list[Any]:
    """For ``pytest.mark.parametrize("case", case_params())``."""
    import pytest

    def marks(case):
        if case.needs is None or importlib.util.find_spec(case.needs) is not None:
            return ()
        return pytest.mark.skip(reason=f"the record is written with {case.needs}")

    return [pytest.param(case, id=case.id, marks=marks(case)) for case in (all_cases() if cases is None else cases)]


def all_primitives() -> list[Primitive]:
    """Every primitive of the vocabulary, and the kernel's own."""
    found = {id(jit_p): jit_p}
    for family, module in _modules("bedrax.lax.primitives"):
        for prim in vars(module).values():
            if isinstance(prim, Primitive) and prim.family == family:
                found[id(prim)] = prim
    return sorted(found.values(), key=lambda prim: (prim.family, prim.name))


def unsampled() -> dict[Primitive, str]:
    """Primitives without records, with the reasons that the families give."""
    return {
        prim: why
        for _, module in _modules("bedrax.testing.cases")
        for prim, why in getattr(module, "UNSAMPLED", {}).items()
    }
