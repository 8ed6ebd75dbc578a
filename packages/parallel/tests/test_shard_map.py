"""`shard_map` of functions whose meaning is known without it: values and derivatives, against that meaning."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, jvp, linearize, vjp
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.parallel import Mesh, shard_map
from bedrax.parallel import PartitionSpec as P

MESH = Mesh(np.arange(8).reshape(4, 2), ("x", "y"))
rng = np.random.default_rng(0)
A = rng.standard_normal((8, 6))
B = rng.standard_normal((6, 4))


def over(f, in_specs, out_specs, **options):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def both(f):
    return pytest.mark.parametrize("check_vma", [True, False])(f)


# name -> (function of blocks, in_specs, out_specs, meaning)
def _matmul(a, b):
    return lax.psum(lax.dot(lax.sin(a), b), "y")


def _mean_loss(a, b):
    return lax.pmean(lax.reduce_sum(lax.tanh(lax.dot(a, b)), (0, 1)), ("x", "y"))


def _ring(a, b):
    def step(carry, _):
        block, total = carry
        total = lax.add(total, lax.dot(lax.sin(block), b))
        return (lax.ppermute(block, "x", [(i, (i + 1) % 4) for i in range(4)]), total), None

    zeros = lax.full((2, 4), 0.0, a.dtype)
    (_, total), _ = lax.scan(step, (a, zeros), None, length=4)
    return total


def _gathered(a, b):
    return lax.dot(lax.cos(lax.all_gather(a, "x", tiled=True)), b)


def _scattered(a, b):
    return lax.psum_scatter(lax.dot(lax.mul(a, a), b), "x", scatter_dimension=0, tiled=True)


def _remat(a, b):
    return lax.psum(checkpoint(lambda a: lax.sin(lax.dot(lax.sin(a), b)))(a), "x")


def _branches(a, b):
    big = lax.gt(lax.reduce_sum(a, (0, 1)), 0.0)
    return lax.cond(big, lambda a: lax.dot(a, b), lambda a: lax.dot(lax.sin(a), b), a)


def _by_index(a, b):
    return lax.mul(lax.dot(a, b), lax.convert_element_type(lax.axis_index("x"), a.dtype))


def _blocks(f):
    return lambda a, b: np.concatenate([f(x, b) for x in np.split(a, 4)])


CASES = {
    "matmul": (_matmul, (P("x", "y"), P("y")), P("x"), lambda a, b: np.sin(a) @ b),
    "mean": (
        _mean_loss, (P("x"), P(None, "y")), P(),
        lambda a, b: np.mean([np.tanh(x @ y).sum() for x in np.split(a, 4) for y in np.split(b, 2, 1)]),
    ),
    "ring": (_ring, (P("x"), P()), P("x"), lambda a, b: np.tile(sum(np.sin(x) @ b for x in np.split(a, 4)), (4, 1))),
    "gathered": (_gathered, (P("x"), P(None, "y")), P("x", "y"), lambda a, b: np.tile(np.cos(a) @ b, (4, 1))),
    "scattered": (
        _scattered, (P(None, None), P()), P("x"), lambda a, b: 4 * (a * a) @ b
    ),
    "remat": (_remat, (P("x"), P()), P(), lambda a, b: sum(np.sin(np.sin(x) @ b) for x in np.split(a, 4))),
    "branches": (
        _branches, (P("x"), P()), P("x"), _blocks(lambda x, b: (x if x.sum() > 0 else np.sin(x)) @ b)
    ),
    "index": (
        _by_index, (P("x"), P()), P("x"),
        lambda a, b: np.concatenate([i * (x @ b) for i, x in enumerate(np.split(a, 4))]),
    ),
}  # fmt: skip


def numerical(meaning, argument, args, ct, eps=1e-6):
    """The gradient of ``sum(ct * meaning(*args))``, by central differences."""
    out = np.zeros_like(args[argument])
    for i in np.ndindex(out.shape):

        def at(step, i=i):
            moved = [x.copy() for x in args]
            moved[argument][i] += step
            return np.sum(ct * meaning(*moved))

        out[i] = (at(eps) - at(-eps)) / (2 * eps)
    return out


@pytest.fixture(autouse=True)
def wide():
    with config.enable_x64(True), config.enable_checks(True):
        yield


@pytest.mark.parametrize("name", CASES)
@both
def test_values_and_derivatives(name, check_vma):
    block, in_specs, out_specs, meaning = CASES[name]
    # Where types do not tell, a result of all_gather or of a sum need not be the same: what is claimed is taken.
    f = over(block, in_specs, out_specs, check_vma=check_vma)
    want = meaning(A, B)
    np.testing.assert_allclose(f(A, B), want, rtol=1e-6)
    np.testing.assert_allclose(jit(f)(A, B), want, rtol=1e-6)
    check_jaxpr(make_jaxpr(f)(A, B))

    ct = rng.standard_normal(np.shape(want))
    out, back = vjp(f, A, B)
    np.testing.assert_allclose(out, want, rtol=1e-6)
    numbers = [numerical(meaning, i, (A, B), ct) for i in range(2)]
    for got, number in zip(back(ct), numbers, strict=True):
        np.testing.assert_allclose(got, number, rtol=1e-4, atol=1e-6)
    for got, number in zip(jit(lambda a, b: vjp(f, a, b)[1](ct))(A, B), numbers, strict=True):
        np.testing.assert_allclose(got, number, rtol=1e-4, atol=1e-6)

    direction = rng.standard_normal(A.shape)
    out, moved = jvp(lambda a: f(a, B), (A,), (direction,))
    slope = np.sum(numbers[0] * direction)
    np.testing.assert_allclose(np.sum(ct * moved), slope, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.sum(ct * linearize(lambda a: f(a, B), A)[1](direction)), slope, rtol=1e-4, atol=1e-6)
