"""Values in nested groups, and `scan` in the groups that libraries of upstream 0.11 and later read and give."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import ShapedArray
from bedrax.lax.groups import FlatTree, nones, pack
from bedrax.lax.primitives.control_flow import scan_p


def test_groups_are_taken_apart_and_put_together():
    groups = pack((nones(1), nones(2), nones(0), (nones(1),)))
    assert len(groups) == 4 and repr(groups) == "((None,), (None, None), (), ((None,),))"
    filled = groups.update([1, 2, 3, 4])
    assert [m.vals for m in filled.unpack()] == [(1,), (2, 3), (), (4,)] and list(filled) == [1, 2, 3, 4]
    assert filled.unpack()[3].unpack()[0].unpack()[0].unflatten() == 4
    assert pack(filled.unpack()) == filled and filled.unflatten() == ((1,), (2, 3), (), ((4,),))
    assert filled.map(lambda x: x * x).vals == (1, 4, 9, 16)
    assert filled != groups == pack(groups.unpack()) and hash(groups) == hash(pack(groups.unpack()))


def test_errors_of_groups():
    with pytest.raises(ValueError, match="groups of 3 values were given 2"):
        nones(3).update([1, 2])
    with pytest.raises(TypeError, match="got a single value"):
        FlatTree(None, (1,)).unpack()
    with pytest.raises(TypeError, match="got list"):
        pack([nones(1)])


def _loop():
    """The equation of a loop of one const, two carries, one scanned input and one stack."""

    def f(w, a, b, xs):
        def body(c, x):
            return (c[0] * w, c[1] + x), c[0]

        return lax.scan(body, (a, b), xs)

    scalar = ShapedArray((), np.dtype("float32"))
    jaxpr, _ = staging.trace_to_jaxpr(f, [scalar, scalar, scalar, ShapedArray((3,), np.dtype("float32"))])
    (eqn,) = (e for e in jaxpr.eqns if e.primitive is scan_p)
    return eqn


def test_the_params_of_an_equation_in_groups():
    eqn = _loop()
    assert eqn.params["ft_in"] == pack((nones(1), nones(2), nones(1)))
    assert eqn.params["ft_out"] == pack((nones(2), nones(1)))
    assert "ft_in" not in {**eqn.params}  # rules get those alone that the others follow from
    with pytest.raises(KeyError):
        eqn.params["no_such_param"]
    assert eqn.replace(params={**eqn.params, "length": 3}).params["ft_in"] == eqn.params["ft_in"]


def test_groups_say_the_counts_where_a_loop_is_bound():
    eqn = _loop()
    rest = {k: v for k, v in eqn.params.items() if k not in ("num_consts", "num_carry")}
    stale = {**eqn.params, "num_consts": 3, "num_carry": 1}  # as a library passes on params that it does not use
    for params in (rest, stale):

        def bound(*args, params=params):
            return scan_p.bind(*args, **params, ft_in=eqn.params["ft_in"], ft_out=eqn.params["ft_out"]), None

        jaxpr, _ = staging.trace_to_jaxpr(bound, [v.aval for v in eqn.invars])
        (again,) = jaxpr.eqns
        assert {**again.params} == {**eqn.params}
        assert [v.aval for v in again.outvars] == [v.aval for v in eqn.outvars]


@pytest.mark.parametrize(
    "groups",
    [
        dict(ft_in=pack((nones(1), nones(2), nones(1)))),
        dict(ft_in=pack((nones(1), nones(2), nones(1))), ft_out=pack((nones(1), nones(2)))),
        dict(ft_in=pack((nones(3), nones(1))), ft_out=pack((nones(2), nones(1)))),
    ],
)
def test_groups_that_are_none_of_a_loop(groups):
    with pytest.raises(TypeError, match="scan takes"):
        scan_p.bind(np.float32(1), **{**_loop().params, **groups})
