"""Values of libraries' types in programs.

`Scaled` is a mantissa and an exponent; its tangents are arrays. `Diagonal` is a matrix with a vector of its diagonal, and
its tangents are diagonal matrices, too.
"""

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import checkpoint, grad, jvp, linearize, value_and_grad, vjp
from bedrax.batching import vmap
from bedrax.core.avals import ShapedArray, typeof
from bedrax.core.jitting import jit
from bedrax.core.staging import eval_shape, make_jaxpr
from bedrax.state import hi_prims, hi_types, new_ref

f32, i32 = np.dtype(np.float32), np.dtype(np.int32)
X = np.array([[1.0, -2.5, 3.0], [0.25, 5.0, -6.0]], np.float32)


@dataclass(frozen=True)
class Scaled:
    mantissa: object
    exponent: object


@dataclass(frozen=True)
class ScaledType(hi_types.HiType):
    shape: tuple

    lo_ty = lambda self: [ShapedArray(self.shape, f32), ShapedArray(self.shape, i32)]
    lower_val = lambda self, x: [x.mantissa, x.exponent]
    raise_val = lambda self, mantissa, exponent: Scaled(mantissa, exponent)
    to_tangent_aval = lambda self: ShapedArray(self.shape, f32)
    leading_axis_spec = lambda self: First()

    def dec_rank(self, size, spec):
        assert isinstance(spec, First) and self.shape[0] == size
        return ScaledType(self.shape[1:])

    def inc_rank(self, size, spec):
        assert isinstance(spec, First)
        return ScaledType((size, *self.shape))

    def str_short(self, short_dtypes=False, mesh_axis_types=False):
        return f"scaled{list(self.shape)}"

    __repr__ = str_short


@dataclass(frozen=True)
class First(hi_prims.MappingSpec):
    pass


hi_types.register_hitype(Scaled, lambda x: ScaledType(typeof(x.mantissa).shape))


class Split(hi_prims.HiPrim):
    """x = mantissa * 2 ** exponent. The derivative is that of the identity."""

    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), ScaledType(aval.shape), {}
        super().__init__()

    def expand(self, x):
        exponent = jnp.floor(jnp.log2(jnp.abs(x))).astype(i32)
        return Scaled(x / 2.0**exponent, exponent)

    jvp = lambda self, xs, ts: (self(*xs), *ts)
    vjp_fwd = lambda self, nzs, x: (self(x), None)
    vjp_bwd_retval = lambda self, _, ct: (ct,)

    def batch(self, axis, args, dims):
        (x,), (d,) = args, dims
        return split(jnp.moveaxis(x, d, 0)), First()


class Value(hi_prims.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), ShapedArray(aval.shape, f32), {}
        super().__init__()

    def expand(self, x):
        return x.mantissa * 2.0**x.exponent

    jvp = lambda self, xs, ts: (self(*xs), *ts)
    vjp_fwd = lambda self, nzs, x: (self(x), None)
    vjp_bwd_retval = lambda self, _, ct: (ct,)
    batch = lambda self, axis, args, dims: (value(*args), None if dims == (None,) else 0)


split = lambda x: Split(typeof(x))(x)
value = lambda x: Value(typeof(x))(x)


@dataclass(frozen=True)
class Diagonal:
    entries: object


@dataclass(frozen=True)
class DiagonalType(hi_types.HiType):
    n: int

    lo_ty = lambda self: [ShapedArray((self.n,), f32)]
    lower_val = lambda self, x: [x.entries]
    raise_val = lambda self, entries: Diagonal(entries)
    to_tangent_aval = lambda self: self
    vspace_zero = lambda self: diagonal(jnp.zeros(self.n))
    vspace_add = lambda self, a, b: diagonal(entries(a) + entries(b))


hi_types.register_hitype(Diagonal, lambda x: DiagonalType(typeof(x.entries).shape[0]))


class Make(hi_prims.HiPrim):
    def __init__(self, n):
        self.in_avals, self.out_aval, self.params = (ShapedArray((n,), f32),), DiagonalType(n), {"n": n}
        super().__init__()

    expand = lambda self, x: Diagonal(x)
    jvp = lambda self, xs, ts: (self(*xs), self(*ts))
    vjp_fwd = lambda self, nzs, x: (self(x), None)
    vjp_bwd_retval = lambda self, _, ct: (entries(hi_prims.instantiate_zeros(ct)),)


class Entries(hi_prims.HiPrim):
    def __init__(self, n):
        self.in_avals, self.out_aval, self.params = (DiagonalType(n),), ShapedArray((n,), f32), {"n": n}
        super().__init__()

    expand = lambda self, x: x.entries
    jvp = lambda self, xs, ts: (self(*xs), self(*ts))
    vjp_fwd = lambda self, nzs, x: (self(x), None)
    vjp_bwd_retval = lambda self, _, ct: (diagonal(ct),)


diagonal = lambda x: Make(typeof(x).shape[0])(x)
entries = lambda x: Entries(typeof(x).n)(x)


def test_jit_takes_keeps_and_returns_values():
    whole = jit(lambda x: value(split(x)) * 2)
    np.testing.assert_allclose(whole(X), X * 2)
    made = jit(split)(X)
    assert isinstance(made, Scaled) and typeof(made) == ScaledType((2, 3))
    np.testing.assert_array_equal(made.exponent, np.floor(np.log2(abs(X))))
    traces = []
    read = jit(lambda x: traces.append(x) or value(x))
    np.testing.assert_allclose(read(made), X)
    np.testing.assert_allclose(read(split(3 * X)), 3 * X)
    assert len(traces) == 1  # one trace for the type
    np.testing.assert_allclose(jit(lambda x: jit(value)(jit(lambda y: y)(x)))(made), X)
    assert str(make_jaxpr(lambda x: value(split(x)))(X)).count("scaled[2, 3]") == 1
    closed = jit(lambda x: x + value(made))
    np.testing.assert_allclose(closed(X), 2 * X)


def test_types_of_results_are_found_without_values():
    assert eval_shape(split, X) == ScaledType((2, 3))
    assert eval_shape(lambda q: value(q)[0], split(X)).shape == (3,)


def test_attributes_are_read_by_operations_only():
    with pytest.raises(AttributeError, match=r"a value of type scaled\[2, 3\] in a traced function has no attribute"):
        jit(lambda x: split(x).mantissa)(X)


@pytest.mark.parametrize("transform", [lambda f: f, jit, checkpoint])
def test_tangents_have_the_type_that_the_type_declares(transform):
    f = transform(lambda q: (value(q) ** 2).sum())
    q = split(X)
    found, slope = value_and_grad(f)(q)
    np.testing.assert_allclose(found, (X**2).sum(), rtol=1e-6)
    assert typeof(slope) == ShapedArray((2, 3), f32)
    np.testing.assert_allclose(slope, 2 * X)
    np.testing.assert_allclose(grad(transform(lambda x: f(split(x))))(X), 2 * X)
    both = grad(transform(lambda x, q: (x * value(q)).sum()), (0, 1))(X, q)
    np.testing.assert_allclose(both, [X, X])
    _, pull = vjp(f, q)
    np.testing.assert_allclose(pull(np.float32(3))[0], 6 * X)
    out, moved = jvp(f, (q,), (np.ones_like(X),))
    np.testing.assert_allclose([out, moved], [(X**2).sum(), 2 * X.sum()], rtol=1e-6)
    out, push = jvp(transform(split), (X,), (X,))
    assert isinstance(out, Scaled)
    np.testing.assert_allclose(push, X)
    np.testing.assert_allclose(linearize(f, q)[1](X), 2 * (X**2).sum(), rtol=1e-6)
    hessian = vmap(lambda t: jvp(grad(f), (q,), (t,))[1])(np.stack([X, 2 * X]))
    np.testing.assert_allclose(hessian, [2 * X, 4 * X])


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_tangents_of_a_library_are_added_by_its_type(transform):
    x = X[0]
    twice = transform(lambda d: (entries(d) ** 2).sum() + (3 * entries(d)).sum())
    np.testing.assert_allclose(grad(twice)(diagonal(x)).entries, 2 * x + 3)
    np.testing.assert_allclose(grad(transform(lambda x: twice(diagonal(x))))(x), 2 * x + 3)
    out, moved = jvp(twice, (diagonal(x),), (diagonal(x),))
    np.testing.assert_allclose([out, moved], [(x**2 + 3 * x).sum(), (2 * x**2 + 3 * x).sum()], rtol=1e-6)
    nothing = grad(lambda d, y: y.sum() * 2)(diagonal(x), x)
    np.testing.assert_allclose(nothing.entries, 0 * x)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_tangents_of_a_type_without_sums_are_added_by_their_arrays(dtype):
    @dataclass(frozen=True)
    class Plain(hi_types.HiType):
        lo_ty = lambda self: [ShapedArray((3,), np.dtype(dtype))]
        lower_val = lambda self, x: [x.entries]
        raise_val = lambda self, x: Holder(x)
        to_tangent_aval = lambda self: self

    class Holder:
        def __init__(self, entries):
            self.entries = entries

    hi_types.register_hitype(Holder, lambda x: Plain())

    class Read(hi_prims.HiPrim):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (Plain(),), ShapedArray((3,), f32), {}
            super().__init__()

        expand = lambda self, x: lax.convert_element_type(x.entries, f32)
        vjp_fwd = lambda self, nzs, x: (self(x), None)
        vjp_bwd_retval = lambda self, _, ct: (Holder(lax.convert_element_type(ct, dtype)),)

    held = Holder(X[0].astype(dtype))
    unused, twice = grad(lambda h, x: x.sum()), grad(lambda h: (Read()(h) + 2 * Read()(h)).sum())
    np.testing.assert_allclose(grad(lambda h: Read()(h).sum())(held).entries, [1, 1, 1])
    if dtype == np.float32:
        for transform in (lambda f: f, jit):
            np.testing.assert_allclose(transform(unused)(held, X[0]).entries, [0, 0, 0])
            np.testing.assert_allclose(transform(twice)(held).entries, [3, 3, 3])
        return
    with pytest.raises(NotImplementedError, match="class Plain must define `vspace_zero`"):
        unused(held, X[0])  # tangents of integers are nothing, so these arrays are no tangents
    with pytest.raises(NotImplementedError, match="class Plain must define `vspace_add`"):
        twice(held)


BATCH = np.stack([X, 2 * X, -X, 3 * X])


def test_vmap_by_mapping_specifications():
    made = vmap(split, in_axes=1, out_axes=First())(np.moveaxis(BATCH, 0, 1))
    assert typeof(made) == ScaledType((4, 2, 3))
    read = functools.partial(vmap, in_axes=First(), axis_size=4)
    for f in (value, jit(value)):
        np.testing.assert_allclose(read(f)(made), BATCH)
        np.testing.assert_allclose(jit(read(f))(made), BATCH)
    loss = lambda q: (value(q) ** 2).sum()
    np.testing.assert_allclose(read(grad(loss))(made), 2 * BATCH)
    np.testing.assert_allclose(grad(lambda m: read(loss)(m).sum())(made), 2 * BATCH)
    np.testing.assert_allclose(vmap(grad(lambda x: loss(split(x))))(BATCH), 2 * BATCH)
    np.testing.assert_allclose(vmap(lambda q, x: value(q) * x, (First(), 0))(made, BATCH), BATCH**2, rtol=1e-6)
    np.testing.assert_allclose(vmap(lambda q, x: value(q) * x, (None, 0))(split(X), BATCH), X * BATCH, rtol=1e-6)
    nested = vmap(vmap(lambda x: value(split(x))))(BATCH)
    np.testing.assert_allclose(nested, BATCH)
    twice = vmap(vmap(value, First(), axis_size=2), First(), axis_size=4)(made)
    np.testing.assert_allclose(twice, BATCH)
    assert typeof(vmap(lambda q: q, First(), First(), axis_size=4)(made)) == ScaledType((4, 2, 3))
    assert typeof(vmap(lambda q, x: q, (None, 0), None)(split(X), BATCH)) == ScaledType((2, 3))


def test_wrong_mapping_specifications_are_refused():
    made = vmap(split, out_axes=First())(BATCH)
    with pytest.raises(ValueError, match="Pass axis_size"):
        vmap(value, First())(made)
    with pytest.raises(TypeError, match="mapped by a MappingSpec"):
        vmap(value, 0)(made)
    with pytest.raises(TypeError, match="an array by an int"):
        vmap(lambda x: x, First(), axis_size=4)(BATCH)
    with pytest.raises(ValueError, match="is not moved, and not repeated"):
        vmap(split)(BATCH)
    with pytest.raises(ValueError, match="is not moved, and not repeated"):
        vmap(lambda q: q, None, First(), axis_size=4)(split(X))
    with pytest.raises(TypeError, match="class DiagonalType must define `dec_rank` and `inc_rank`"):
        vmap(entries, First(), axis_size=3)(diagonal(X[0]))


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_loops_and_branches(transform):
    made = vmap(split, out_axes=First())(BATCH)
    total = transform(lambda m: lax.scan(lambda c, q: (c + value(q), q), jnp.zeros((2, 3)), m, length=4))
    found, stacked = total(made)
    np.testing.assert_allclose(found, BATCH.sum(0), rtol=1e-6)
    np.testing.assert_allclose(value(stacked), BATCH)
    step = lambda c, x: (split(value(c) + x), split(2 * x))
    last, rows = transform(lambda c, xs: lax.scan(step, c, xs))(split(X), BATCH)
    np.testing.assert_allclose(value(last), X + BATCH.sum(0), rtol=1e-6)
    np.testing.assert_allclose(value(rows), 2 * BATCH)
    pick = transform(lambda i, q: lax.cond(i > 0, lambda q: split(2 * value(q)), lambda q: q, q))
    np.testing.assert_allclose(value(pick(1, split(X))), 2 * X)
    np.testing.assert_allclose(value(pick(0, split(X))), X)
    inner = transform(lambda x: lax.scan(lambda c, row: (value(split(c + row)), None), x, BATCH)[0])
    np.testing.assert_allclose(inner(X), X + BATCH.sum(0), rtol=1e-6)
    slope = grad(
        transform(lambda m: (lax.scan(lambda c, q: (c + value(q) ** 2, None), jnp.zeros((2, 3)), m, length=4)[0]).sum())
    )
    np.testing.assert_allclose(slope(made), 2 * BATCH)
    with pytest.raises(TypeError, match="class DiagonalType must define `leading_axis_spec`"):
        lax.scan(lambda c, d: (c, None), 0.0, diagonal(X[0]), length=3)


class Doubled(hi_types.HiPrimitive):
    def to_lojax(self, q, by):
        return Scaled(q.mantissa * by, q.exponent)


def test_operations_without_rules_compute_with_the_arrays():
    double = Doubled("doubled").bind
    for run in (double, jit(double)):
        out = run(split(X), 2.0)
        assert isinstance(out, Scaled)
        np.testing.assert_allclose(value(out), 2 * X)
    np.testing.assert_allclose(jit(lambda x: value(double(split(x), 2.0)))(X), 2 * X)
    with pytest.raises(NotImplementedError, match=r"tangents of values of type scaled\[2, 3\] are of type"):
        grad(lambda x: value(double(split(x), 2.0)).sum())(X)


# ---- a type that loops cannot stack and vmap cannot map, with attributes and operators


class Box:
    def __init__(self, content):
        self.content = content


@dataclass(frozen=True)
class BoxType(hi_types.HiType):
    size_inside: int
    lo_ty = lambda self: [ShapedArray((self.size_inside,), f32)]
    lower_val = lambda self, box: [box.content]
    raise_val = lambda self, content: Box(content)
    to_tangent_aval = lambda self: self
    content = hi_types.aval_property(lambda box: opened_box(box))
    total = hi_types.aval_method(lambda box, by: (opened_box(box) * by).sum())
    _mul = lambda self, box, other: boxed(opened_box(box) * other)
    _getitem = lambda self, box, index: opened_box(box)[index]


class OpenBox(hi_prims.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval.lo_ty()[0], {}
        super().__init__()

    expand = lambda self, box: box.content
    jvp = lambda self, primals, tangents: (opened_box(*primals), opened_box(*tangents))
    vjp_fwd = lambda self, nzs, box: (self(box), None)
    vjp_bwd_retval = lambda self, _, ct: (boxed(ct),)


class MakeBox(hi_prims.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), BoxType(aval.shape[0]), {}
        super().__init__()

    expand = lambda self, x: Box(x)
    jvp = lambda self, primals, tangents: (boxed(*primals), boxed(*tangents))
    vjp_fwd = lambda self, nzs, x: (self(x), None)
    vjp_bwd_retval = lambda self, _, ct: (opened_box(ct),)


def opened_box(box):
    return OpenBox(typeof(box))(box)


def boxed(x):
    return MakeBox(typeof(x))(x)


hi_types.register_hitype(Box, lambda box: BoxType(box.content.shape[0]))


def uses_of_box(box):
    return box.content.sum() + box.total(2.0) + (box * box[1]).content[0] + box.size_inside


@pytest.mark.parametrize("transform", [jit, checkpoint, lambda f: jit(checkpoint(f))])
def test_attributes_and_operators_under_transformations(transform):
    x = X[0]
    wanted = 3 * x.sum() + x[0] * x[1] + 3
    slope = 3 + np.array([x[1], x[0], 0])
    f = transform(uses_of_box)
    np.testing.assert_allclose(f(Box(x)), wanted, rtol=1e-6)
    np.testing.assert_allclose(grad(f)(Box(x)).content, slope, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(f))(Box(x)).content, slope, rtol=1e-6)
    np.testing.assert_allclose(grad(uses_of_box)(Box(x)).content, slope, rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (Box(x),), (Box(x),))[1], slope @ x, rtol=1e-6)
    np.testing.assert_allclose(linearize(f, Box(x))[1](Box(x)), slope @ x, rtol=1e-6)


def test_vmap_does_not_map_what_an_operation_reads():
    x = X[0]
    of_both = lambda box, y: opened_box(box) @ y + opened_box(box)[0]
    wanted = x @ X[0] + x[0], x @ X[1] + x[0]
    np.testing.assert_allclose(vmap(of_both, (None, 0))(Box(x), X), wanted, rtol=1e-6)
    np.testing.assert_allclose(vmap(jit(of_both), (None, 0))(Box(x), X), wanted, rtol=1e-6)
    slope = grad(lambda box: vmap(of_both, (None, 0))(box, X).sum())(Box(x)).content
    np.testing.assert_allclose(slope, X.sum(0) + np.array([2, 0, 0]), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="class MakeBox must define `batch`"):
        vmap(lambda y: boxed(y).content)(X)


def test_rules_keep_the_arrays_of_values_that_loops_cannot_stack():
    x, steps = X[0], np.array([2.0, 3.0], f32)

    def loop(box):
        return lax.scan(lambda box, y: (box * (box[0] * y), None), box, steps)[0].content.sum()

    def plain(x):
        return lax.scan(lambda x, y: (x * (x[0] * y), None), x, steps)[0].sum()

    np.testing.assert_allclose(jit(loop)(Box(x)), plain(x), rtol=1e-6)
    np.testing.assert_allclose(grad(jit(loop))(Box(x)).content, grad(plain)(x), rtol=1e-6)


def test_values_that_references_represent_stay_objects():
    class Kept:
        def __init__(self, ref):
            self.ref = ref

    @dataclass(frozen=True)
    class KeptType(hi_types.HiType):
        inner: object
        lo_ty = lambda self: [self.inner]
        lower_val = lambda self, x: [x.ref]
        raise_val = lambda self, ref: Kept(ref)

    hi_types.register_hitype(Kept, lambda x: KeptType(typeof(x.ref)))
    kept = Kept(new_ref(jnp.zeros(3)))
    assert not typeof(kept).represented

    def add(kept, y):
        assert type(kept) is Kept
        kept.ref[...] += y

    jit(add)(kept, X[0])
    jit(add)(kept, X[0])
    np.testing.assert_allclose(kept.ref[...], 2 * X[0])
