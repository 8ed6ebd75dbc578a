"""Libraries for the public API work on this implementation: models train, states are saved and restored.

The checks are properties (losses fall, transformed modules agree with plain ones, saved states are restored), and the
expected numbers if a formula is short.
"""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own warnings

X = np.random.RandomState(0).standard_normal((32, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.3).astype(np.float32)


@pytest.fixture(scope="module")
def linen():
    return pytest.importorskip("flax.linen")


@pytest.fixture(scope="module")
def nnx():
    return pytest.importorskip("flax.nnx")


@pytest.fixture(scope="module")
def optax():
    return pytest.importorskip("optax")


# ---- Flax Linen


def test_linen_trains(linen, optax):
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.relu(linen.Dense(16)(x))
            x = linen.BatchNorm(use_running_average=not train)(x)
            x = linen.Dropout(0.1, deterministic=not train)(x)
            return linen.Dense(1)(x)

    net, opt = Net(), optax.adam(1e-2)
    variables = net.init(jax.random.key(0), X, train=False)
    params, stats = variables["params"], variables["batch_stats"]
    state = opt.init(params)

    traces = []

    def loss(params, stats, key):
        traces.append(key)
        out, updates = net.apply(
            {"params": params, "batch_stats": stats}, X, train=True, rngs={"dropout": key}, mutable=["batch_stats"]
        )
        return jnp.mean((out - Y) ** 2), updates["batch_stats"]

    @jax.jit
    def step(params, stats, state, key):
        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params, stats, key)
        updates, state = opt.update(grads, state, params)
        return optax.apply_updates(params, updates), stats, state, value

    values = []
    for key in jax.random.split(jax.random.key(1), 60):
        params, stats, state, value = step(params, stats, state, key)
        values.append(float(value))
    assert values[-1] < 0.2 * values[0]
    assert np.all(np.isfinite(net.apply({"params": params, "batch_stats": stats}, X, train=False)))
    assert len(traces) == 1


def test_linen_lifted_transformations(linen):
    class Block(linen.Module):
        @linen.compact
        def __call__(self, c, _):
            return jnp.tanh(linen.Dense(3)(c)), None

    class Stack(linen.Module):
        remat: bool = False

        @linen.compact
        def __call__(self, x):
            block = linen.remat(Block) if self.remat else Block
            scan = linen.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=4)
            return scan(name="blocks")(x, None)[0]

    plain, remat = Stack(), Stack(remat=True)
    v = plain.init(jax.random.key(0), X)
    kernel, bias = (v["params"]["blocks"]["Dense_0"][k] for k in ("kernel", "bias"))
    assert kernel.shape == (4, 3, 3)
    expected = X
    for w, b in zip(np.asarray(kernel), np.asarray(bias), strict=True):
        expected = np.tanh(expected @ w + b)
    np.testing.assert_allclose(plain.apply(v, X), expected, rtol=1e-4, atol=1e-5)

    grads = [jax.jit(jax.grad(lambda v, m=m: m.apply(v, X).sum()))(v) for m in (plain, remat)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), *grads)

    class Heads(linen.Module):
        @linen.compact
        def __call__(self, x):
            dense = linen.vmap(
                linen.Dense,
                in_axes=None,
                out_axes=1,
                axis_size=5,
                variable_axes={"params": 0},
                split_rngs={"params": True},
            )
            return dense(2, name="heads")(x)

    out, v = Heads().init_with_output(jax.random.key(0), X)
    w = v["params"]["heads"]["kernel"]
    np.testing.assert_allclose(out, np.einsum("bi,hij->bhj", X, w), rtol=1e-4, atol=1e-5)


def test_linen_recurrence_attention_convolution(linen):
    x = jnp.asarray(np.random.RandomState(1).standard_normal((2, 6, 4)), jnp.float32)
    for cell in (linen.LSTMCell(5), linen.GRUCell(5)):
        net = linen.RNN(cell)
        out, v = net.init_with_output(jax.random.key(0), x)
        assert out.shape == (2, 6, 5)
        total = jax.jit(lambda x, net=net, v=v: net.apply(v, x).sum())
        jax.test_util.check_grads(total, (x,), 1, modes=["rev"], rtol=2e-2, atol=2e-2)
    attention = linen.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)
    mask = linen.make_causal_mask(jnp.ones((2, 6)))
    out, v = attention.init_with_output(jax.random.key(0), x, mask=mask)
    changed = attention.apply(v, x.at[:, 3:].set(0.0), mask=mask)
    np.testing.assert_allclose(
        out[:, :3], changed[:, :3], rtol=1e-5, atol=1e-6
    )  # earlier positions do not depend on later ones
    image = jnp.asarray(np.random.RandomState(2).standard_normal((1, 6, 6, 2)), jnp.float32)
    conv = linen.Conv(3, (3, 3), padding="VALID")
    out, v = conv.init_with_output(jax.random.key(0), image)
    k = np.asarray(v["params"]["kernel"])
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(image), (3, 3), (1, 2))
    np.testing.assert_allclose(out, np.einsum("bhwiyx,yxio->bhwo", windows, k), rtol=1e-4, atol=1e-5)


def test_message_pack(linen):
    serialization = importlib.import_module("flax.serialization")
    v = linen.Dense(4, dtype=jnp.bfloat16, param_dtype=jnp.bfloat16).init(jax.random.key(0), X)
    back = serialization.from_bytes(jax.tree.map(jnp.zeros_like, v), serialization.to_bytes(v))
    jax.tree.map(np.testing.assert_array_equal, v, back)
    assert back["params"]["kernel"].dtype == jnp.bfloat16


# ---- Flax NNX


def test_nnx_trains(nnx, optax):
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(3, 16, rngs=rngs)
            self.norm = nnx.BatchNorm(16, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)
            self.last = nnx.Linear(16, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))

    net = Net(nnx.Rngs(0))
    opt = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(net, opt):
        value, grads = nnx.value_and_grad(lambda net: jnp.mean((net(X) - Y) ** 2))(net)
        opt.update(net, grads)
        return value

    before = np.asarray(net.norm.mean[...]).copy()
    values = [float(step(net, opt)) for _ in range(60)]
    assert values[-1] < 0.2 * values[0]
    assert np.abs(np.asarray(net.norm.mean[...]) - before).max() > 1e-3
    net.eval()
    np.testing.assert_array_equal(net(X), net(X))


def test_nnx_transformations(nnx):
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(rngs):
        return nnx.Linear(3, 3, rngs=rngs)

    layers = make(nnx.Rngs(0).fork(split=4))
    assert layers.kernel[...].shape == (4, 3, 3)

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, layer):
        return jnp.tanh(layer(x))

    expected = X
    for w, b in zip(np.asarray(layers.kernel[...]), np.asarray(layers.bias[...]), strict=True):
        expected = np.tanh(expected @ w + b)
    np.testing.assert_allclose(forward(jnp.asarray(X), layers), expected, rtol=1e-4, atol=1e-5)

    graph, state = nnx.split(layers)
    again = nnx.merge(graph, jax.tree.map(lambda a: a * 2, state))
    np.testing.assert_allclose(again.kernel[...], 2 * layers.kernel[...])
    one = nnx.Linear(3, 2, rngs=nnx.Rngs(1))
    np.testing.assert_allclose(nnx.remat(lambda m, x: m(x))(one, X), one(X), rtol=1e-6)


# ---- Optax

OPTIMIZERS = (
    "sgd adam adamw adamax adamaxw adagrad adadelta adafactor adabelief amsgrad fromage lamb lars lion nadam nadamw"
    " novograd noisy_sgd optimistic_gradient_descent radam rmsprop rprop sign_sgd sm3 yogi adan"
).split()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_descend(optax, name):
    options = {"learning_rate": 1.0 if name == "adadelta" else 0.02}
    if name == "noisy_sgd":
        options["key"] = 0
    try:
        opt = getattr(optax, name)(**options)
    except TypeError:
        opt = getattr(optax, name)(options["learning_rate"], seed=0)
    target = jnp.array([0.5, -1.0, 2.0])

    def loss(p):
        return jnp.sum((p["w"] - target) ** 2) + jnp.sum(p["m"] ** 2)

    params = {"w": jnp.zeros(3), "m": jnp.ones((4, 6))}
    state = opt.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = opt.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    values = []
    for _ in range(40):
        params, state, value = step(params, state)
        values.append(float(value))
    assert np.all(np.isfinite(values)) and values[-1] < values[0]
    assert step._cache_size() <= 2  # a first state may be weakly typed


def test_adam_by_hand(optax):
    opt = optax.adam(0.1)
    p, g = jnp.array([1.0, -2.0]), np.array([0.5, 3.0])
    state, m, v, q = opt.init(p), 0.0, 0.0, np.array([1.0, -2.0])
    for t in range(1, 6):
        updates, state = opt.update(jnp.asarray(g, jnp.float32), state)
        p = optax.apply_updates(p, updates)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        q = q - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(p, q, rtol=1e-5)


def test_schedules_clipping_and_losses(optax):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, 4, 12)
    got = [float(schedule(i)) for i in range(13)]
    expected = [i / 4 for i in range(4)] + [0.5 * (1 + np.cos(np.pi * i / 8)) for i in range(9)]
    np.testing.assert_allclose(got, expected, atol=1e-6)
    clipped, _ = optax.clip_by_global_norm(1.0).update({"a": jnp.array([3.0, 4.0])}, optax.EmptyState())
    np.testing.assert_allclose(clipped["a"], [0.6, 0.8], rtol=1e-6)
    logits, labels = X, np.arange(32) % 3
    log_p = X - np.log(np.exp(X).sum(1, keepdims=True))
    got = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    np.testing.assert_allclose(got, -log_p[np.arange(32), labels], rtol=1e-5)


# ---- Orbax


@pytest.mark.needs("tensorstore")
def test_orbax_saves_and_restores(tmp_path, optax):
    ocp = pytest.importorskip("orbax.checkpoint")
    opt = optax.adam(1e-3)
    params = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16), "n": jnp.int32(4)}
    tree = {"params": params, "opt": opt.init(params), "step": 7}
    with ocp.StandardCheckpointer() as saver:
        saver.save(tmp_path / "state", tree)
        saver.wait_until_finished()
        back = saver.restore(tmp_path / "state", tree)
        described = saver.restore(tmp_path / "state", jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    for a, b, c in zip(*map(jax.tree.leaves, (tree, back, described)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        assert jnp.asarray(a).dtype == jnp.asarray(b).dtype

    with ocp.CheckpointManager(tmp_path / "steps", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for n in range(4):
            manager.save(n, args=ocp.args.StandardSave({"x": jnp.full(3, float(n))}))
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3]
        restored = manager.restore(3, args=ocp.args.StandardRestore({"x": jnp.zeros(3)}))
    np.testing.assert_array_equal(restored["x"], 3.0)


# ---- libraries that extend the system; run if they are installed


def test_equinox():
    eqx = pytest.importorskip("equinox")
    internal = importlib.import_module("equinox.internal")
    model = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.key(0))

    @eqx.filter_jit
    def step(model):
        value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(X) - Y) ** 2))(model)
        return value, eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, grads))

    values = []
    for _ in range(40):
        value, model = step(model)
        values.append(float(value))
    assert values[-1] < 0.5 * values[0]

    def powers(x, kind):
        return internal.while_loop(
            lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, 1.0), kind=kind, max_steps=8
        )[1]

    for kind in ("bounded", "checkpointed"):
        np.testing.assert_allclose(jax.grad(powers)(1.1, kind), 5 * 1.1**4, rtol=1e-5)

    checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "is negative"))
    assert checked(jnp.float32(1.0)) == 1.0
    with pytest.raises(Exception, match="is negative"):
        checked(jnp.float32(-1.0))
    once = internal.noinline(lambda x: jnp.sin(x) * x)
    np.testing.assert_allclose(jax.jit(jax.grad(once))(1.0), np.sin(1.0) + np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(once)(X), np.sin(X) * X, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", ["LU", "QR", "SVD", "AutoLinearSolver", "GMRES", "BiCGStab"])
def test_lineax(solver):
    lx = pytest.importorskip("lineax")
    options = {"GMRES": (1e-6, 1e-6), "BiCGStab": (1e-6, 1e-6), "AutoLinearSolver": (True,)}.get(solver, ())
    method = getattr(lx, solver)(*options)
    A, b = np.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]], np.float32), np.array([1.0, 2, 3], np.float32)

    def solve(A, b):
        return lx.linear_solve(lx.MatrixLinearOperator(A), b, method).value

    x = np.linalg.solve(A, b)
    for f in (solve, jax.jit(solve)):
        np.testing.assert_allclose(f(A, b), x, rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(solve, (None, 0))(A, np.stack([b, 2 * b])), np.stack([x, 2 * x]), rtol=1e-4)
    w = np.linalg.solve(A.T, np.ones(3, np.float32))
    gA, gb = jax.grad(lambda A, b: solve(A, b).sum(), (0, 1))(A, b)
    np.testing.assert_allclose(gb, w, rtol=1e-4)
    np.testing.assert_allclose(gA, -np.outer(w, x), rtol=1e-3, atol=1e-5)


def test_optimistix():
    optx = pytest.importorskip("optimistix")

    def cube_root(a):
        return optx.root_find(lambda y, a: y**3 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), a).value

    np.testing.assert_allclose(cube_root(2.0), 2 ** (1 / 3), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(cube_root)(2.0), 2 ** (-2 / 3) / 3, rtol=1e-4)
    rosenbrock = lambda y, _: jnp.array([10 * (y[1] - y[0] ** 2), 1 - y[0]])
    found = optx.least_squares(rosenbrock, optx.LevenbergMarquardt(1e-5, 1e-5), jnp.zeros(2)).value
    np.testing.assert_allclose(found, 1.0, rtol=1e-3)


def test_diffrax():
    dfx = pytest.importorskip("diffrax")

    def final(rate):
        term = dfx.ODETerm(lambda t, y, rate: -rate * y)
        control = dfx.PIDController(rtol=1e-6, atol=1e-6)
        return dfx.diffeqsolve(
            term, dfx.Tsit5(), 0.0, 1.0, 0.1, jnp.array(1.0), args=rate, stepsize_controller=control
        ).ys[0]

    np.testing.assert_allclose(final(1.5), np.exp(-1.5), rtol=1e-4)
    np.testing.assert_allclose(jax.grad(final)(1.5), -np.exp(-1.5), rtol=1e-3)
    np.testing.assert_allclose(jax.vmap(final)(jnp.array([0.5, 1.0])), np.exp([-0.5, -1.0]), rtol=1e-4)


def test_haiku():
    hk = pytest.importorskip("haiku")

    def net(x):
        return hk.BatchNorm(True, True, 0.9)(hk.nets.MLP([8, 2])(x), is_training=True)

    f = hk.transform_with_state(net)
    params, state = f.init(jax.random.PRNGKey(0), X)
    out, state = jax.jit(f.apply)(params, state, None, X)
    np.testing.assert_allclose(np.mean(out, 0), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(out, 0), 1, rtol=1e-2)


def test_numpyro():
    numpyro = pytest.importorskip("numpyro")
    infer = importlib.import_module("numpyro.infer")
    dist = numpyro.distributions

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ w, 0.1), obs=y)

    weights = np.array([1.0, -2.0, 0.5], np.float32)
    chain = infer.MCMC(infer.NUTS(model), num_warmup=100, num_samples=100, progress_bar=False)
    chain.run(jax.random.PRNGKey(0), X, X @ weights)
    np.testing.assert_allclose(chain.get_samples()["w"].mean(0), weights, atol=0.1)
