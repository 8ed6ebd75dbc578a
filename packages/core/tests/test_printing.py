"""Printed programs: colours."""

import io
import re
import sys

import numpy as np

from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Primitive

twice_p = Primitive("twice")


@twice_p.abstract
def _twice(x, *, factor):
    return x


def program():
    inner = jit(lambda x: twice_p.bind(x, factor=2))
    return make_jaxpr(lambda x: inner(twice_p.bind(x, factor=1)))(np.float32(1))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_colors_do_not_change_the_layout():
    for options in ({}, {"source_info": True}):
        text = program().pretty_print(use_color=False, **options)
        colored = program().pretty_print(use_color=True, **options)
        assert "\x1b" not in text and colored != text
        assert plain(colored) == text
    assert "\x1b[1mtwice\x1b[0m" in colored and "\x1b[35mlambda\x1b[0m" in colored


def test_colors_on_a_terminal(monkeypatch):
    on_terminal(monkeypatch)  # not in a fixture: pytest sets the standard output again between fixtures and tests
    shown = str(program())
    assert "\x1b[" in shown and "\x1b[" in repr(program())
    with config.overriding(jax_pprint_use_color=False):
        assert str(program()) == plain(shown)
    monkeypatch.setenv("NO_COLOR", "1")
    assert str(program()) == plain(shown)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert str(program()) == plain(shown)


def test_no_colors_in_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert "\x1b" not in str(program())
    monkeypatch.setattr(sys, "stdout", None)  # a program without a console
    assert "\x1b" not in str(program())
