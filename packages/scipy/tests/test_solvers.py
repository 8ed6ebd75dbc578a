"""Krylov methods against direct solutions, BFGS against known minima, rotations and quantization against SciPy."""

import itertools

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.spatial.transform as ssp

import bedrax.numpy as jnp
from bedrax import pytree, random
from bedrax.autodiff import check_grads, grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.scipy import cluster, optimize
from bedrax.scipy.sparse.linalg import bicgstab, cg, gmres
from bedrax.scipy.spatial.transform import Rotation, Slerp
from bedrax.testing import oracles


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True):
        yield


RNG = np.random.default_rng(0)
A = RNG.standard_normal((20, 20)) + 6 * np.eye(20)
P = A @ A.T
C = A + 1j * A.T
b = RNG.standard_normal(20)
METHODS = [
    (cg, P, {}), (cg, P, {"M": np.diag(1 / np.diag(P))}), (bicgstab, A, {}), (bicgstab, C, {}),
    (bicgstab, A, {"M": np.diag(1 / np.diag(A))}), (gmres, A, {}), (gmres, A, {"restart": 5}), (gmres, C, {}),
    (gmres, A, {"M": np.linalg.inv(A) + 0.01}), (gmres, A, {"solve_method": "incremental"}),
    (gmres, A, {"solve_method": "incremental", "restart": 5}), (gmres, C, {"solve_method": "incremental"}),
]  # fmt: skip


@pytest.mark.parametrize("method,a,options", METHODS)
def test_krylov_methods(method, a, options):
    rhs = b.astype(a.dtype)
    x, _ = method(a, rhs, tol=1e-12, **options)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-9)
    if a.dtype == np.float64:
        loss = lambda solve: lambda a, b: jnp.sum(solve(a, b) ** 2)
        options = {k: v for k, v in options.items() if k != "M"}
        got = grad(loss(lambda a, b: method(a, b, tol=1e-12, **options)[0]), (0, 1))(a, b)
        want = grad(loss(jnp.linalg.solve), (0, 1))(a, b)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-8)


def test_krylov_methods_take_functions_of_pytrees():
    rhs = {"a": np.ones(2), "b": np.ones((2, 2))}
    x, info = cg(lambda t: {"a": 2 * t["a"], "b": 4 * t["b"]}, rhs, x0=rhs, tol=1e-10)
    assert info is None
    np.testing.assert_allclose(x["a"], 0.5)
    np.testing.assert_allclose(x["b"], 0.25)
    with pytest.raises(ValueError, match="is structured like b, got PyTreeDef"):
        cg(lambda t: t, rhs, x0=[1])
    with pytest.raises(ValueError, match="and b have equal shapes, got"):
        cg(np.eye(3), np.ones(3), x0=np.ones(2))
    with pytest.raises(ValueError, match="square matrix"):
        cg(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match="solve_method"):
        gmres(A, b, solve_method="other")


def test_krylov_methods_with_nothing_to_do():
    for method in (cg, bicgstab, gmres):
        np.testing.assert_array_equal(method(P, np.zeros(20))[0], np.zeros(20))
        np.testing.assert_allclose(method(np.eye(20), b)[0], b, atol=1e-12)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("n", [2, 5])
def test_minimization(n):
    start = np.full(n, 1.3)
    out = optimize.minimize(rosenbrock, start, method="BFGS", options={"gtol": 1e-8})
    assert out.success and out.status == 0 and out.nit < 100
    np.testing.assert_allclose(out.x, np.ones(n), atol=1e-6)
    assert np.max(np.abs(out.jac)) <= 1e-8


def test_minimization_of_a_quadratic_finds_its_hessian():
    centre = np.arange(4.0)
    fun = lambda x, c: 0.5 * (x - c) @ jnp.asarray(P[:4, :4]) @ (x - c)
    run = jit(lambda c: optimize.minimize(fun, np.zeros(4), (c,), method="BFGS", tol=1e-9))
    np.testing.assert_allclose(run(centre).x, centre, atol=1e-7)
    many = vmap(lambda c: optimize.minimize(fun, np.zeros(4), (c,), method="BFGS", tol=1e-9).x)(
        np.stack([centre, -centre])
    )
    np.testing.assert_allclose(many, np.stack([centre, -centre]), atol=1e-7)


def test_failed_minimizations_report_their_status():
    out = optimize.minimize(rosenbrock, np.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 2})
    assert not out.success and out.status == 1 and out.nit == 2
    out = optimize.minimize(lambda x: -jnp.sum(x), np.ones(2), method="BFGS", options={"maxiter": 3})
    assert not out.success
    for arguments, error in (
        ({"method": "Powell"}, ValueError),
        ({"method": "BFGS", "args": 1.0}, TypeError),
        ({"method": "BFGS", "options": {"colour": 1}}, TypeError),
    ):
        with pytest.raises(error):
            optimize.minimize(rosenbrock, np.ones(2), **arguments)
    with pytest.raises(ValueError, match="one axis"):
        optimize.minimize(rosenbrock, np.ones((2, 2)), method="BFGS")


Q = RNG.standard_normal((9, 4))
SEQUENCES = [
    s
    for n in (1, 2, 3)
    for t in itertools.product("xyz", repeat=n)
    if all(a != b for a, b in itertools.pairwise(t))
    for s in ("".join(t), "".join(t).upper())
]


def test_forms_of_rotations():
    ours, theirs = Rotation.from_quat(Q), ssp.Rotation.from_quat(Q)
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        np.testing.assert_allclose(getattr(ours, name)(), getattr(theirs, name)(), atol=1e-12)
    canonical = theirs.as_quat(canonical=True)
    np.testing.assert_allclose(ours.as_quat(canonical=True), canonical)
    np.testing.assert_allclose(ours.as_quat(scalar_first=True)[:, 1:], ours.as_quat()[:, :3])
    for name in ("matrix", "rotvec", "mrp"):
        made = getattr(Rotation, f"from_{name}")(getattr(theirs, f"as_{name}")())
        np.testing.assert_allclose(made.as_quat(canonical=True), canonical, atol=1e-12)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq):
    angles = RNG.uniform(-4, 4, (5, len(seq)))
    ours, theirs = Rotation.from_euler(seq, angles), ssp.Rotation.from_euler(seq, angles)
    np.testing.assert_allclose(ours.as_quat(canonical=True), theirs.as_quat(canonical=True), atol=1e-12)
    if len(seq) == 1:
        oracles.require("scipy.spatial.transform.Rotation.from_euler")
    one = Rotation.from_euler(seq, angles[0], degrees=True).as_quat()
    np.testing.assert_allclose(one, ssp.Rotation.from_euler(seq, angles[0], degrees=True).as_quat(), atol=1e-12)
    if len(seq) == 3:
        np.testing.assert_allclose(ours.as_euler(seq), theirs.as_euler(seq), atol=1e-9)
        locked = ssp.Rotation.from_euler(seq, [0.3, 0 if seq[0] == seq[2] else np.pi / 2, 0.4])
        again = Rotation.from_euler(seq, Rotation.from_quat(locked.as_quat()).as_euler(seq))
        np.testing.assert_allclose(again.as_matrix(), locked.as_matrix(), atol=1e-7)


def test_operations_on_rotations():
    ours, theirs = Rotation.from_quat(Q), ssp.Rotation.from_quat(Q)
    product, expected = ours * ours.inv()[::-1], theirs * theirs.inv()[::-1]
    np.testing.assert_allclose(product.as_matrix(), expected.as_matrix(), atol=1e-12)
    weights = np.arange(9.0)
    np.testing.assert_allclose(ours.mean(weights).as_matrix(), theirs.mean(weights).as_matrix(), atol=1e-12)
    v = RNG.standard_normal((9, 3))
    for inverse in (False, True):
        np.testing.assert_allclose(ours.apply(v, inverse), theirs.apply(v, inverse), atol=1e-12)
    t = RNG.uniform(0, 8, 12)
    np.testing.assert_allclose(
        Slerp.init(weights, ours)(t).as_matrix(), ssp.Slerp(weights, theirs)(t).as_matrix(), atol=1e-12
    )
    assert len(ours) == 9 and not ours.single and ours[0].single
    assert len(Rotation.concatenate([ours, ours[0]])) == 10
    with pytest.raises(TypeError, match="no len"):
        len(ours[0])


def test_rotations_are_pytrees_and_differentiable():
    r = Rotation.random(random.key(0), 3)
    np.testing.assert_allclose(np.linalg.norm(r.quat, axis=-1), 1)
    assert pytree.tree_structure(r).num_leaves == 1
    assert jit(lambda r: r.inv())(r).quat.shape == (3, 4)
    assert Rotation.identity(2).quat.shape == (2, 4)
    for v in (np.array([0.3, -1.0, 0.2]), np.zeros(3)):
        check_grads(lambda v: Rotation.from_rotvec(v).as_matrix(), (v,), order=2)
        check_grads(lambda v: Rotation.from_rotvec(v).as_rotvec(), (v,), order=1)


def test_vector_quantization():
    x, codes = RNG.standard_normal((6, 3)), RNG.standard_normal((4, 3))
    for got, want in zip(cluster.vq.vq(x, codes), scipy.cluster.vq.vq(x, codes), strict=True):
        np.testing.assert_allclose(got, want)
    with pytest.raises(ValueError, match="one length"):
        cluster.vq.vq(x, codes[:, :2])
