"""The functions on trees, and their errors for trees that do not fit, on both engines."""

import collections
import functools
import operator
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

Pair = collections.namedtuple("Pair", "x y")
ORDERED = collections.OrderedDict([("b", 1), ("a", 2)])
TREE = st.recursive(
    st.one_of(st.integers(), st.none()),
    lambda c: st.one_of(
        st.lists(c, max_size=3),
        st.lists(c, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), c, max_size=3),
        st.tuples(c, c).map(lambda p: Pair(*p)),
    ),
    max_leaves=15,
)


def message(function, *args, **kwargs):
    with pytest.raises(ValueError) as e:
        function(*args, **kwargs)
    return str(e.value)


def test_map(tu):
    assert tu.tree_map(lambda x: x + 1, {"a": (1, None), "b": [2]}) == {"a": (2, None), "b": [3]}
    paired = tu.tree_map(lambda x, y: (x, y), {"a": 1, "b": None}, {"a": [1, 2], "b": None})
    assert paired == {"a": (1, [1, 2]), "b": None}
    is_none = lambda x: x is None
    assert tu.tree_map(lambda *xs: xs, (1, None), (1, (2, 3)), is_leaf=is_none) == ((1, 1), (None, (2, 3)))
    assert tu.tree_map(lambda x, y, z: x + y + z, Pair(1, 2), Pair(10, 20), Pair(100, 200)) == Pair(111, 222)


def test_map_keeps_errors_of_the_function(tu):
    with pytest.raises(ValueError, match="invalid literal"):
        tu.tree_map(lambda x, y: int("z"), (1,), (2,))
    with pytest.raises(TypeError, match="'int' object is not callable"):
        tu.tree_map(3, [1])


def test_map_with_path(tu):
    names = tu.tree_map_with_path(lambda p, x: tu.keystr(p) + str(x), {"a": Pair(1, [2]), "b": 3})
    assert names == {"a": Pair("['a'].x1", ["['a'].y[0]2"]), "b": "['b']3"}
    assert tu.tree_map_with_path(lambda p, x, y: (p, x, y), (1,), ([2],)) == (((tu.SequenceKey(0),), 1, [2]),)
    assert tu.tree_map_with_path(lambda *a: a, None) is None
    shallow = tu.tree_map_with_path(
        lambda p, x, y: (len(p), x, y), [1, (2,)], [3, "y"], is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True
    )
    assert shallow == [(1, 1, 3), (1, (2,), "y")]


def test_is_leaf(tu):
    assert tu.tree_flatten({"b": {"a": 1}}, is_leaf=lambda x: "a" in x)[0] == [{"a": 1}]
    assert tu.tree_leaves([1, None, (2,)], is_leaf=lambda x: x is None) == [1, None, 2]
    assert tu.tree_structure([(1, 2)], is_leaf=lambda x: isinstance(x, tuple)) == tu.tree_structure([0])
    seen = []
    tu.tree_leaves([1, (2,), 3], is_leaf=lambda x: seen.append(x))
    assert seen == [[1, (2,), 3], 1, (2,), 2, 3]
    pairs, _ = tu.tree_flatten_with_path([1, (2,)], is_leaf=lambda x: x == (2,))
    assert [x for _, x in pairs] == [1, (2,)]
    pairs = tu.tree_leaves_with_path([1, (2,)], is_leaf=lambda p, x: p == (tu.SequenceKey(1),), is_leaf_takes_path=True)
    assert [x for _, x in pairs] == [1, (2,)]
    expected = "is_leaf predicate returned a non-boolean value 3; expected a boolean"
    assert message(tu.tree_flatten, [1], is_leaf=lambda x: 3) == expected
    with pytest.raises(ZeroDivisionError):
        tu.tree_flatten([1], is_leaf=lambda x: 1 / 0)


@pytest.mark.parametrize("make", [dict, lambda d: collections.defaultdict(int, d)])
def test_unsortable_keys(tu, make):
    bad = make({1: 2, "a": 3})
    kind = type(bad).__name__
    expected = (
        "Comparator raised exception while sorting pytree dictionary keys. The {} {} has keys [1, 'a'] "
        "(types: int, str). Use keys that compare with <, or an OrderedDict, whose own order is kept."
    )
    for function in (tu.tree_flatten, tu.tree_leaves, tu.tree_structure, tu.tree_leaves_with_path):
        assert message(function, bad) == expected.format(kind, "at the root")
        assert message(function, [0, {"k": bad}]) == expected.format(kind, "at [1]['k']")
    assert message(tu.tree_map, abs, (bad,)) == expected.format(kind, "at [0]")
    assert tu.tree_leaves([bad], is_leaf=lambda x: isinstance(x, dict)) == [bad]
    assert tu.tree_leaves(collections.OrderedDict(bad)) == [2, 3]
    at_first = lambda path, x: path == (tu.SequenceKey(0),)
    text = message(tu.tree_leaves_with_path, [bad, bad], is_leaf=at_first, is_leaf_takes_path=True)
    assert text == expected.format(kind, "at [1]")


def test_a_deep_tree(tu):
    """The engines have a depth or none: the error is the same for all functions."""
    tree = 1
    for _ in range(3000):
        tree = [tree]
    for flatten in (tu.tree_leaves, tu.tree_leaves_with_path):
        try:
            assert len(flatten(tree)) == 1
        except RecursionError as error:
            assert "nested too deeply" in str(error)


def test_reduce(tu):
    assert tu.tree_reduce(operator.add, {"a": 1, "b": (2, 3)}) == 6
    assert tu.tree_reduce(lambda a, x: a + [x], (1, (2,)), []) == [1, 2]
    assert tu.tree_reduce(operator.add, [], None) is None
    assert tu.tree_reduce(lambda a, x: a + 1, [None, (1,)], 0, is_leaf=lambda x: x is None) == 2
    with pytest.raises(TypeError, match="of empty"):
        tu.tree_reduce(operator.add, ())


def test_reduce_associative(tu):
    join = lambda a, b: f"({a}{b})"
    assert tu.tree_reduce_associative(join, list("abcdefg")) == "((a(bc))((de)(fg)))"
    assert tu.tree_reduce_associative(join, list("abc"), identity="I") == "(a(bc))"
    assert tu.tree_reduce_associative(join, ["a"]) == "a"
    assert tu.tree_reduce_associative(join, {}, identity="I") == "I"
    assert tu.tree_reduce_associative(operator.add, [None], identity=0) == 0
    with pytest.raises(TypeError, match="a tree without leaves needs an identity"):
        tu.tree_reduce_associative(join, ())


def test_all_and_all_leaves(tu):
    assert tu.tree_all([1, (True, None)]) is True
    assert tu.tree_all({"a": 0}) is False
    assert tu.tree_all([]) is True
    assert tu.tree_all([[], 1], is_leaf=lambda x: x == []) is False
    assert tu.all_leaves([1, "a"]) and tu.all_leaves([])
    assert not tu.all_leaves([1, None]) and not tu.all_leaves(({},))
    assert tu.all_leaves([(1,)], is_leaf=lambda x: isinstance(x, tuple))
    assert not tu.all_leaves([(1,), [1]], is_leaf=lambda x: isinstance(x, tuple))


def test_transpose(tu):
    s = tu.tree_structure
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 6}]
    outer = s([0, 0, 0])
    assert tu.tree_transpose(outer, s(rows[0]), rows) == {"a": [1, 3, 5], "b": [2, 4, 6]}
    assert tu.tree_transpose(outer, None, rows) == {"a": [1, 3, 5], "b": [2, 4, 6]}
    assert tu.tree_transpose(s([0, 0]), s(()), [(), ()]) == ()
    assert tu.tree_transpose(s([]), s((0, 0)), []) == ([], [])
    with pytest.raises(TypeError) as e:
        tu.tree_transpose(s([0, 0]), s((0, 0)), [(1, 2), (3,)])
    assert str(e.value) == "Mismatch\nPyTreeDef([(*, *), (*,)])\n != \nPyTreeDef([(*, *), (*, *)])"
    with pytest.raises(TypeError, match=r"(?s)^Mismatch: the outer structure.*is not a prefix of"):
        tu.tree_transpose(s([0, 0]), s((0, 0)), [1, 2, 3, 4])
    with pytest.raises(TypeError, match="the outer structure has no leaves; pass it"):
        tu.tree_transpose(s([]), None, [])


def test_broadcast(tu):
    assert tu.tree_broadcast((1, 2), ([1, 2], {"a": 3})) == ([1, 1], {"a": 2})
    assert tu.tree_broadcast(1, {"a": (None, 2)}) == {"a": (None, 1)}
    assert tu.tree_broadcast((1, [2, 3]), ((1, 2), [4, (5, 6)])) == ((1, 1), [2, (3, 3)])
    assert tu.tree_broadcast([None, 2], [(1, 2), 3], is_leaf=lambda x: x is None) == [(None, None), 2]
    assert tu.tree_broadcast_leaves([None, 2], [(1, 2), 3], is_leaf=lambda x: x is None) == [None, None, 2]
    text = message(tu.tree_broadcast, (1, 2), ([1, 2], {"a": 3}, 4))
    assert text.splitlines()[:2] == [
        "pytree structure error: different lengths of tuple at key path",
        "    tree_broadcast prefix_tree",
    ]


MESSAGES = [
    (
        {"a": [1, {"b": (1, 2)}]},
        {"a": [1, {"b": (1, 2, 3)}]},
        """\
        pytree structure error: different lengths of tuple at key path
            NAME['a'][1]['b']
        There NAME has a tuple of length 2, but the full pytree has one of length 3.""",
    ),
    (
        [0, (1,)],
        [0, [1]],
        """\
        pytree structure error: different types at key path
            NAME[1]
        There NAME has a subtree of type
            <class 'tuple'>
        but the full pytree has one of type
            <class 'list'>.""",
    ),
    (
        Pair(1, None),
        Pair(1, 2),
        """\
        pytree structure error: different types at key path
            NAME.y
        There NAME has a subtree of type
            <class 'NoneType'>
        but the full pytree has one of type
            <class 'int'>.""",
    ),
    (
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "d": 2},
        """\
        pytree structure error: different numbers of pytree children at key path
            NAME
        There NAME has a subtree of type
            <class 'dict'>
        with 3 child keys
            a b c
        but the full pytree has one with 2 child keys
            a d
        Keys that only one of them has:
            b c d""",
    ),
    (
        ORDERED,
        collections.OrderedDict(a=1, b=2),
        """\
        pytree structure error: different pytree metadata at key path
            NAME
        There NAME has a subtree of type
            <class 'collections.OrderedDict'>
        with metadata
            ('b', 'a')
        but the full pytree has one with metadata
            ('a', 'b')
        The difference:
            - ('b', 'a')
            + ('a', 'b')""",
    ),
]


@pytest.mark.parametrize("prefix, full, text", MESSAGES)
def test_prefix_messages(tu, prefix, full, text):
    expected = textwrap.dedent(text)
    (make_error,) = tu.prefix_errors(prefix, full)
    error = make_error("vmap in_axes")
    assert type(error) is ValueError and str(error) == expected.replace("NAME", "vmap in_axes")
    assert message(tu.tree_map, lambda *xs: xs, prefix, full) == expected.replace("NAME", "tree_map tree")
    assert message(tu.tree_map, lambda *xs: xs, prefix, prefix, full) == expected.replace("NAME", "tree_map tree")
    with_path = message(tu.tree_map_with_path, lambda *xs: xs, prefix, full)
    assert with_path == expected.replace("NAME", "tree_map_with_path tree")
    broadcast = message(tu.tree_broadcast, prefix, full)
    assert broadcast == expected.replace("NAME", "tree_broadcast prefix_tree")


def test_prefix_errors_finds_all_of_them(tu):
    errors = tu.prefix_errors([(1, 2), (3,), 4], [(1, 2, 3), 3, 4])
    assert [str(make("f")).splitlines()[1].strip() for make in errors] == ["f[0]", "f[1]"]
    assert tu.prefix_errors([1, {"a": 2}], [(1, 2), {"a": None}]) == []
    assert tu.prefix_errors(None, 3, is_leaf=lambda x: x is None) == []
    at_root = tu.prefix_errors([None], [3], is_leaf=lambda path, x: len(path) == 1, is_leaf_takes_path=True)
    assert at_root == []
    with pytest.raises(ValueError, match=r"different types at key path\n    tree_map_with_path tree\[0\]\[0\]"):
        tu.tree_map_with_path(
            lambda *a: a, [(None,)], [(1,)], is_leaf=lambda path, x: len(path) == 2 and x == 7, is_leaf_takes_path=True
        )


@given(tree=TREE, other=TREE)
def test_properties(engines, tree, other):
    f, g = (lambda x: 2 * x + 1), (lambda x: x - 7)
    for tu in engines:
        leaves, treedef = tu.tree_flatten(tree)
        assert tu.tree_unflatten(treedef, leaves) == tree
        assert tu.tree_map(f, tu.tree_map(g, tree)) == tu.tree_map(lambda x: f(g(x)), tree)
        assert tu.tree_structure(tu.tree_map(f, tree)) == treedef
        assert tu.tree_reduce(operator.add, tree, 0) == sum(leaves) == functools.reduce(operator.add, leaves, 0)
        grown = tu.tree_map(lambda x: (x, [x]), tree)  # tree is a prefix of it by construction
        assert tu.prefix_errors(tree, grown) == []
        assert tu.tree_structure(tu.tree_broadcast(tree, grown)) == tu.tree_structure(grown)
        assert tu.tree_leaves(tu.tree_broadcast(tree, grown)) == tu.tree_broadcast_leaves(tree, grown)
        try:
            tu.tree_map(lambda x, y: x, tree, other)
            fits = True
        except ValueError as e:
            fits = False
            assert str(e) == str(tu.prefix_errors(tree, other)[0]("tree_map tree"))
        assert fits == (tu.prefix_errors(tree, other) == [])


def test_the_short_names(tu):
    import bedrax.pytree.tree as tree

    for name in set(tree.__all__) - {"static"}:
        assert getattr(tree, name) is getattr(tu, f"tree_{name}")
