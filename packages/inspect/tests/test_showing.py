"""Values in notebooks."""

import html.parser
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bedrax.inspect import showing


class Balanced(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(x):
    """The text of a value's HTML, whose tags are checked."""
    found = x._repr_html_()
    parser = Balanced()
    parser.feed(found)
    assert not parser.open
    return " ".join(parser.text)


def test_a_large_array_has_statistics():
    x = jnp.arange(2000.0).at[3].set(jnp.nan).at[4].set(-jnp.inf)
    text = shown(x)
    assert "float32[2000]" in text and "8 kB" in text
    facts = showing.statistics(x)
    good = np.delete(np.arange(2000.0), [3, 4])
    assert facts["NaN"] == "1" and facts["infinite"] == "1"
    assert float(facts["least"]) == good.min() and float(facts["greatest"]) == good.max()
    assert float(facts["mean"]) == pytest.approx(good.mean(), rel=1e-3)


@pytest.mark.parametrize(
    ("x", "facts"),
    [
        (jnp.arange(5000), {"least": "0", "mean": "2500", "greatest": "4999"}),
        (jnp.arange(5000) % 2 == 0, {"true": "2500"}),
        (jnp.ones(5000, jnp.complex64) * 2j, {"mean": "0+2j"}),
        (jnp.full(5000, jnp.nan), {"NaN": "5000", "infinite": "0"}),
        (jnp.full(5000, 3, jnp.bfloat16), {"least": "3", "mean": "3", "greatest": "3", "NaN": "0", "infinite": "0"}),
    ],
    ids=str,
)
def test_statistics_by_dtype(x, facts):
    assert showing.statistics(x) == facts
    shown(x)


def test_small_and_deleted_arrays_are_shown_as_text():
    assert jnp.ones(1000)._repr_html_() is None
    x = jnp.ones(5000)
    x.delete()
    assert x._repr_html_() is None


def test_very_large_arrays_have_no_statistics(monkeypatch):
    monkeypatch.setattr(showing, "LARGEST", 1000)
    assert "not looked at" in shown(jnp.ones(5000))


def test_a_program_has_lines():
    text = shown(jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c * y, None), 1.0, x))(jnp.ones(3)))
    assert "mul" in text and re.search(r"test_showing\.py:\d+", text) and "1 equation" in text


def test_a_program_without_equations():
    assert "0 equations" in shown(jax.make_jaxpr(lambda x: x)(1.0))


def test_stages():
    traced = jax.jit(lambda x: jnp.sin(x) @ x).trace(jnp.ones((4, 4)))
    assert "dot_general" in shown(traced)
    assert "stablehlo.sine" in shown(traced.lower())
    text = shown(traced.lower().compile())
    assert "flop" in text and "HloModule" in text


def test_meshes_and_shardings():
    mesh = jax.make_mesh((1, 1), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    assert "data=1, model=1" in shown(mesh) and "cpu" in shown(mesh).lower()
    assert "data=1" in shown(mesh.abstract_mesh)
    sharding = jax.sharding.NamedSharding(mesh, jax.P("data"))
    assert "P('data',)" in shown(sharding)
    assert "cpu" in shown(jnp.ones(3).sharding).lower()
    assert "not chosen" in shown(jax.sharding.NamedSharding(mesh.abstract_mesh, jax.P("data")))


def test_a_picture_of_blocks():
    class Mesh:
        shape_tuple = (("x", 2), ("y", 2))

    class Device:
        def __init__(self, number):
            self.id = number

    class Place:
        mesh, spec, device_set = Mesh, ("x", None, "y"), ()

        def devices_indices_map(self, shape):
            assert shape == (2, 1, 2)
            return {
                Device(2 * i + j): (slice(i, i + 1), slice(None), slice(j, j + 1)) for i in range(2) for j in range(2)
            }

    found = showing._picture(Place())
    assert re.findall(r"<td[^>]*>(\d)</td>", found) == ["0", "1", "2", "3"] and "axis 0 and 2" in found


def test_without_the_offer_the_text_is_shown(monkeypatch):
    from bedrax.core import offers

    monkeypatch.setattr(offers, "target", lambda purpose: None)
    assert jnp.ones(5000)._repr_html_() is None
