"""`shard_map` on eight CPU devices computes what it means: its decomposition, by NumPy."""

import os
import subprocess
import sys
import textwrap

SETUP = """
import numpy as np
import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.autodiff import checkpoint, grad, jvp, vjp
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.numpy_backend.executor import evaluate
from bedrax.parallel import AxisType, Mesh, PartitionSpec as P, pmap, set_mesh, shard_map, smap
from bedrax.xla_backend import NamedSharding, device_put

d = xla.devices()
assert len(d) == 8
mesh = Mesh(np.array(d).reshape(4, 2), ("x", "y"))
rng = np.random.default_rng(0)
A = rng.standard_normal((8, 8)).astype(np.float32)
B = rng.standard_normal((8, 4)).astype(np.float32)
S = np.float32(0.5)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def check(f, *args):
    "Compiled (whole, and operation by operation) and by NumPy: the same."
    program = make_jaxpr(f)(*args)
    want = evaluate(program, *args)
    many = lambda out: out if isinstance(out, (tuple, list)) else [out]
    for got in (many(jit(f)(*args)), many(f(*args))):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert g.dtype == w.dtype and g.shape == w.shape, (g.dtype, w.dtype, g.shape, w.shape)
            close(np.asarray(g), w)
    return jit(f)(*args)


def over(f, in_specs, out_specs, **options):
    return shard_map(f, **{"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs, **options})
"""

COLLECTIVES = """
    groups = [[0, 2], [3, 1]]
    both = ("x", "y")
    cases = [
        (lambda v: lax.psum(v, "x"), P("x"), P()),
        (lambda v: lax.psum(v, both), P(both), P()),
        (lambda v: lax.psum(v, "x", axis_index_groups=groups), P("x"), P("x")),
        (lambda v: lax.psum(v, both, axis_index_groups=[[0, 5, 2, 7], [4, 1, 6, 3]]), P(both), P(both)),
        (lambda v: lax.pmean(v, "y"), P(None, "y"), P()),
        (lambda v: lax.pmax(v, both), P("x", "y"), P()),
        (lambda v: lax.pmin(v, "x", axis_index_groups=groups), P("x"), P("x")),
        (lambda v: lax.ppermute(v, "x", [(0, 2), (3, 1)]), P("x"), P("x")),
        (lambda v: lax.ppermute(v, both, [(i, (3 * i + 1) % 8) for i in range(7)]), P(both), P(both)),
        (lambda v: lax.pshuffle(v, "x", [3, 0, 1, 2]), P("x"), P("x")),
        (lambda v: lax.pswapaxes(v, "x", 0), P("y"), P("y", "x")),
        (lambda v: lax.pbroadcast(v, "x", 2), P("x"), P("x")),
        (lambda v: lax.all_gather(v, "x"), P("x"), P(None, "x")),
        (lambda v: lax.all_gather(v, both, axis=1), P(both), P(both)),
        (lambda v: lax.all_gather(v, both, axis=1, tiled=True), P("x", "y"), P("x", "y")),
        (lambda v: lax.all_gather(v, ("y", "x"), tiled=True), P(both), P(both)),
        (lambda v: lax.all_gather(v, "x", to="invariant"), P("x"), P()),
        (lambda v: lax.all_gather(v, "x", axis_index_groups=groups), P("x"), P(None, "x")),
        (lambda v: lax.all_to_all(v, "x", 0, 1), P("y"), P("y", "x")),
        (lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True), P("x"), P(None, "x")),
        (lambda v: lax.all_to_all(v, both, 1, 0, tiled=True), P(both), P(None, both)),
        (lambda v: lax.all_to_all(v, both, 0, 1), P(None, both), P(both)),
        (lambda v: lax.all_to_all(v, "x", 1, 1, tiled=True, axis_index_groups=groups), P("x"), P("x")),
        (lambda v: lax.psum_scatter(v, "x", scatter_dimension=1, tiled=True), P("x"), P(None, "x")),
        (lambda v: lax.psum_scatter(v, both), P(), P(both)),
        (lambda v: lax.psum_scatter(v, "x", tiled=True, axis_index_groups=groups), P(None, "x"), P("x")),
        (lambda v: lax.mul(v, lax.convert_element_type(lax.axis_index(both), v.dtype)), P("x", "y"), P("x", "y")),
        (lambda v: lax.mul(v, float(lax.axis_size("x") * lax.axis_size(both))), P("x"), P("x")),
        (lambda v: vmap(lambda r: lax.all_to_all(r, "x", 0, 0, tiled=True), in_axes=1)(v), P(None, "x"), P(None, "x")),
        (lambda v: vmap(lambda r: lax.psum(r, ("x", "i")), axis_name="i", out_axes=None)(v), P("x"), P()),
        (lambda v: lax.psum(lax.gt(v, 0.0), "x"), P("x"), P()),
        (lambda v: lax.pcast(lax.full((2, 2), S), "x", to="varying"), P("x"), P("x")),
    ]
    wide = lambda f: lambda v: lax.convert_element_type(f(v), np.dtype(np.float32))
    for n, (f, i, o) in enumerate(cases):
        for check_vma in (True, False):
            mapped = over(f, i, o, check_vma=check_vma)
            check(mapped, A)
            if n not in (5, 6):  # extrema have no derivative
                ct = rng.standard_normal(mapped(A).shape).astype(np.float32)
                check(lambda v: vjp(wide(mapped), v)[1](ct)[0], A)
"""


def run(program):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", SETUP + textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]


def test_collectives():
    run(COLLECTIVES)
