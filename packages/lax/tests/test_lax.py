"""What the vocabulary promises without anything that evaluates."""

import subprocess
import sys

import numpy as np

from bedrax.core.staging import make_jaxpr


def test_programs_are_made_without_an_executor():
    code = "from bedrax import lax\nfrom bedrax.core.staging import make_jaxpr\nprint(make_jaxpr(lax.sin)(1.0))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"


def test_a_tracer_is_iterated_by_one_operation():
    program = make_jaxpr(list)(np.ones((3, 2), np.float32))
    assert [eqn.primitive.name for eqn in program.eqns] == ["unstack"] and len(program.outvars) == 3
