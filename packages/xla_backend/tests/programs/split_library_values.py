"""A value of a library's type that is split over two devices."""

import numpy as np

from bedrax.core.tracing import Primitive
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.xla_backend import NamedSharding, clients, jit
from bedrax.xla_backend.mlir import rules

prim = Primitive("split_as_typed")
prim.def_abstract_eval(lambda x: x)
mesh = Mesh(np.array(clients.devices("cpu")), ("i",))
whole, split = (NamedSharding(mesh, spec) for spec in (PartitionSpec(), PartitionSpec("i")))


def rule(ctx, x):
    (aval,) = ctx.avals_in
    assert rules.lower_with_sharding_in_types(ctx, x, aval.update(sharding=None)) is x
    return rules.lower_with_sharding_in_types(ctx, x, aval.update(sharding=split))


rules.register_lowering(prim, rule)
program = jit(prim.bind, in_shardings=whole)
assert "sharding_constraint" in program.lower(np.ones(4, np.float32)).as_text()
assert program(np.ones(4, np.float32)).sharding.shard_shape((4,)) == (2,)
