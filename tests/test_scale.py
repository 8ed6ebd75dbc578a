"""The work per operation is constant: calls of functions, and objects that stay, of programs of several sizes."""

import gc
import json
import sys

import jax
import numpy as np
import pytest

from benchmarks.scale import curves, drawing, page
from benchmarks.scale.programs import PROGRAMS


def work(name: str, size: int) -> tuple[int, int]:
    """The numbers of calls of Python and C functions, and of objects that a run leaves to the garbage collector."""
    run = PROGRAMS[name](size)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()
    before = len(gc.get_objects())
    sys.setprofile(count)
    try:
        result = run()
    finally:
        sys.setprofile(None)
        gc.enable()
    left = len(gc.get_objects()) - before
    del result
    return calls, left


# A level of `cond` returns the residuals of all levels in it, and one of `checkpoint` computes all levels in it again.
SQUARE = tuple((f"nested {kind}, trace and lower the gradient", 2) for kind in ("cond", "checkpoint"))
LINEAR = (
    ("chain, trace", 200),
    ("chain, lower", 200),
    ("chain, trace of the gradient", 200),
    ("chain, lower the gradient", 200),
    ("parameters, flatten and unflatten", 200),
    ("parameters, trace of the gradient", 50),
    ("parameters, lower the gradient", 50),
    ("parameters, call a compiled function", 50),
    ("parameters, call a compiled update", 50),
    ("shapes, further calls", 10),
    *((f"nested {kind}, trace and lower the gradient", 2) for kind in ("jit", "scan", "vmap")),
    ("nested while, trace and lower", 2),
)


@pytest.mark.parametrize(
    ("name", "size", "step"),
    [(*case, 2) for case in LINEAR] + [(*case, 4) for case in SQUARE],
    ids=[name for name, _ in LINEAR + SQUARE],
)
def test_work_grows_with_the_size(name, size, step):
    """From the double size to the fourfold, the work grows `step` times as much as to the double size."""
    PROGRAMS[name](size)()  # imports and inner functions
    (a, kept_a), (b, kept_b), (c, kept_c) = (work(name, n * size) for n in (1, 2, 4))
    assert c - b <= step * (b - a) * 1.15 + 50, "calls"
    assert kept_c - kept_b <= step * (kept_b - kept_a) * 1.15 + 50, "objects"


def test_the_size_of_derivatives_grows_polynomially_with_the_order():
    """The number of operations grows with a power of the order; eight orders more would be 256 times as many."""

    def operations(order):
        f = lambda x: jax.numpy.sin(x) * x
        for _ in range(order):
            f = jax.grad(f)
        return len(jax.make_jaxpr(f)(1.0).eqns)

    few, many = operations(4), operations(12)
    assert many <= few * (12 / 4) ** 4


def test_the_length_of_a_module_does_not_depend_on_the_number_of_devices():
    """The number of devices is in the types and places of a module, which do not become more."""

    def text(count):
        mesh = jax.sharding.AbstractMesh((count,), ("batch",))
        rows = jax.sharding.NamedSharding(mesh, jax.P("batch"))
        x = jax.ShapeDtypeStruct((2000, 16), np.float32, sharding=rows)
        return jax.jit(lambda x: jax.numpy.tanh(x).sum()).trace(x).lower(lowering_platforms=("cpu",)).as_text()

    assert len(text(1000).splitlines()) == len(text(10).splitlines())


def test_every_curve_has_a_program_and_is_drawn():
    assert {curve.program for curve in curves.CURVES} == set(PROGRAMS)
    assert len({curve.file for curve in curves.CURVES}) == len(curves.CURVES)
    curve = curves.CURVES[0]
    points = {"100": {"seconds": 1e-3, "megabytes": 0.0}, "1000": {"seconds": 2e-2, "megabytes": 5.0}}
    found = {"ours": points, "upstream": {"100": {"error": "fails"}, "1000": {"seconds": 4e-2}}}
    picture = drawing.draw(curve, found)
    assert picture.count("<circle") == 4 and "µs per operation" in picture
    cells = page.row(curve, found)
    assert cells[1:5] == ("20 µs per operation", "40 µs", "0.5", "2"), cells


def test_the_page_shows_the_measurements(tmp_path):
    folder = page.__file__.rpartition("/")[0]
    with open(f"{folder}/results.json", encoding="utf-8") as file:
        results = json.load(file)
    known = [curve for curve in curves.CURVES if curve.name in results["curves"]]
    page.write(tmp_path / "page.md", known, results)
    with open(f"{folder}/README.md", encoding="utf-8") as file:
        assert file.read() == (tmp_path / "page.md").read_text(encoding="utf-8")
