"""Checks the records with the given ids, with a batch that is split over eight CPU devices."""

import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend.sharding import Mesh, NamedSharding
from bedrax.xla_backend.sharding import PartitionSpec as P

where = NamedSharding(Mesh(np.array(xla.devices()), ("x",)), P("x"))
assert where.num_devices == 8
chosen = set(sys.stdin.read().split("\n"))
for case in all_cases():
    if case.id in chosen:
        try:
            other = checks.check_devices(case, where)
        except Exception as error:
            other = f"raised {type(error).__name__}: {error}"
        if other is not None:
            print(case.id, case.primitive, other.replace("\n", " "), sep="\t")
