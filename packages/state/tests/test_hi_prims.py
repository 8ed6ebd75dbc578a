"""Operations of libraries with their own rules: each transformation calls its own rule."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.autodiff import checkpoint, grad, jvp, linear_transpose, linearize, vjp
from bedrax.autodiff.tables import Zero
from bedrax.batching import vmap
from bedrax.core.avals import ShapedArray, aval_of, typeof
from bedrax.core.dead_code import dce_for
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.lax import scan
from bedrax.state import hi_prims, hi_types, new_ref

X, Y = np.arange(1, 4, dtype=np.float32), np.array([0.5, -1, 2], np.float32)
F32 = ShapedArray((3,), np.dtype(np.float32))
live = hi_prims.instantiate_zeros


class Product(hi_prims.HiPrim):
    """x sin(scale y), with a derivative multiplied by `factor`, which shows the rule that was used."""

    def __init__(self, scale=1.0, aval=F32):
        self.in_avals, self.out_aval, self.params = (aval, aval), aval, {"scale": scale}
        super().__init__()

    def expand(self, x, y):
        return x * jnp.sin(self.scale * y)


class ByJVP(Product):
    def jvp(self, primals, tangents):
        (x, y), (a, b) = primals, tangents
        return self(x, y), 10 * live(a) + 100 * live(b) * x


class ByVJP(Product):
    def vjp_fwd(self, nzs_in, x, y):
        return self(x, y), (x, y, "kept as it is")

    def vjp_bwd_retval(self, residuals, ct):
        x, y, text = residuals
        assert text == "kept as it is"
        return 10 * ct, 100 * ct * x


class ByLin(Product):
    def lin(self, nzs_in, x, y):
        return self(x, y), x

    def linearized(self, x, a, b):
        return 10 * live(a) + 100 * live(b) * x


class ByLinOfJVP(ByJVP):
    lin, linearized = hi_prims.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hi_prims.vjp_from_jvp


class AllOfLin(ByLin):
    jvp = hi_prims.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hi_prims.vjp_from_lin


class Both(ByVJP):
    jvp = ByJVP.jvp


class Batched(ByVJP):
    def batch(self, axis_data, args, dims):
        x, y = hi_prims.bdims_at_front(axis_data, args, dims)
        return type(self)(self.scale, aval_of(x))(x, y), 0


WITH_FORWARD = [ByJVP, ByLinOfJVP, AllOfLin, Both]
WITH_REVERSE = [*WITH_FORWARD, ByVJP, ByLin]
value = lambda x, y: x * np.sin(y)


@pytest.mark.parametrize("kind", [Product, *WITH_REVERSE])
def test_values(kind):
    f = kind()
    assert f == kind() and hash(f) == hash(kind()) and f != kind(2.0) and f.scale == 1.0
    for run in (f, jit(f), checkpoint(f)):
        np.testing.assert_allclose(run(X, Y), value(X, Y), rtol=1e-6)
    assert f"hi_call[prim={kind.__name__}[scale=1.0]]" in str(make_jaxpr(f)(X, Y))


@pytest.mark.parametrize("kind", WITH_FORWARD)
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_forward_mode_uses_its_rule(kind, wrap):
    f = wrap(kind())
    out, tangent = jvp(f, (X, Y), (X, Y))
    np.testing.assert_allclose(out, value(X, Y), rtol=1e-6)
    np.testing.assert_allclose(tangent, 10 * X + 100 * Y * X, rtol=1e-6)
    np.testing.assert_allclose(jvp(lambda y: f(X, y), (Y,), (Y,))[1], 100 * Y * X, rtol=1e-6)


@pytest.mark.parametrize("kind", WITH_REVERSE)
@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint])
def test_reverse_mode_uses_its_rule(kind, wrap):
    f = wrap(kind())
    loss = lambda x, y: (f(x, y) * X).sum()
    for run in (grad, lambda g, n: jit(grad(g, n))):
        for got, wanted in zip(run(loss, (0, 1))(X, Y), (10 * X, 100 * X * X), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
        np.testing.assert_allclose(run(loss, 1)(X, Y), 100 * X * X, rtol=1e-6)


@pytest.mark.parametrize("kind", [*WITH_FORWARD, ByLin])
def test_linearize_pushes_tangents_forward(kind):
    out, push = linearize(kind(), X, Y)
    np.testing.assert_allclose(out, value(X, Y), rtol=1e-6)
    for a, b in ((X, Y), (Y, X)):
        np.testing.assert_allclose(push(a, b), 10 * a + 100 * b * X, rtol=1e-6)


def test_in_a_loop():
    f = ByVJP()
    loss = lambda x: scan(lambda c, y: (f(c, y), None), x, np.stack([Y, 2 * Y, Y]))[0].sum()
    np.testing.assert_allclose(grad(loss)(X), [1000, 1000, 1000], rtol=1e-6)
    np.testing.assert_allclose(loss(X), (X * np.sin(Y) ** 2 * np.sin(2 * Y)).sum(), rtol=1e-5)


def test_batches():
    f, xs = Batched(), np.stack([X, 2 * X])
    np.testing.assert_allclose(vmap(f, in_axes=(0, None))(xs, Y), value(xs, Y), rtol=1e-6)
    np.testing.assert_allclose(vmap(f, in_axes=(1, 0))(xs.T, xs), value(xs, xs), rtol=1e-6)
    loss = lambda x: f(x, Y).sum()
    np.testing.assert_allclose(vmap(grad(loss))(xs), np.full((2, 3), 10.0))
    total = lambda xs: vmap(f, in_axes=(0, None))(xs, Y).sum()
    np.testing.assert_allclose(grad(total)(xs), np.full((2, 3), 10.0))


@pytest.mark.parametrize("dims", [(0, None), (1, 0)])
def test_rules_of_batching_from_a_function(dims):
    seen = []

    class Mapped(Product):
        def batch(self, axis_data, args, dims):
            seen.append(hi_prims.unmap_avals(axis_data, (F32, F32), dims))
            mapped = hi_prims.vmap_rule(axis_data, lambda *a: (self.expand(*a), Zero(F32)), dims, (0, 1))
            out, zero = mapped(*args)
            assert type(zero) is Zero and zero.aval.shape == (3, 2)
            total = hi_prims.vmap_rule(axis_data, self.expand, dims, None, sum_match=True)(*args)
            np.testing.assert_allclose(total, np.sum(out, 0), rtol=1e-6)
            return out, 0

    xs = np.stack([X, 2 * X])
    given = [(xs if d == 0 else xs.T) if d is not None else Y for d in dims]
    wanted = value(*(xs if d is not None else Y for d in dims))
    np.testing.assert_allclose(vmap(Mapped(), in_axes=dims)(*given), wanted, rtol=1e-6)
    assert [a.shape for a in seen[0]] == [np.shape(x) for x in given]


class Linear(Product):
    """x y, linear in each operand. Its own transpose rule multiplies by three."""

    def expand(self, x, y):
        return x * y

    def transpose(self, ct, x, y):
        if isinstance(x, hi_prims.GradAccum):
            x.accum(3 * ct * y)
        else:
            y.accum(5 * ct * x)


def test_transposition_of_a_linear_operation():
    f = Linear()
    np.testing.assert_allclose(linear_transpose(lambda x: f(x, Y), X)(X)[0], 3 * X * Y)
    np.testing.assert_allclose(linear_transpose(lambda y: f(X, y), Y)(X)[0], 5 * X * X)


def test_trees_of_arguments_and_results():
    seen = []

    class Tree(hi_prims.HiPrim):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = ({"a": F32, "b": F32}, F32), (F32, {"q": F32}), {}
            super().__init__()

        def expand(self, pair, y):
            return pair["a"] * y, {"q": pair["b"] + y}

        def vjp_fwd(self, nzs_in, pair, y):
            seen.append(nzs_in)
            return self(pair, y), y

        def vjp_bwd(self, y, cts, pair, other):
            seen.append([type(ct) is Zero for ct in (cts[0], cts[1]["q"])])
            seen.append([type(a).__name__ for a in (pair["a"], pair["b"], other)])
            pair["a"].accum(live(cts[0]) * y)
            pair["a"].accum(live(cts[0]) * y)
            other.accum(y)

    f = Tree()
    got = grad(lambda a: f({"a": a, "b": Y}, X)[0].sum())(X)
    np.testing.assert_allclose(got, 2 * X)
    assert seen == [({"a": True, "b": False}, False), [False, True], ["ValAccum", "NullAccum", "NullAccum"]]
    with pytest.raises(TypeError, match="takes 2 arguments"):
        f(X)


def test_accumulators_add_cotangents():
    accum = hi_prims.ValAccum(F32)
    assert type(accum.freeze()) is Zero
    for x in (X, Zero(F32), X):
        accum.accum(x)
    np.testing.assert_array_equal(accum.freeze(), 2 * X)
    ref = new_ref(jnp.asarray(Y))
    for accum, first in ((hi_prims.RefAccum(F32), 0), (hi_prims.RefAccum(F32, ref), Y)):
        accum.accum(X)
        accum.accum(X)
        np.testing.assert_allclose(accum.freeze(), first + 2 * X)
        assert accum.inst() is accum
    np.testing.assert_allclose(ref[...], Y + 2 * X)
    assert hi_prims.NullAccum(F32).accum(X) is None
    with pytest.raises(TypeError, match="not differentiated"):
        hi_prims.NullAccum(F32).freeze()


def test_dead_code_and_staging():
    class Halves(hi_prims.HiPrim):
        def __init__(self, second=True):
            self.in_avals, self.out_aval = (F32, F32)[: 1 + second], (F32, F32)[: 1 + second]
            self.params = {"second": second}
            super().__init__()

        def expand(self, *xs):
            return tuple(2 * x for x in xs)

        def dce(self, used_outs, live_ins):
            return ((True, True), self) if used_outs[1] else ((True, False), Halves(False))

        def staging(self, trace, source_info, *args):
            if self.params["second"] and X.shape != args[0].shape:
                raise ValueError("refused")
            return super().staging(trace, source_info, *args)

    program = make_jaxpr(Halves())(X, Y)
    smaller, used = dce_for(program, (True, False))
    assert used == (True, False) and smaller.eqns[0].params["prim"] == Halves(False)
    np.testing.assert_array_equal(jit(lambda x, y: Halves()(x, y)[0])(X, Y), 2 * X)


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (lambda f: vmap(f)(np.stack([X, X]), np.stack([Y, Y])), "`batch`"),
        (lambda f: jvp(f, (X, Y), (X, Y)), "`jvp`"),
        (lambda f: grad(lambda x: f(x, Y).sum())(X), "`vjp_fwd`"),
        (lambda f: linear_transpose(lambda x: f(x, Y), X)(X), "`transpose`"),
    ],
)
def test_a_rule_that_is_missing_is_named(run, rule):
    with pytest.raises(NotImplementedError, match=f"the class Product must define {rule}"):
        run(Product())


def test_forward_mode_of_a_rule_for_reverse_mode_is_refused():
    with pytest.raises(NotImplementedError, match="`jvp`"):
        jvp(ByVJP(), (X, Y), (X, Y))
    with pytest.raises(NotImplementedError, match="`lin` and `linearized`"):
        linearize(ByVJP(), X, Y)[1](X, Y)


# ---- values of a library's types


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class PairType(hi_types.HiType):
    def __init__(self, aval):
        self.inner = aval

    __eq__ = lambda self, other: isinstance(other, PairType) and self.inner == other.inner
    __hash__ = lambda self: hash((PairType, self.inner))
    lo_ty = lambda self: [self.inner, self.inner]
    lower_val = lambda self, pair: [pair.first, pair.second]
    raise_val = lambda self, first, second: Pair(first, second)
    to_tangent_aval = lambda self: PairType(self.inner.to_tangent_aval())


hi_types.register_hitype(Pair, lambda pair: PairType(typeof(pair.first)))


class Make(hi_prims.HiPrim):
    def __init__(self):
        self.in_avals, self.out_aval, self.params = (F32, F32), PairType(F32), {}
        super().__init__()

    def expand(self, first, second):
        return Pair(first, second)

    def vjp_fwd(self, nzs_in, first, second):
        return self(first, second), None

    def vjp_bwd_retval(self, residuals, ct):
        first, second = Parts()(ct)
        return 10 * first, 100 * second


class Parts(hi_prims.HiPrim):
    def __init__(self):
        self.in_avals, self.out_aval, self.params = (PairType(F32),), (F32, F32), {}
        super().__init__()

    def expand(self, pair):
        return pair.first, pair.second


class Dot(hi_prims.HiPrim):
    def __init__(self):
        self.in_avals, self.out_aval, self.params = (PairType(F32),), F32, {}
        super().__init__()

    def expand(self, pair):
        return pair.first * pair.second

    def vjp_fwd(self, nzs_in, pair):
        return self(pair), pair

    def vjp_bwd_retval(self, pair, ct):
        first, second = Parts()(pair)
        return (Pair(ct * second, ct * first),)  # an object with tracers, where a value is expected


def test_values_of_types_of_a_library():
    f = lambda x, y: Dot()(Make()(x, y))
    for run in (f, jit(f)):
        np.testing.assert_allclose(run(X, Y), X * Y)
        got = vjp(run, X, Y)[1](X)
        np.testing.assert_allclose(got[0], 10 * X * Y)
        np.testing.assert_allclose(got[1], 100 * X * X)
    with pytest.raises(NotImplementedError, match="the class Make must define `batch`"):
        vmap(f)(np.stack([X, Y]), np.stack([Y, Y]))
    pair = Make()(X, Y)
    assert isinstance(pair, Pair) and typeof(pair) == PairType(F32)
    np.testing.assert_allclose(jit(Dot())(pair), X * Y)


# ---- `batch_dim_rule`


class Sorts(Product):
    """The mapped axis of the result is that of the first mapped argument."""

    def batch_dim_rule(self, axis_data, in_dims):
        x, y = in_dims
        return y if x is None else x


class SortsJVP(ByJVP, Sorts):
    pass


class SortsVJP(ByVJP, Sorts):
    pass


class SortsLin(ByLin, Sorts):
    pass


class SortsLinOfJVP(ByLinOfJVP, Sorts):
    pass


class SortsVJPOfLin(ByLin, Sorts):
    vjp_fwd, vjp_bwd_retval = hi_prims.vjp_from_lin
    jvp = hi_prims.jvp_from_lin


BATCH = np.stack([X, 2 * X, -X, Y])
KINDS = [(0, None), (None, 1), (1, 0), (0, 1)]


def _batches(in_axes):
    place = lambda d, x: x[0] if d is None else np.moveaxis(x, 0, d)
    return place(in_axes[0], BATCH), place(in_axes[1], BATCH[::-1] * 0.3)


@pytest.mark.parametrize("in_axes", KINDS)
@pytest.mark.parametrize("kind", [Sorts, SortsJVP, SortsVJP, SortsLin, SortsLinOfJVP, SortsVJPOfLin])
def test_the_rule_of_dims_batches_the_computation(kind, in_axes):
    args = _batches(in_axes)
    expected = vmap(lambda x, y: x * jnp.sin(2 * y), in_axes)(*args)
    np.testing.assert_allclose(vmap(kind(2.0), in_axes)(*args), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(kind(2.0), in_axes))(*args), expected, rtol=1e-6)
    two = vmap(vmap(kind(2.0), in_axes), (None, 0))(args[0], np.stack([args[1], args[1] * 2]))
    plain = vmap(vmap(lambda x, y: x * jnp.sin(2 * y), in_axes), (None, 0))(args[0], np.stack([args[1], args[1] * 2]))
    np.testing.assert_allclose(two, plain, rtol=1e-6)


@pytest.mark.parametrize("in_axes", KINDS)
@pytest.mark.parametrize("kind", [SortsVJP, SortsLinOfJVP, SortsVJPOfLin])
def test_the_backward_rule_runs_under_vmap(kind, in_axes):
    args = _batches(in_axes)
    loss = lambda f: lambda x, y: (vmap(f, in_axes)(x, y) * jnp.arange(12.0).reshape(4, 3)).sum()

    def pulled(x, y):  # by hand, for each element
        weights, dims = jnp.arange(12.0).reshape(4, 3), in_axes
        back = lambda ct, x: (10 * ct, 100 * ct * x)
        a, b = vmap(back, (0, in_axes[0]))(weights, x)
        return [c.sum(0) if d is None else jnp.moveaxis(c, 0, d) for c, d in zip((a, b), dims)]

    for transform in (lambda f: f, jit):
        found = transform(grad(loss(kind()), (0, 1)))(*args)
        for one, two in zip(found, pulled(*args)):
            np.testing.assert_allclose(one, two, rtol=1e-5)


@pytest.mark.parametrize("kind", [SortsJVP, SortsLinOfJVP, SortsVJPOfLin])
def test_the_forward_rule_runs_under_vmap(kind):
    x, y = _batches((0, 1))
    f = vmap(kind(), (0, 1))
    out, moved = jvp(f, (x, y), (np.ones_like(x), np.ones_like(y)))
    np.testing.assert_allclose(moved, 10 + 100 * x, rtol=1e-5)
    np.testing.assert_allclose(jvp(lambda x: f(x, y), (x,), (x,))[1], 10 * x, rtol=1e-5)
    if kind is not SortsJVP:
        np.testing.assert_allclose(linearize(f, x, y)[1](x, y), 10 * x + 100 * y.T * x, rtol=1e-5)


class Weighted(hi_prims.HiPrim):
    """A linear operation of its second argument."""

    def __init__(self):
        self.in_avals, self.out_aval, self.params = (F32, F32), F32, {}
        super().__init__()

    def expand(self, w, x):
        return w * x

    def jvp(self, primals, tangents):
        (w, x), (_, t) = primals, tangents
        return self(w, x), self(w, t)

    def transpose(self, ct, w, x):
        x.accum(7 * ct * w)

    def batch_dim_rule(self, axis_data, in_dims):
        return 0


def test_the_transpose_runs_under_vmap():
    w = BATCH
    f = vmap(Weighted(), (0, None))
    (back,) = linear_transpose(lambda x: f(w, x), X)(jnp.ones((4, 3)))
    np.testing.assert_allclose(back, 7 * w.sum(0), rtol=1e-5)


@pytest.mark.parametrize("dims", [5, "x", (0, 1)])
def test_a_wrong_rule_of_dims_is_refused_by_name(dims):
    class Wrong(Product):
        def batch_dim_rule(self, axis_data, in_dims):
            return dims

    with pytest.raises(TypeError, match=r"Wrong\.batch_dim_rule"):
        vmap(Wrong())(BATCH, BATCH)
