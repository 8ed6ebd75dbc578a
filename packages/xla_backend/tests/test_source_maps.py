"""Maps from lines of programs to the lines of this file that they came from."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.xla_backend.debugging import source_maps


def wave(x):
    y = lax.sin(x)  # the line of the sine
    return lax.mul(y, y)  # the line of the product


LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def lines_of(source_map):
    """For each line of the program (number of a source, line of it) of its segments, positions as they are."""
    at, found = [0, 0], []
    for group in source_map.mappings:
        here = []
        for _, *rest in group:
            if rest:
                at = [at[0] + rest[0], at[1] + rest[1]]
                here.append(tuple(at))
        found.append(here)
    return found


@pytest.mark.parametrize("name", ["jaxpr", "hlo:stable-hlo", "hlo:optimized"])
def test_each_operation_comes_from_its_line(name):
    (dump,) = source_maps.generate_sourcemaps(wave, source_maps.filter_passes(name + "$"))(np.float32(1))
    assert dump.pass_name == name
    seen = {}
    for line, places in zip(dump.generated_code.splitlines(), lines_of(dump.source_map), strict=True):
        for source, number in places:
            assert dump.source_map.sources[source].endswith("test_source_maps.py")
            for operation in re.findall(r"\b(sine?|mul|multiply)\b", line.split("#")[0].split("metadata")[0]):
                seen.setdefault(operation, LINES[number])
    assert any("the line of the sine" in line for op, line in seen.items() if op.startswith("sin"))
    assert any("the line of the product" in line for op, line in seen.items() if op.startswith("mul"))


def test_the_form_of_browsers():
    made = source_maps.MappingsGenerator()
    made.new_group()
    made.new_segment(0, 0, 1, 2)
    made.new_segment(4)
    made.new_group()
    made.new_segment(2, 0, 3, 4, 0)
    source_map = source_maps.SourceMap(3, ["a.py"], ["x"], ["n"], made.mappings())
    assert '"mappings": "AACE,I;EAEEA"' in source_map.to_json()
    assert source_maps.SourceMap.from_json(source_map.to_json()) == source_map
    far = source_maps.SourceMap(3, [], [], [], [[(0, 0, 12345, -678)], [], [(5, 0, -12000, 700)]])
    assert source_maps.SourceMap.from_json(far.to_json()) == far
    with pytest.raises(ValueError, match="numbers"):
        made.new_segment(1, 2)


def test_passes_are_registered_once():
    names = [p.name for p in source_maps.all_passes()]
    assert names == ["jaxpr", "hlo:stable-hlo", "hlo:original", "hlo:optimized"]
    with pytest.raises(ValueError, match="already"):
        source_maps.register_pass(source_maps.all_passes()[0])
    assert source_maps.canonicalize_filename("/x/p.runfiles/main/a/b.py") == "a/b.py"
    (dump,) = source_maps.generate_sourcemaps(wave, source_maps.filter_passes("hlo:original"))(np.float32(1))
    assert "HloModule" in dump.generated_code and len(lines_of(dump.source_map)) == len(
        dump.generated_code.splitlines()
    )


def test_a_printed_module_is_mapped():
    text = jit(wave).lower(np.float32(1)).as_text(debug_info=True)
    places = lines_of(source_maps.create_mlir_sourcemap(text))
    sine = next(here for line, here in zip(text.splitlines(), places, strict=True) if "stablehlo.sine" in line)
    assert "the line of the sine" in LINES[sine[0][1]]


def test_the_environment_of_a_compilation(monkeypatch):
    seen = {}

    def f(x):  # traced in the same environment
        seen.update({name: os.environ.get(name) for name in ("A_VARIABLE", "ANOTHER")})
        return lax.sin(x)

    monkeypatch.setenv("A_VARIABLE", "before")
    monkeypatch.delenv("ANOTHER", raising=False)
    program = source_maps.compile_with_env(f, (np.float32(1),), {}, {"A_VARIABLE": "during", "ANOTHER": "there"}, {})
    assert seen == {"A_VARIABLE": "during", "ANOTHER": "there"}
    assert os.environ["A_VARIABLE"] == "before" and "ANOTHER" not in os.environ
    np.testing.assert_allclose(program(np.float32(1)), np.sin(1), rtol=1e-6)
