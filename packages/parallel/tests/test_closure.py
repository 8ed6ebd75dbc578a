"""`shard_map` and `pmap` compose with every transformation: stacks of three, on the functions of autodiff's closure test.

Both apply a function to scaled copies of its argument, one per device, and sum. `shard_map` gives all devices the argument
and each its scale, `pmap` each its copy. Set ``BEDRAX_CLOSURE=all`` to run every stack, ``BEDRAX_CLOSURE=3`` for every third.
"""

import importlib.util
import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import config
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.numpy_backend.executor import evaluate
from bedrax.parallel import Mesh, pmap, shard_map
from bedrax.parallel import PartitionSpec as P

SOURCE = Path(__file__).parents[2] / "autodiff" / "tests" / "test_closure.py"
if not SOURCE.exists():
    pytest.skip("the functions stand in autodiff's tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("closure_of_autodiff", SOURCE)
closure = importlib.util.module_from_spec(spec)
spec.loader.exec_module(closure)

AXES = ("a", "b", "c")
MESH = Mesh(np.arange(27).reshape(3, 3, 3), AXES)
axes = itertools.cycle(AXES)  # each of a stack has one of its own


def with_scales(check_vma):
    def on_devices(f):
        axis = next(axes)

        def block(x, scale):
            return lax.psum(f(lax.mul(x, lax.broadcast_in_dim(lax.squeeze(scale, (0,)), (2,), ()))), axis)

        specs = dict(in_specs=(P(), P(axis)), out_specs=P(), axis_names={axis})
        mapped = shard_map(block, mesh=MESH, check_vma=check_vma, **specs)
        return lambda x: mapped(x, closure.SCALES)

    return on_devices


def with_copies(f):
    def mapped(x):
        xs = lax.mul(lax.broadcast_in_dim(x, (3, 2), (1,)), np.stack([closure.SCALES, closure.SCALES], 1))
        out = pmap(lambda v: lax.psum(f(v), "i"), "i")(xs)
        return lax.index_in_dim(out, 1, keepdims=False)

    return mapped


NEW = {"shard_map": with_scales(True), "unchecked": with_scales(False), "pmap": with_copies}
closure.TRANSFORMATIONS.update(NEW)
closure.MEANINGS.update(dict.fromkeys(NEW, closure.MEANINGS["vmap"]))


def stacks_for(index):
    stacks = [s for n in (1, 2, 3) for s in itertools.product(closure.TRANSFORMATIONS, repeat=n) if NEW.keys() & {*s}]
    step = 1 if closure.EVERY else int(os.environ.get("BEDRAX_CLOSURE") or 4 * len(closure.FUNCTIONS))
    return stacks[index % step :: step]


CASES = [
    pytest.param(name, stack, id=f"{name}-{'.'.join(reversed(stack))}")
    for i, name in enumerate(closure.FUNCTIONS)
    for stack in stacks_for(i)
]


@pytest.mark.parametrize("name,stack", CASES)
def test_stack(name, stack):
    if not closure.has_derivative(closure.FUNCTIONS[name][2], stack):
        pytest.skip("it has no such derivative")
    with config.enable_x64(True), config.enable_checks(True):
        f = closure.build(name, stack)
        expected = closure.meaning_of(name, tuple(t for t in stack if t in closure.MEANINGS))
        scale = 1e-7 * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(np.asarray(f(closure.POINT)), expected, atol=scale, rtol=1e-7)
        program = make_jaxpr(f)(closure.POINT)
        check_jaxpr(program)
        (again,) = evaluate(program, closure.POINT)
        np.testing.assert_allclose(again, expected, atol=scale, rtol=1e-7)
