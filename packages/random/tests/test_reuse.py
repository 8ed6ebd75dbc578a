"""Keys that are used twice (`jax_debug_key_reuse`)."""

import threading

import numpy as np
import pytest

from bedrax import lax, random
from bedrax.autodiff import checkpoint, custom_vjp, grad
from bedrax.batching import vmap
from bedrax.core import executors, staging
from bedrax.core.jitting import jit
from bedrax.numpy import stack
from bedrax.random import flags
from bedrax.random.reuse import KeyReuseError


@pytest.fixture(autouse=True)
def watched():
    with flags.debug_key_reuse(True):
        yield


def key():
    return random.key(0)


def keys(n=3):
    return random.split(key(), n)


def twice(use, k):
    return use(k), use(k)


def scan_over(ks):
    return lax.scan(lambda c, k: (c, random.normal(k)), 0.0, ks)


def branch(k):
    return lax.cond(True, lambda k: random.normal(k), lambda k: 0.0, k)


def own_rules():
    f = custom_vjp(lambda k, x: x * random.normal(k))
    f.defvjp(lambda k, x: (f(k, x), None), lambda _, g: (None, g))
    return f


consumed = jit(lambda k: (k, random.normal(k)))
REUSED = {
    "a sampler": lambda: twice(random.normal, key()),
    "different samplers": lambda: (random.uniform(k := key()), random.normal(k)),
    "split": lambda: (random.split(k := key()), random.normal(k)),
    "bits after gamma": lambda: (random.gamma(k := key(), 2.0), random.bits(k)),
    "an element": lambda: (random.normal((ks := keys())[0]), random.normal(ks[0])),
    "an element, then all": lambda: (random.normal((ks := keys())[0]), vmap(random.normal)(ks)),
    "one of a slice": lambda: (vmap(random.normal)((ks := keys(4))[1:3]), random.normal(ks[2])),
    "a row of an iteration": lambda: (random.normal(next(iter(ks := keys()))), random.normal(ks[0])),
    "another shape": lambda: (random.normal(k := key()), random.normal(k.reshape(1)[0])),
    "the same key in a stack": lambda: vmap(random.normal)(stack([k := key(), k])),
    "a compiled function": lambda: twice(jit(lambda k: random.normal(k)), key()),
    "inside a program": lambda: jit(lambda k: random.normal(k) + random.uniform(k))(key()),
    "made inside a program": lambda: jit(lambda: sum(twice(random.normal, random.key(3))))(),
    "a used key that was returned": lambda: random.normal(consumed(key())[0]),
    "two arguments": lambda: jit(lambda a, b: random.normal(a) + random.normal(b))(k := key(), k),
    "closed over": lambda: (lambda k: twice(lambda x: jit(lambda x: x + random.normal(k))(x), 1.0))(key()),
    "in each round of a scan": lambda: (lambda k: lax.scan(lambda c, _: (c, random.normal(k)), 0, None, length=2))(key()),
    "a carry": lambda: lax.scan(lambda k, _: (k, random.normal(k)), key(), None, length=3),
    "scanned twice": lambda: twice(scan_over, keys(5)),
    "scanned, then the last": lambda: (scan_over(ks := keys(5)), random.normal(ks[4])),
    "the last, then scanned": lambda: (random.normal((ks := keys(5))[4]), scan_over(ks)),
    "in a while loop": lambda: lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0], s[1] + random.uniform(s[0])), (key(), 0.0)),
    "its condition and body": lambda: lax.while_loop(lambda k: random.uniform(k) < 0.1, lambda k: random.split(k)[0], key()),
    "after a branch": lambda: (branch(k := key()), random.normal(k)),
    "before a branch": lambda: (random.normal(k := key()), branch(k)),
    "after a derivative": lambda: (lambda k: twice(lambda k: grad(lambda x: x * random.normal(k))(1.0), k))(key()),
    "while a program is recorded": lambda: staging.make_jaxpr(lambda k: twice(random.normal, k))(key()),
}  # fmt: skip
FINE = {
    "fold_in": lambda: [random.normal(random.fold_in(k, i)) for k in [key()] for i in range(3)],
    "fold_in of a used key": lambda: (random.normal(k := key()), random.fold_in(k, 1)),
    "a clone": lambda: (random.normal(k := key()), random.normal(random.clone(k))),
    "a clone from before": lambda: (c := random.clone(k := key()), random.normal(k), random.normal(c)),
    "its data": lambda: (random.normal(k := key()), random.key_data(k)),
    "comparison": lambda: (random.normal(k := key()), k == k),
    "other elements": lambda: [random.normal(k) for k in keys()],
    "other elements, inside": lambda: jit(lambda k: [random.normal(x) for x in random.split(k)])(key()),
    "another half": lambda: (vmap(random.normal)((ks := keys(4))[:2]), vmap(random.normal)(ks[2:])),
    "closed over by vmap": lambda: (lambda k: vmap(lambda x: x * random.normal(k))(np.ones(3)))(key()),
    "broadcast": lambda: vmap(random.normal)(lax.broadcast(key(), (3,))),
    "one of the branches": lambda: lax.cond(True, lambda k: random.normal(k), lambda k: random.uniform(k), key()),
    "splitting carries": lambda: lax.scan(lambda k, _: ((s := random.split(k))[0], random.normal(s[1])), key(), None, length=3),
    "numbered rounds": lambda: (lambda k: lax.fori_loop(0, 3, lambda i, s: s + random.normal(random.fold_in(k, i)), 0.0))(key()),
    "checkpoint": lambda: (lambda k: grad(checkpoint(lambda x: lax.sin(x * random.normal(k))))(1.0))(key()),
    "checkpoint in a scan": lambda: grad(lambda x: lax.scan(checkpoint(lambda c, k: (c * random.normal(k), c)), x, keys(5))[0])(1.0),
    "rules of one's own": lambda: [own_rules()(random.key(i), 1.0) for i in range(2)],
    "untyped keys": lambda: twice(random.normal, random.PRNGKey(0)),
}  # fmt: skip
SAMPLERS = {
    "ball": (3,), "beta": (1.0, 2.0), "binomial": (5.0, 0.5), "bits": (), "categorical": (np.ones(3, np.float32),), "cauchy": (),
    "dirichlet": (np.ones(3, np.float32),), "gamma": (2.0,), "multinomial": (5.0, np.full(3, 1 / 3, np.float32)),
    "multivariate_normal": (np.ones(2, np.float32), np.eye(2, dtype=np.float32)), "permutation": (5,), "poisson": (3.0,), "randint": ((), 0, 5),
    "rademacher": (), "t": (3.0,), "truncated_normal": (-1.0, 1.0), "orthogonal": (2,), "choice": (5,), "exponential": (),
}  # fmt: skip


@pytest.mark.parametrize("name", REUSED)
def test_a_key_that_is_used_again_is_found(name):
    with pytest.raises(KeyReuseError, match=r"used again by .*test_reuse\.py:\d+.*used by .*test_reuse\.py:\d+"):
        REUSED[name]()
    with flags.debug_key_reuse(False):
        REUSED[name]()


@pytest.mark.parametrize("name", FINE)
def test_programs_that_reuse_no_key_run(name):
    FINE[name]()


@pytest.mark.parametrize("name", SAMPLERS)
def test_each_sampler_uses_its_key_up_once(name):
    k = key()
    getattr(random, name)(k, *SAMPLERS[name])
    with pytest.raises(KeyReuseError):
        getattr(random, name)(k, *SAMPLERS[name])


def test_a_failed_call_uses_no_key_up():
    k = key()
    with pytest.raises(ValueError, match="dtype"):
        random.normal(k, dtype=int)
    random.normal(k)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_eval_shape_checks_keys_and_uses_none_up(wrap):
    k = key()
    for _ in range(2):
        assert staging.eval_shape(wrap(random.normal), k).shape == ()
    random.normal(k)
    with pytest.raises(KeyReuseError):
        staging.eval_shape(wrap(lambda k: twice(random.normal, k)), key())


def test_a_compiled_function_is_watched_in_every_call():
    f = jit(lambda k: random.normal(k))
    for seed in range(4):
        k = random.key(seed)
        f(k)
        with pytest.raises(KeyReuseError):
            f(k)


def test_evaluation_is_observed_only_while_a_thread_checks_keys():
    entered, leave = threading.Event(), threading.Event()

    def elsewhere():
        with flags.debug_key_reuse(True):
            entered.set()
            leave.wait()

    assert executors.ready == {} and executors.observers and staging.observers
    with flags.debug_key_reuse(False):
        assert not executors.observers and not staging.observers
        other = threading.Thread(target=elsewhere)
        other.start()
        entered.wait()
        assert executors.observers and staging.observers
        leave.set()
        other.join()
        assert not executors.observers and not staging.observers
    assert executors.observers and staging.observers
