"""Partial sums over explicit axes on eight CPU devices: python partial_sums.py NAME"""

import dataclasses
import itertools
import pickle
import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax import numpy as jnp
from bedrax.autodiff import checkpoint, custom_vjp, grad, value_and_grad, vjp
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct, typeof
from bedrax.core.staging import make_jaxpr
from bedrax.parallel import AxisType, ShardingTypeError, UnreducedKind, auto_axes, reshard, set_mesh, shard_map
from bedrax.parallel import PartitionSpec as P
from bedrax.xla_backend.sharding import NamedSharding

mesh = xla.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
rng = np.random.default_rng(0)
M = rng.integers(-4, 5, (8, 4)).astype(np.float32)
V = rng.integers(-4, 5, (8,)).astype(np.float32)
text = lambda x: typeof(x).short()
at = lambda *spec, **sums: NamedSharding(mesh, P(*spec, **sums))
put = lambda value, *spec, **sums: xla.device_put(value, at(*spec, **sums))
parts = lambda x: [np.asarray(s.data) for s in x.addressable_shards]


def refuses(action, *words, error=ShardingTypeError):
    try:
        action()
    except error as raised:
        assert all(w in str(raised) for w in words), raised
    else:
        raise AssertionError(words)


def made():
    """A sum whose parts differ: each device has the sum of its rows."""
    return lax.reduce_sum(put(np.stack([M] * 8) * np.arange(8, dtype=np.float32)[:, None, None], ("x", "y")), (0,),
                          out_sharding=at(None, None, unreduced={"x", "y"}))  # fmt: skip


def arrays():
    u = put(M, "y", unreduced={"x"})
    assert text(u) == "f32[8@y,4]{U:x}" and str(typeof(u)) == "float32[8@y,4]{U:x}"
    assert typeof(u).sharding.spec == P("y", None, unreduced={"x"}) and typeof(u).manual_axis_type.empty
    assert not u.is_fully_replicated and put(M, reduced={"x"}).is_fully_replicated
    assert not u.sharding.is_equivalent_to(at("y"), 2) and at(reduced={"x"}).is_equivalent_to(at(), 2)
    assert at(unreduced={"x"}).replicated_axes == {"y"} and at(unreduced={"x"}) != at()
    np.testing.assert_array_equal(np.asarray(u), M)
    assert repr(u) == repr(xla.device_put(M)) and float(u.sum()) == M.sum() and u.tolist() == M.tolist()
    np.testing.assert_array_equal(sum(parts(u)[::2]), M[:4])
    w = made()
    assert text(w) == "f32[8,4]{U:(x,y)}" and len({p.tobytes() for p in parts(w)}) == 8
    np.testing.assert_array_equal(np.asarray(w), 28 * M)
    again = pickle.loads(pickle.dumps(w))
    assert again.sharding == w.sharding and text(again) == text(w)
    np.testing.assert_array_equal(parts(again), parts(w))
    scalar = put(np.float32(3), unreduced={"x"})
    assert [float(p) for p in parts(scalar)] == [3, 3] + [0] * 6 and float(scalar) == 3
    most = lax.reduce_max(put(M, "x"), (0,), out_sharding=at(None, unreduced={"x"}, unreduced_kind=UnreducedKind.max))
    assert text(most) == "f32[4]{U_max:x}" and text(-1 * put(V, unreduced={"x"})) == "f32[8]{U:x}"
    np.testing.assert_array_equal(np.asarray(most), M.max(0))
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(most))), M.max(0))
    for run in (lambda f: f, xla.jit):
        np.testing.assert_array_equal(run(lambda m: reshard(jnp.maximum(m, m)[None], at()))(most), M.max(0)[None])
    auto = xla.make_mesh((8,), ("x",), (AxisType.Auto,))
    refuses(lambda: NamedSharding(auto, P(unreduced={"x"})), "Explicit", error=ValueError)
    refuses(lambda: xla.device_put(M, most.sharding), "kind max", error=ValueError)


SPECS = [
    P(), P("x"), P("y"), P(("x", "y")), P(("y", "x")), P(None, "x"), P("x", "y"), P("y", "x"), P(unreduced={"x"}),
    P(unreduced={"y"}), P(unreduced={"x", "y"}), P("y", unreduced={"x"}), P("x", unreduced={"y"}),
    P(None, "x", unreduced={"y"}), P(reduced={"x"}), P("y", reduced={"x"}), P(unreduced={"y"}, reduced={"x"}),
]  # fmt: skip


def moves():
    """Moves from every placement to every other one, of a sum whose parts differ: eager, compiled, and transposed."""
    source = made()
    pairs = list(itertools.permutations(range(len(SPECS)), 2))
    for i, j in [*pairs[::5], (8, 9), (10, 0), (10, 3), (0, 10), (3, 10), (4, 8)]:
        a, b = SPECS[i], SPECS[j]
        x = reshard(source, NamedSharding(mesh, a))
        y = reshard(x, NamedSharding(mesh, b))
        z, back = vjp(xla.jit(lambda v, b=b: reshard(v, NamedSharding(mesh, b))), x)
        for out in (y, z):
            assert typeof(out).sharding.spec == P(*b, *[None] * (2 - len(b)), unreduced=b.unreduced, reduced=b.reduced)
            np.testing.assert_array_equal(np.asarray(out), 28 * M, err_msg=f"{a} to {b}")
        (ct,) = back(xla.device_put(M, NamedSharding(mesh, b.to_ct_spec())))
        have = (typeof(ct).split.spec.unreduced, typeof(ct).split.spec.reduced) if typeof(ct).split else (set(), set())
        assert have == (a.reduced, a.unreduced), (a, b, text(ct))
        np.testing.assert_array_equal(np.asarray(ct), M)
    f = xla.jit(lambda u: reshard(u, at("x", "y")))
    ops = f.lower(source).compile().as_text()
    assert "reduce-scatter" in ops and "all-reduce" not in ops and "all-gather" not in ops
    assert "all-" not in xla.jit(lambda v: reshard(v, at(unreduced={"x"}))).lower(put(M, "x")).compile().as_text()


def operations():
    u, r = put(M, unreduced={"x"}), put(M + 1, reduced={"x"})
    cases = [
        (lambda: u + u, 2 * M, "8,4]{U:x}"), (lambda: -u - u, -2 * M, "8,4]{U:x}"), (lambda: u * 2, 2 * M, "8,4]{U:x}"),
        (lambda: u / 4, M / 4, "8,4]{U:x}"), (lambda: u * r, M * (M + 1), "8,4]{U:x}"),
        (lambda: u.T, M.T, "4,8]{U:x}"), (lambda: u.sum(0), M.sum(0), "4]{U:x}"), (lambda: u.mean(), M.mean(), "]{U:x}"),
        (lambda: u.reshape(4, 8), M.reshape(4, 8), "4,8]{U:x}"), (lambda: u[2:4, ::2], M[2:4, ::2], "2,2]{U:x}"),
        (lambda: u[jnp.array([1, 1, 7])], M[[1, 1, 7]], "3,4]{U:x}"), (lambda: jnp.flip(u, 0), M[::-1], "8,4]{U:x}"),
        (lambda: jnp.pad(u, 1), np.pad(M, 1), "10,6]{U:x}"), (lambda: jnp.concatenate([u, u]), np.concatenate([M, M]), "16,4]{U:x}"),
        (lambda: jnp.cumsum(u, 0), M.cumsum(0), "8,4]{U:x}"), (lambda: u @ r.T, M @ (M + 1).T, "8,8]{U:x}"),
        (lambda: jnp.where(M > 0, u, -u), np.abs(M), "8,4]{U:x}"), (lambda: jnp.broadcast_to(u, (2, 8, 4)), np.stack([M, M]), "2,8,4]{U:x}"),
        (lambda: u.astype("bfloat16"), M, "8,4]{U:x}"), (lambda: lax.optimization_barrier(u), M, "8,4]{U:x}"),
        (lambda: u.at[0].set(3.0), np.concatenate([0 * M[:1] + 3, M[1:]]), "8,4]{U:x}"),
        (lambda: u.at[0].add(u[0]), np.concatenate([2 * M[:1], M[1:]]), "8,4]{U:x}"),
        (lambda: jnp.concatenate([u, M, 0 * M[:0]]), np.concatenate([M, M]), "16,4]{U:x}"),  # M is whole, one operand is empty
        (lambda: jnp.concatenate([u[:0], M]), M, "8,4]{U:x}"), (lambda: jnp.concatenate([u[:0], M[:0]]), M[:0], "0,4]{U:x}"),
        (lambda: jnp.zeros_like(u), 0 * M, "8,4]{U:x}"), (lambda: vmap(lambda v: v + v)(u), 2 * M, "8,4]{U:x}"),
        (lambda: jnp.sin(r), np.sin(M + 1), "8,4]{R:x}"), (lambda: r + 1, M + 2, "8,4]{R:x}"), (lambda: r + M, 2 * M + 1, "8,4]{R:x}"),
        (lambda: put(M, "x") + r, 2 * M + 1, "8@x,4]"), (lambda: put(M, "x") @ put(M.T, reduced={"x"}), M @ M.T, "8@x,8]"),
        (lambda: lax.fori_loop(0, 3, lambda i, c: c + u, u), 4 * M, "8,4]{U:x}"),
        (lambda: lax.cond(True, lambda c: c * 2, lambda c: c, u), 2 * M, "8,4]{U:x}"),
        (lambda: lax.scan(lambda c, v: (c + v, 2 * c), u[0], u)[0], M[0] + M.sum(0), "4]{U:x}"),
        (lambda: xla.jit(lambda v: v * 3)(u), 3 * M, "8,4]{U:x}"),
    ]  # fmt: skip
    for i, (make, want, dims) in enumerate(cases):
        for out in (make(), xla.jit(make)()):
            assert text(out).endswith(f"[{dims}"), (i, text(out), dims)
            np.testing.assert_allclose(np.asarray(out, np.float32), want, rtol=1e-5, atol=1e-5, err_msg=str(i))
            assert out.sharding.spec == typeof(out).sharding.spec
    other = put(M, unreduced={"y"})
    refuses(lambda: jnp.sin(u), "sin of parts are not parts of its result", "reshard", "unreduced=")
    refuses(lambda: u * u, "linear in each alone")
    refuses(lambda: u + 1, "operand 1 is not partial sums over 'x'", "reshard")
    refuses(lambda: u + other, "not partial sums over")
    refuses(lambda: u + put(M, "x"), "operand 1 is not partial sums over 'x'")
    refuses(lambda: u > 0, "gt of parts")
    refuses(lambda: 2 / u, "not linear in operand 1")
    refuses(lambda: u.astype(int), "not linear in operand 0")
    refuses(lambda: lax.cumprod(u), "cumprod of parts")
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    squared = lambda: lax.scatter_apply(u, np.array([[1]]), lax.square, rows, update_shape=(1, 4))
    refuses(squared, "not linear in operand 0")
    assert text(auto_axes(lambda a: jnp.sin(a), out_sharding=at("x"))(u)) == "f32[8@x,4]"


def results():
    """Products and reductions whose results are partial sums: no exchange."""
    a, b = put(M, None, "x"), put(M.T, "x")
    with set_mesh(mesh):
        for f, want in (
            (lambda: jnp.dot(a, b, out_sharding=P(unreduced={"x"})), M @ M.T),
            (lambda: jnp.einsum("ij,jk->ki", a, b, out_sharding=P(unreduced={"x"})), (M @ M.T).T),
            (lambda: jnp.dot(a, b, out_sharding=P("y", unreduced={"x"})), M @ M.T),
            (lambda: lax.reduce_sum(put(M, "x", "y"), (0, 1), out_sharding=P(unreduced={"x", "y"})), M.sum()),
            (lambda: lax.reduce_sum(put(M, "x", "y"), (0,), out_sharding=P("y", unreduced={"x"})), M.sum(0)),
            (lambda: jnp.dot(a, b, out_sharding=P(unreduced={"y"})), M @ M.T),
            (lambda: jnp.zeros(4, out_sharding=P(unreduced={"x"})), np.zeros(4)),
            (lambda: jnp.ones(4, out_sharding=P(unreduced={"x"})), np.ones(4)),
        ):
            for out in (f(), xla.jit(f)()):
                assert typeof(out).split.spec.unreduced, text(out)
                np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5)
        g = xla.jit(lambda a, b: jnp.dot(a, b, out_sharding=P(unreduced={"x"})))
        assert "all-" not in g.lower(a, b).compile().as_text()
        assert "{U:x}" in str(make_jaxpr(g)(a, b))
    u = put(M, unreduced={"x"})
    whole = xla.jit(lambda v: v + v, out_shardings=at("x"))(u)
    assert text(whole) == "f32[8@x,4]"
    np.testing.assert_array_equal(np.asarray(whole), 2 * M)
    assert text(xla.jit(lambda v: v + v, out_shardings=at(unreduced={"x"}))(put(M))) == "f32[8,4]{U:x}"
    refuses(lambda: xla.jit(lambda v: v, in_shardings=at(unreduced={"x"}))(M), "in_shardings", error=ValueError)
    shape = ShapeDtypeStruct(M.shape, M.dtype, sharding=u.sharding)
    compiled = xla.jit(lambda v: reshard(v * 2, at())).lower(shape).compile()
    np.testing.assert_array_equal(np.asarray(compiled(u)), 2 * M)
    captured = xla.jit(lambda: reshard(u + u, at()))()
    np.testing.assert_array_equal(np.asarray(captured), 2 * M)


def blocks():
    def over(f, *specs, out, **options):
        for run in (lambda f: f, xla.jit):
            yield run(shard_map(f, mesh=mesh, in_specs=specs or None, out_specs=out, **options))

    seen = []
    note = lambda v: (seen.append(text(v)), v)[1]
    a, u, r = put(M, "x", "y"), put(M, "x", unreduced={"y"}), put(M, "x", reduced={"y"})
    x, ux = P("x"), P("x", None, unreduced={"y"})
    for f, operand, spec, out, want in (
        (lambda v: note(lax.pcast(v, "y", to="unreduced")), a, P("x", "y"), ux, M[:, :2] + M[:, 2:]),
        (lambda v: lax.psum(note(v), "y"), u, ux, x, M),
        (lambda v: lax.psum(2 * v, ("x", "y")), u, ux, P(), 2 * M.reshape(4, 2, 4).sum(0)),
        (lambda v: lax.psum_scatter(v, "y", scatter_dimension=1, tiled=True), u, ux, P("x", "y"), M),
        (lambda v: note(v), r, P("x", reduced={"y"}), P("x", reduced={"y"}), M),
        (lambda v: lax.pcast(v, "y", to="varying"), r, P("x", reduced={"y"}), P("x", "y"), np.concatenate([M, M], 1)),
        (lambda v: lax.all_gather(v, "y", axis=1, tiled=True, to="reduced"), a, P("x", "y"), P("x", reduced={"y"}), M),
        (lambda v: v + v, u, ux, ux, 2 * M),
        (lambda v: v.at[0].set(3.0), u, ux, ux, np.where(np.arange(8)[:, None] % 2, M, 3)),
    ):
        for g in over(f, spec, out=out):
            y = g(operand)
            np.testing.assert_array_equal(np.asarray(y), want)
            assert typeof(y).split is None or typeof(y).split.spec.unreduced == out.unreduced
    assert set(seen) == {"f32[2,2]{V:x, U:y}", "f32[2,4]{V:x, U:y}", "f32[2,4]{V:x, R:y}"}, set(seen)
    assert text(shard_map(lambda v: v * 2, mesh=mesh, out_specs=ux)(u)) == "f32[8@x,4]{U:y}"
    refuses(lambda: next(over(lambda v: v, x, out=x))(u), "must be those of the type", error=ValueError)
    refuses(lambda: next(over(lambda v: v, ux, out=x))(u), "has the type f32[2,4]{V:x, U:y}", error=ValueError)
    # over some axes: types keep the split over the others
    some = shard_map(lambda v: note(v) * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    for g in (some, xla.jit(some)):
        assert text(g(a)) == "f32[8@x,4@y]" and text(g(u)) == "f32[8@x,4]{U:y}"
        np.testing.assert_array_equal(np.asarray(g(u)), 2 * M)
    assert {"f32[2,4@y]{V:x}", "f32[2,4]{V:x, U:y}"} <= set(seen)
    w = put(M[:2], reduced={"x"})

    def loss(w, a):
        body = lambda w, a: lax.psum(jnp.sin(w * a).sum(), "x")
        return shard_map(body, mesh=mesh, in_specs=(P(reduced={"x"}), x), out_specs=P())(w, a)

    rows = M.reshape(4, 2, 4)
    for g in (grad(loss), xla.jit(grad(loss)), grad(checkpoint(loss))):
        d = g(w, put(M, "x"))
        assert text(d) == "f32[2,4]{U:x}", text(d)
        np.testing.assert_allclose(np.asarray(d), (rows * np.cos(rows * M[:2])).sum(0), rtol=1e-5, atol=1e-5)


def exported_programs():
    """An exported program need not be linear: it refuses partial sums. Its results have the types of the program."""
    from bedrax.xla_backend import export

    with set_mesh(mesh):
        x = put(V, "x")
        columns = export.export(xla.jit(lambda v: lax.reduce_sum(lax.reshape(v, (2, 4)), (1,))))(
            ShapeDtypeStruct((8,), V.dtype)
        )
        for program in (columns.call, xla.jit(columns.call), lambda v: grad(lambda v: columns.call(v).sum())(v)):
            refuses(
                lambda: program(reshard(x, P(unreduced={"y"}))), "<lambda>", "argument 0 is f32[8]{U:y}", "Sum first"
            )
        assert (
            text(xla.jit(lambda v: (columns.call(v), typeof(columns.call(v)).short() == "f32[2]" or 1 / 0)[0])(x))
            == "f32[2]"
        )
        np.testing.assert_array_equal(columns.call(x), V.reshape(2, 4).sum(1))
        kept = export.deserialize(
            export.export(xla.jit(lambda v: (v * v).sum()))(ShapeDtypeStruct((8,), V.dtype)).serialize(1)
        )
        whole = put(V, reduced={"x"})
        assert text(kept.call(whole)) == "f32[]"
        for f in (kept.call, lambda v: (v * v).sum()):
            assert text(grad(f)(whole)) == "f32[8]{U:x}"
            np.testing.assert_array_equal(grad(f)(whole), 2 * V)
        for spec in (P(unreduced={"x"}), P(unreduced={"x"}, unreduced_kind=UnreducedKind.max)):
            f = shard_map(lambda u: u, in_specs=P("x"), out_specs=spec, check_vma=False)
            refuses(lambda: export.export(xla.jit(f))(x), "export of", "result 0 is f32[2]", "Sum first")
            made = f(x)
            refuses(lambda: export.export(xla.jit(lambda v: v))(made), "argument 0 is f32[2]", "Sum first")
        whole = export.export(xla.jit(lambda v: v * 2))(x)
        foreign = dataclasses.replace(whole, _out_named_shardings=(NamedSharding(mesh, P(unreduced={"x"})),))
        read = export.deserialize(foreign.serialize())  # as another writer may write it
        refuses(
            lambda: read.call(x), "call of the exported program '<lambda>'", "returns partial sums", "unreduced={'x'}"
        )
    assert text(whole.call(x)) == "f32[8@x]"


def a_rule_of_its_own():
    """The result of a custom_vjp has its own type, not that of an operand."""

    @custom_vjp
    def f(x):
        return reshard(x, P()).sum()

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (kinds.append(text(ct)) or reshard(x, P()) * ct,))
    kinds = []
    with set_mesh(mesh):
        assert text(grad(f)(put(V, reduced={"x"}))) == "f32[8]{U:x}"
        np.testing.assert_array_equal(grad(f)(put(V, reduced={"x"})), V)
        np.testing.assert_array_equal(xla.jit(grad(f))(put(V, "x")), V)
    assert set(kinds) == {"f32[]"}


def cotangents():
    """A whole cotangent of a split value is cut: gradients with respect to sums are partial sums."""
    inputs, w = put(M, "x"), put(M[:4], reduced={"x"})
    by = np.asarray([2, -1, 3, 0], np.float32)
    for f, back in (
        (lambda y: jnp.sum(y), np.ones((8, 4))),
        (lambda y: jnp.mean(y), np.full((8, 4), 1 / 32)),
        (lambda y: jnp.sum(y, 0) @ by, np.tile(by, (8, 1))),
        (lambda y: jnp.sum(jnp.sum(y, 1) ** 2), 2 * np.tile((M @ M[:4]).sum(1, keepdims=True), (1, 4))),
        (lambda y: y.sum(1).max(), np.eye(8)[(M @ M[:4]).sum(1).argmax()][:, None] * np.ones(4)),
    ):
        for product in (lambda w: inputs @ w, lambda w: jnp.einsum("bi,io->bo", inputs, w)):
            for run in (lambda g: g, xla.jit):
                g = run(grad(lambda w, f=f, product=product: f(product(w))))(w)
                assert text(g) == "f32[4,4]{U:x}", text(g)
                np.testing.assert_allclose(np.asarray(g), M.T @ back, rtol=1e-5)
    (g,) = vjp(lambda w: inputs @ w, w)[1](np.ones((8, 4), np.float32))
    assert text(g) == "f32[4,4]{U:x}"
    np.testing.assert_array_equal(np.asarray(g), M.T @ np.ones((8, 4)))


def training():
    """Data parallel over x: gradients are partial sums, summed once after all micro-batches."""
    W, B = rng.normal(size=(4, 4)).astype(np.float32), rng.normal(size=(4,)).astype(np.float32)
    batches = rng.normal(size=(3, 8, 4)).astype(np.float32)

    def loss(params, inputs):
        return jnp.mean(jnp.tanh(inputs @ params[0] + params[1]) ** 2)

    def step(params, batches, sums, total):
        reduced = [reshard(p, s) for p, s in zip(params, sums[0])]

        def one(grads, inputs):
            value, new = value_and_grad(loss)(reduced, inputs)
            return [a + b for a, b in zip(grads, new)], value

        zeros = [reshard(jnp.zeros_like(p), s) for p, s in zip(params, sums[1])]
        grads, values = lax.scan(one, zeros, batches)
        return values, [p - 0.1 * reshard(g, total(p)) for p, g in zip(params, grads)]

    sums = [[at(reduced={"x"})] * 2, [at(unreduced={"x"})] * 2]
    spread = put(batches, None, "x")
    run = xla.jit(lambda params, batches: step(params, batches, sums, lambda p: at()))
    params, plain = [put(W), put(B)], [W, B]
    ops = run.lower(params, spread).compile().as_text()
    body = [part for part in ops.split("\n\n") if "tanh" in part]
    assert body and "all-reduce" in ops
    for _ in range(2):
        values, params = run(params, spread)
        grads = [np.zeros_like(W), np.zeros_like(B)]
        for inputs, value in zip(batches, values, strict=True):
            want, new = value_and_grad(loss)(plain, inputs)
            np.testing.assert_allclose(float(value), float(want), rtol=1e-5)
            grads = [a + np.asarray(b) for a, b in zip(grads, new)]
        plain = [p - 0.1 * g for p, g in zip(plain, grads)]
        for p, q in zip(params, plain, strict=True):
            np.testing.assert_allclose(np.asarray(p), q, rtol=1e-5, atol=1e-6)
    # The bias is repeated for each row. Each device sums the gradients of its rows, and makes no array for all rows.
    of_bias = lambda b: grad(lambda b: loss([W, b], put(batches[0], "x")))(reshard(b, at(reduced={"x"})))
    assert "f32[4]{U:x}" in str(make_jaxpr(of_bias)(put(B))) and "f32[8,4]{U:x}" not in str(make_jaxpr(of_bias)(put(B)))
    scattered = xla.jit(lambda params, b: step(params, b, sums, lambda p: at("x")))
    assert "reduce-scatter" in scattered.lower([put(W, "x"), put(B, "x")], spread).compile().as_text()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
