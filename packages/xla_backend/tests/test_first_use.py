"""The first use of every module, from many threads concurrently, in a fresh process."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import threading
    import numpy as np
    {head}
    from bedrax import lax
    from bedrax.core.jitting import jit
    errors, start = [], threading.Barrier(8)

    def work(i):
        try:
            start.wait()
            x = np.full(3, i, np.float32)
            y = lax.add(lax.tanh(x), x)
            z = jit(lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=3)[0])(y)
            want = np.sin(np.sin(np.sin(np.tanh(x) + x)))
            np.testing.assert_allclose(np.asarray(z), want, rtol=1e-5)
        except BaseException as e:
            errors.append(repr(e))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    from bedrax.core import executors
    print("executor", executors.get().name, "errors", errors)
"""


@pytest.mark.parametrize(
    "head",
    [
        "import bedrax.xla_backend",
        "from bedrax.core import executors; import bedrax.numpy_backend; executors.offer('bedrax.xla_backend', rank=1)",
    ],
    ids=["imported", "offered"],
)
def test_first_use_from_many_threads(head):
    program = textwrap.dedent(PROGRAM).replace("{head}", head)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "executor xla errors []", out.stdout + out.stderr


def test_a_backend_that_comes_while_something_is_traced():
    program = """
        from bedrax.core import executors
        import bedrax.numpy_backend
        executors.offer('bedrax.xla_backend', rank=1)
        import numpy as np
        from bedrax import lax
        from bedrax.core.staging import make_jaxpr
        program = make_jaxpr(lambda x: lax.add(x, lax.asarray(np.float32(1))))(np.float32(2))
        print(executors.get().name, len(program.eqns))
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "xla 1", out.stdout + out.stderr
