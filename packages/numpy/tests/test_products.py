"""Products of arrays and einsum against NumPy, and under transformations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.staging import make_jaxpr
from bedrax.testing import oracles


def draw(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng([seed + 1, *shape]).standard_normal(shape)
    return x.astype(dtype)


def check(ours, theirs, *args, **kwargs):
    expected = theirs(*args, **kwargs)
    found = np.asarray(ours(*args, **kwargs))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


MATMUL = [
    ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 1, 3, 4), (7, 4, 5)),
    ((2, 7, 3, 4), (1, 7, 4, 5)), ((4,), (7, 4, 5)), ((7, 3, 4), (4,)), ((1, 1, 3, 4), (1, 1, 4, 2)), ((0, 3), (3, 2)),
    ((6, 1, 1, 3, 4), (5, 1, 4, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", MATMUL)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32, np.bool_])
def test_matmul(shapes, dtype):
    a, b = (
        draw(*s, seed=i) > 0 if dtype == np.bool_ else (draw(*s, seed=i) * 4).astype(dtype)
        for i, s in enumerate(shapes)
    )
    if dtype == np.complex64:
        a, b = draw(*shapes[0], dtype=dtype), draw(*shapes[1], dtype=dtype, seed=3)
    check(jnp.matmul, np.matmul, a, b)
    assert jnp.matmul(a, b).dtype == dtype


@pytest.mark.parametrize("shapes", [((), (3,)), ((2, 3, 4), (7, 4, 5)), ((4,), (4,)), ((2, 4), (4,)), ((), ())])
def test_dot(shapes):
    check(jnp.dot, np.dot, *(draw(*s, seed=i) for i, s in enumerate(shapes)))


@pytest.mark.parametrize("name", ["inner", "kron", "outer"])
@pytest.mark.parametrize("shapes", [((), (3,)), ((2, 3, 4), (7, 4)), ((4,), (2, 4))])
def test_inner_outer_kron(name, shapes):
    check(getattr(jnp, name), getattr(np, name), *(draw(*s, seed=i) for i, s in enumerate(shapes)))


def test_vector_products():
    c = lambda *s: draw(*s, dtype=np.complex64)
    check(jnp.vdot, np.vdot, c(3, 4), c(4, 3))
    check(jnp.vecdot, np.vecdot, c(4, 3), c(2, 1, 3))
    check(jnp.vecdot, np.vecdot, draw(3, 4), draw(3, 1, seed=4), axis=0)
    oracles.require("numpy.matvec", "numpy.vecmat")
    check(jnp.matvec, np.matvec, draw(2, 4, 3), draw(3))
    check(jnp.vecmat, np.vecmat, c(4), c(2, 4, 3))


@pytest.mark.parametrize("axes", [2, 1, 0, ([1, 2], [0, 1]), (2, 1), ((-1,), (1,))])
def test_tensordot(axes):
    b = draw(4, 3, 2) if axes == 0 else draw(3, 4, 5) if axes == 2 or axes == ([1, 2], [0, 1]) else draw(4, 4, 5)
    check(jnp.tensordot, np.tensordot, draw(2, 3, 4), b, axes)


def test_cross():
    check(jnp.cross, np.cross, draw(4, 3), draw(3))
    check(jnp.cross, np.cross, draw(3, 4), draw(3, 1), axis=0)
    with pytest.raises(ValueError, match="2 or 3"):
        jnp.cross(draw(4), draw(4))


def test_cross_of_vectors_of_two_elements_is_deprecated():
    flat, solid = draw(5, 2), draw(5, 3)
    filled = np.concatenate([flat, np.zeros((5, 1), np.float32)], 1)
    for _ in range(2):  # each call warns, not only the one that makes the program
        with pytest.warns(DeprecationWarning, match=r"lengths \(2, 3\); append a zero") as seen:
            np.testing.assert_allclose(
                jnp.cross(flat, solid, axisc=0), np.cross(filled, solid, axisc=0), rtol=1e-5, atol=1e-6
            )
        assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="lengths"):
        np.testing.assert_allclose(jnp.cross(flat, flat[0]), np.cross(filled, filled[0])[:, 2], rtol=1e-5, atol=1e-6)


def test_trace():
    check(jnp.trace, np.trace, draw(3, 4))
    check(jnp.trace, np.trace, draw(2, 3, 4, 5), offset=1, axis1=1, axis2=-1)
    check(jnp.trace, np.trace, draw(3, 4), offset=-1)
    assert jnp.trace(np.ones((3, 3), np.int8)).dtype == np.int32
    assert int(jnp.trace(np.full((3, 3), 100, np.int8))) == 300


EINSUMS = [
    ("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (3, 3, 4)),
    ("ij->", (3, 4)), ("ji", (3, 4)), ("ij,kl->il", (2, 3), (4, 5)), ("...ij,...jk->...ik", (2, 3, 4), (1, 4, 5)),
    ("...ij,jk", (6, 2, 3, 4), (4, 5)), ("i,i->i", (3,), (3,)), ("i,j", (3,), (4,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("i...->...", (3, 4, 5)), ("i,i,i->", (3,), (3,), (3,)), ("i,i,i->i", (3,), (1,), (3,)), ("ij,ij->", (3, 4), (3, 1)),
    (",i", (), (3,)), ("iij,ij->i", (3, 3, 4), (3, 4)), ("a...b,b...->...a", (2, 5, 3), (3, 5)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)), ("ij, jk -> ik", (2, 3), (3, 4)), ("iii->i", (3, 3, 3)),
    ("ij,j->ij", (2, 1), (3,)), ("ij->i", (3, 1)),
]  # fmt: skip


@pytest.mark.parametrize("subscripts,shapes", [(e[0], e[1:]) for e in EINSUMS])
@pytest.mark.parametrize("optimize", ["auto", False, True])
def test_einsum(subscripts, shapes, optimize):
    operands = [draw(*s, seed=i) for i, s in enumerate(shapes)]
    expected = np.einsum(subscripts, *operands)
    found = np.asarray(jnp.einsum(subscripts, *operands, optimize=optimize))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@st.composite
def contractions(draw_):
    """Any einsum of one to three operands, with repeated labels and axes of size 1."""
    labels = "abcd"
    sizes = {c: draw_(st.integers(1, 3)) for c in labels}
    terms = draw_(st.lists(st.text(labels, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = "".join(draw_(st.permutations(used))[: draw_(st.integers(0, len(used)))])
    return ",".join(terms) + "->" + output, [tuple(sizes[c] for c in t) for t in terms]


@given(contractions())
def test_einsum_of_any_form(case):
    subscripts, shapes = case
    operands = [draw(*s, seed=i) for i, s in enumerate(shapes)]
    np.testing.assert_allclose(
        np.asarray(jnp.einsum(subscripts, *operands)), np.einsum(subscripts, *operands), rtol=1e-3, atol=1e-4
    )


def test_einsum_interleaved_and_path():
    a, b, c = draw(2, 3), draw(3, 4), draw(4, 5)
    np.testing.assert_allclose(
        jnp.einsum(a, [0, 1], b, [1, 2], [2, 0]), np.einsum(a, [0, 1], b, [1, 2], [2, 0]), rtol=1e-5
    )
    path, report = jnp.einsum_path("ij,jk,kl->il", a, b, c)
    assert sorted(map(len, path)) == [2, 2] and "il" in str(report)
    np.testing.assert_allclose(jnp.einsum("ij,jk,kl->il", a, b, c, optimize=path), a @ b @ c, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "call,error,text",
    [
        (
            lambda: jnp.matmul([1], np.ones(1)),
            TypeError,
            "an array or a number is needed at position 0, got <class 'list'>",
        ),
        (lambda: jnp.matmul(1.0, np.ones(1)), ValueError, "must have ndim at least 1"),
        (lambda: jnp.matmul(np.ones((2, 3)), np.ones((2, 3))), TypeError, "contracting dimensions"),
        (lambda: jnp.matmul(np.ones((2, 3, 3)), np.ones((3, 3, 3))), ValueError, "do not broadcast together"),
        (
            lambda: jnp.einsum("ij,jk", np.ones((2, 3)), np.ones((2, 3))),
            ValueError,
            "the lengths of a label must be equal, or 1",
        ),
        (lambda: jnp.einsum("ij->k", np.ones((2, 3))), ValueError, "did not appear in the input"),
        (lambda: jnp.einsum("i", np.ones((2, 3))), ValueError, "does not fit operand 0"),
        (lambda: jnp.einsum("i->ii", np.ones(3)), ValueError, "more than once"),
        (lambda: jnp.einsum("i,j", np.ones(3)), ValueError, "one per operand"),
        (lambda: jnp.tensordot(np.ones((2, 3)), np.ones((3, 2)), 3), TypeError, "exceeds input ranks"),
        (lambda: jnp.outer(np.ones(2), np.ones(2), out=np.ones(4)), NotImplementedError, "out is not supported"),
    ],
)
def test_errors_name_the_problem(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_dtypes():
    f, b = draw(2, 3), draw(3, 2).astype(jnp.bfloat16)
    assert jnp.dot(f, b).dtype == np.float32
    assert (
        jnp.dot(np.ones((2, 2), np.int8), np.ones((2, 2), np.int8), preferred_element_type=np.int32).dtype == np.int32
    )
    assert jnp.einsum("ij->", f, preferred_element_type=np.float16).dtype == np.float16
    assert jnp.dot(2.0, 3.0).weak_type and not jnp.dot(f, 2.0).weak_type
    assert jnp.einsum("i,i->", f[0] > 0, f[0] > 1).dtype == np.bool_


def test_one_operation_where_one_is_enough():
    struct = lambda *s: ShapeDtypeStruct(s, np.float32)
    for f, shapes in (
        (jnp.matmul, [(3, 4), (4, 5)]),
        (jnp.matmul, [(2, 3, 4), (2, 4, 5)]),
        (lambda a, b: jnp.einsum("ij,jk->ki", a, b), [(3, 4), (4, 5)]),
        (lambda a, b: jnp.einsum("bqd,bkd->bqk", a, b), [(2, 3, 4), (2, 5, 4)]),
    ):
        eqns = make_jaxpr(f)(*(struct(*s) for s in shapes)).eqns
        assert [e.primitive.name for e in eqns] == ["dot_general"]


@pytest.mark.parametrize("shapes", MATMUL[:-2])
def test_derivatives_of_matmul(shapes):
    a, b = (draw(*s, seed=i) for i, s in enumerate(shapes))
    w = draw(*np.matmul(a, b).shape, seed=9)
    da, db = grad(lambda a, b: jnp.sum(jnp.matmul(a, b) * w), argnums=(0, 1))(a, b)
    ta, tb = draw(*shapes[0], seed=11), draw(*shapes[1], seed=12)
    change = np.sum((np.matmul(ta, b) + np.matmul(a, tb)) * w)
    np.testing.assert_allclose(np.sum(da * ta) + np.sum(db * tb), change, rtol=1e-3, atol=1e-3)


def test_vmap_and_jvp_of_einsum():
    a, b = draw(5, 2, 3), draw(5, 3, 4)
    np.testing.assert_allclose(
        vmap(lambda x, y: jnp.einsum("ij,jk->ki", x, y))(a, b), np.swapaxes(a @ b, 1, 2), rtol=1e-5
    )
    np.testing.assert_allclose(vmap(jnp.matmul, in_axes=(1, None), out_axes=1)(a, b[0]), a @ b[0], rtol=1e-5)
    out, t = jvp(lambda x: jnp.einsum("ii->i", x), (draw(3, 3),), (draw(3, 3, seed=2),))
    np.testing.assert_allclose(t, np.diagonal(draw(3, 3, seed=2)))
    np.testing.assert_allclose(out, np.diagonal(draw(3, 3)))


def test_multi_dot():
    xs = [draw(*s) for s in ((2, 3), (3, 40), (40, 4), (4,))]
    np.testing.assert_allclose(jnp.linalg.multi_dot(xs), np.linalg.multi_dot(xs), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="each array must fit the next one, got shapes"):
        jnp.linalg.multi_dot([draw(2, 3), draw(2, 3)])


@pytest.mark.parametrize(
    "subscripts, shapes, explicit",
    [
        ("a...->a", [(2, 3, 4)], "abc->a"),
        ("...a->", [(3, 2)], "ba->"),
        ("a...d,ej...f->adef", [(2, 7), (3, 4, 5)], "ad,ejf->adef"),
        ("a...d,ej...f->adef", [(2, 6, 7), (3, 4, 6, 5)], "axd,ejxf->adef"),
        ("a...d,ej...f->adef", [(2, 1, 7), (3, 4, 6, 5)], None),
    ],
)
def test_einsum_sums_over_the_dimensions_of_an_ellipsis_that_the_result_lacks(subscripts, shapes, explicit):
    rng = np.random.RandomState(0)
    operands = [rng.standard_normal(shape) for shape in shapes]
    if explicit is None:  # a dimension of size 1 is repeated
        expected = np.einsum("ad,ejxf->adef", operands[0][:, 0], operands[1])
    else:
        expected = np.einsum(explicit, *operands)
    np.testing.assert_allclose(jnp.einsum(subscripts, *operands), expected, rtol=1e-4, atol=1e-4)
