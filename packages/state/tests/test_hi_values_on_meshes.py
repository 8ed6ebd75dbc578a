"""Values of libraries' types in blocks over a mesh: a table of rows, and their sums."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
from bedrax.core.avals import ShapedArray, typeof
from bedrax.core.jitting import jit
from bedrax.parallel import AbstractMesh, shard_map
from bedrax.parallel.specs import HiPspec
from bedrax.parallel.specs import PartitionSpec as P
from bedrax.state import hi_prims, hi_types

f32 = np.dtype(np.float32)
MESH = AbstractMesh((4, 2), ("i", "j"))
X = np.arange(24, dtype=np.float32).reshape(8, 3) - 7


@dataclass(frozen=True)
class Table:
    rows: object
    sums: object


@dataclass(frozen=True)
class TableType(hi_types.HiType):
    shape: tuple

    lo_ty = lambda self: [ShapedArray(self.shape, f32), ShapedArray(self.shape[:1], f32)]
    lower_val = lambda self, x: [x.rows, x.sums]
    raise_val = lambda self, rows, sums: Table(rows, sums)
    to_tangent_aval = lambda self: ShapedArray(self.shape, f32)

    def shard(self, mesh, manual_axes, check_vma, spec):
        return TableType(self.lo_ty()[0].shard(mesh, manual_axes, check_vma, spec.to_lo()[0]).shape)

    def unshard(self, mesh, check_vma, spec):
        return TableType(self.lo_ty()[0].unshard(mesh, check_vma, spec.to_lo()[0]).shape)


hi_types.register_hitype(Table, lambda x: TableType(typeof(x.rows).shape))


@dataclass(frozen=True)
class Rows(HiPspec):
    axes: object

    def to_lo(self):
        return P(self.axes), P(self.axes)


class Sum(hi_prims.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), TableType(aval.shape), {}
        super().__init__()

    expand = lambda self, x: Table(x, x.sum(1))


class Centred(hi_prims.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), ShapedArray(aval.shape, f32), {}
        super().__init__()

    expand = lambda self, x: x.rows - x.sums[:, None] / 3


summed = lambda x: Sum(typeof(x))(x)
centred = lambda x: Centred(typeof(x))(x)
EXPECTED = X - X.sum(1, keepdims=True) / 3


def mapped(f, in_specs, out_specs, **options):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_values_are_cut_into_blocks(transform):
    seen = []

    def make(x):
        seen.append(typeof(summed(x)).shape)
        return summed(x)

    both = ("i", "j")
    table = transform(mapped(make, P(both), Rows(both)))(X)
    assert isinstance(table, Table) and seen == [(1, 3)]
    np.testing.assert_allclose(table.rows, X)
    np.testing.assert_allclose(table.sums, X.sum(1))
    read = transform(mapped(lambda t: (centred(t), lax.psum(centred(t).max(), both)), Rows(both), (P(both), P())))
    found, total = read(table)
    np.testing.assert_allclose(found, EXPECTED)
    np.testing.assert_allclose(total, EXPECTED.max(1).sum())
    whole = transform(mapped(lambda x: centred(summed(x)), P("i"), P("i"), check_vma=False))(X)
    np.testing.assert_allclose(whole, EXPECTED)
    back = transform(mapped(lambda t: t, Rows("i"), Rows("i"), check_vma=False))(table)
    np.testing.assert_allclose(back.rows, X)


def test_wrong_specs_are_refused_by_name():
    table = summed(X)
    with pytest.raises(TypeError, match="A value of a library's type has a HiPspec"):
        mapped(centred, P("i"), P("i"))(table)
    with pytest.raises(TypeError, match="an array a PartitionSpec"):
        mapped(lambda x: x, Rows("i"), P("i"))(X)
    with pytest.raises(ValueError, match=re.escape("out_specs has Rows(axes='i')") + ".*equal along 'j'"):
        mapped(summed, P("i"), Rows("i"))(X)
    with pytest.raises(ValueError, match="has no axis 'k'"):
        mapped(centred, Rows("k"), P("i"))(table)

    @dataclass(frozen=True)
    class One(HiPspec):
        to_lo = lambda self: (P("i"),)

    class Nothing(HiPspec):
        pass

    with pytest.raises(ValueError, match="returns 1 specs; 2 arrays represent"):
        mapped(centred, One(), P("i"))(table)
    with pytest.raises(NotImplementedError, match="class Nothing must define `to_lo`"):
        mapped(centred, Nothing(), P("i"))(table)


@pytest.mark.parametrize(
    ("what", "transform"),
    [
        ("derivative", lambda f, t: grad(lambda t: f(t).sum())(t)),
        ("derivative", lambda f, t: jvp(f, (t,), (X,))),
        (
            "vmap",
            lambda f, t: vmap(
                lambda x: mapped(lambda t, x: centred(t) * x, (Rows("i"), P("i")), P("i"), check_vma=False)(t, x)
            )(X[None]),
        ),
    ],
)
def test_transformations_of_the_map_are_refused(what, transform):
    f = mapped(centred, Rows(("i", "j")), P(("i", "j")))
    with pytest.raises(
        NotImplementedError, match=f"the {what} of a shard_map with a value of type|{what} of a shard_map"
    ):
        transform(f, summed(X))
