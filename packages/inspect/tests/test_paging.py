"""The page of a program: its columns, their links to lines, estimates of work and memory, the page in a browser."""

import html
import inspect as python
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bedrax.inspect
from bedrax.core import offers
from bedrax.inspect import command, costs, paging, programs

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import models

PARAMS = [jnp.ones((8, 8)), jnp.ones((8, 4))]
X = jnp.ones((16, 8))


def line_of(text):
    lines = (HERE / "models.py").read_text(encoding="utf-8").splitlines()
    return f"{models.__file__}:{next(i for i, line in enumerate(lines, 1) if text in line)}"


@pytest.fixture(scope="module")
def page():
    return bedrax.inspect.page(models.loss, PARAMS, X)


def column(page, name):
    return next(c for c in page.data["columns"] if c["name"] == name)


@pytest.mark.parametrize("name", ["jaxpr", "gradient", "StableHLO", "optimised HLO", "TensorFlow"])
def test_each_form_of_the_program_links_to_the_users_lines(page, name):
    found = column(page, name)
    if name == "TensorFlow" and found["error"]:
        assert "ImportError: this column needs bedrax-jax2tf and TensorFlow" in found["error"]
        pytest.skip("TensorFlow is not installed")
    assert found["error"] is None
    places = {row[1] for row in found["rows"] if row[1]}
    assert {line_of("jnp.tanh(x @ w)"), line_of("total + row**2"), line_of("total.sum()")} <= places
    assert {place.rpartition(":")[0] for place in places} == {models.__file__}


def test_equations_of_a_line_in_each_form(page):
    at = line_of("jnp.tanh(x @ w)")
    texts = {c["name"]: " ".join(row[0] for row in c["rows"] if row[1] == at) for c in page.data["columns"]}
    assert texts["jaxpr"].count("dot_general") == 2 and texts["jaxpr"].count("tanh") == 2
    assert texts["StableHLO"].count("stablehlo.dot_general") == 2
    assert " dot(" in texts["optimised HLO"]
    assert texts["gradient"].count("dot_general") > 2


def test_equations_without_a_line_have_that_of_their_call():
    f = lambda x: jax.nn.log_softmax(x)
    rows = column(bedrax.inspect.page(f, X), "jaxpr")["rows"]
    line = f"{__file__}:{f.__code__.co_firstlineno}"
    inner = [row for row in rows if row[2] == 1 and row[4] is not None]
    assert len(inner) > 3 and {row[1] for row in inner} == {line}


def test_decompositions_have_the_line_of_their_equation(page):
    rows = [row for row in column(page, "StableHLO")["rows"] if "stablehlo.multiply" in row[0]]
    assert [row[1] for row in rows] == [line_of("total + row**2")]


def test_the_source_shows_the_lines(page):
    (file,) = page.data["files"]
    assert file["file"] == models.__file__
    assert any("jnp.tanh(x @ w)" in text for _, text in file["lines"])


def test_work_is_that_of_the_compiler():
    f = lambda a, b: jnp.exp(a @ b)
    a, b = jnp.ones((32, 64)), jnp.ones((64, 16))
    cost = costs.cost_of_program(jax.make_jaxpr(f)(a, b).jaxpr)
    measured = jax.jit(f).lower(a, b).compile().cost_analysis()
    assert cost.flops == 2 * 32 * 64 * 16 + 32 * 16
    assert abs(cost.flops - measured["flops"]) <= 32 * 16  # exp counts elsewhere
    assert cost.moved == 4 * (32 * 64 + 64 * 16 + 3 * 32 * 16)


def test_work_of_loops_and_branches():
    body = lambda c, x: (c * x, None)
    scan = jax.make_jaxpr(lambda x: jax.lax.scan(body, x[0], x)[0])(jnp.ones((10, 7))).jaxpr
    assert costs.cost_of_program(scan).flops == 10 * 7
    loop = jax.make_jaxpr(lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: c * 2, x))(jnp.ones(5)).jaxpr
    assert costs.cost_of_program(loop).open
    cond = jax.make_jaxpr(lambda p, x: jax.lax.cond(p, lambda x: x @ x, lambda x: x, x))(True, jnp.ones((4, 4))).jaxpr
    assert max(costs.cost_of(e).flops for e in cond.eqns) == 2 * 4**3
    conv = jax.make_jaxpr(lambda x, k: jax.lax.conv(x, k, (1,), "SAME"))(jnp.ones((1, 3, 8)), jnp.ones((5, 3, 3))).jaxpr
    assert costs.cost_of_program(conv).flops == 2 * (5 * 8) * (3 * 3)
    unknown = jax.make_jaxpr(jnp.linalg.inv)(jnp.eye(3)).jaxpr
    assert costs.cost_of_program(unknown).flops is None


def test_memory_along_a_program():
    def f(x):  # a value is dropped after its last use
        a = jnp.sin(x)
        b = jnp.cos(a)
        return jnp.sum(b)

    steps = costs.memory_along(jax.make_jaxpr(f)(jnp.ones(100)).jaxpr)
    assert [step.live for step in steps] == [800, 1200, 804]
    inner = costs.memory_along(jax.make_jaxpr(jax.jit(f, inline=False))(jnp.ones(100)).jaxpr)
    assert inner[0].live == 404 and inner[0].inside == 796


def test_symbolic_sizes_have_no_bytes():
    from jax import export

    (n,) = export.symbolic_shape("n")
    assert costs.bytes_of(jax.ShapeDtypeStruct((n, 2), jnp.float32)) == 0


def test_the_page_has_sizes_and_the_number_of_equations(page):
    facts = page.data["facts"]
    assert facts["arguments"] == "896 B" and facts["results"] == "4 B"
    assert facts["equations"] == str(len(jax.make_jaxpr(models.loss)(PARAMS, X).eqns))


def test_placement_names_arguments_and_results(page):
    placement = page.data["placement"]
    assert [p["name"] for p in placement] == ["params[0]", "params[1]", "x", "result"]
    assert placement[2]["shape"] == ["16", "8"] and placement[2]["dtype"] == "float32"


def test_placement_names_the_axes_of_the_mesh():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(X, jax.sharding.NamedSharding(mesh, jax.P("data", None)))
    placement = bedrax.inspect.page(models.count, x).data["placement"]
    assert placement[0]["axes"] == ["data", ""]


def test_earlier_traces_have_their_reasons():
    jitted = jax.jit(lambda x: x * 2)
    jitted(jnp.ones(3))
    jitted(jnp.ones(4))
    retraces = bedrax.inspect.page(jitted, jnp.ones(5)).data["retraces"]
    assert [list(r["changes"]) for r in retraces] == [[], ["new types: x is float32[4], was float32[3] (shape)"]]
    assert all(os.path.basename(__file__) in r["line"] for r in retraces)


def test_a_column_that_cannot_be_made_has_the_reason():
    def f(x):
        return jax.lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)

    found = column(bedrax.inspect.page(f, 1.0), "gradient")
    assert found["rows"] == [] and "has no reverse-mode derivative" in found["error"]


def test_a_long_column_ends(monkeypatch):
    monkeypatch.setattr(paging, "ROWS", 2)
    rows = column(bedrax.inspect.page(models.count, X), "StableHLO")["rows"]
    assert len(rows) == 3 and re.fullmatch(r"\d+ more lines", rows[2][0])


def test_integers_have_an_empty_gradient():
    found = column(bedrax.inspect.page(models.count, jnp.arange(3)), "gradient")
    assert found["error"] is None and "dot_general" not in str(found["rows"])


def test_static_arguments_and_keywords():
    jitted = jax.jit(lambda x, n, *, y: x * n + y, static_argnames="n")
    page = bedrax.inspect.page(jitted, jnp.ones(2), n=3, y=jnp.ones(2))
    assert "mul" in str(column(page, "jaxpr")["rows"])


def test_the_document_refers_to_no_other_file(page, tmp_path):
    text = page.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(
        r"""(src|href)=["'](?!data:)|@import|url\(|https?:""", re.sub(r"http://www.w3.org/2000/svg", "", text)
    )
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data) == json.loads(json.dumps(page.data))
    assert html.escape(text, quote=True) in page._repr_html_()
    assert repr(page) == f"Page({page.title!r})"


def test_text_of_programs_cannot_end_the_script(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text("def f(x):\n    return x + 1  # </script><b>\n", encoding="utf-8")
    names = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    text = bedrax.inspect.page(names["f"], 1.0).html()
    assert text.count("</script>") == 2 and "\\u003c/script>" in text


def test_the_places_of_older_compilers():
    rows = programs.hlo_rows(
        'ENTRY %main {\n  %a = f32[] add(%b), metadata={op_name="x" source_file="m.py" source_line=7}\n}'
    )
    assert rows[1].place == ("m.py", 7) and rows[1].text == "%a = f32[] add(%b)"


def test_without_tensorflow_the_column_has_the_reason(monkeypatch):
    def missing(purpose):
        raise ModuleNotFoundError("No module named 'tensorflow'")

    monkeypatch.setattr(offers, "offered", missing)
    with pytest.raises(
        ImportError, match="this column needs bedrax-jax2tf and TensorFlow: No module named 'tensorflow'"
    ):
        programs.tensorflow_operations(models.count, (X,), {})
    monkeypatch.setattr(offers, "offered", lambda purpose: None)
    with pytest.raises(ImportError, match="this column needs"):
        programs.tensorflow_operations(models.count, (X,), {})


# ---- the command


def test_the_command_writes_a_page(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "bedrax.inspect", "models:count", "f32[5,3]", "-o", str(tmp_path / "out.html")],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=HERE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "out.html")
    assert "a:f32[5,3]" in (tmp_path / "out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("f32[5,3]", (5, 3), "float32"),
        ("i32[]", (), "int32"),
        ("bf16[2]", (2,), "bfloat16"),
        ("bool[1]", (1,), "bool"),
        ("float32[4, 2]", (4, 2), "float32"),
    ],
)
def test_arguments_of_the_command(text, shape, dtype):
    found = command.argument(text)
    assert found.shape == shape and found.dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["models"], "module:function"),
        (["no_such_module_x:f"], "No module named"),
        (["models:nothing"], "has no 'nothing'"),
        (["models:__doc__"], "is not a function"),
        (["models:count", "5"], "such as f32"),
        (["models:count", "q32[5]"], "no dtype 'q32'"),
    ],
)
def test_mistakes_of_the_command(argv, error, capsys):
    assert command.main(argv) == 2
    assert error in capsys.readouterr().err


# ---- the browser

PROBE = """<script>{
const row = [...document.querySelectorAll(".row")].find(r => r.dataset.place && r.textContent.includes("dot_general"));
row.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
const lit = new Set([...document.querySelectorAll(".row.lit")].map(r => r.closest(".column").querySelector("h3").firstChild.data.trim()));
row.click();
const bars = document.querySelectorAll("svg g.lit").length, pinned = document.querySelectorAll(".row.pinned").length;
document.querySelector("nav button").click();
const hidden = document.querySelectorAll(".column[hidden]").length;
const wide = document.documentElement.scrollWidth > innerWidth;
document.body.dataset.found = JSON.stringify({lit: [...lit], bars, pinned, hidden, wide});
}</script></body>"""


@pytest.mark.parametrize("width", [500, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(page, tmp_path, width, scheme):
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium")
    (tmp_path / "page.html").write_text(page.html().replace("</body>", PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=2000"]
    if scheme == "dark":
        options.append("--blink-settings=preferredColorScheme=0")
    address = (tmp_path / "page.html").as_uri()
    command = [
        chromium,
        *options,
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={width},900",
        "--dump-dom",
        address,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    found = json.loads(html.unescape(re.search(r'data-found="([^"]*)"', done.stdout)[1]))
    assert {"source", "jaxpr", "gradient", "StableHLO", "optimised HLO"} <= set(found["lit"])
    assert found["bars"] == 4 and found["pinned"] > 10 and found["hidden"] >= 1 and not found["wide"]


def test_the_public_names():
    assert set(bedrax.inspect.__all__) == {"Page", "codes", "explanation", "page"}
    assert python.signature(bedrax.inspect.page).parameters["fun"].kind is python.Parameter.POSITIONAL_ONLY
