"""Pytree operations, on the parameters of a small network and on a deep nest."""

from ..case import Case

JAX = """
from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves, tree_map, tree_structure, tree_unflatten
"""
OPTREE = """
from optree import tree_flatten, tree_flatten_with_path, tree_leaves, tree_map, tree_structure, tree_unflatten
"""
TREES = """
params = {f"layer{i}": {"kernel": 2 * i, "bias": 2 * i + 1} for i in range(20)}
deep = 0
for i in range(50):
    deep = (i, [deep], {"a": i})
leaves, treedef = tree_flatten(params)
other = tree_structure({f"layer{i}": {"kernel": 0, "bias": 0} for i in range(20)})
def add(x, y): return x + y
"""
STATEMENTS = {
    "flatten 40 leaves": "tree_flatten(params)",
    "flatten a deep nest": "tree_flatten(deep)",
    "unflatten 40 leaves": "tree_unflatten(treedef, leaves)",
    "leaves of 40 leaves": "tree_leaves(params)",
    "map over 40 leaves": "tree_map(abs, params)",
    "map over two trees": "tree_map(add, params, params)",
    "flatten with path": "tree_flatten_with_path(params)",
    "compare structures": "treedef == other",
    "hash a structure": "hash(treedef)",
}

CASES = [
    Case(
        f"pytrees/{name}",
        statement,
        {"ours": JAX + TREES, "upstream": JAX + TREES, "optree": OPTREE + TREES},
        peers=("upstream", "optree"),
    )
    for name, statement in STATEMENTS.items()
]
