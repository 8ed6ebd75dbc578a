"""Treedefs on both engines: a corpus with expected leaves, texts and paths, and their operations."""

import collections
import copy
import pickle
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

Pair = collections.namedtuple("Pair", "x y")
Other = collections.namedtuple("Other", "x y")
Triple = collections.namedtuple("Triple", "x y z")


class TupleSubclass(tuple):
    __slots__ = ()


ORDERED = collections.OrderedDict([("b", 1), ("a", 2)])
DEFAULT = collections.defaultdict(int, {"b": 1, "a": 2})
QUEUE = collections.deque([1, 2])

# tree, leaves, text of the treedef, key paths, number of nodes
CORPUS = [
    (1, [1], "*", [""], 1),
    (None, [], "None", [], 1),
    ((), [], "()", [], 1),
    ([], [], "[]", [], 1),
    ({}, [], "{}", [], 1),
    ((1,), [1], "(*,)", ["[0]"], 2),
    ([1, (2, None)], [1, 2], "[*, (*, None)]", ["[0]", "[1][0]"], 5),
    ({"b": 1, "a": [2, 3]}, [2, 3, 1], "{'a': [*, *], 'b': *}", ["['a'][0]", "['a'][1]", "['b']"], 5),
    ({2: "x", 1: "y"}, ["y", "x"], "{1: *, 2: *}", ["[1]", "[2]"], 3),
    ({(1, 2): 0}, [0], "{(1, 2): *}", ["[(1, 2)]"], 2),
    (Pair(1, (2,)), [1, 2], "CustomNode(namedtuple[Pair], [*, (*,)])", [".x", ".y[0]"], 4),
    (ORDERED, [1, 2], "CustomNode(OrderedDict[('b', 'a')], [*, *])", ["['b']", "['a']"], 3),
    (DEFAULT, [2, 1], "CustomNode(defaultdict[(<class 'int'>, ('a', 'b'))], [*, *])", ["['a']", "['b']"], 3),
    (QUEUE, [QUEUE], "*", [""], 1),
    ("text", ["text"], "*", [""], 1),
    (TupleSubclass((1,)), [(1,)], "*", [""], 1),
    ({"a": None, "b": {}}, [], "{'a': None, 'b': {}}", [], 3),
]
TREES = [row[0] for row in CORPUS]


@pytest.mark.parametrize("tree, leaves, text, paths, num_nodes", CORPUS)
def test_corpus(tu, tree, leaves, text, paths, num_nodes):
    flat, treedef = tu.tree_flatten(tree)
    assert flat == leaves
    assert tu.tree_leaves(tree) == leaves
    assert repr(treedef) == str(treedef) == f"PyTreeDef({text})"
    assert (treedef.num_leaves, treedef.num_nodes) == (len(leaves), num_nodes)
    pairs, same = tu.tree_flatten_with_path(tree)
    assert [tu.keystr(path) for path, _ in pairs] == paths
    assert [leaf for _, leaf in pairs] == leaves
    assert tu.tree_leaves_with_path(tree) == pairs
    assert same == treedef == tu.tree_structure(tree)
    rebuilt = treedef.unflatten(flat)
    assert rebuilt == tree and type(rebuilt) is type(tree)


@pytest.mark.parametrize("tree", TREES)
def test_node_data_and_children_rebuild_a_treedef(tu, tree):
    treedef = tu.tree_structure(tree)
    again = tu.PyTreeDef.from_node_data_and_children(tu.default_registry, treedef.node_data(), treedef.children())
    assert again == treedef
    assert tu.make_from_node_data_and_children(tu.default_registry, treedef.node_data(), treedef.children()) == treedef
    assert tu.treedef_children(treedef) == treedef.children()


@pytest.mark.parametrize("tree", TREES)
def test_pickle_and_copy(tu, tree):
    treedef = tu.tree_structure([tree, {"k": tree}])
    for twin in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef), copy.copy(treedef)):
        assert twin == treedef and hash(twin) == hash(treedef)
        assert twin.unflatten(range(twin.num_leaves)) == treedef.unflatten(range(treedef.num_leaves))


def test_node_data(tu):
    s = tu.tree_structure
    assert s(1).node_data() is None
    assert s(None).node_data() == (type(None), None)
    assert s((1,)).node_data() == (tuple, None)
    assert s({"b": 1, "a": 2}).node_data() == (dict, ["a", "b"])
    assert s(ORDERED).node_data() == (collections.OrderedDict, ("b", "a"))
    assert s(Pair(1, 2)).node_data()[0] is Pair


def test_treedefs_compare_by_value(tu):
    structures = {}
    for tree in [*TREES, [1], (None,), [None], {"a": 1}, {"b": 1}, Other(1, (2,)), collections.OrderedDict(a=1, b=2)]:
        structures.setdefault(repr(tu.tree_structure(tree)), []).append(tu.tree_structure(tree))
    for text, group in structures.items():
        for treedef in group:
            assert all((treedef == other) == (text == t) for t, others in structures.items() for other in others)
            assert hash(treedef) == hash(group[0])
    assert not tu.tree_structure(1) == 1
    assert tu.tree_structure(collections.namedtuple("Pair", "x y")(1, (2,))) != tu.tree_structure(Pair(1, (2,)))


def test_comparison_of_metadata_that_has_no_truth_value(tu):
    class Ambiguous:
        def __eq__(self, other):
            raise TypeError("ambiguous")

        __hash__ = None

    class Box:
        pass

    tu.register_pytree_node(Box, lambda b: ((), Ambiguous()), lambda _, __: Box())
    left, right = tu.tree_structure(Box()), tu.tree_structure(Box())
    hash(left)
    with pytest.raises(ValueError, match="checking equality of metadata fields of pytree"):
        assert left == right


@pytest.mark.parametrize(
    "leaves, message",
    [
        ([1], "Too few leaves for PyTreeDef; expected 2, got 1"),
        ([1, 2, 3], "Too many leaves for PyTreeDef; expected 2."),
    ],
)
def test_unflatten_counts_leaves(tu, leaves, message):
    for given_leaves in (leaves, tuple(leaves), iter(leaves)):
        with pytest.raises(ValueError) as e:
            tu.tree_unflatten(tu.tree_structure((0, [0])), given_leaves)
        assert str(e.value) == message
    with pytest.raises(TypeError):
        tu.tree_unflatten(tu.tree_structure((0, 0)), 3)
    assert tu.tree_structure(0).unflatten([(1, 2)]) == (1, 2)


UP_TO_ERRORS = [
    ((1, 2), (1, 2, 3), "Tuple arity mismatch: 3 != 2; tuple: (1, 2, 3)."),
    ([1, 2], [1], "List arity mismatch: 1 != 2; list: [1]."),
    ((1, 2), [1, 2], "Expected tuple, got [1, 2]."),
    ([1], None, "Expected list, got None."),
    ({}, 3, "Expected dict, got 3."),
    ({"a": 1}, {"b": 1}, "Dict key mismatch; expected keys: ['a']; present keys: ['b']."),
    ({"a": 1}, ORDERED, f"Expected dict, got {ORDERED!r}."),
    (Pair(1, 2), (1, 2), "Expected named tuple, got (1, 2)."),
    (Pair(1, 2), Triple(1, 2, 3), "Named tuple arity mismatch: 3 != 2; tuple: Triple(x=1, y=2, z=3)."),
    (Pair(1, 2), Other(1, 2), f"Named tuple type mismatch: expected type: {Pair}, tuple: Other(x=1, y=2)."),
    (ORDERED, 3, "Custom node type mismatch: expected type: <class 'collections.OrderedDict'>, value: 3."),
    (
        ORDERED,
        collections.OrderedDict(a=1, b=2),
        f"Mismatch custom node data: ('b', 'a') != ('a', 'b'); value: {collections.OrderedDict(a=1, b=2)!r}.",
    ),
    ([(1, 2), (3,)], [(1, 2, 3), 3], "Expected tuple, got 3."),  # the rightmost is met first
]


@pytest.mark.parametrize("prefix, full, message", UP_TO_ERRORS)
def test_flatten_up_to_errors(tu, prefix, full, message):
    with pytest.raises(ValueError) as e:
        tu.tree_structure(prefix).flatten_up_to(full)
    assert str(e.value) == message


def test_flatten_up_to(tu):
    up_to = lambda a, b: tu.tree_structure(a).flatten_up_to(b)
    assert up_to(1, None) == [None]
    assert up_to((1, {"b": 2, "a": 3}), ([4], {"a": (5, 6), "b": None})) == [[4], (5, 6), None]
    assert up_to(DEFAULT, DEFAULT) == [2, 1]
    assert up_to(None, None) == []
    with pytest.raises(ValueError, match=re.escape("Expected None, got 3.")):
        up_to(None, 3)


def test_compose_children_tuple(tu):
    s = tu.tree_structure
    assert s((1, {"a": 2})).compose(s([3, None])) == s(([3, None], {"a": [3, None]}))
    assert s([1]).compose(s(None)) == s([None])
    assert s({"a": 1, "b": [1, (1,)], "c": None}).children() == [s(1), s([1, (1,)]), s(None)]
    assert s(1).children() == []
    assert tu.treedef_tuple(iter([s(1), s([2])])) == s((1, [2]))
    assert [tu.treedef_is_leaf(s(x)) for x in (1, None, (), [1])] == [True, True, True, False]


def test_walk_calls_functions_for_nodes_and_leaves(tu):
    tree = (1, [2, None], {"a": 3}, ORDERED)
    result = tu.tree_structure(tree).walk(lambda xs, data: ("node", xs, data), lambda x: -x, [1, 2, 3, 4, 5])
    none = ("node", (), None)
    expected = (-1, ("node", (-2, none), None), ("node", (-3,), ["a"]), ("node", (-4, -5), ("b", "a")))
    assert result == ("node", expected, None)
    assert tu.tree_structure(Pair(1, 2)).walk(lambda xs, data: (xs, data), abs, [1, -2]) == ((1, 2), Pair)
    with pytest.raises(ValueError, match="Too few leaves"):
        tu.tree_structure((1, 2)).walk(lambda xs, _: xs, abs, [1])
    with pytest.raises(ValueError, match="Too many leaves"):
        tu.tree_structure((1, 2)).walk(lambda xs, _: xs, abs, [1, 2, 3])


def test_build_tree(tu):
    treedef = tu.tree_structure((1, [2, None], {"a": 3}))
    assert tu.build_tree(treedef, [10, (20, ()), iter([30])]) == (10, [20, None], {"a": 30})
    with pytest.raises(ValueError, match="Arity mismatch between trees"):
        tu.build_tree(treedef, (10, (20, ())))


def test_from_node_data_errors(tu):
    s, make = tu.tree_structure, tu.make_from_node_data_and_children
    with pytest.raises(RuntimeError, match="Could not find type: <class 'object'>"):
        make(tu.default_registry, (object, None), [])
    with pytest.raises(RuntimeError, match="did not yield a singleton"):
        make(tu.default_registry, None, [s(1)])
    with pytest.raises(RuntimeError, match="Number of keys and entries does not match"):
        make(tu.default_registry, (dict, ["a"]), [s(1), s(2)])
    with pytest.raises(TypeError):
        tu.PyTreeDef()


WIRE = [1, None, {}, (1, [2, None], {"a": 3}), {"b": {"é": 1, "a": ()}, "a": 2}, tuple(range(300))]


@pytest.mark.parametrize("tree", WIRE)
def test_proto_round_trip(tu, tree):
    treedef = tu.tree_structure(tree)
    data = treedef.serialize_using_proto()
    assert tu.PyTreeDef.deserialize_using_proto(tu.default_registry, data) == treedef


@pytest.mark.parametrize("tree", [*WIRE, {str(i): i for i in range(200)}])
def test_both_engines_write_the_same_bytes(both_engines, tree):
    native, python = (e.tree_structure(tree).serialize_using_proto() for e in both_engines)
    assert native == python


def test_proto_errors(tu):
    with pytest.raises(ValueError, match="User-defined nodes are not supported when serializing pytrees"):
        tu.tree_structure(ORDERED).serialize_using_proto()
    with pytest.raises(ValueError, match="Only string keys are supported in proto pytree serialization"):
        tu.tree_structure({1: 2}).serialize_using_proto()
    with pytest.raises(Exception, match="Could not deserialize PyTreeDefProto"):
        tu.PyTreeDef.deserialize_using_proto(tu.default_registry, b"abc")


def test_a_separate_registry(tu):
    registry = tu.PyTreeRegistry(enable_none=False, enable_tuple=False)
    assert registry.flatten([None, (1,), {"a": 2}])[0] == [None, (1,), 2]
    assert registry.is_node(list) and not registry.is_node(tuple)


def test_depth(tu):
    tree = 0
    for _ in range(500):
        tree = [tree]
    treedef = tu.tree_structure(tree)
    assert repr(treedef) == "PyTreeDef(" + "[" * 500 + "*" + "]" * 500 + ")"
    assert treedef == tu.tree_structure(tree) and treedef.num_nodes == 501


def test_the_python_engine_is_not_bounded_by_the_recursion_limit():
    from bedrax.pytree import engine_python

    tree = 0
    for _ in range(20_000):
        tree = (tree,)
    leaves, treedef = engine_python.default_registry.flatten(tree)
    again = treedef.unflatten(leaves)
    assert treedef == engine_python.default_registry.flatten(again)[1]
    assert treedef.flatten_up_to(again) == [0] and len(repr(treedef)) > 40_000
    assert hash(treedef) == hash(engine_python.default_registry.flatten(again)[1])


LEAVES = st.one_of(st.integers(), st.text(max_size=3), st.floats(allow_nan=False))
KEYS = st.one_of(st.text(max_size=2), st.integers(-3, 3))


def _containers(children):
    return st.one_of(
        st.lists(children, max_size=4),
        st.lists(children, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=2), children, max_size=4),
        st.dictionaries(st.integers(-3, 3), children, max_size=4),
        st.dictionaries(KEYS, children, max_size=4).map(collections.OrderedDict),
        st.dictionaries(st.text(max_size=2), children, max_size=3).map(lambda d: collections.defaultdict(list, d)),
        st.tuples(children, children).map(lambda p: Pair(*p)),
    )


TREE = st.recursive(st.one_of(LEAVES, st.none()), _containers, max_leaves=20)


@given(TREE, TREE)
def test_engines_agree(both_engines, tree, other):
    native, python = both_engines
    (leaves, a), (same_leaves, b) = native.tree_flatten(tree), python.tree_flatten(tree)
    assert leaves == same_leaves and repr(a) == repr(b)
    assert (a.num_leaves, a.num_nodes) == (b.num_leaves, b.num_nodes)
    assert a.unflatten(leaves) == b.unflatten(leaves) == tree
    paths = [[(native.keystr(p), x) for p, x in e.tree_leaves_with_path(tree)] for e in both_engines]
    assert paths[0] == paths[1]
    assert [repr(c) for c in a.children()] == [repr(c) for c in b.children()]
    assert repr(a.compose(native.tree_structure(other))) == repr(b.compose(python.tree_structure(other)))
    assert (a == native.tree_structure(other)) == (b == python.tree_structure(other))
    outcomes = []
    for treedef in (a, b):
        try:
            outcomes.append(treedef.flatten_up_to(other))
        except ValueError as e:
            outcomes.append(str(e).splitlines()[0])
    assert outcomes[0] == outcomes[1]
    errors = [[make("t") for make in e.prefix_errors(tree, other)] for e in both_engines]
    assert [str(e) for e in errors[0]] == [str(e) for e in errors[1]]
    assert bool(errors[0]) == isinstance(outcomes[0], str)


class Stack(Pair):
    """A namedtuple whose iteration does not yield its fields."""

    def __len__(self):
        return len(self.x)

    def __iter__(self):
        return (Stack(x, None) for x in self.x)

    def __getitem__(self, i):
        return Stack(self.x[i], None)


def test_namedtuples_with_a_custom_iteration(tu):
    tree = Stack([1, 2, 3], 4)
    leaves, treedef = tu.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4]
    again = tu.tree_unflatten(treedef, leaves)
    assert type(again) is Stack and again.x == [1, 2, 3] and again.y == 4
    assert treedef.flatten_up_to(tree) == leaves
    paths, _ = tu.tree_flatten_with_path(tree)
    assert [tu.keystr(path) for path, _ in paths] == [".x[0]", ".x[1]", ".x[2]", ".y"]


def test_a_treedef_builds_equal_trees_each_time(tu):
    """The Python engine compiles a function after many trees of one treedef."""
    Pair = collections.namedtuple("Pair", "first second")
    deep = 0
    for _ in range(100):
        deep = (deep,)
    trees = [
        {"b": [1, (2, None)], "a": Pair(3, collections.OrderedDict(x=4))},
        {"'\"\\": 1, "\n": [2]},
        {1: (2,), 2.5: []},
        collections.defaultdict(int, {"z": 1}),
        deep,
        (),
        None,
        5,
    ]
    for tree in trees:
        leaves, treedef = tu.tree_flatten(tree)
        for _ in range(100):
            built = tu.tree_unflatten(treedef, leaves)
            assert built == tree
            assert type(built) is type(tree)
        with pytest.raises(ValueError, match="Too many leaves"):
            treedef.unflatten([*leaves, 0])


def test_a_type_that_was_a_leaf_can_become_a_node(tu):
    class Box:
        def __init__(self, value):
            self.value = value

    assert tu.tree_structure([Box(1), Box(2)]).num_leaves == 2
    tu.register_pytree_node(Box, lambda x: ((x.value, x.value), None), lambda _, xs: Box(xs[0]))
    assert tu.tree_leaves([Box(1), Box((2, 3))]) == [1, 1, 2, 3, 2, 3]


# ---- trees of a structure that is often flattened: the Python engine reads them with a compiled function

OFTEN = 100


def _shuffled(tree, order):
    """The tree with other orders of the entries of its dicts."""
    if type(tree) is dict:
        keys = list(tree)
        order.shuffle(keys)
        return {k: _shuffled(tree[k], order) for k in keys}
    return type(tree)(_shuffled(x, order) for x in tree) if type(tree) in (list, tuple) else tree


def test_often_flattened_trees_have_the_same_leaves_paths_and_structure(tu):
    order = random.Random(0)
    for tree in (
        {"b": 1, "a": [2.0, (3, None)], "c": {"y": (), "x": {}}},
        {f"layer{i}": {"kernel": i, "bias": -i} for i in range(20)},
        [1, [2, [3, {"a": (4,)}]]],
        (1, "two", 3.0),
    ):
        leaves, treedef = tu.tree_flatten(tree)
        pairs, _ = tu.tree_flatten_with_path(tree)
        for _ in range(OFTEN):
            other = _shuffled(tree, order)
            assert tu.tree_flatten(other) == (leaves, treedef)
            assert tu.tree_flatten_with_path(other) == (pairs, treedef)
            assert tu.tree_structure(other).flatten_up_to(tree) == leaves
            assert tu.tree_unflatten(tu.tree_structure(other), leaves) == tree


@pytest.mark.parametrize(
    "other",
    [
        {"a": (1, 2), "b": 3},  # a node in place of a leaf
        {"a": 1, "b": (3, 4)},
        {"a": [1], "b": [3]},
        {"a": 1, "b": [3, 4]},
        {"a": 1, "b": None},
        {"a": 1, "b": {"c": 3}},
    ],
)
def test_a_tree_that_differs_from_those_that_are_often_flattened(tu, other):
    tree = {"a": 1, "b": [3]}
    expected = tu.tree_flatten(other)
    for _ in range(OFTEN):
        tu.tree_flatten(tree)
    assert tu.tree_flatten(other) == expected
    treedef = tu.tree_structure(tree)
    assert tu.tree_flatten(tree) == ([1, 3], treedef)
    if type(other["b"]) is not list or len(other["b"]) != 1:
        with pytest.raises(ValueError):
            treedef.flatten_up_to(other)


def test_keys_that_equal_those_of_trees_that_are_often_flattened(tu):
    class Name(str):
        __slots__ = ()

    for _ in range(OFTEN):
        tu.tree_flatten({"a": {"b": 1}})
    for tree in ({"a": {Name("b"): 1}}, {Name("a"): {"b": 1}}):
        again = tu.tree_unflatten(tu.tree_structure(tree), [2])
        (outer,) = again
        (inner,) = again["a"]
        assert (type(outer), type(inner)) == (type(next(iter(tree))), type(next(iter(tree["a"]))))


def test_a_type_that_becomes_a_node_after_trees_with_it_were_flattened_often(tu):
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    tree = [1, Pair(2, 3)]
    for _ in range(OFTEN):
        assert tu.tree_leaves(tree) == tree
    tu.register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xs: Pair(*xs))
    assert tu.tree_leaves(tree) == [1, 2, 3]


@pytest.mark.parametrize("strict", [False, True])
def test_paths_of_a_structure_whose_classes_read_their_leaves(tu, strict):
    class Data:
        pass

    class LooksAtItsLeaves:
        """Numbers and text are a part of the structure, as in the classes of Distrax; if strict, all that is no Data."""

        def __init__(self, *fields):
            self.fields = fields

    def flatten(x):
        data = [type(f) is Data if strict else not isinstance(f, int | str) for f in x.fields]
        return [f for f, d in zip(x.fields, data) if d], tuple(None if d else f for f, d in zip(x.fields, data))

    def unflatten(fields, data):
        rest = iter(data)
        return LooksAtItsLeaves(*(next(rest) if f is None else f for f in fields))

    tu.register_pytree_node(LooksAtItsLeaves, flatten, unflatten)
    structure = tu.tree_structure({"a": LooksAtItsLeaves("x", Data(), Data()), "b": [Data()]})
    texts = ["['a'][<flat index 0>]", "['a'][<flat index 1>]", "['b'][0]"]
    assert [tu.keystr(path) for path in tu.leaf_paths(structure)] == texts
    assert type(tu.skeleton(structure)["b"][0]) is object
    assert tu.leaf_paths(tu.tree_structure(1)) == [()] and tu.leaf_paths(tu.tree_structure(None)) == []


def test_paths_of_a_structure_with_a_class_that_refuses_leaves_that_are_no_data(tu):
    class Numbers:
        """Converts its fields when it is made, as the distributions of TensorFlow Probability do."""

        def __init__(self, a, b):
            self.a, self.b = float(a), b

    tu.register_pytree_node(Numbers, lambda x: ((x.a, x.b), None), lambda _, xs: Numbers(*xs))
    structure = tu.tree_structure({"a": [Numbers(1, {"c": 2}), 3], "b": 4})
    texts = ["['a'][0][<flat index 0>]", "['a'][0][<flat index 1>]['c']", "['a'][1]", "['b']"]
    assert [tu.keystr(path) for path in tu.leaf_paths(structure)] == texts
