"""`shard_map` on eight CPU devices, against its decomposition by NumPy: python mapped_shards.py NAME"""

import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.autodiff import checkpoint, grad, jvp, vjp
from bedrax.batching import vmap
from bedrax.core.config import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.numpy_backend.executor import evaluate
from bedrax.parallel import AxisType, Mesh, pmap, set_mesh, shard_map, smap
from bedrax.parallel import PartitionSpec as P
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
    want = evaluate(program, *map(np.asarray, args))
    many = lambda out: out if isinstance(out, (tuple, list)) else [out]
    for got in (many(jit(f)(*args)), many(f(*args))):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert g.dtype == w.dtype and g.shape == w.shape, (g.dtype, w.dtype, g.shape, w.shape)
            close(np.asarray(g), w)
    return jit(f)(*args)


def over(f, in_specs, out_specs, **options):
    return shard_map(f, **{"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs, **options})


def collectives():
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
        (lambda v: lax.all_gather(lax.slice_in_dim(v, 0, 0), "x", tiled=True), P("x"), P(None, "x")),
        (lambda v: lax.psum_scatter(lax.slice_in_dim(v, 0, 0), "x", tiled=True), P("x"), P(None, "x")),
        (lambda v: lax.psum_scatter(v, "x", tiled=True, axis_index_groups=groups), P(None, "x"), P("x")),
        (lambda v: lax.mul(v, lax.convert_element_type(lax.axis_index(both), v.dtype)), P("x", "y"), P("x", "y")),
        (lambda v: lax.mul(v, float(lax.axis_size("x") * lax.axis_size(both))), P("x"), P("x")),
        (lambda v: vmap(lambda r: lax.all_to_all(r, "x", 0, 0, tiled=True), in_axes=1)(v), P(None, "x"), P(None, "x")),
        (lambda v: vmap(lambda r: lax.psum(r, ("x", "i")), axis_name="i", out_axes=None)(v), P("x"), P()),
        (lambda v: lax.psum(lax.gt(v, 0.0), "x"), P("x"), P()),
        (lambda v: lax.pcast(lax.full((2, 2), S), "x", to="varying"), P("x"), P("x")),
        (lambda v: lax.psum(v, "x", axis_index_groups=[[2], [3, 0, 1]]), P("x"), P("x")),
        (lambda v: lax.pmean(v, both, axis_index_groups=[[0, 5, 2], [7, 4, 1, 6], [], [3]]), P(both), P(both)),
    ]
    wide = lambda f: lambda v: lax.convert_element_type(f(v), np.dtype(np.float32))
    for n, (f, i, o) in enumerate(cases):
        for check_vma in (True, False):
            mapped = over(f, i, o, check_vma=check_vma)
            check(mapped, A)
            if n not in (5, 6):  # extrema have no derivative
                ct = rng.standard_normal(mapped(A).shape).astype(np.float32)
                check(lambda v: vjp(wide(mapped), v)[1](ct)[0], A)
    check(
        over(lambda v: lax.psum_scatter(lax.gt(v, 0.0), "x", tiled=True), P(None, "x"), P("x")), A
    )  # booleans are counted
    for axis in (0, 1):  # no elements along the axis
        empty = A[:0] if axis == 0 else A[:, :0]
        for f in (
            lambda v: lax.all_gather(v, "x", axis=axis, tiled=True),
            lambda v: lax.psum_scatter(v, "x", scatter_dimension=axis, tiled=True),
            lambda v: lax.all_to_all(v, "x", axis, 1 - axis, tiled=True),
        ):
            mapped = over(f, P(), P("x"), check_vma=False)
            check(lambda v: vjp(mapped, v)[1](mapped(v))[0], empty)


def derivatives():
    def ring(a, b):
        def step(carry, _):
            block, total = carry
            total = lax.add(total, lax.dot(lax.sin(block), b))
            return (lax.ppermute(block, "x", [(i, (i + 1) % 4) for i in range(4)]), total), None

        return lax.scan(step, (a, lax.full((2, 4), 0.0, a.dtype)), None, length=4)[0][1]

    def loss(a, b):
        a = checkpoint(lambda a: lax.tanh(lax.dot(a, b)))(a)
        big = lax.gt(lax.reduce_sum(a, (0, 1)), S)
        a = lax.cond(big, lambda a: lax.mul(a, a), lambda a: a, a)
        return lax.pmean(lax.reduce_sum(a, (0, 1)), "x")

    for check_vma in (True, False):
        f = over(ring, (P("x"), P()), P("x"), check_vma=check_vma)
        g = over(loss, (P("x"), P()), P(), check_vma=check_vma)
        check(f, A, B)
        for i in (0, 1):
            check(lambda a, b: grad(g, i)(a, b), A, B)
            check(lambda a, b: grad(lambda a, b: lax.reduce_sum(f(a, b), (0, 1)), i)(a, b), A, B)
        check(lambda a, b: jvp(g, (a, b), (a, b)), A, B)
        check(vmap(f, in_axes=(1, None)), np.stack([A, A * S], 1), B)
        check(grad(lambda a, b: lax.reduce_sum(vmap(g, in_axes=(0, None))(a, b), (0,))), np.stack([A, A * S]), B)


def loops():
    def until(a):
        return lax.while_loop(
            lambda c: lax.lt(lax.psum(lax.reduce_sum(lax.mul(c, c), (0, 1)), "x"), 900.0), lambda c: lax.mul(c, 1.5), a
        )

    check(over(until, P("x"), P("x")), A)
    check(over(lambda a: lax.fori_loop(0, 3, lambda i, c: lax.psum(lax.sin(c), "x"), a), P("x"), P("x")), A)
    check(over(lambda a: lax.map(lambda r: lax.psum(r, "x"), a), P("x"), P()), A)


def nested():
    def outer(a):
        inner = shard_map(
            lambda v: lax.psum(lax.mul(v, v), "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
        )
        return lax.add(lax.psum(inner(a), "x"), lax.reduce_max(inner(a), (0, 1)))

    f = shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    check(f, A)
    check(grad(lambda a: lax.reduce_sum(f(a), (0, 1))), A)


def partly():
    where = NamedSharding(mesh, P("x", "y"))
    f = over(lambda a, b: lax.psum(lax.dot(lax.sin(a), b), "x"), (P(None, "x"), P("x")), P(), axis_names={"x"})
    check(f, device_put(A, where), device_put(B, NamedSharding(mesh, P("x", "y"))))
    check(grad(lambda a, b: lax.reduce_sum(f(a, b), (0, 1))), A, B)
    check(
        over(
            lambda a: lax.mul(a, lax.convert_element_type(lax.axis_index("x"), a.dtype)),
            P("x"),
            P("x"),
            axis_names={"x"},
        ),
        A,
    )
    other = Mesh(np.array(d).reshape(8), ("z",))
    for to, axis, what in ((mesh, "x", "which it maps"), (other, "z", "which its mesh does not have")):
        for move in (device_put, xla.with_sharding_constraint):
            moved = over(lambda a: move(a, NamedSharding(to, P(None, axis))), P("x"), P("x"), axis_names={"x"})
            try:
                jit(moved)(A)
            except ValueError as error:
                assert f"names the axis '{axis}', {what}" in str(error) and "['y']" in str(error), error
            else:
                raise AssertionError(axis)


def partly_over_a_split_value():
    """Operations for blocks whose other axes the compiler decides: loops that slice by their counter, and others."""
    shardy = config.jax_use_shardy_partitioner
    row = lambda v: lax.index_in_dim(v, 0, keepdims=False)
    blocks = {
        "cumsum": lambda v: lax.cumsum(v, axis=1),
        "scan": lambda v: lax.scan(lambda c, row: (lax.add(c, row), c), row(v), v)[1],
        "grad of scan": grad(
            lambda v: lax.reduce_sum(lax.scan(lambda c, r: (lax.sin(lax.add(c, r)), None), row(v), v)[0], (0,))
        ),
        "branches": lambda v: lax.cond(
            lax.gt(lax.reduce_sum(lax.slice(v, (0, 0), (1, 1)), (0, 1)), np.float32(2)),
            lambda: lax.cumsum(v, axis=0),
            lambda: v,
        ),
        "write": lambda v: lax.fori_loop(
            0, 2, lambda i, c: lax.dynamic_update_slice(c, lax.slice_in_dim(v, 0, 1) * 2, (i, 0)), v
        ),
    }
    refused = {
        "fft": lambda v: lax.real(lax.fft(lax.convert_element_type(v, np.complex64), "fft", (v.shape[1],))),
        "all_gather": lambda v: lax.all_gather(v, "x"),
        "all_to_all": lambda v: lax.all_to_all(lax.concatenate([v, v], 0), "x", 0, 0, tiled=True),
        "rng_bit_generator": lambda v: lax.add(v, lax.convert_element_type(_bits(v.shape), v.dtype)),
    }
    x = device_put(A, NamedSharding(mesh, P("x", "y")))
    for name, f in (blocks | refused).items():
        mapped = jit(over(f, P("x"), P("x"), axis_names={"x"}, check_vma=False))
        if name in blocks:
            close(mapped(x), np.concatenate([np.asarray(f(b)) for b in np.split(A, 4)]))
        elif shardy:
            mapped(x)
        else:  # the process ended
            try:
                mapped(x)
            except NotImplementedError as error:
                assert f"GSPMD does not compile {name}" in str(error), error
            else:
                raise AssertionError(name)


def _bits(shape):
    return lax.rng_bit_generator(np.zeros(4, np.uint32), shape)[1]


def places():
    f = over(lambda a: lax.psum(a, "y"), P("x", "y"), P("x"))
    assert f(A).sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    on = device_put(A, NamedSharding(mesh, P("x", "y")))
    assert jit(f)(on).sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    one = Mesh(np.array(d[3:4]), ("x",))
    g = shard_map(lambda a: lax.psum(lax.sin(a), "x"), mesh=one, in_specs=P("x"), out_specs=P())
    assert g(A).devices() == {d[3]}
    check(g, A)
    with set_mesh(mesh):
        check(shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P()), A)
        check(smap(lambda a: lax.psum(lax.reduce_sum(a, (1,)), "y"), in_axes=1, out_axes=None, axis_name="y"), A)
        check(smap(lambda a: a, in_axes=-1, out_axes=0, axis_name="x"), A)
    batch = np.stack([A, A * S])
    h = vmap(over(lambda a: lax.psum(a, "x"), P("x"), P()), spmd_axis_name="y")
    check(h, batch)
    assert jit(h)(batch).sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 3)
    c = device_put(A, d[1])
    try:
        jit(f)(c)
    except ValueError as e:
        assert "incompatible devices" in str(e) and "shard_map" in str(e), e
    else:
        raise AssertionError


def inside_and_outside():
    # The same operations on the same constants: the partitioner must not take one for the other.
    w = np.arange(8, dtype=np.float32)
    less = lambda w: lax.mul(w, lax.full((8,), np.float32(0.9)))
    f = over(lambda w, v: lax.mul(lax.broadcast_in_dim(less(w), (2, 8), (1,)), v), (P(), P("x")), P("x"))
    loss = lambda w, a: lax.reduce_sum(f(w, a), (0, 1))
    check(lambda w, a: lax.add(less(w), lax.mul(less(grad(loss)(w, a)), less(less(w)))), w, A)
    one = over(lambda c, v: (lax.mul(v, c), lax.full((), 1.0)), (P(), P("x")), (P("x"), P()))
    check(lambda a: lax.add(lax.mul(one(S, a)[0], S), one(np.float32(1.0), a)[1]), A)


def inferred():
    from bedrax.xla_backend import make_mesh

    with set_mesh(make_mesh((4, 2), ("x", "y"))) as explicit:
        a = device_put(A, NamedSharding(explicit, P("x", "y")))
        f = shard_map(
            lambda v: lax.mul(v, lax.convert_element_type(lax.axis_index("y"), v.dtype)), out_specs=P("x", "y")
        )
        for run in (f, jit(f)):
            close(run(a), A * np.repeat([0, 1], 4))
        g = smap(lambda v: lax.psum(v, "x"), out_axes=None, axis_name="x")
        close(jit(g)(a), A.reshape(4, 2, 8).sum(0))
        assert f(a).sharding.is_equivalent_to(a.sharding, 2)


def ragged():
    def f(rows, out, *tables):
        return lax.ragged_all_to_all(rows, out, *(lax.squeeze(t, (0,)) for t in tables), axis_name="x")

    count = rng.integers(0, 3, (4, 4)).astype(np.int32)
    into = np.cumsum(np.vstack([np.zeros(4, int), count[:-1]]), 0).astype(np.int32)
    tables = (rng.integers(0, 1, (4, 4)).astype(np.int32), count, into, count.T.copy())
    g = over(f, P("x"), P("x"))
    out = np.zeros((36, 8), np.float32)
    check(g, A, out, *tables)
    check(lambda a, o: grad(lambda a, o: lax.reduce_sum(lax.sin(g(a, o, *tables)), (0, 1)), (0, 1))(a, o), A, out)


def calls():
    from bedrax.autodiff import custom_jvp, custom_vjp
    from bedrax.core import ShapeDtypeStruct
    from bedrax.lax.primitives.callbacks import debug_callback, io_callback, pure_callback

    seen = []
    f = over(
        lambda v: (debug_callback(lambda s: seen.append(float(s)), lax.reduce_sum(v, (0, 1))), v)[1], P("x"), P("x")
    )
    jit(f)(A)
    xla.effects_barrier()
    want = [A[2 * i : 2 * i + 2].sum() for i in range(4) for _ in range(2)]
    close(sorted(seen), sorted(want))  # every device makes the call with its block
    shape = lambda v: jit(lambda v: v).eval_shape(v)
    g = over(lambda v: pure_callback(lambda x: np.sin(x) * len(x), shape(v), v), P("x"), P("x"))
    close(jit(g)(A), np.sin(A) * 2)

    # Where the compiler decides about the other axis, calls get whole blocks all the same.
    for shardy in (True, False):
        config.update("jax_use_shardy_partitioner", shardy)
        for x in (A, device_put(A, NamedSharding(mesh, P("x", "y")))):
            seen.clear()
            jit(
                over(
                    lambda v: (debug_callback(lambda s: seen.append(float(s)), lax.reduce_sum(v, (0, 1))), v)[1],
                    P("x"),
                    P("x"),
                    axis_names={"x"},
                )
            )(x)
            xla.effects_barrier()
            close(sorted(seen), sorted(want[::2]))  # of the devices that hold a block, one calls
            sines = lambda v: pure_callback(lambda x: np.sin(x) * x.shape[1], shape(v), v)
            close(jit(over(sines, P("x"), P("x"), axis_names={"x"}))(x), np.sin(A) * 8)
            marks = []
            flags = lambda v: io_callback(
                lambda x, i: (marks.append((int(i), x.shape)), x > 0)[1],
                ShapeDtypeStruct(v.shape, bool),
                v,
                lax.axis_index("x"),
            )
            assert (np.asarray(jit(over(flags, P("x"), P("x"), axis_names={"x"}))(x)) == (A > 0)).all()
            assert sorted(marks) == [(i, (2, 8)) for i in range(4)], marks
            watched = lambda v: (debug_callback(print, v, ordered=True), v)[1]
            try:
                jit(over(watched, P("x"), P("x"), axis_names={"x"}))(x)
            except NotImplementedError as e:
                assert "('y',)" in str(e) and "ordered=False" in str(e), e
            else:
                raise AssertionError
    config.update("jax_use_shardy_partitioner", True)

    w = np.arange(8, dtype=np.float32)
    rows = lambda w: lax.broadcast_in_dim(w, (2, 8), (1,))
    total = lambda v: lax.reduce_sum(v, (0, 1))

    def vjp_rule(bwd):
        @custom_vjp
        def f(w, v):
            return lax.mul(rows(w), v)

        f.defvjp(lambda w, v: (lax.mul(rows(w), v), (w, v)), bwd)
        return f

    back = lambda r, g: lax.reduce_sum(lax.mul(g, r[1]), (0,))
    unsummed = vjp_rule(lambda r, g: (back(r, g), lax.mul(g, rows(r[0]))))
    summed = vjp_rule(lambda r, g: (lax.psum(back(r, g), "x"), lax.mul(g, rows(r[0]))))

    @custom_jvp
    def forward(w, v):
        return lax.mul(rows(w), v)

    forward.defjvp(
        lambda p, t: (lax.mul(rows(p[0]), p[1]), lax.add(lax.mul(rows(t[0]), p[1]), lax.mul(t[1], rows(p[0]))))
    )
    for h in (unsummed, summed, forward):
        m = over(h, (P(), P("x")), P("x"))
        close(grad(lambda w: total(m(w, A)))(w), A.sum(0))
        inner = over(lambda w, v: lax.psum(grad(lambda v: total(h(lax.mul(w, 2.0), v)))(v), "x"), (P(), P("x")), P())
        close(inner(w, A), np.broadcast_to(8 * w, (2, 8)))
    close(over(lambda w, v: grad(lambda w: total(lax.mul(rows(w), v)))(w), (P(), P("x")), P())(w, A), A.sum(0))


def calls_in_order():
    # Calls of one device come in the order of the program: in one shard_map, in two, in loops, before and after.
    from bedrax.lax.primitives.callbacks import io_callback

    seen = []
    note = lambda *values: seen.append(tuple(map(int, values)))

    def tell(step):
        io_callback(note, None, step, lax.add(lax.mul(lax.axis_index("x"), 2), lax.axis_index("y")), ordered=True)

    mapped = lambda f: over(f, P("x"), P("x"))
    first = mapped(lambda v: (tell(1), tell(2), lax.sin(v))[2])
    second = mapped(lambda v: lax.fori_loop(3, 6, lambda i, c: (tell(i), lax.sin(c))[1], v))

    def program(v):
        io_callback(note, None, 0, -1, ordered=True)
        v = second(first(v))
        return lax.fori_loop(6, 8, lambda i, c: mapped(lambda v: (tell(i), v)[1])(c), v)

    close(jit(program)(A), np.sin(np.sin(np.sin(np.sin(A)))))
    xla.effects_barrier()
    assert seen.count((0, -1)) == 1, seen
    for device in range(8):
        assert [step for step, by in seen if by == device] == list(range(1, 8)), (device, seen)


def keys_and_factorizations():
    from bedrax import random

    keys = random.split(random.key(0), 8)
    draw = vmap(lambda k: random.normal(k, (3,)))
    for make in (lambda k: k, lambda k: device_put(k, NamedSharding(mesh, P("x")))):
        own = over(draw, P(("x", "y")), P(("x", "y")))
        for run in (own, jit(own)):
            close(run(make(keys)), draw(keys))

    def folded(k):  # one key for all, which each device makes its own
        return lax.broadcast_in_dim(random.uniform(random.fold_in(k, lax.axis_index("x"))), (1,), ())

    for combine in (lax.psum, lax.pmax, lax.psum_scatter):
        for spec in (P("x"), P("y")):
            try:
                over(lambda k: combine(k, "x"), spec, P("x"))(keys)
            except TypeError as error:
                assert "does not accept dtype key" in str(error), error
            else:
                raise AssertionError(combine)

    each = np.array([random.uniform(random.fold_in(keys[0], i)) for i in range(4)])
    close(jit(over(folded, P(), P("x")))(keys[0]), each)

    from bedrax.lax.primitives import linalg

    m = rng.normal(size=(8, 3, 3)).astype(np.float32)
    m = m @ m.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32)
    rows = P("x")
    mapped = lambda f, out=rows: jit(over(f, P("x"), out))
    np.testing.assert_allclose(mapped(linalg.cholesky)(m), np.linalg.cholesky(m), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mapped(lambda a: linalg.eigh(a)[1])(m), np.linalg.eigvalsh(m), rtol=1e-4)
    np.testing.assert_allclose(
        mapped(lambda a: linalg.lu(a)[0], P("x"))(m), vmap(lambda a: linalg.lu(a)[0])(m), rtol=1e-4, atol=1e-5
    )
    solved = mapped(lambda a: linalg.triangular_solve(linalg.cholesky(a), a, left_side=True, lower=True))(m)
    np.testing.assert_allclose(solved, np.linalg.cholesky(m).transpose(0, 2, 1), rtol=1e-3, atol=1e-4)
    # Each device has a number of rounds of its own: no device waits for the others.
    rounds = lambda v: lax.while_loop(lambda c: lax.lt(lax.reduce_max(c, (0,)), 100.0), lambda c: lax.mul(c, 2.0), v)
    start = np.arange(1, 5, dtype=np.float32)
    close(mapped(rounds)(start), [v * 2 ** np.ceil(np.log2(100 / v)) for v in start])


def explain():
    from bedrax.core import ShapeDtypeStruct
    from bedrax.parallel import explain

    def f(a):
        a = lax.fori_loop(0, 5, lambda i, c: lax.mul(lax.psum(c, "x"), 0.25), a)
        return lax.ppermute(lax.all_gather(a, "y", to="invariant"), "x", [(i, (i + 1) % 4) for i in range(4)])

    found = explain(over(f, P("x", "y"), P(None, "x")), A, mesh=mesh, link=1e9, latency=0.0)
    rows = {(c.kind, c.axes): (c.group, c.bytes, c.count, c.sent) for c in found.collectives}
    block = 2 * 4 * 4
    assert rows["all-reduce", ("x",)] == (4, block, 5, 5 * 2 * block * 3 / 4), rows
    assert rows["all-gather", ("y",)] == (2, 2 * block, 1, block), rows
    assert found.memory["arguments"] == block and not found.open_loops
    split = ShapeDtypeStruct((64, 64), np.float32, sharding=NamedSharding(mesh, P(None, "x")))
    whole = ShapeDtypeStruct((64, 64), np.float32, sharding=NamedSharding(mesh, P("x")))
    found = explain(lambda a, b: lax.dot(a, b), split, whole, mesh=mesh)
    assert [c.kind for c in found.collectives] == ["all-reduce"], found


def explicit():
    typed = Mesh(np.array(d).reshape(4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    for spec, f in [(P("x", "y"), lambda v: v), (P("x", None), lambda v: lax.psum(v, "y"))]:
        g = over(f, P("x", "y"), spec, mesh=typed)
        for h in (g, jit(g), jit(lambda a: lax.mul(g(a), 2.0))):
            assert h(A).sharding.spec == spec, (spec, h(A).sharding)
    check(over(lambda v: lax.psum(v, "y"), P("x", "y"), P("x"), mesh=typed), A)


def frames_of_a_known_call():
    import gc
    import sys
    import weakref

    def frames(f, *args):
        "The Python functions that the fourth call with these arguments enters."
        for _ in range(3):
            f(*args)
        entered = []
        sys.setprofile(lambda frame, event, _: entered.append(frame.f_code) if event == "call" else None)
        try:
            f(*args)
        finally:
            sys.setprofile(None)
        return len(entered)

    def total(v):
        return lax.add(v, lax.psum(v, both))

    both = ("x", "y")
    explicit = mesh.update(axis_types=(AxisType.Explicit,) * 2)
    for where in (mesh, explicit):
        known = shard_map(total, mesh=where, in_specs=P(both), out_specs=P(both))
        apart = device_put(A, NamedSharding(where, P(both)))
        assert frames(known, apart) <= 80
        assert frames(known, A) <= 180  # the argument is cut and put on the devices
        assert known(apart).sharding == known(A).sharding == NamedSharding(where, P(both))
        assert frames(lambda v: shard_map(total, mesh=where, in_specs=P(both), out_specs=P(both))(v), apart) <= 260
        with set_mesh(where):
            assert frames(smap(lambda v: lax.psum(v, "x"), in_axes=0, out_axes=None, axis_name="x"), A) <= 260

    # Each of these is part of the signature.
    mapped = lambda *specs, **options: shard_map(total, mesh=mesh, in_specs=specs[0], out_specs=specs[1], **options)
    close(mapped(P(both), P(both))(A), A + np.tile(A.sum(0), (8, 1)))
    close(mapped(P(None, both), P(None, both))(A), A + np.tile(A.sum(1)[:, None], (1, 8)))
    for bad, error in ((lambda: mapped(P(both), P())(A), ValueError), (lambda: mapped((P(),) * 2, P())(A), ValueError)):
        for _ in range(2):  # also when the program is known
            try:
                bad()
            except error:
                continue
            raise AssertionError("no error")
    specs = [P(both)]  # read at each call
    changing = mapped(specs, P(both))
    first = changing(A)
    specs[0] = P()
    close(np.asarray(changing(A))[:8], A + 8 * A)
    close(first, A + np.tile(A.sum(0), (8, 1)))

    # Nothing keeps the function or a value of a trace.
    held = weakref.ref(total)

    def closes_over(w):
        return over(lambda v: lax.mul(lax.psum(v, "x"), w), P("x"), P())(A)

    for w in (S, np.float32(2)):
        close(jit(closes_over)(w), w * A.reshape(4, 2, 8).sum(0))
        close(grad(lambda w: lax.reduce_sum(closes_over(w), (0, 1)))(w), A.sum())
    total = known = mapped = changing = None
    gc.collect()
    assert held() is None


def collectives_of_pmap():
    X = np.arange(8 * 8 * 2, dtype=np.float32).reshape(8, 8, 2)
    halves = [[0, 2, 4, 6], [1, 7, 5, 3]]
    number = lambda: lax.convert_element_type(lax.axis_index("i"), np.dtype(np.float32))
    for n, f in enumerate(
        [
            lambda v: lax.psum(v, "i"),
            lambda v: lax.psum(v, "i", axis_index_groups=halves),
            lambda v: lax.pmean(v, "i"),
            lambda v: lax.pmax(lax.sin(v), "i"),
            lambda v: lax.pmin(lax.sin(v), "i"),
            lambda v: lax.pbroadcast(v, "i", 3),
            lambda v: lax.ppermute(v, "i", [(k, (3 * k + 1) % 8) for k in range(7)]),
            lambda v: lax.pshuffle(v, "i", [7, 0, 1, 2, 3, 4, 5, 6]),
            lambda v: lax.pswapaxes(v, "i", 0),
            lambda v: lax.all_gather(v, "i", axis=1),
            lambda v: lax.all_gather(v, "i", tiled=True, axis_index_groups=halves),
            lambda v: lax.all_to_all(v, "i", 0, 1),
            lambda v: lax.all_to_all(v, "i", 0, 1, tiled=True),
            lambda v: lax.psum_scatter(v, "i"),
            lambda v: lax.psum_scatter(v, "i", tiled=True),
            lambda v: lax.mul(v, lax.add(number(), float(lax.axis_size("i")))),
        ]
    ):
        mapped = pmap(f, "i")
        close(mapped(X), vmap(f, axis_name="i")(X))
        if n not in (3, 4):  # extrema have no derivative
            check(lambda v: vjp(mapped, v)[1](mapped(v))[0], X)
        out = mapped(X)
        assert out.sharding.device_set == set(d) and out.sharding.shard_shape(out.shape)[0] == 1, out.sharding
    both = lambda v: lax.add(lax.psum(v, ("i", "j")), lax.all_gather(v, "j", tiled=True))
    Y = X.reshape(2, 4, 4, 4)[:, :, :1]
    nested = lambda over: over(lambda r: over(both, axis_name="j")(r), axis_name="i")(Y)
    close(nested(pmap), nested(vmap))
    close(pmap(lambda v: lax.psum(v, "i"), "i", in_axes=None, axis_size=8)(S), np.full(8, 8 * S))
    rows = np.arange(8 * 3, dtype=np.float32).reshape(8, 3)
    count = np.ones((8, 8), np.int32) * (np.arange(8) < 3)
    send = np.minimum(np.arange(8), 2) + np.zeros((8, 1), np.int32)
    spread = lambda r, o, *t: lax.ragged_all_to_all(r, o, *t, axis_name="i")
    own = np.repeat(np.arange(8, dtype=np.int32)[:, None], 8, 1)
    tables = (send.astype(np.int32), count.astype(np.int32), own, count.T.astype(np.int32).copy())
    empty = np.zeros((8, 8), np.float32)
    close(pmap(spread, "i")(rows, empty, *tables), vmap(spread, axis_name="i")(rows, empty, *tables))


def all_of_pmap():
    check(pmap(lambda v: lax.psum(lax.sin(v), "i"), "i"), A)
    check(pmap(lambda v, w: lax.mul(v, w), in_axes=(1, None), out_axes=1), A, S)
    check(pmap(lambda r: pmap(lambda v: lax.psum(v, ("i", "j")), "j")(r), "i"), A[:4])
    assert pmap(lambda v: v)(A).sharding.device_set == set(d)
    for name in (None, "i", 3, 'a "quoted" name', "axis_0"):
        mapped = pmap(lambda v: lax.sin(v), axis_name=name)
        assert "sdy.manual_computation" in mapped.lower(A).as_text() and "@Sharding" not in mapped.lower(A).as_text()
        check(mapped, A)
    split_by = Mesh(np.array(d), (0,)), Mesh(np.array(d).reshape(2, 4), ("axis_1", 1))
    for mesh, spec in zip(split_by, (P(0), P(("axis_1", 1)))):
        split = NamedSharding(mesh, spec)
        f = xla.jit(lambda v: lax.sin(v), in_shardings=split, out_shardings=split)
        assert "sdy.sharding" in f.lower(A).as_text() and f(A).sharding == split
        close(f(A), np.sin(A))
    out = pmap(lambda v, k: lax.mul(v, float(k)), static_broadcasted_argnums=1, devices=d[2:6])(A[:4], 3)
    close(out, 3 * A[:4])
    assert out.sharding.device_set == set(d[2:6])
    check(grad(lambda a: lax.reduce_sum(pmap(lambda v: lax.mul(lax.psum(v, "i"), v), "i")(a), (0, 1))), A)
    x = device_put(A, NamedSharding(Mesh(np.array(d), ("i",)), P("i")))
    y = pmap(lambda v: lax.add(v, S), donate_argnums=0)(x)
    assert x.is_deleted()
    close(y, A + S)
    for bad, text in [
        (lambda: pmap(lambda v: v)(np.ones(9)), "size 9, but there are 8 devices"),
        (lambda: pmap(lambda v, w: v)(np.ones(3), np.ones(4)), "differ in size: 3"),
        (lambda: pmap(lambda v: v, in_axes=None)(A), "pass axis_size"),
        (lambda: pmap(lambda v: v, devices=d[:3])(A), "devices has 3"),
    ]:
        try:
            bad()
        except ValueError as e:
            assert text in str(e), e
        else:
            raise AssertionError(text)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
