"""`shard_map` of functions whose meaning is known without it: values and derivatives, against that meaning."""

import enum

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_jvp, grad, jvp, linear_transpose, linearize, vjp
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.avals import aval_of
from bedrax.core.dead_code import dce
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.parallel import AbstractMesh, Mesh, get_abstract_mesh, pmap, set_mesh, shard_map, smap
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel.explicit import ShardingTypeError

MESH = Mesh(np.arange(8).reshape(4, 2), ("x", "y"))
rng = np.random.default_rng(0)
A = rng.standard_normal((8, 6))
B = rng.standard_normal((6, 4))


def over(f, in_specs, out_specs, **options):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def both(f):
    return pytest.mark.parametrize("check_vma", [True, False])(f)


# name -> (function of blocks, in_specs, out_specs, meaning)
def _matmul(a, b):
    return lax.psum(lax.dot(lax.sin(a), b), "y")


def _mean_loss(a, b):
    return lax.pmean(lax.reduce_sum(lax.tanh(lax.dot(a, b)), (0, 1)), ("x", "y"))


def _ring(a, b):
    def step(carry, _):
        block, total = carry
        total = lax.add(total, lax.dot(lax.sin(block), b))
        return (lax.ppermute(block, "x", [(i, (i + 1) % 4) for i in range(4)]), total), None

    zeros = lax.full((2, 4), 0.0, a.dtype)
    (_, total), _ = lax.scan(step, (a, zeros), None, length=4)
    return total


def _gathered(a, b):
    return lax.dot(lax.cos(lax.all_gather(a, "x", tiled=True)), b)


def _scattered(a, b):
    return lax.psum_scatter(lax.dot(lax.mul(a, a), b), "x", scatter_dimension=0, tiled=True)


def _remat(a, b):
    return lax.psum(checkpoint(lambda a: lax.sin(lax.dot(lax.sin(a), b)))(a), "x")


def _branches(a, b):
    big = lax.gt(lax.reduce_sum(a, (0, 1)), 0.0)
    return lax.cond(big, lambda a: lax.dot(a, b), lambda a: lax.dot(lax.sin(a), b), a)


def _by_index(a, b):
    return lax.mul(lax.dot(a, b), lax.convert_element_type(lax.axis_index("x"), a.dtype))


def _blocks(f):
    return lambda a, b: np.concatenate([f(x, b) for x in np.split(a, 4)])


CASES = {
    "matmul": (_matmul, (P("x", "y"), P("y")), P("x"), lambda a, b: np.sin(a) @ b),
    "mean": (
        _mean_loss,
        (P("x"), P(None, "y")),
        P(),
        lambda a, b: np.mean([np.tanh(x @ y).sum() for x in np.split(a, 4) for y in np.split(b, 2, 1)]),
    ),
    "ring": (_ring, (P("x"), P()), P("x"), lambda a, b: np.tile(sum(np.sin(x) @ b for x in np.split(a, 4)), (4, 1))),
    "gathered": (_gathered, (P("x"), P(None, "y")), P("x", "y"), lambda a, b: np.tile(np.cos(a) @ b, (4, 1))),
    "scattered": (_scattered, (P(None, None), P()), P("x"), lambda a, b: 4 * (a * a) @ b),
    "remat": (_remat, (P("x"), P()), P(), lambda a, b: sum(np.sin(np.sin(x) @ b) for x in np.split(a, 4))),
    "branches": (_branches, (P("x"), P()), P("x"), _blocks(lambda x, b: (x if x.sum() > 0 else np.sin(x)) @ b)),
    "index": (
        _by_index,
        (P("x"), P()),
        P("x"),
        lambda a, b: np.concatenate([i * (x @ b) for i, x in enumerate(np.split(a, 4))]),
    ),
}


def numerical(meaning, argument, args, ct, eps=1e-6):
    """The gradient of ``sum(ct * meaning(*args))``, by central differences."""
    out = np.zeros_like(args[argument])
    for i in np.ndindex(out.shape):

        def at(step, i=i):
            moved = [x.copy() for x in args]
            moved[argument][i] += step
            return np.sum(ct * meaning(*moved))

        out[i] = (at(eps) - at(-eps)) / (2 * eps)
    return out


@pytest.fixture(autouse=True)
def wide():
    with config.enable_x64(True), config.enable_checks(True):
        yield


@pytest.mark.parametrize("name", CASES)
@both
def test_values_and_derivatives(name, check_vma):
    block, in_specs, out_specs, meaning = CASES[name]
    # Where types do not tell, a result of all_gather or of a sum need not be the same: what is claimed is taken.
    f = over(block, in_specs, out_specs, check_vma=check_vma)
    want = meaning(A, B)
    np.testing.assert_allclose(f(A, B), want, rtol=1e-6)
    np.testing.assert_allclose(jit(f)(A, B), want, rtol=1e-6)
    check_jaxpr(make_jaxpr(f)(A, B))

    ct = rng.standard_normal(np.shape(want))
    out, back = vjp(f, A, B)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    numbers = [numerical(meaning, i, (A, B), ct) for i in range(2)]
    for got, number in zip(back(ct), numbers, strict=True):
        np.testing.assert_allclose(got, number, rtol=1e-4, atol=1e-6)
    for got, number in zip(jit(lambda a, b: vjp(f, a, b)[1](ct))(A, B), numbers, strict=True):
        np.testing.assert_allclose(got, number, rtol=1e-4, atol=1e-6)

    direction = rng.standard_normal(A.shape)
    out, moved = jvp(lambda a: f(a, B), (A,), (direction,))
    slope = np.sum(numbers[0] * direction)
    np.testing.assert_allclose(np.sum(ct * moved), slope, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.sum(ct * linearize(lambda a: f(a, B), A)[1](direction)), slope, rtol=1e-4, atol=1e-6)


# ---- how it is called


def test_forms():
    want = np.sin(A).reshape(4, 2, 6).sum(0)

    @shard_map(mesh=MESH, in_specs=P("x"), out_specs=P())
    def decorated(a):
        return lax.psum(lax.sin(a), "x")

    np.testing.assert_allclose(decorated(A), want)
    with set_mesh(MESH):
        f = shard_map(lambda a: lax.psum(lax.sin(a), "x"), in_specs=(P("x"),), out_specs=P())
        np.testing.assert_allclose(f(A), want)
        np.testing.assert_allclose(
            smap(lambda a: lax.psum(lax.sin(a), "x"), in_axes=0, out_axes=None, axis_name="x")(A), want
        )
        np.testing.assert_allclose(smap(lambda a: a, in_axes=(-2,), out_axes=-2, axis_name="x")(A), A)
    with MESH:
        np.testing.assert_allclose(f(A), want)
    assert decorated.__name__ == "decorated"


def test_trees_and_prefixes():
    def block(tree, none, w):
        assert none is None
        return {"sum": lax.psum(tree["a"], "x"), "both": (tree["b"], w)}

    specs = {"sum": P(), "both": P("x")}
    f = over(block, ({"a": P("x"), "b": P("x")}, None, P("x")), specs)
    out = f({"a": A, "b": A}, None, B[:4])
    np.testing.assert_allclose(out["sum"], A.reshape(4, 2, 6).sum(0))
    np.testing.assert_array_equal(out["both"][0], A)
    np.testing.assert_array_equal(over(lambda a, b: lax.dot(a, b), (P("x"), None), P("x"))(A, B), A @ B)


def test_the_axes_in_force_inside_a_block():
    seen = []

    def block(a):
        seen.append((lax.axis_size("x"), get_abstract_mesh().manual_axes, aval_of(a).vma))
        return a

    over(block, P("x"), P("x"))(A)
    over(block, P("x"), P("x"), axis_names={"x"}, check_vma=False)(A[:4])
    assert seen == [(4, ("x", "y"), {"x"}), (4, ("x",), set())]


def test_types_have_the_axes_over_which_values_vary():
    found = {}

    def block(a, w):
        found["cut"], found["whole"] = aval_of(a).vma, aval_of(w).vma
        found["both"] = aval_of(lax.mul(lax.reduce_sum(a, (0, 1)), w)).vma
        found["sum"] = aval_of(lax.psum(a, "x")).vma
        found["all"] = aval_of(lax.all_gather(a, "x")).vma
        found["equal"] = aval_of(lax.all_gather(a, "x", to="invariant")).vma
        found["cast"] = aval_of(lax.pcast(w, ("x", "y"), to="varying")).vma
        found["index"] = aval_of(lax.axis_index("y")).vma
        carry, _ = lax.scan(lambda c, r: (lax.add(c, lax.reduce_sum(r, (0,))), None), 0.0, a)
        found["carry"] = aval_of(carry).vma
        return w

    over(block, (P("x"), P()), P())(A, np.ones(3))
    x = frozenset("x")
    assert found == dict(
        cut=x,
        whole=frozenset(),
        both=x,
        sum=frozenset(),
        all=x,
        equal=frozenset(),
        cast=x | {"y"},
        index={"y"},
        carry=x,
    )


BAD = {
    "no mesh": (lambda: shard_map(lambda a: a, in_specs=P(), out_specs=P())(A), "no mesh was given and none is in force"),
    "no function": (lambda: over(3, P(), P()), "needs a function, got 3"),
    "does not divide": (
        lambda: over(lambda a: a, P(None, "x"), P())(A),
        r"argument a of <lambda>, of shape \(8, 6\): its axis 1, of size 6, is to be cut along 'x' into 4 parts",
    ),
    "axis that is not there": (lambda: over(lambda a: a, P("z"), P())(A), r"no axis 'z'; its axes are \('x', 'y'\)"),
    "axis that is not mapped": (
        lambda: over(lambda a: a, P("y"), P(), axis_names={"x"})(A), r"only the axes \('x',\) are mapped. Leave 'y' out"
    ),
    "unknown axis to map": (lambda: over(lambda a: a, P(), P(), axis_names={"u"})(A), r"axis_names has \['u'\]"),
    "too long": (lambda: over(lambda a: a, P(None, None, "x"), P())(A), "of 3 entries, for argument a"),
    "no spec": (lambda: over(lambda a: a, "x", P())(A), "holds PartitionSpecs .*, got 'x'"),
    "too few": (lambda: over(lambda a, b: a, (P(),), P())(A, B), "one entry per argument .*, got 1 entries for 2"),
    "claims equality": (
        lambda: over(lambda a: a, P("x"), P())(A), "it is equal along 'x', but by its type it varies",
    ),
    "mapped already": (
        lambda: over(over(lambda a: a, P(), P()), P(), P())(A), r"the axes \['x', 'y'\] are mapped already",
    ),
    "out spec too long": (lambda: over(lambda a: lax.reduce_sum(a, (0, 1)), P(), P("x"))(A), "for result of <lambda>, of rank 0"),
    "unknown collective": (lambda: over(lambda a: lax.psum(a, "z"), P(), P())(A), "no axis named 'z' is bound here"),
    "outside": (lambda: jit(lambda a: lax.psum(a, "x"))(A), "no axis named 'x' is bound here; the bound axes: none"),
    "no types to infer": (lambda: shard_map(lambda a: a, mesh=MESH, out_specs=P())(A), "do not state how they are split"),
    "partial sums": (lambda: over(lambda a: lax.pcast(a, "x", to="unreduced"), P(), P())(A), "only from varying"),
    "sums of an Auto axis": (lambda: over(lambda a: a, P(), P(unreduced={"x"}))(A), "over axes of type Explicit only"),
    "cast to what": (lambda: over(lambda a: lax.pcast(a, "x", to="sum"), P(), P())(A), "to is one of varying, unreduced"),
    "parts are not gathered": (
        lambda: over(lambda a: lax.ppermute(lax.pcast(a, "x", to="unreduced"), "x", [(0, 1)]), P("x"), P("x"))(A),
        "is partial sums over .'x'., and is used as one that varies",
    ),
    "summed already": (
        lambda: over(lambda a: lax.psum(lax.pcast(a, "x", to="reduced"), "x"), P(), P())(A), "is the sum over .'x'. already",
    ),
    "not linear": (
        lambda: over(lambda a: lax.sin(lax.pcast(a, "x", to="unreduced")), P("x"), P())(A), "sin of parts are not parts",
    ),
    "pmap: sizes": (lambda: pmap(lambda a, b: a)(A, B), r"differ in size: 8 .*6"),
    "pmap: nothing mapped": (lambda: pmap(lambda a: a, in_axes=None)(A), "pass axis_size"),
    "pmap: axis": (lambda: pmap(lambda a: a, in_axes=3)(A), "in_axes maps axis 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_say_what_is_wrong(name):
    call, text = BAD[name]
    with pytest.raises((ValueError, TypeError, NameError, NotImplementedError, ShardingTypeError), match=text):
        call()


def test_partial_sums():
    """An array with partial sums is their sum: its parts are the array and zeros."""
    mesh = AbstractMesh((4, 2), ("x", "y"))  # explicit axes
    unreduced = P(None, unreduced={"x", "y"})
    block = lambda f, i, o: shard_map(f, mesh=mesh, in_specs=i, out_specs=o)
    total = lax.psum
    np.testing.assert_allclose(block(lambda a: total(a, ("x", "y")), unreduced, P())(A), A)
    np.testing.assert_allclose(block(lambda a: 3 * a, unreduced, unreduced)(A), 3 * A)
    np.testing.assert_allclose(
        block(lambda a: lax.pcast(a, ("x", "y"), to="unreduced"), P(("x", "y")), unreduced)(A),
        A.reshape(8, 1, 6).sum(0),
    )
    scattered = block(lambda a: lax.psum_scatter(a, "x", tiled=True), P(unreduced={"x"}), P("x"))
    np.testing.assert_allclose(scattered(A), A)
    assert linear_transpose(scattered, A)(A)[0].shape == A.shape
    gathered = block(lambda a: lax.all_gather(a, "x", tiled=True, to="reduced"), P("x"), P(reduced={"x"}))
    np.testing.assert_allclose(gathered(A), A)

    # A whole operand of an operation on partial sums is one of the parts.
    def padded(a):
        return lax.pad(lax.dynamic_update_slice(a, np.full((1, 6), 5.0), (0, 0)), 7.0, ((1, 0, 0), (0, 0, 0)))

    want = np.concatenate([np.full((1, 6), 7.0), np.full((1, 6), 5.0), A[1:]])
    np.testing.assert_allclose(block(padded, unreduced, unreduced)(A), want)
    np.testing.assert_allclose(
        linear_transpose(block(lambda a: lax.slice(a, (1, 0), (3, 6)), unreduced, unreduced), A)(A[:2])[0],
        np.pad(A[:2], ((1, 5), (0, 0))),
    )

    def loss(w, a):
        return total(lax.reduce_sum(lax.sin(lax.mul(a, w)), (0, 1)), "x")

    mapped = block(loss, (P(None, reduced={"x"}), P("x")), P())
    w = A[:2]
    rows = A.reshape(4, 2, 6)
    np.testing.assert_allclose(grad(mapped)(w, A), (rows * np.cos(rows * w)).sum(0), rtol=1e-6)


def test_abstract_mesh():
    mesh = AbstractMesh((4,), ("x",))
    f = shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    np.testing.assert_allclose(f(A), A.reshape(4, 2, 6).sum(0))
    assert linear_transpose(f, A)(np.ones((2, 6)))[0].shape == A.shape


def test_dead_code_is_removed():
    f = over(lambda a, b: (lax.psum(a, "x"), lax.sin(b)), (P("x"), P()), (P(), P()))
    program = dce(make_jaxpr(lambda a, b: f(a, b)[0])(A, B))
    (eqn,) = program.eqns
    assert len(eqn.invars) == len(eqn.outvars) == 1
    check_jaxpr(program)


def test_batch_over_a_mesh_axis():
    f = over(lambda a: lax.psum(a, "x"), P("x"), P())
    batch = np.stack([A, 2 * A])
    program = make_jaxpr(vmap(f, spmd_axis_name="y"))(batch)
    assert program.eqns[0].params["in_specs"] == (P("y", "x"),)
    np.testing.assert_allclose(vmap(f, spmd_axis_name="y")(batch), batch.reshape(2, 4, 2, 6).sum(1))
    with pytest.raises(ValueError, match="name \\['x'\\] already"):
        vmap(f, spmd_axis_name="x")(batch)
    with pytest.raises(ValueError, match="a batch of 3 is to be cut into 2 parts"):
        vmap(f, spmd_axis_name="y")(np.stack([A] * 3))


def test_gradients_of_equal_blocks_that_a_spec_puts_together():
    ct = np.arange(24.0).reshape(8, 3)
    w = np.ones((2, 3))
    for f in (lambda w: lax.psum(w, "x"), lambda w: lax.sin(w), lambda w: lax.psum(lax.mul(w, w), ("x", "y"))):
        results = []
        for check_vma in (True, False):
            whole = over(f, P(), P("x"), check_vma=check_vma)
            (back,) = vjp(whole, w)[1](ct)
            assert whole(w).shape == (8, 3)
            results.append(back)
        np.testing.assert_allclose(*results, rtol=1e-6)
    np.testing.assert_array_equal(vjp(over(lambda w: w, P(), P("x")), w)[1](ct)[0], ct.reshape(4, 2, 3).sum(0))


def test_a_tangent_that_is_equal_where_its_result_is_not():
    @custom_jvp
    def with_rule(x, w):
        return lax.add(lax.mul(x, 0.0), w)

    with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), lax.mul(tangents[1], 3.0)))

    def twice(x, w):
        return lax.scan(lambda c, _: (with_rule(c, w), None), x, None, length=2)[0]

    x, w, ct = np.ones(8), np.ones(2), np.arange(8.0)
    for f in (with_rule, twice):
        whole = over(f, (P("x"), P()), P("x"))
        np.testing.assert_array_equal(vjp(whole, x, w)[1](ct)[1], 3 * ct.reshape(4, 2).sum(0))


@pytest.mark.parametrize("check_vma", [True, False])
def test_gradients_of_a_batch_over_a_mesh_axis(check_vma):
    def in_calls(w, a):
        w = jit(lambda w: lax.mul(w, w))(w)
        a = lax.scan(lambda c, _: (lax.mul(c, w), None), a, None, length=2)[0]
        return lax.cond(lax.gt(lax.reduce_sum(w, (0,)), 0.0), lambda: lax.add(a, w), lambda: lax.full_like(a, 0))

    w = np.linspace(1, 2, 6)
    batch = np.stack([A, -A])
    for f in (lax.mul, lambda w, a: lax.psum(lax.mul(w, a), "x"), lambda w, a: lax.sin(w), in_calls):
        rowwise = lambda w, a, f=f: vmap(f, (None, 0))(w, a)
        whole = over(rowwise, (P(), P("x")), P("x"), check_vma=check_vma)

        def total(w, spmd, whole=whole):
            return lax.reduce_sum(lax.sin(vmap(whole, (None, 0), spmd_axis_name=spmd)(w, batch)), (0, 1, 2))

        np.testing.assert_allclose(grad(total)(w, "y"), grad(total)(w, None), rtol=1e-5)


@pytest.mark.parametrize("check_vma", [True, False])
def test_a_batch_is_whole_where_a_collective_needs_it(check_vma):
    batch = np.stack([A, 3 * A])
    collectives = (
        lambda a: lax.psum(a, "batch"),
        lambda a: lax.psum(a, "y"),
        lambda a: lax.reduce_sum(lax.all_gather(a, "batch"), (0,)),
        lambda a: lax.mul(a, lax.convert_element_type(lax.axis_index("batch"), A.dtype)),
    )
    for collective in collectives:
        f = over(collective, P("x"), P("x"), check_vma=check_vma)
        want = vmap(f, axis_name="batch")(batch)
        np.testing.assert_allclose(vmap(f, axis_name="batch", spmd_axis_name="y")(batch), want)


@pytest.mark.parametrize("check_vma", [True, False])
def test_gradients_of_a_batch_over_an_axis_of_no_spec(check_vma):
    batch = np.stack([A, 3 * A])
    total = lambda f: lambda a: lax.reduce_sum(over(f, P("x"), P("x"), check_vma=check_vma)(a), (0, 1))
    for f in (lax.sin, lambda a: lax.psum(lax.sin(a), "x")):
        gradients = vmap(grad(total(f)), spmd_axis_name="y")
        np.testing.assert_allclose(gradients(batch), np.stack([grad(total(f))(a) for a in batch]), rtol=1e-5)
    equations = make_jaxpr(grad(total(lax.sin)))(A).eqns
    specs = [e.params["in_specs"] for e in equations if "in_specs" in e.params]
    assert specs and "y" not in str(specs)  # residuals are not kept once for each device along "y"


def test_residuals_that_differ_along_an_axis_of_no_spec():
    scaled = lambda a: lax.mul(a, lax.convert_element_type(lax.add(lax.axis_index("y"), np.int32(1)), A.dtype))
    for check_vma in (True, False):
        f = over(lambda a: lax.psum(lax.sin(scaled(a)), "y"), P("x"), P("x"), check_vma=check_vma)
        np.testing.assert_allclose(grad(lambda a, f=f: lax.reduce_sum(f(a), (0, 1)))(A), np.cos(A) + 2 * np.cos(2 * A))


def test_names_of_axes_of_any_kind():  # which Python does not compare
    class Name(enum.Enum):
        ROWS = 1
        COLUMNS = 2

    mesh = Mesh(np.arange(8).reshape(4, 2), tuple(Name))

    def f(w, a):
        position = lax.add(lax.axis_index(Name.ROWS), lax.axis_index(Name.COLUMNS))
        return lax.psum(lax.mul(lax.mul(w, a), lax.convert_element_type(position, a.dtype)), tuple(Name))

    whole = shard_map(f, mesh=mesh, in_specs=(P(), P(*Name)), out_specs=P())
    total = lambda w: lax.reduce_sum(whole(w, A), (0, 1))
    places = np.add.outer(np.arange(4).repeat(2), np.arange(2).repeat(3))
    np.testing.assert_allclose(grad(total)(2.0), (A * places).sum())
    with pytest.raises(ValueError, match="by its type it varies there"):
        shard_map(lambda a: a, mesh=mesh, in_specs=P(*Name), out_specs=P())(A)


def test_positions_along_an_axis_are_integers():
    for collective in (
        lambda a: lax.ppermute(a, "x", [(0.5, 1)]),
        lambda a: lax.pshuffle(a, "x", [0, 1, 2, 3.0]),
        lambda a: lax.pbroadcast(a, "x", 0.5),
        lambda a: lax.psum(a, "x", axis_index_groups=[[0.0, 1.0, 2.0, 3.0]]),
        lambda a: lax.all_gather(a, "x", axis=None),
        lambda a: lax.psum_scatter(a, "x", scatter_dimension=0.5),
        lambda a: lax.all_to_all(a, "x", 0, 0.5),
    ):
        with pytest.raises(TypeError, match="must be an integer, got"):
            over(collective, P("x"), P("x"))(A)
    with pytest.raises(ValueError, match="scatter_dimension is 0, which the array does not have: it has rank 0"):
        over(lambda a: lax.psum_scatter(lax.reduce_sum(a, (0, 1)), "x"), P("x"), P())(A)


def test_types_print_the_axes_over_which_values_vary():
    printed = []

    def f(a, b):
        printed.append((str(aval_of(a)), str(aval_of(lax.psum(a, "y"))), str(aval_of(lax.psum(a, ("x", "y"))))))
        return lax.add(a, b)

    program = str(make_jaxpr(over(f, (P("x", "y"), P("x", None)), P("x", "y")))(np.ones((8, 6)), np.ones((8, 3))))
    name = aval_of(np.ones(1)).dtype.name
    assert printed == [(f"{name}[2,3]{{V:(x,y)}}", f"{name}[2,3]{{V:x}}", f"{name}[2,3]")]
    assert "pvary[axes=('y',)]" in program and "[2,3]{V:(x,y)} = add" in program


def test_pmap_refuses_no_elements_and_axes_that_are_no_ints():
    with pytest.raises(ValueError, match="the mapped axis of <lambda> has size 0"):
        pmap(lambda x: x)(np.zeros((0, 3), np.float32))
    with pytest.raises(TypeError, match="in_axes of <lambda> holds ints and None, got 'a'"):
        pmap(lambda x: x, in_axes="a")(np.zeros((1, 3), np.float32))


def test_an_array_like_a_varying_one_varies():
    def slope(x):
        return grad(lambda w: lax.reduce_sum(lax.square(lax.add(w, x)), (0,)))(lax.full_like(x, 0))

    x = np.arange(4, dtype=np.float32)
    mapped = shard_map(slope, mesh=AbstractMesh((4,), ("x",)), in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(mapped(x), 2 * x)
    np.testing.assert_array_equal(jit(mapped)(x), 2 * x)
