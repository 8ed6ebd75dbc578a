"""Compiled functions as operations: the Cholesky decomposition of LAPACK, by its name."""

from __future__ import annotations

import ctypes
import enum
import os

import numpy as np
import pytest

from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.avals import ShapedArray, ShapeDtypeStruct, abstract_token
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive
from bedrax.xla_backend import ffi
from bedrax.xla_backend.tables import lowering_rules

RNG = np.random.RandomState(0)
A = RNG.standard_normal((4, 3, 3)).astype(np.float32)
A = A @ A.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32)


def cholesky(x, **options):
    """Lower triangle of a symmetric matrix (its column-major form equals its row-major form), and LAPACK's status."""
    call = ffi.ffi_call(
        "lapack_spotrf_ffi",
        (ShapeDtypeStruct(x.shape, np.float32), ShapeDtypeStruct(x.shape[:-2], np.int32)),
        input_layouts=[(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)],
        output_layouts=[(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2), None],
        **options,
    )
    return call(x, uplo=np.uint8(ord("L")))


@pytest.mark.parametrize("options", [{}, {"input_output_aliases": {0: 0}}, {"has_side_effect": True}])
def test_a_call(options):
    for f in (lambda x: cholesky(x, **options), jit(lambda x: cholesky(x, **options))):
        lower, status = f(A[0])
        np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A[0]), rtol=1e-5)
        assert status == 0
    _, status = cholesky(-A[0])
    assert status == 1


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "broadcast_all", "expand_dims"])
def test_batches(method):
    lower, status = jit(vmap(lambda x: cholesky(x, vmap_method=method)))(A)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A), rtol=1e-5)
    np.testing.assert_array_equal(status, np.zeros(4))


def test_wrong_uses_of_ffi_are_refused():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        vmap(cholesky)(A)
    with pytest.raises(ValueError, match="has no derivative"):
        grad(lambda x: cholesky(x)[0].sum())(A[0])
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        ffi.ffi_call("f", (), vmap_method="some")
    with pytest.raises(ValueError, match="not a permutation of the axes"):
        ffi.ffi_call("f", (), input_layouts=[(0, 2)])(A[0])
    with pytest.raises(ValueError, match="input_layouts for 1 arguments"):
        ffi.ffi_call("f", (), input_layouts=[])(A[0])
    with pytest.raises(ValueError, match="there is no result 0"):
        ffi.ffi_call("f", (), input_output_aliases={0: 0})(A[0])
    with pytest.raises(ValueError, match="legacy_backend_config"):
        ffi.ffi_call("f", (), legacy_backend_config="x")


def test_attributes_and_effects():
    result = ShapeDtypeStruct((3,), np.float32)

    def f(x):
        return ffi.ffi_call("f", result, has_side_effect=True)(
            x, n=np.int16(3), v=np.arange(2.0), d={"w": True, "s": "t"}
        )

    program = make_jaxpr(f)(np.ones(3, np.float32))
    assert [repr(e) for e in program.effects] == ["FFI"]
    same = make_jaxpr(f)(np.ones(3, np.float32))
    assert program.eqns[0].params == same.eqns[0].params and hash(program.eqns[0].params["attributes"])
    text = jit(f).lower(np.ones(3, np.float32)).as_text()
    for part in (
        "n = 3 : i16",
        "v = dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf64>",
        "w = true",
        's = "t"',
        "has_side_effect = true",
    ):
        assert part in text


class Kind(enum.IntEnum):
    SECOND = 2


ATTRIBUTES = [
    (1.5, "1.500000e+00 : f64"),
    (np.float32(1.5), "1.500000e+00 : f32"),
    (np.float16(1.5), "1.500000e+00 : f16"),
    (2**40, "1099511627776 : i64"),
    (np.uint8(2), "2 : ui8"),
    (True, "true"),
    (np.bool_(True), "true"),
    (Kind.SECOND, "2 : i64"),
    ("text", '"text"'),
    (np.str_("text"), '"text"'),
    (b"text", '"text"'),
    (np.dtype("float32"), "f32"),
    (np.int16, "i16"),
    ((1.0, 2.5), "array<f64: 1.000000e+00, 2.500000e+00>"),
    ([1, 2], "array<i64: 1, 2>"),
    ((True, False), "array<i1: true, false>"),
    ((1, 2.5), "[1, 2.500000e+00]"),
    (("a", "b"), '["a", "b"]'),
    (np.float32([1, 2]), "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>"),
    ({"b": {"c": 2.5}, "a": np.int32(1)}, "{a = 1 : i32, b = {c = 2.500000e+00 : f64}}"),
    ({}, "{}"),
]


@pytest.mark.parametrize(("value", "text"), ATTRIBUTES, ids=lambda x: repr(x).replace(" ", ""))
def test_types_of_attributes(value, text):
    f = ffi.ffi_call("f", ShapeDtypeStruct((3,), np.float32))
    module = jit(lambda x: f(x, a=value)).lower(np.ones(3, np.float32)).as_text()
    assert f"backend_config = {{a = {text}}}" in module


@pytest.mark.parametrize("value", [None, 1j, object()])
def test_other_values_are_no_attributes(value):
    f = ffi.ffi_call("f", ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(TypeError, match="no MLIR attribute"):
        jit(lambda x: f(x, a=value)).lower(np.ones(3, np.float32))


def test_results_and_aliases_that_do_not_fit():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="attributes shape and dtype"):
        ffi.ffi_call("f", 3)
    with pytest.raises(ValueError, match="2 output_layouts for 1 results"):
        ffi.ffi_call("f", [ShapeDtypeStruct(x.shape, x.dtype)], output_layouts=[(0, 1), (0, 1)])
    with pytest.raises(ValueError, match="need one type"):
        ffi.ffi_call("f", ShapeDtypeStruct((2, 4), x.dtype), input_output_aliases={0: 0})(x)


def test_capsules_and_headers():
    assert os.path.exists(os.path.join(ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    capsule = ffi.pycapsule(ctypes.pythonapi.PyLong_AsLong)
    assert type(capsule).__name__ == "PyCapsule"
    ffi.register_ffi_target("bedrax_test_target", capsule, platform="cpu", api_version=0)


@pytest.mark.parametrize("make", [ffi.ffi_lowering, ffi.build_ffi_lowering_function])
def test_a_compiled_function_as_a_lowering_rule(make):
    prim = Primitive(f"cholesky_by_{make.__name__}", multiple_results=True)
    prim.def_abstract_eval(lambda x, **_: [ShapedArray(x.shape, x.dtype), ShapedArray((), np.dtype(np.int32))])
    column_major = (1, 0)
    rule = make(
        "lapack_spotrf_ffi",
        operand_layouts=[column_major],
        result_layouts=[column_major, ()],
        backend_config={"uplo": np.uint8(ord("L"))},
    )
    lowering_rules.replace(prim, rule)
    lower, status = jit(prim.bind)(A[0])
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A[0]), rtol=1e-5)
    assert status == 0


def test_types_of_states_are_registered():
    numbers = [ctypes.c_int64(0) for _ in range(2)]
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    first, second = [capsule(ctypes.addressof(n), None, None) for n in numbers]
    ffi.register_ffi_type("bedrax_test_type", {"type_id": first}, platform="cpu")
    ffi.register_ffi_type_id("bedrax_other_test_type", second, platform="cpu")
    assert numbers[0].value and numbers[1].value and numbers[0].value != numbers[1].value  # XLA numbered them


def test_a_token_orders_calls():
    def f(x):
        first = ffi.ffi_call("first", abstract_token, has_side_effect=True)
        return ffi.ffi_call("second", ShapeDtypeStruct((2,), np.float32))(first(x), x)

    text = jit(f).lower(np.ones(2, np.float32)).as_text()
    assert "@first(%arg0)" in text and "-> !stablehlo.token" in text and "@second(%0, %arg0)" in text


def test_results_have_the_described_dtypes_without_x64():
    described = tuple(ShapeDtypeStruct((2,), t) for t in (np.float64, np.int64, np.complex128))
    call = ffi.ffi_call("writes_64_bits", described)
    assert [v.aval.dtype for v in make_jaxpr(call)(np.float32(1)).outvars] == [np.float64, np.int64, np.complex128]
    assert "-> (tensor<2xf64>, tensor<2xi64>, tensor<2xcomplex<f64>>)" in jit(call).lower(np.float32(1)).as_text()
