"""Records of the primitives on keys: evaluated by NumPy, mapped, differentiated, and compiled by XLA.

Their functions take and return the data of keys, so that every check of `bedrax.testing` applies.
"""

import importlib
import pkgutil

import numpy as np
import pytest

import bedrax.random
from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Primitive
from bedrax.random import primitives as p
from bedrax.random.implementations import find
from bedrax.random.key_array import FAMILY, KeyDType
from bedrax.testing import checks
from bedrax.testing.records import OpCase, arg, case_params

IMPLEMENTATIONS = {name: find(name) for name in ("threefry2x32", "rbg", "unsafe_rbg")}


def words(impl, *shape):
    return arg((*shape, *impl.key_shape), "uint32", 0, 2**32)


def on_keys(prim, impl, /, **params):
    """A primitive that takes keys (and more), as a function of their data."""

    def fun(base, *rest):
        out = prim.bind(p.random_wrap_p.bind(base, impl=impl), *rest, **params)
        return p.random_unwrap_p.bind(out) if isinstance(aval_of(out).dtype, KeyDType) else out

    return fun


def seeded(impl):
    return lambda seeds: p.random_unwrap_p.bind(p.random_seed_p.bind(seeds, impl=impl))


CASES = []
for _name, _impl in IMPLEMENTATIONS.items():
    CASES += [
        OpCase(p.random_seed_p, _name, seeded(_impl), (arg((2,), "int32", 0, 99),)),
        OpCase(p.random_split_p, _name, on_keys(p.random_split_p, _impl, impl=_impl, shape=(3,)), (words(_impl),)),
        OpCase(
            p.random_split_p,
            f"{_name} of several",
            on_keys(p.random_split_p, _impl, impl=_impl, shape=(2, 1)),
            (words(_impl, 2),),
        ),
        OpCase(
            p.random_fold_in_p,
            _name,
            on_keys(p.random_fold_in_p, _impl, impl=_impl),
            (words(_impl), arg((), "uint32", 0, 99)),
        ),
        OpCase(
            p.random_fold_in_p,
            f"{_name} of several",
            on_keys(p.random_fold_in_p, _impl, impl=_impl),
            (words(_impl, 2), arg((2,), "uint32", 0, 99)),
        ),
        *(
            OpCase(
                p.random_bits_p,
                f"{_name} of {_width} bits",
                on_keys(p.random_bits_p, _impl, impl=_impl, bit_width=_width, shape=(3,)),
                (words(_impl),),
            )
            for _width in (8, 16, 32)  # test_keys has 64
        ),
        OpCase(p.random_clone_p, _name, on_keys(p.random_clone_p, _impl), (words(_impl, 2),), oracle=lambda x: x),
        OpCase(p.random_wrap_p, _name, on_keys(p.random_clone_p, _impl), (words(_impl),), oracle=lambda x: x),
        OpCase(p.random_unwrap_p, _name, on_keys(p.random_clone_p, _impl), (words(_impl),), oracle=lambda x: x),
    ]


@pytest.mark.parametrize("case", case_params(CASES))
def test_numpy_evaluation(case):
    checks.check_evaluation(case)


@pytest.mark.parametrize("case", case_params(CASES))
def test_batching(case):
    checks.check_batching(case)


@pytest.mark.parametrize("case", case_params(CASES))
def test_xla_equals_numpy(case):
    pytest.importorskip("bedrax.xla_backend")
    checks.check_xla(case)


def test_no_derivatives():
    from bedrax.autodiff import grad

    def f(x):
        impl = IMPLEMENTATIONS["threefry2x32"]
        base = lax.convert_element_type(lax.broadcast(x, (2,)), np.uint32)
        bits = on_keys(p.random_bits_p, impl, impl=impl, bit_width=32, shape=())(base)
        return lax.mul(lax.convert_element_type(bits, np.float32), x)

    x = np.float32(3)
    np.testing.assert_allclose(grad(f)(x), f(x) / x, rtol=1e-6)


def test_every_primitive_has_a_record():
    found = {}
    for info in pkgutil.iter_modules(bedrax.random.__path__):
        for value in vars(importlib.import_module(f"bedrax.random.{info.name}")).values():
            if isinstance(value, Primitive) and value.family in ("", FAMILY):
                found[value] = value.name
    unsampled = {
        bedrax.random.random_gamma_p: "tests of its sampler (test_samplers) compare its law and its derivative"
    }
    missing = [name for prim, name in found.items() if prim not in {c.primitive for c in CASES} | set(unsampled)]
    assert found and not missing
