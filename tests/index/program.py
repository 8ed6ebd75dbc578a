"""Programs for the environments that `with_index.py` makes: `python program.py NAME`."""

import sys


def bedrax():
    """Our `jax` runs Flax, Equinox and Orbax."""
    import importlib.metadata

    assert "+bedrax." in importlib.metadata.version("jax")
    _libraries()


def upstream():
    """Upstream's `jax` runs Flax, Equinox and Orbax, in the same environment."""
    _libraries()


def upstream_alone():
    """Upstream's `jax` computes, without other libraries."""
    import importlib.metadata

    import jax

    assert "+bedrax." not in importlib.metadata.version("jax")
    assert jax.jit(jax.grad(lambda x: x**3))(2.0) == 12


def _libraries():
    import tempfile
    from pathlib import Path

    import equinox
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    from flax import nnx

    x = jnp.arange(6.0).reshape(2, 3)
    linear = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    gradient = nnx.grad(lambda model: jnp.sum(model(x) ** 2))(linear)
    assert gradient.kernel.get_value().shape == (3, 2)
    layer = equinox.nn.MLP(3, 1, 4, 1, key=jax.random.key(0))
    assert equinox.filter_jit(jax.vmap(layer))(x).shape == (2, 1)
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        path = Path(folder).resolve() / "state"
        checkpointer.save(path, {"x": x})
        checkpointer.wait_until_finished()
        np.testing.assert_array_equal(checkpointer.restore(path)["x"], x)


def tensorflow():
    """A program becomes a TensorFlow function, and a TensorFlow function an operation of a program."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import tensorflow as tf
    from jax.experimental import jax2tf

    x = np.linspace(0, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(tf.function(jax2tf.convert(jnp.sin))(x), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax2tf.call_tf(tf.cos))(x), np.cos(x), rtol=1e-6)


def autodiff():
    """The derivative of a function, computed with NumPy."""
    import numpy as np

    from bedrax import lax
    from bedrax.autodiff import grad

    np.testing.assert_allclose(grad(lambda x: lax.sin(x))(np.float32(1)), np.cos(1), rtol=1e-6)
    assert "jaxlib" not in sys.modules


def pytree():
    from bedrax.pytree import tree

    assert tree.map(lambda x: 2 * x, {"a": [1, 2]}) == {"a": [2, 4]}


if __name__ == "__main__":
    globals()[sys.argv[1]]()
