"""Programs as text, in the standard notation, and the checker of their types."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.avals import ShapedArray
from bedrax.core.errors import JaxprTypeError
from bedrax.core.ir import Jaxpr, Literal, Var
from bedrax.core.jitting import jit
from bedrax.core.staging import eval_shape, make_jaxpr
from bedrax.core.typecheck import check_jaxpr

f32 = np.float32
X = np.zeros(3, f32)


def two(x):
    return lax.mul(lax.sin(x), f32(2))


@pytest.mark.parametrize(
    "f, args, text",
    [
        (lambda x: x, (X,), "{ lambda ; a:f32[3]. let in (a,) }"),
        (two, (X,), "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }"),
        (lambda x: lax.add(x, X), (X,), "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }"),
        (lambda x, n: (x, 1, n, np.int8(2)), (X, 3), "{ lambda ; a:f32[3] b:i32[]. let in (a, 1:i32[], b, 2:i8[]) }"),
        (
            jit(two),
            (X,),
            """\
{ lambda ; a:f32[3]. let
    b:f32[3] = jit[
      name=two
      jaxpr={ lambda ; a:f32[3]. let
          c:f32[3] = sin a
          b:f32[3] = mul c 2.0:f32[]
        in (b,) }
    ] a
  in (b,) }""",
        ),
        (
            lambda x: lax.while_loop(lambda c: lax.lt(c, 3), lambda c: lax.add(c, 1), x),
            (1,),
            """\
{ lambda ; a:i32[]. let
    b:i32[] = while[
      body_jaxpr={ lambda ; c:i32[]. let d:i32[] = add c 1:i32[] in (d,) }
      body_nconsts=0
      cond_jaxpr={ lambda ; e:i32[]. let f:bool[] = lt e 3:i32[] in (f,) }
      cond_nconsts=0
    ] a
  in (b,) }""",
        ),
        (
            lambda p, x: lax.cond(p, lambda x: lax.neg(x), lambda x: x, x),
            (True, X),
            """\
{ lambda ; a:bool[] b:f32[3]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[3] = cond[
      branches=(
        { lambda ; e:f32[3]. let in (e,) }
        { lambda ; f:f32[3]. let g:f32[3] = neg f in (g,) }
      )
    ] c b
  in (d,) }""",
        ),
        (
            lambda xs: lax.scan(lambda c, x: (lax.add(c, x), c), f32(0), xs)[1],
            (X,),
            """\
{ lambda ; a:f32[3]. let
    _:f32[] b:f32[3] = scan[
      jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = add c d in (e, c) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] 0.0:f32[] a
  in (b,) }""",
        ),
    ],
)
def test_programs_as_text(f, args, text):
    assert str(make_jaxpr(f)(*args)) == text


def test_long_programs_have_one_equation_a_line():
    def f(x):
        for _ in range(30):
            x = lax.sin(x)
        return x

    lines = str(make_jaxpr(f)(1.0)).splitlines()
    assert len(lines) == 32
    assert lines[1] == "    b:f32[] = sin a" and lines[26] == "    ba:f32[] = sin z"


def test_source_lines_on_request():
    text = make_jaxpr(two)(X).pretty_print(source_info=True)
    assert "test_printing_and_types.py:" in text and "(two)" in text


def test_static_arguments_and_shapes_of_results():
    jaxpr = make_jaxpr(lambda n, x: lax.mul(x, f32(n)), static_argnums=0)(3, X)
    assert str(jaxpr) == "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    jaxpr, shape = make_jaxpr(lambda x: {"a": x, "n": 1}, return_shape=True)(X)
    assert repr(shape["a"]) == "ShapeDtypeStruct(shape=(3,), dtype=float32)"
    assert shape["n"].weak_type
    assert eval_shape(lambda a, b: lax.dot(a, b), np.ones((2, 3), f32), np.ones((3, 4), f32)).shape == (2, 4)


def test_named_axes_in_scope():
    jaxpr = make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(X)
    assert jaxpr.eqns[0].primitive.name == "psum"
    with pytest.raises(NameError, match="no axis named 'i' is bound here"):
        make_jaxpr(lambda x: lax.psum(x, "i"))(X)


# ---- the type checker


def test_the_checker_accepts_traced_programs():
    check_jaxpr(make_jaxpr(jit(two))(X))


def test_unbound_and_doubly_bound_variables():
    jaxpr = make_jaxpr(two)(X)
    first, second = jaxpr.eqns
    with pytest.raises(JaxprTypeError, match="uses a variable that is not bound before"):
        check_jaxpr(jaxpr.replace(eqns=[second, first]))
    with pytest.raises(JaxprTypeError, match="bound twice"):
        check_jaxpr(jaxpr.replace(eqns=[first, first, second]))
    with pytest.raises(JaxprTypeError, match="a result uses a variable"):
        check_jaxpr(jaxpr.replace(eqns=[first]))


def test_results_must_have_the_type_that_the_shape_rule_gives():
    jaxpr = make_jaxpr(lax.sin)(X)
    (eqn,) = jaxpr.eqns
    wrong = Var(make_jaxpr(lax.sin)(np.zeros(4, f32)).out_avals[0])
    with pytest.raises(JaxprTypeError, match=r"declares results of types f32\[4\], but its shape rule gives f32\[3\]"):
        check_jaxpr(Jaxpr(jaxpr.invars, [wrong], [eqn.replace(outvars=[wrong])]))


def test_operands_of_a_call_must_fit_its_program():
    jaxpr = make_jaxpr(jit(two))(X)
    (eqn,) = jaxpr.eqns
    bad = eqn.replace(invars=[Literal(1.0, make_jaxpr(lax.sin)(1.0).in_avals[0])])
    with pytest.raises(JaxprTypeError, match="for argument 0 of a program"):
        check_jaxpr(jaxpr.replace(eqns=[bad]))


def test_effects_must_be_declared():
    from bedrax.lax.primitives.callbacks import debug_callback

    jaxpr = make_jaxpr(lambda x: debug_callback(print, x))(X)
    assert jaxpr.effects
    with pytest.raises(JaxprTypeError, match="has effects"):
        check_jaxpr(jaxpr.replace(effects=frozenset()))


def _with_operands(eqn, **types):
    """Return a program of one equation, with operands of other types: ``a1="f32[3]"`` is operand 1."""
    invars = [Var(v.aval) for v in eqn.invars]
    for name, aval in types.items():
        invars[int(name[1:])] = Var(aval)
    return Jaxpr(invars, eqn.outvars, [eqn.replace(invars=invars)])


def _equation(fun, *args, name):
    (eqn,) = [e for e in make_jaxpr(fun)(*args).jaxpr.eqns if e.primitive.name == name]
    check_jaxpr(_with_operands(eqn))
    return eqn


def test_operands_of_loops_and_branches_must_fit_their_programs():
    scalar, matrix = ShapedArray((), np.dtype(np.float32)), ShapedArray((7, 7), np.dtype(np.int32))
    vector = ShapedArray((4,), np.dtype(np.float32))
    scan = _equation(lambda c, xs: lax.scan(lambda c, x: (c + x, c), c, xs), np.float32(0), X, name="scan")
    with pytest.raises(JaxprTypeError, match="for argument 0 of a program"):
        check_jaxpr(_with_operands(scan, a0=matrix))
    with pytest.raises(JaxprTypeError, match="for argument 1 of a program"):
        check_jaxpr(_with_operands(scan, a1=scalar))
    with pytest.raises(JaxprTypeError, match="for argument 1 of a program"):  # another length
        check_jaxpr(_with_operands(scan, a1=vector))
    cond = _equation(lambda i, x: lax.switch(i, [lax.sin, lax.cos], x), np.int32(0), X, name="cond")
    with pytest.raises(JaxprTypeError, match="index of the branch must be an integer scalar"):
        check_jaxpr(_with_operands(cond, a0=vector))
    with pytest.raises(JaxprTypeError, match="for argument 0 of a program"):
        check_jaxpr(_with_operands(cond, a1=vector))
    loop = _equation(
        lambda c, n: lax.while_loop(lambda c: c < n, lambda c: c + n, c), np.float32(0), np.float32(3), name="while"
    )
    for place in ("a0", "a1", "a2"):
        with pytest.raises(JaxprTypeError, match="of a program, which is of type f32"):
            check_jaxpr(_with_operands(loop, **{place: matrix}))
