"""Registering types as nodes, keys, Partial and one-level flattening, on both engines."""

import collections
import dataclasses
import functools
import pickle

import pytest

Pair = collections.namedtuple("Pair", "x y")


def plain(a, b):
    return a, b


def test_register_node(tu):
    class Box:
        def __init__(self, *xs):
            self.xs = xs

    tu.register_pytree_node(Box, lambda b: (iter(b.xs), "m"), lambda aux, xs: Box(*xs, aux))
    leaves, treedef = tu.tree_flatten(Box(1, (2,)))
    assert leaves == [1, 2] and repr(treedef) == "PyTreeDef(CustomNode(Box[m], [*, (*,)]))"
    assert treedef.unflatten([3, 4]).xs == (3, (4,), "m")
    paths = [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(Box(1, (2,)))]
    assert paths == ["[<flat index 0>]", "[<flat index 1>][0]"]
    assert Box in tu._registry and tu.is_tree_node(Box)
    assert tu._registry[Box].from_iter("m", (1,)).xs == (1, "m")
    with pytest.raises(ValueError) as e:
        tu.register_pytree_node(Box, lambda b: ((), None), lambda *_: None)
    assert str(e.value) == f"Duplicate custom PyTreeDef type registration for {Box}."

    class Derived(Box):
        pass

    assert len(tu.tree_leaves(Derived(1, 2))) == 1 and not tu.is_tree_node(Derived)


@pytest.mark.parametrize("builtin", [tuple, list, dict, type(None)])
def test_built_in_types_are_taken(tu, builtin):
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration"):
        tu.register_pytree_node(builtin, lambda x: ((), None), lambda *_: None)
    assert builtin in tu._registry


@pytest.mark.parametrize("node", [(1, 2), [1, 2], {"b": 1, "a": 2}, None, (), {}, collections.OrderedDict(b=1, a=2)])
def test_the_rule_of_a_type_takes_a_node_apart_and_puts_it_together(tu, node):
    """jaxlie reads the rules of all types, also of those that the engine flattens itself."""
    rule = tu._registry[type(node)]
    children, data = rule.to_iter(node)
    assert list(children) == tu.tree_leaves(node)
    again = rule.from_iter(data, list(children))
    assert again == node and type(again) is type(node)
    hash(data)  # the data of a node must be hashable


@pytest.mark.parametrize("value", [1, [1], (1,), ([1],), {}, None, Pair(1, 2), "list"])
def test_values_are_no_node_types(tu, value):
    assert not tu.is_tree_node(value)


def test_only_classes_register(tu):
    with pytest.raises(TypeError, match="registers a class as a pytree node, got 3"):
        tu.register_pytree_node(3, lambda x: ((), None), lambda *_: None)
    with pytest.raises(TypeError, match="registers a class as a pytree node, got 3"):
        tu.register_dataclass(3, [], [])
    with pytest.raises(TypeError):
        tu.register_pytree_node(type("X", (), {}), None, None)


@pytest.mark.parametrize(
    "returned, tail",
    [
        (3, "tuple, got 3"),
        ((1, 2, 3), "tuple, got (1, 2, 3)"),
        ([(), None], "tuple, got [(), None]"),
        ((3, None), "tuple where 'children' is iterable, got (3, None)"),
    ],
)
def test_a_wrong_result_of_a_flatten_function_is_an_error(tu, returned, tail):
    class Bad:
        pass

    tu.register_pytree_node(Bad, lambda b: returned, lambda *_: Bad())
    for flatten in (tu.tree_flatten, tu.tree_flatten_with_path):
        with pytest.raises(ValueError) as e:
            flatten([Bad()])
        head = "The to_iterable function for a custom PyTree node should return a (children, aux_data) "
        assert str(e.value) == head + tail


@pytest.mark.parametrize("returned", [3, ([1, 2], None), ([("a", 1, 2)], None)])
def test_a_wrong_result_of_a_flatten_with_keys_function_is_an_error(tu, returned):
    class Bad:
        pass

    tu.register_pytree_node(Bad, lambda b: ((1,), None), lambda *_: Bad(), lambda b: returned)
    with pytest.raises(ValueError, match="The to_iterable_with_keys function for a custom PyTree node should return"):
        tu.tree_flatten_with_path(Bad())
    assert tu.tree_leaves(Bad()) == [1]


def test_class_decorators(tu):
    @tu.register_pytree_node_class
    class Node:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def tree_flatten(self):
            return (self.a,), self.b

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children, aux)

    out = tu.tree_map(lambda x: x + 1, Node(1, "meta"))
    assert (out.a, out.b) == (2, "meta")

    @tu.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, a):
            self.a = a

        def tree_flatten_with_keys(self):
            return ((tu.GetAttrKey("a"), self.a),), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    assert tu.tree_leaves(Keyed(5)) == [5]  # derived from the keyed function
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path([Keyed(5)])] == ["[0].a"]

    class NoMethods:
        pass

    with pytest.raises(AttributeError, match="tree_unflatten"):
        tu.register_pytree_node_class(NoMethods)


def test_register_dataclass(tu):
    from bedrax.pytree import tree

    @tu.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: int
        name: str = tree.static(default="n", metadata={"doc": "kept"})
        b: int = 0

    layer = Layer(1, "dense", 2)
    leaves, treedef = tu.tree_flatten(layer)
    assert leaves == [1, 2] and repr(treedef) == "PyTreeDef(CustomNode(Layer[('dense',)], [*, *]))"
    assert treedef.unflatten([3, 4]) == Layer(3, "dense", 4)
    assert [tu.keystr(p) for p, _ in tu.tree_leaves_with_path(layer)] == [".w", ".b"]
    assert treedef != tu.tree_structure(Layer(1, "conv", 2)) and treedef == tu.tree_structure(Layer(5, "dense", 6))
    assert treedef.node_data() == (Layer, ("dense",))
    assert dict(Layer.__dataclass_fields__["name"].metadata) == {"doc": "kept", "static": True}
    children, meta = tu.flatten_one_level(layer)
    assert (list(children), meta) == ([1, 2], ("dense",))
    pairs, _ = tu.flatten_one_level_with_keys(layer)
    assert list(pairs) == [(tu.GetAttrKey("w"), 1), (tu.GetAttrKey("b"), 2)]
    assert Layer in tu._registry
    with pytest.raises(ValueError, match="Duplicate custom dataclass PyTreeDef type registration for"):
        tu.register_dataclass(Layer)


def test_dataclass_fields_that_are_dropped_or_not_init(tu):
    y, z = dataclasses.field(default=7), dataclasses.field(default=3, init=False)
    fields = [("x", int), ("y", int, y), ("z", int, z)]
    inferred = dataclasses.make_dataclass("Inferred", fields)
    tu.register_dataclass(inferred, drop_fields=["y"])
    assert tu.tree_leaves(inferred(1, 2)) == [1]
    assert tu.tree_map(lambda x: x + 1, inferred(1, 2)) == inferred(2, 7)
    named = dataclasses.make_dataclass("Named", fields)
    tu.register_dataclass(named, data_fields=["x"], meta_fields=[], drop_fields=["y"])
    assert tu.tree_map(lambda x: x + 1, named(1, 2)) == named(2, 7)


@pytest.mark.parametrize(
    "kwargs, kind, text",
    [
        (
            dict(data_fields=["x"]),
            TypeError,
            "register_dataclass takes data_fields and meta_fields together, got data_fields=['x'] and "
            "meta_fields=None; pass both, or neither to infer them from the dataclass.",
        ),
        (
            dict(data_fields=["x"], meta_fields=[]),
            ValueError,
            "register_dataclass: the fields ['y'] of Cls are in neither data_fields nor meta_fields; "
            "add them to one of the two, or to drop_fields.",
        ),
        (
            dict(data_fields=["x", "y", "z"], meta_fields=[]),
            ValueError,
            "register_dataclass: ['z'] are not among the fields ['x', 'y'] of Cls that have init=True "
            "and are not dropped; remove them from data_fields and meta_fields.",
        ),
        (
            dict(data_fields=["x", "y"], meta_fields=["y"]),
            ValueError,
            "register_dataclass: ['y'] of Cls are in both data_fields and meta_fields; choose one.",
        ),
        *[
            (
                {"data_fields": [], "meta_fields": [], name: ["x", "y", "x"]},
                ValueError,
                f"register_dataclass: {name} has ['x'] of Cls more than once; name each field once.",
            )
            for name in ("data_fields", "meta_fields")
        ],
    ],
)
def test_register_dataclass_errors(tu, kwargs, kind, text):
    cls = dataclasses.make_dataclass("Cls", ["x", "y"])
    with pytest.raises(kind) as e:
        tu.register_dataclass(cls, **kwargs)
    assert str(e.value) == text
    assert cls not in tu._registry


def test_register_dataclass_of_another_class(tu):
    class Ordinary:
        def __init__(self, x):
            self.x = x

    with pytest.raises(TypeError) as e:
        tu.register_dataclass(Ordinary)
    assert str(e.value) == (
        f"register_dataclass infers fields from a dataclass only, got {Ordinary}; pass data_fields and meta_fields."
    )
    assert tu.tree_map(abs, tu.register_dataclass(Ordinary, ["x"], [])(-1)).x == 1


def test_register_static(tu):
    @tu.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    leaves, treedef = tu.tree_flatten([Mode("a"), 1])
    assert leaves == [1]
    assert repr(tu.tree_structure(Mode("a"))) == f"PyTreeDef(CustomNode(Mode[{Mode('a')}], []))"
    assert treedef == tu.tree_structure([Mode("a"), 2]) != tu.tree_structure([Mode("b"), 1])
    assert tu.tree_map(lambda x: -x, [Mode("a"), 1]) == [Mode("a"), -1]
    with pytest.raises(ValueError, match=r"different pytree metadata at key path\n    tree_map tree\[0\]"):
        tu.tree_map(lambda x, y: x, [Mode("a"), 1], [Mode("b"), 1])


def test_one_level(tu):
    tree = {"b": 1, "a": [2]}
    assert tuple(tu.flatten_one_level(tree)[0]) == ([2], 1) and tu.flatten_one_level(tree)[1] == ("a", "b")
    assert list(tu.flatten_one_level_with_keys(tree)[0]) == [(tu.DictKey("a"), [2]), (tu.DictKey("b"), 1)]
    assert list(tu.flatten_one_level([1, (2,)])[0]) == [1, (2,)]
    pairs, cls = tu.flatten_one_level_with_keys(Pair(1, 2))
    assert (list(pairs), cls) == ([(tu.GetAttrKey("x"), 1), (tu.GetAttrKey("y"), 2)], Pair)
    children, cls = tu.flatten_one_level(Pair(1, 2))
    assert (list(children), cls) == ([1, 2], Pair)
    assert tuple(tu.flatten_one_level(None)[0]) == ()
    for function in (tu.flatten_one_level, tu.flatten_one_level_with_keys):
        with pytest.raises(ValueError) as e:
            function(3)
        assert str(e.value) == f"{function.__name__} needs a pytree node, got a leaf of type <class 'int'>."


def test_is_tree_node(tu):
    nodes = [tuple, list, dict, type(None), Pair, collections.OrderedDict, collections.defaultdict, tu.Partial]
    assert all(tu.is_tree_node(t) for t in nodes)
    assert not any(tu.is_tree_node(t) for t in (int, object, collections.deque, functools.partial))


def test_keys(tu):
    table = [
        (tu.DictKey("a"), "DictKey(key='a')", "['a']", "a", "key"),
        (tu.DictKey((1, 2)), "DictKey(key=(1, 2))", "[(1, 2)]", "(1, 2)", "key"),
        (tu.SequenceKey(1), "SequenceKey(idx=1)", "[1]", "1", "idx"),
        (tu.GetAttrKey("x"), "GetAttrKey(name='x')", ".x", "x", "name"),
        (tu.FlattenedIndexKey(2), "FlattenedIndexKey(key=2)", "[<flat index 2>]", "2", "key"),
    ]
    for key, text, name, simple, field in table:
        assert (repr(key), str(key)) == (text, name)
        assert tu.keystr((key, key)) == name + name
        assert tu.keystr((key, key), separator="/") == f"{name}/{name}"
        assert tu.keystr((key, key), simple=True, separator="/") == f"{simple}/{simple}"
        assert type(key).__match_args__ == (field,)
        twin = pickle.loads(pickle.dumps(key))
        assert twin == key and hash(twin) == hash(key) and len({key, twin}) == 1
        with pytest.raises(AttributeError):
            setattr(key, field, 0)
    assert all(a[0] != b[0] for i, a in enumerate(table) for b in table[:i])
    assert tu.DictKey(1) != tu.SequenceKey(1) != tu.FlattenedIndexKey(1)
    assert tu.keystr(()) == "" and tu.keystr(("a", 3), simple=True, separator=".") == "a.3"


def test_partial(tu):
    p = tu.Partial(plain, 1, b=(2, 3))
    assert p() == (1, (2, 3)) and isinstance(p, functools.partial)
    assert tu.tree_leaves(p) == [1, 2, 3]
    doubled = tu.tree_map(lambda x: 2 * x, p)
    assert type(doubled) is tu.Partial and doubled() == (2, (4, 6))
    assert tu.tree_structure(p) == tu.tree_structure(tu.Partial(plain, 9, b=(9, 9)))
    assert tu.tree_structure(p) != tu.tree_structure(tu.Partial(max, 1, b=(2, 3)))
    with pytest.raises(TypeError, match="callable"):
        tu.Partial(3)


@pytest.mark.parametrize("kind", ["stdlib", "ours"])
def test_partial_of_a_partial_keeps_the_inner_arguments_out_of_the_tree(tu, kind):
    inner = functools.partial(plain, 1) if kind == "stdlib" else tu.Partial(plain, 1)
    outer = tu.Partial(inner, 2)
    assert outer() == (1, 2) and tu.tree_leaves(outer) == [2]
    assert tu.tree_map(lambda x: -x, outer)() == (1, -2)
    assert tu.tree_structure(outer) == tu.tree_structure(tu.Partial(inner, 3))
    assert tu.tree_structure(outer) != tu.tree_structure(tu.Partial(functools.partial(plain, 1), 2))
    assert hash(tu.tree_structure(outer)) == hash(tu.tree_structure(tu.Partial(inner, 3)))
