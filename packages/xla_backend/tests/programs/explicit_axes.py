"""Explicit axes on eight CPU devices: python explicit_axes.py NAME"""

import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax import numpy as jnp
from bedrax.autodiff import checkpoint, grad, jvp, value_and_grad
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct, typeof
from bedrax.core.staging import make_jaxpr
from bedrax.parallel import AxisType, ShardingTypeError, auto_axes, explicit_axes, reshard, set_mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.xla_backend.sharding import NamedSharding

mesh = xla.make_mesh((2, 4), ("x", "y"))
rng = np.random.default_rng(0)
M = rng.normal(size=(8, 8)).astype(np.float32)
put = lambda value, *spec: xla.device_put(value, NamedSharding(mesh, P(*spec)))
A, B, C = put(M, "x", "y"), put(M, "x"), put(M, "y", "x")
v = put(M[0], "x")
text = lambda x: typeof(x).short()


def refuses(action, *words):
    try:
        action()
    except ShardingTypeError as error:
        assert all(w in str(error) for w in words), error
    else:
        raise AssertionError(words)


def no_collectives():
    # what is refused, and what is not, is what upstream 0.12.0.1 answers
    from bedrax.parallel import no_collectives, shard_map
    from bedrax.parallel.explicit import ForbiddenCollectiveError

    over = lambda spec_in, spec_out, f: shard_map(f, in_specs=spec_in, out_specs=spec_out)
    cases = {  # function, operands, the axes over which it needs a collective
        "sum": (lambda a: jnp.sum(a), (A,), "xy"),
        "rows": (lambda a: jnp.sum(a, 0), (A,), "x"),
        "columns": (lambda a: jnp.max(a, 1), (A,), "y"),
        "argmax": (lambda a: jnp.argmax(a, 0), (A,), "x"),
        "gather": (lambda a: reshard(a, P(None, "y")), (A,), "x"),
        "swap": (lambda a: reshard(a, P("y", "x")), (A,), "xy"),
        "cut": (lambda a: reshard(a, P("x", "y")), (B,), ""),
        "add": (lambda a: a + a.mean(), (v,), "x"),
        "transpose": (lambda a: a.T * 2, (A,), ""),
        "slice": (lambda a: a[:4], (A,), ""),
        "product": (lambda a, b: a @ b, (put(M, "x"), put(M)), ""),
        "contraction": (lambda a, b: jnp.dot(a, b, out_sharding=P("x", None)), (A, put(M, "y")), "y"),
        "einsum": (lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", None)), (A, put(M, "y")), "y"),
        "of rows": (lambda a, b: jnp.dot(a, b, out_sharding=P()), (put(M, None, "x"), B), "x"),
        "moved": (lambda a, b: jnp.dot(a, b, out_sharding=P(None, "x")), (put(M, "x"), put(M)), "x"),
        "index": (lambda a: a.at[jnp.array([0, 1])].get(out_sharding=P()), (A,), "xy"),
        "reshape": (lambda a: lax.reshape(a, (64,), out_sharding=P()), (A,), "xy"),
        "gradient": (grad(lambda a: (a * a).sum()), (A,), "xy"),
        "psum": (over(P("x", "y"), P(None, "y"), lambda b: lax.psum(b, "x")), (A,), "x"),
        "inside a loop": (
            over(
                P("x", "y"),
                P("x", "y"),
                lambda b: lax.fori_loop(0, 2, lambda i, c: lax.ppermute(c, "y", [(0, 1), (1, 0), (2, 3), (3, 2)]), b),
            ),
            (A,),
            "y",
        ),
        "index of a device": (over(P("x", "y"), P("x", "y"), lambda b: b + lax.axis_index("x")), (A,), ""),
        "vmap": (over(P("x", "y"), P("x", "y"), vmap(lambda r: r - lax.psum(r, "i"), axis_name="i")), (A,), ""),
    }
    with set_mesh(mesh):
        for name, (f, operands, axes) in cases.items():
            whole = xla.jit(f)(*operands)  # a program that is kept
            for axis in "xy":
                for run in (xla.jit(f), f):
                    if name in ("gradient", "index", "slice") and run is f:
                        continue
                    try:
                        with no_collectives({axis}):
                            out = run(*operands)
                    except ForbiddenCollectiveError as error:
                        assert axis in axes and repr(axis) in str(error), (name, axis, error)
                    else:
                        assert axis not in axes, (name, axis)
                        np.testing.assert_allclose(out, whole, rtol=1e-5)
        with no_collectives({"x"}), no_collectives({"y"}):
            jnp.sum(A, 0)
        for bad in ("x", ("x",), None):
            try:
                no_collectives(bad)
            except TypeError as error:
                assert "a set of names" in str(error)
            else:
                raise AssertionError(bad)


def types():
    assert text(A) == "f32[8@x,8@y]" and typeof(A).sharding.spec == P("x", "y")
    assert typeof(put(M)).sharding.spec == P(None, None) and text(put(M, ("x", "y"))) == "f32[8@(x,y),8]"
    auto = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    assert typeof(xla.device_put(M, NamedSharding(auto, P("x")))).split is None
    # what is not split has a sharding, too: of the mesh in force, and an empty one where no axis is named
    with set_mesh(auto):
        typed = typeof(jnp.ones((2, 3))).sharding
    assert typed.spec == P(None, None) and typed.mesh.axis_types == auto.axis_types
    nothing = typeof(1.0).sharding
    assert (
        nothing.spec == P()
        and nothing.mesh.empty
        and typeof(jnp.zeros(3, out_sharding=nothing)) == typeof(jnp.zeros(3))
    )
    assert "f32[8@y] = reduce_sum" in str(make_jaxpr(lambda a: lax.reduce_sum(lax.sin(a), (0,)))(A))
    shape = ShapeDtypeStruct((8, 8), np.float32, sharding=A.sharding)
    assert xla.jit(lambda a: lax.sin(a)).lower(shape).compile()(A).sharding == A.sharding


def a_constraint_says_what_is_known():
    for run in (lambda f: f, xla.jit):
        same = run(lambda a: xla.with_sharding_constraint(a, NamedSharding(mesh, P(("x",), "y"))))(A)
        assert same.sharding == A.sharding
        try:
            run(lambda a: xla.with_sharding_constraint(a, NamedSharding(mesh, P("y", "x"))))(A)
        except AssertionError as error:
            assert "split as P('x', 'y'), not as P('y', 'x')" in str(error) and "reshard" in str(error)
        else:
            raise AssertionError("it was moved")


def a_constraint_is_about_automatic_axes():
    """The split over explicit axes is a fact of the type, so a constraint keeps it."""
    mixed = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    rows = xla.device_put(M, NamedSharding(mixed, P("x")))
    with set_mesh(mixed):
        for spec, split in ((P(None, "y"), P("x", "y")), (P("y"), P(("x", "y"), None)), (P(), P("x", None))):
            for run in (lambda f: f, xla.jit):
                for constrained in (
                    lambda a, spec=spec: xla.with_sharding_constraint(a, spec),
                    lambda a, spec=spec: lax.sin(xla.with_sharding_constraint(a, spec)),
                    grad(lambda a, spec=spec: (xla.with_sharding_constraint(a, spec) ** 2).sum()),
                ):
                    out = run(constrained)(rows)
                    assert text(out) == "f32[8@x,8]" and out.sharding.spec[0] in ("x", split[0]), out.sharding
            exact = xla.jit(lambda a, spec=spec: xla.with_sharding_constraint(a, spec))(rows)
            assert exact.sharding.is_equivalent_to(NamedSharding(mixed, split), 2), exact.sharding
        each = xla.jit(vmap(lambda a: xla.with_sharding_constraint(a, P("y")), in_axes=1))(rows)
        assert text(each) == "f32[8,8@x]"
        for spec in (P("x"), P("x", "y"), P(("x", "y")), P(None, "x")):
            for run in (lambda f: f, xla.jit):
                try:
                    run(lambda a, spec=spec: xla.with_sharding_constraint(a, spec))(rows)
                except ValueError as error:
                    assert "explicit axes ['x']" in str(error) and "reshard" in str(error), error
                else:
                    raise AssertionError(spec)


def explicit_only_inside():
    auto = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    inside = explicit_axes(lambda a: lax.sin(a), in_sharding=P("x", "y"))
    with set_mesh(auto):
        for f in (inside, xla.jit(inside), xla.jit(lambda a: inside(a) * 2)):
            out = f(M)
            assert out.sharding == NamedSharding(auto, P("x", "y")) and typeof(out).split is None, out.sharding
        np.testing.assert_allclose(out, 2 * np.sin(M), rtol=1e-5)


def another_shape():
    from bedrax.parallel import AbstractMesh
    from bedrax.parallel.meshes import use_abstract_mesh

    with set_mesh(mesh):

        def flat(a):
            with use_abstract_mesh(AbstractMesh((8,), ("all",), (AxisType.Explicit,))):
                moved = reshard(a, P("all"))
                assert text(moved) == "f32[8@all,8]", text(moved)
                return moved * 2

        for f in (flat, xla.jit(flat)):
            out = f(A)
            assert text(out) == "f32[8@all,8]" and out.sharding.mesh.shape_tuple == (("all", 8),)
            assert list(out.sharding.mesh.devices.flat) == list(mesh.devices.flat)
            np.testing.assert_allclose(np.asarray(out), M * 2)
        ct = xla.jit(grad(lambda a: reshard(flat(a), P("x", "y")).sum()))(A)
        assert text(ct) == text(A)
        np.testing.assert_array_equal(ct, np.full(M.shape, 2, np.float32))


def inferred():
    from bedrax.parallel import shard_map

    with set_mesh(mesh):
        whole = jnp.ones((2, 8))  # its type is of no mesh, and is not split
        f = shard_map(lambda a, b: (a * b.sum(), typeof(a).shape, typeof(b).shape)[0], out_specs=P("x", "y"))
        np.testing.assert_allclose(np.asarray(f(A, whole)), M * 16, rtol=1e-6)
        seen = []
        shard_map(lambda a: seen.append(typeof(a).shape) or a, out_specs=P("x"), axis_names={"x"})(A)
        assert seen == [(4, 8)]
    auto = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    for names in (set(), {"y"}):
        try:
            shard_map(lambda a: a, out_specs=P(), mesh=auto, axis_names=names)(M)
        except TypeError as error:
            assert "over the axes ['y']" in str(error), error
        else:
            raise AssertionError(names)


def rules():
    from bedrax.lax.primitives.linalg import triangular_solve

    I = put(2 * np.eye(8, dtype=np.float32))
    sums = lambda x, window, padding: lax.reduce_window(x, np.float32(0), lax.add, window, (1, 1), padding)
    wrote = lambda x, part, i: np.concatenate([x[:i], part, x[i + len(part) :]])
    cases = [
        (lambda: A + B, M + M, "8@x,8@y"),
        (lambda: A * 2, M * 2, "8@x,8@y"),
        (lambda: A.T, M.T, "8@y,8@x"),
        (lambda: A.sum(0), M.sum(0), "8@y"),
        (lambda: A.mean(1), M.mean(1), "8@x"),
        (lambda: A.reshape(64), M.reshape(64), "64@(x,y)"),
        (lambda: B.reshape(2, 4, 8), M.reshape(2, 4, 8), "2@x,4,8"),
        (lambda: A.reshape(8, 1, 8), M.reshape(8, 1, 8), "8@x,1,8@y"),
        (lambda: B @ B, M @ M, "8@x,8"),
        (lambda: B.reshape(8, 2, 4), M.reshape(8, 2, 4), "8@x,2,4"),
        (lambda: jnp.broadcast_to(v, (4, 8)), np.broadcast_to(M[0], (4, 8)), "4,8@x"),
        (lambda: jnp.concatenate([A, A]), np.concatenate([M, M]), "16@x,8@y"),
        (lambda: jnp.stack([A, A], 1), np.stack([M, M], 1), "8@x,2,8@y"),
        (lambda: jnp.where(A > 0, A, 0), np.where(M > 0, M, 0), "8@x,8@y"),
        (lambda: jnp.sort(B, 1), np.sort(M, 1), "8@x,8"),
        (lambda: jnp.cumsum(B, 1), np.cumsum(M, 1), "8@x,8"),
        (lambda: jnp.argmax(A, 0), M.argmax(0), "8@y"),
        (lambda: jnp.zeros_like(A), 0 * M, "8@x,8@y"),
        (lambda: B[:, 2], M[:, 2], "8@x"),
        (lambda: B[:, ::2], M[:, ::2], "8@x,4"),
        (lambda: B[:, jnp.array([0, 3])], M[:, [0, 3]], "8@x,2"),
        (lambda: B.at[:, 0].set(1.0)[:, 1:], M[:, 1:], "8@x,7"),
        (lambda: jnp.einsum("ij,jk->ik", B, M), M @ M, "8@x,8"),
        (lambda: jnp.pad(B, ((0, 0), (1, 0)))[:, 1:], M, "8@x,8"),
        (lambda: jnp.split(B, 2, axis=1)[1], M[:, 4:], "8@x,4"),
        (lambda: jnp.tile(B, (1, 2)), np.tile(M, (1, 2)), "8@x,16"),
        (lambda: jnp.fft.fft(B).real, np.fft.fft(M).real, "8@x,8"),
        (lambda: jnp.squeeze(A[:, :, None], 2), M, "8@x,8@y"),
        # the blocks of several mesh axes are those of several dimensions, and the other way round
        (lambda: put(M[0], ("x", "y")).reshape(2, 4), M[0].reshape(2, 4), "2@x,4@y"),
        (lambda: put(M, None, ("x", "y")).reshape(8, 2, 4), M.reshape(8, 2, 4), "8,2@x,4@y"),
        (lambda: put(M.reshape(64), ("x", "y")).reshape(2, 8, 4), M.reshape(2, 8, 4), "2@x,8@y,4"),
        (lambda: put(M.reshape(64), ("x", "y")).reshape(8, 8), M, "8@(x,y),8"),
        (lambda: put(M.reshape(2, 4, 8), "x", "y").reshape(8, 8), M, "8@(x,y),8"),
        (lambda: put(M.reshape(2, 32), "x", "y").reshape(64), M.reshape(64), "64@(x,y)"),
        (lambda: put(M.reshape(2, 32), "x", "y").reshape(8, 8), M, "8@(x,y),8"),
        (lambda: B.reshape(8, 8, order="F"), M, "8@x,8"),
        (lambda: lax.bitcast_convert_type(B, np.uint16), M.view(np.uint16).reshape(8, 8, 2), "8@x,8,2"),
        (lambda: lax.bitcast_convert_type(put(M.view(np.uint8).reshape(8, 8, 4), "x"), np.float32), M, "8@x,8"),
        # the bits of an element are gathered
        (
            lambda: lax.bitcast_convert_type(put(M.view(np.uint8).reshape(8, 8, 4), None, "x", "y"), np.float32),
            M,
            "8,8@x",
        ),
        (lambda: jnp.diag(v), np.diag(M[0]), "8@x,8"),
        (lambda: jnp.diagflat(v, 8), np.diag(M[0], 8), "16@x,16"),
        (lambda: lax.approx_max_k(B, 8)[0], -np.sort(-M), "8@x,8"),
        (lambda: lax.dynamic_update_slice(B, put(M[:4], "x"), (1, 0)), wrote(M, M[:4], 1), "8@x,8"),
        (lambda: jnp.linalg.solve(I, put(M, None, "x")), M / 2, "8,8@x"),
        (lambda: triangular_solve(I, B, lower=True), M / 2, "8@x,8"),
        # windows over parts of several devices
        (lambda: sums(B, (2, 1), "SAME"), M + wrote(0 * M, M[1:], 0), "8@x,8"),
        (lambda: sums(B, (2, 1), ((1, 0), (0, 0))), M + wrote(0 * M, M[:-1], 1), "8@x,8"),
        (lambda: sums(B, (3, 1), ((1, 1), (0, 0))), M + wrote(0 * M, M[:-1], 1) + wrote(0 * M, M[1:], 0), "8@x,8"),
        (lambda: grad(lambda b: sums(b, (2, 1), "SAME").sum())(B), np.r_[np.ones((1, 8)), np.full((7, 8), 2)], "8@x,8"),
        (lambda: vmap(lambda r: (v, r)[0])(put(M, "y")), np.stack([M[0]] * 8), "8@y,8@x"),
        (lambda: jnp.convolve(M[0], M[1], "same") + 0 * v, np.convolve(M[0], M[1], "same"), "8@x"),
    ]
    for i, (make, want, dims) in enumerate(cases):
        for x in (make(), xla.jit(make)()):
            np.testing.assert_allclose(np.asarray(x), want, rtol=2e-4, atol=1e-4, err_msg=str(i))
            assert f"[{dims}]" in text(x), (i, text(x), dims)
            typed = typeof(x).sharding.spec
            assert x.sharding.is_equivalent_to(NamedSharding(mesh, typed), x.ndim), (i, x.sharding)


def batches():
    # every factor is one of a batch of matrices or vectors, and no axis of a matrix is split
    spd = np.stack([M @ M.T + 9 * np.eye(8, dtype=np.float32)] * 8)
    S, d = put(spd, "x"), put(np.full((8, 8), 9, np.float32), "x")
    from bedrax.lax.primitives.linalg import tridiagonal_solve

    image = rng.normal(size=(4, 8, 8, 2)).astype(np.float32)
    pool = lambda a: lax.reduce_window(a, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    twice = lambda a: jnp.sum(pool(a) ** 2)
    second = lambda a: jvp(grad(twice), (a,), (a,))[1]
    cases = [
        (lambda: jnp.linalg.inv(S), np.linalg.inv(spd), "8@x,8,8"),
        (lambda: jnp.linalg.det(S) / 1e8, np.linalg.det(spd) / 1e8, "8@x"),
        (lambda: jnp.linalg.solve(S, d[..., None]), np.linalg.solve(spd, np.asarray(d)[..., None]), "8@x,8,1"),
        (lambda: jnp.linalg.qr(S)[0] @ jnp.linalg.qr(S)[1], spd, "8@x,8,8"),
        (lambda: tridiagonal_solve(0 * d, d, 0 * d, 9 * d[..., None]), np.full((8, 8, 1), 9), "8@x,8,1"),
        (lambda: jnp.fft.fft(A, axis=0).real, np.fft.fft(M, axis=0).real, "8@x,8@y"),
        (lambda: lax.dynamic_slice(A, (0, 1), (8, 4)), M[:, 1:5], "8@x,4@y"),
        (lambda: grad(twice)(put(image, "x")), grad(twice)(image), "4@x,8,8,2"),
        (lambda: second(put(image, "x")), second(image), "4@x,8,8,2"),
    ]
    for i, (make, want, dims) in enumerate(cases):
        for x in (make(), xla.jit(make)()):
            np.testing.assert_allclose(np.asarray(x), want, rtol=2e-3, atol=1e-3, err_msg=str(i))
            assert f"[{dims}]" in text(x), (i, text(x), dims)


def keys():
    from bedrax import random

    flat = random.split(random.key(0), 8)
    K, K2 = (xla.device_put(k, NamedSharding(mesh, P(*s))) for k, s in ((flat, "x"), (flat.reshape(2, 4), "xy")))
    assert text(K) == "key<fry>[8@x]" and text(K2) == "key<fry>[2@x,4@y]"
    assert text(random.key_data(K)) == "u32[8@x,2]" and text(random.wrap_key_data(random.key_data(K))) == text(K)
    cases = [
        (lambda k: vmap(lambda k: random.normal(k, (4,)))(k), K, "8@x,4"),
        (lambda k: vmap(lambda k: random.gamma(k, 2.0, (4,)))(k), K, "8@x,4"),
        (lambda k: vmap(lambda k: random.randint(k, (4,), 0, 9))(k), K, "8@x,4"),
        (lambda k: vmap(lambda k: random.permutation(k, 5))(k), K, "8@x,5"),
        (lambda k: vmap(lambda k, r: random.categorical(k, r))(k, B), K, "8@x"),
        (lambda k: vmap(lambda k, i: random.bits(random.fold_in(k, i)))(k, jnp.arange(8)), K, "8@x"),
        (lambda k: random.key_data(vmap(lambda k: random.split(k, 3))(k)), K, "8@x,3,2"),
        (lambda k: random.key_data(k.reshape(2, 4)), K, "2@x,4,2"),
        (lambda k: vmap(vmap(lambda k: random.normal(k, (3,))))(k), K2, "2@x,4@y,3"),
        (lambda k: random.gamma(random.key(1), jnp.abs(A) + 1), K, "8@x,8@y"),
        (lambda k: random.permutation(random.key(1), A, out_sharding=P("x")), K, "8@x,8"),
    ]
    with set_mesh(mesh):
        for i, (f, k, dims) in enumerate(cases):
            eager, jitted = f(k), xla.jit(f)(k)
            assert text(eager).endswith(f"[{dims}]") and text(jitted) == text(eager), (i, text(eager), text(jitted))
            assert jitted.sharding.is_equivalent_to(NamedSharding(mesh, typeof(jitted).sharding.spec), jitted.ndim)
            np.testing.assert_allclose(eager, jitted, rtol=1e-5, err_msg=str(i))
        one = vmap(lambda k: random.normal(k, (4,)))(flat)
        np.testing.assert_allclose(one, vmap(lambda k: random.normal(k, (4,)))(K), rtol=1e-5)


def gradients():
    """A gradient has the type of its argument, also where no cotangent arrives."""
    whole = put(M)
    for f in (
        lambda a, b: (a * b).sum(),
        lambda a, b: (a + b.sum(0)).sum(),
        lambda a, b: jnp.argmax(a) * 1.0,
        lambda a, b: lax.dynamic_update_slice(a, b[:4], (0, 0)).sum() if a is b else a.sum(),
        lambda a, b: lax.stop_gradient(b).sum() + lax.sin(a).sum(),
    ):
        want = grad(f, (0, 1))(M, M)
        for args in ((A, whole), (whole, A), (B, whole), (whole, B), (B, B), (whole, whole)):
            for g in (grad(f, (0, 1)), xla.jit(grad(f, (0, 1)))):
                for got, arg, value in zip(g(*args), args, want, strict=True):
                    assert text(got) == text(arg), (text(got), text(arg))
                    np.testing.assert_allclose(got, value, rtol=1e-5)

    for f in (lambda a: lax.broadcast_like(M[0], a), lambda a: jnp.zeros_like(a) + M[0]):
        for x in (f(A), xla.jit(f)(A)):
            assert text(x) == "f32[8@x,8@y]"
            np.testing.assert_array_equal(x, np.broadcast_to(M[0], (8, 8)))


def errors():
    refuses(lambda: A + C, "add of f32[8@x,8@y], f32[8@y,8@x]: axis 0", "'x'", "'y'", "jax.sharding.reshard")
    refuses(lambda: A @ A, "contracted axes (1 of the first operand, 0 of the second)", "out_sharding=P(...)")
    refuses(lambda: B @ C, "'x' along two axes")
    refuses(lambda: put(M, ("y", "x")).reshape(2, 4, 8), "how these are split is not clear")
    refuses(lambda: A.reshape(8, 2, 4), "axes [1] become axes [1, 2] of shape (8, 2, 4)", "out_sharding")
    refuses(lambda: A[:3], "axis 0 of the result has size 3, no multiple of the 2 parts over 'x'")
    refuses(lambda: A[jnp.array([0, 1])], "only a part of that axis is read", "None for axis 0")
    refuses(lambda: jnp.cumsum(A, 0), "operand 0 is split over 'x' along axis 0")
    refuses(lambda: jnp.sort(A, 0), "sort of f32[8@x,8@y]")
    other = xla.make_mesh((8,), ("x",))
    refuses(
        lambda: xla.jit(lambda a, b: a + b).trace(A, xla.device_put(M, NamedSharding(other, P("x")))),
        "different meshes",
    )


def moving():
    with set_mesh(mesh):
        assert [text(v) for v in reshard([M, M[0], M[0, 0]], P(None, None))] == ["f32[8,8]", "f32[8]", "f32[]"]
        assert text(reshard(A, P("y"))) == "f32[8@y,8]" and reshard(A, P("y")).sharding.spec == P("y", None)
        assert text(xla.jit(lambda a: reshard(a, P(None, "x")))(A)) == "f32[8,8@x]"
        assert text(jnp.dot(A, C, out_sharding=P("x"))) == "f32[8@x,8]"
        assert text(jnp.reshape(A, (8, 2, 4), out_sharding=P("x", None, "y"))) == "f32[8@x,2,4@y]"
        for f, of in ((lax.reduce_max, np.max), (lax.reduce_min, np.min), (lax.reduce_sum, np.sum)):
            for g in (f, xla.jit(f, static_argnums=1, static_argnames="out_sharding")):
                r = g(A, (0,), out_sharding=P("x"))
                assert text(r) == "f32[8@x]" and r.sharding.spec == P("x")
                np.testing.assert_allclose(r, of(M, 0), rtol=1e-4, atol=1e-5)
        for weights in (None, put(M, "x", "y")):
            counts, edges = jnp.histogram(A, 8, range=(-4, 4), weights=weights, out_sharding=P("x"))
            assert text(counts) == "f32[8@x]", text(counts)
            np.testing.assert_allclose(counts, np.histogram(M, 8, (-4, 4), weights=weights)[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(edges, np.linspace(-4, 4, 9))
        got = A.at[jnp.array([0, 1])].get(out_sharding=P(None, "y"))
        assert text(got) == "f32[2,8@y]"
        np.testing.assert_array_equal(got, M[:2])
        f = auto_axes(lambda a: jnp.cumsum(a @ a, 0), out_sharding=P("x"))
        for g in (f, xla.jit(f)):
            assert text(g(A)) == "f32[8@x,8]"
            np.testing.assert_allclose(g(A), np.cumsum(M @ M, 0), rtol=1e-3, atol=1e-4)
        typed = []  # called eagerly, it gets arrays: where they are they know, their types do not tell
        auto_axes(lambda a: (typed.append((text(a), a.sharding.spec, float(a[0, 0]))), a)[1], out_sharding=P("x"))(A)
        assert typed == [("f32[8,8]", P("x", "y"), float(M[0, 0]))]
        d = grad(lambda a: f(a).sum())(A)
        assert text(d) == "f32[8@x,8@y]"
        np.testing.assert_allclose(d, grad(lambda a: jnp.cumsum(a @ a, 0).sum())(M), rtol=1e-3, atol=1e-3)
    auto = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    with set_mesh(auto):
        seen = []
        h = explicit_axes(lambda a: (seen.append(text(a)), a * 2)[1], in_sharding=P("x"))
        w = xla.device_put(M, NamedSharding(auto, P("x")))
        for g in (h, xla.jit(h)):
            np.testing.assert_array_equal(g(w), 2 * M)
        assert set(seen) == {"f32[8@x,8]"}
        made = explicit_axes(lambda: jnp.ones((8, 2), out_sharding=P("x")))(in_sharding=None)  # nothing to split
        assert {s.data.shape for s in made.addressable_shards} == {(4, 2)}


def compiled_functions():
    from bedrax.xla_backend.ffi import ffi_call

    batch = put(np.stack([M @ M.T + 9 * np.eye(8, dtype=np.float32)] * 8), ("x",))

    def cholesky(a, where=None):
        out = (ShapeDtypeStruct(a.shape, a.dtype, sharding=where), ShapeDtypeStruct(a.shape[:1], np.int32))
        call = ffi_call("lapack_spotrf_ffi", out, input_layouts=[(0, 2, 1)], output_layouts=[(0, 2, 1), None])
        return call(a, uplo=np.uint8(ord("L")))[0]

    for where, typed in ((None, "f32[8,8,8]"), (batch.sharding, "f32[8@x,8,8]")):
        f = lambda a: cholesky(a, where)
        for g in (f, xla.jit(f)):
            assert text(g(batch)) == typed, text(g(batch))
            assert where is None or g(batch).sharding.is_equivalent_to(where, 3)
            np.testing.assert_allclose(np.tril(g(batch)), np.linalg.cholesky(batch), rtol=1e-4)
    seen = []
    xla.jit(lambda a: (seen.append(ShapeDtypeStruct.like(a)), a)[1])(batch)
    assert text(seen[0]) == text(ShapeDtypeStruct.like(batch)) == "f32[8@x,8,8]"


def some_axes():
    seen = []

    def f(a):
        seen.append(text(a))
        return jnp.cumsum(jnp.sin(a), 1)

    part = auto_axes(f, axes="y", out_sharding=P("x", "y"))
    with set_mesh(mesh):
        for g in (part, xla.jit(part)):
            assert text(g(A)) == "f32[8@x,8@y]"
            np.testing.assert_allclose(g(A), np.cumsum(np.sin(M), 1), rtol=1e-5, atol=1e-5)
        d = grad(lambda a: part(a).sum())(A)
        assert text(d) == "f32[8@x,8@y]"
        np.testing.assert_allclose(d, grad(lambda a: jnp.cumsum(jnp.sin(a), 1).sum())(M), rtol=1e-4, atol=1e-5)
        refuses(lambda: auto_axes(lambda a: jnp.cumsum(a, 0), axes="y", out_sharding=P())(A), "cumsum of f32[8@x,8]")
        nothing = auto_axes(lambda a: jnp.cumsum(a, 0), axes="x", out_sharding=P(None, "y"))
        assert text(nothing(A)) == "f32[8,8@y]"
        # what is left to the compiler stays split: it is not gathered because types do not tell it
        made = xla.jit(part).lower(A).as_text()
        assert '{"x", ?}' in made and made.count("sdy.sharding_constraint") > 1
    assert set(seen) == {"f32[8@x,8]"}
    seen.clear()
    mixed = xla.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    with set_mesh(mixed):
        w = xla.device_put(M, NamedSharding(mixed, P("x")))
        twice = explicit_axes(lambda a: (seen.append(text(a)), a * 2)[1], axes="y", in_sharding=P("x", "y"))
        for g in (twice, xla.jit(twice)):
            assert text(g(w)) == "f32[8@x,8]", text(g(w))
            np.testing.assert_array_equal(g(w), 2 * M)
    assert set(seen) == {"f32[8@x,8@y]"}


def transformations():
    f = lambda a: jnp.sum(jnp.tanh(a) ** 2)
    for g in (
        grad(f),
        xla.jit(grad(f)),
        grad(checkpoint(f)),
        grad(lambda a: f(xla.jit(jnp.sin)(a))),
        grad(lambda a: a.sum()),
    ):
        assert text(g(A)) == "f32[8@x,8@y]" and g(A).sharding == A.sharding
    np.testing.assert_allclose(grad(f)(A), grad(f)(M), rtol=1e-5, atol=1e-6)
    assert text(jvp(jnp.sin, (A,), (A,))[1]) == "f32[8@x,8@y]"
    assert text(vmap(lambda a: jnp.sin(a) * 2)(A)) == "f32[8@x,8@y]"
    assert text(vmap(lambda a, b: a @ b)(B, B)) == "f32[8@x]"
    with set_mesh(mesh):
        ones = lambda: vmap(lambda r: jnp.ones(3), out_axes=1)(B)
        assert text(ones()) == text(xla.jit(ones)()) == "f32[3,8@x]"
    assert text(vmap(grad(lambda a: f(a * 2)))(B)) == "f32[8@x,8]"
    # programs inside: calls, loops, branches, blocks
    inner = [
        xla.jit(jnp.sin),
        checkpoint(jnp.sin),
        lambda r: lax.scan(lambda c, _: (jnp.sin(c), None), r, None, length=2)[0],
        lambda r: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, r),
        lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r),
    ]
    for g in inner:
        for h in (vmap(g), xla.jit(vmap(g))):
            assert text(h(A)) == "f32[8@x,8@y]", text(h(A))
            np.testing.assert_allclose(h(A), vmap(g)(M), rtol=1e-5)
    try:
        vmap(lambda a, b: a * b)(B, put(M, "y"))
    except ValueError as error:
        assert "split over 'x' and over 'y'" in str(error), error
    else:
        raise AssertionError("split in two ways")
    loop = lambda a: lax.scan(lambda c, _: (jnp.sin(c), c.sum(1)), a, None, length=3)
    (last, sums) = xla.jit(loop)(A)
    assert (text(last), text(sums)) == ("f32[8@x,8@y]", "f32[3,8@x]")
    np.testing.assert_allclose(last, np.sin(np.sin(np.sin(M))), rtol=1e-5)
    assert text(grad(lambda a: loop(a)[0].sum())(A)) == "f32[8@x,8@y]"
    assert text(lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, jnp.abs(v))) == "f32[8@x]"
    assert text(lax.cond(True, lambda c: c * 2, lambda c: c, v)) == "f32[8@x]"
    from bedrax.parallel import shard_map

    rows = shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    assert text(vmap(rows)(A)) == "f32[8@x,8@y]"
    with set_mesh(mesh):  # specs inside name the axes that are left
        seen = []

        def block(b):
            seen.append(text(b + lax.broadcasted_iota(np.float32, (4, 8), 1, out_sharding=P(None, "y"))))
            try:
                reshard(b, P("x"))
            except ValueError as error:
                assert "manual here" in str(error), error
            else:
                raise AssertionError("the axis is manual")
            return b

        xla.jit(shard_map(block, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(A)
        assert seen == ["f32[4,8@y]{V:x}"], seen
    twice = shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    for g in (twice, xla.jit(twice)):
        assert text(g(A)) == text(g(M)) == "f32[8@x,8@y]"


def training():
    # data parallel over x, the hidden layer over y: numbers of one device
    W1, W2 = rng.normal(size=(8, 16)).astype(np.float32), rng.normal(size=(16, 8)).astype(np.float32)

    def loss(params, inputs):
        hidden = jnp.tanh(inputs @ params[0])
        with set_mesh(mesh):
            out = jnp.dot(hidden, params[1], out_sharding=P("x") if typeof(inputs).split else None)
        return jnp.mean((out - 1) ** 2)

    def step(params, inputs):
        value, back = value_and_grad(loss)(params, inputs)
        return value, [p - 0.1 * g for p, g in zip(params, back)]

    params = [put(W1, None, "y"), put(W2, "y", None)]
    plain, losses = [W1, W2], []
    with set_mesh(mesh):
        for _ in range(3):
            value, params = xla.jit(step)(params, B)
            assert [text(p) for p in params] == ["f32[8,16@y]", "f32[16@y,8]"], [text(p) for p in params]
            losses.append(float(value))

    def plain_loss(params, inputs):
        return jnp.mean((jnp.tanh(inputs @ params[0]) @ params[1] - 1) ** 2)

    for value in losses:
        expected, back = value_and_grad(plain_loss)(plain, M)
        plain = [p - 0.1 * g for p, g in zip(plain, back)]
        np.testing.assert_allclose(value, float(expected), rtol=1e-5)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
