"""Forgotten clients. Each test runs in a separate process, because arrays of old clients must not be used any more."""

import subprocess
import sys
import textwrap

import pytest

FORGET = """
    import numpy as np
    from bedrax import lax
    from bedrax.core.config import config
    from bedrax.core.jitting import jit
    from bedrax.xla_backend import clients
    import bedrax.xla_backend.flags

    config.update("jax_debug_leaked_clients_on_clear_backends", True)
    f = jit(lambda x: lax.sin(x) + x)
    X = np.ones(3, np.float32)
"""


def run(code):
    code = textwrap.dedent(FORGET) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "use",
    ["clients.devices()", "lax.add(X, X)", "f(X)", "f.lower(X).compile()(X)", "lax.map(f, X)", "lax.eigh(np.eye(3))"],
)
def test_no_cache_holds_on_to_a_client(use):
    """A compiled program is compiled again, for the present devices."""
    out = run(f"""
        for count in (1, 2, 3):
            config.update("jax_num_cpu_devices", count)
            {use}
            print(len(clients.devices()), float(np.asarray(f(X))[0]) > 1.8)
            clients.clear_backends()
    """)
    assert out.split() == ["1", "True", "2", "True", "3", "True"]


def test_who_holds_on_to_a_client_is_told():
    out = run("""
        x = f(X)
        try:
            clients.clear_backends()
        except RuntimeError as error:
            print(error)
        print(clients.backends_are_initialized())
    """)
    assert "holds on to the clients of ['cpu']" in out and out.endswith("False\n")
