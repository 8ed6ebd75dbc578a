"""Each example of the gallery runs in its own process, prints its result, is short, and can draw its picture."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in GALLERY.glob("[a-z]*.py"))
# A number of the printed line, and the limit that it must not exceed.
LIMITS = {
    "custom_gradient": (r"with it ([\d.]+)", 0.05),
    "language_model": (r"first, ([\d.]+) after", 2.9),
    "logistic_regression": (r"loss ([\d.]+)", 0.1),
    "ode_fit": (r"error ([\d.]+)", 0.004),
    "planets": (r"changed by -?([\d.e+-]+)", 1e-4),
    "saved_model": (r"export, ([\d.]+) after", 0.03),
    "intervals": (r"bound is ([\d.]+)", 0.5),
}
NEEDS = {"language_model": "flax", "digits_in_browser": "sklearn"}
MARKED = [pytest.param(n, marks=pytest.mark.needs("tensorflow")) if n == "saved_model" else n for n in NAMES]


def run(name, *arguments):
    """The output of an example."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-W", "error", str(GALLERY / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", MARKED)
def test_runs(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    picture = tmp_path / "picture.svg"
    text = run(name, *[picture] * (importlib.util.find_spec("matplotlib") is not None))
    if name in LIMITS:
        pattern, limit = LIMITS[name]
        assert float(re.search(pattern, text)[1]) <= limit, text
    if importlib.util.find_spec("matplotlib") is not None:
        assert picture.stat().st_size > 1000


@pytest.mark.parametrize("name", NAMES)
def test_is_short_and_has_a_title(name):
    text = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
    assert 20 <= sum(bool(line.strip()) for line in text.splitlines()) <= 65
    assert re.match(r'"""[A-Z][^\n]{10,70}\.\n\n\S', text)


@pytest.mark.parametrize("name", ["logistic_regression", "ode_fit"])
def test_needs_no_jaxlib(name):
    program = "import runpy, sys; sys.modules['jaxlib'] = None; runpy.run_path(sys.argv.pop(), run_name='__main__')"
    command = [sys.executable, "-c", program, str(GALLERY / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_eight_devices_give_the_result_of_one():
    eight, one = re.search(r"loss ([\d.]+) on eight devices, ([\d.]+) on one", run("many_devices")).groups()
    assert abs(float(eight) - float(one)) < 1e-3
    assert "'in': (16, 16)" in run("many_devices")


@pytest.mark.skipif(shutil.which("node") is None, reason="node evaluates the page's script")
def test_the_page_computes_the_network():
    pytest.importorskip("sklearn")
    here = str(GALLERY)
    program = (
        f"import sys, json; sys.path.insert(0, {here!r}); import digits_in_browser as d; images, found, page = d.main();"
        "print(json.dumps([images[:20].tolist(), found[:20].tolist(), str(page)]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    images, found, page = json.loads(done.stdout.splitlines()[-1])
    script = re.search(r"<script>(.*)</script>", Path(page).read_text(encoding="utf-8"), re.DOTALL)[1]
    script += f"\nconsole.log(JSON.stringify({json.dumps(images)}.map(predict)))"
    file = Path(page).with_name("predict.js")
    file.write_text(script, encoding="utf-8")
    answer = json.loads(
        subprocess.run(["node", str(file)], capture_output=True, text=True, timeout=60, check=True).stdout
    )
    assert all(abs(a - b) < 1e-3 for x, y in zip(answer, found, strict=True) for a, b in zip(x, y, strict=True))
