"""One training step, written in six ways for many devices."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .model import LanguageModel, Shape, loss, sliced_specs, tensor_specs

OPTIMIZER = optax.adam(3e-3)


class Way(NamedTuple):
    """A way to train on many devices.

    Attributes:
      mesh_shape: ``devices -> sizes of the axes "data" and "model"``.
      specs: ``(params, devices) -> a PartitionSpec per parameter``; the optimizer's state has the same specs.
      manual: whether the loss is written for each device (`shard_map`), or for all together.
      explicit: whether types have the split of arrays, and gradients are partial sums.
    """

    mesh_shape: Callable[[int], tuple[int, int]]
    specs: Callable[[Any, int], Any]
    manual: bool
    explicit: bool = False


def everywhere(params, devices):
    return jax.tree.map(lambda _: P(), params)


WAYS = {
    "data (jit)": Way(lambda n: (n, 1), everywhere, False),
    "data (shard_map)": Way(lambda n: (n, 1), everywhere, True),
    "tensor (jit)": Way(lambda n: (max(1, n // 8), min(n, 8)), lambda params, n: tensor_specs(params), False),
    "tensor (shard_map)": Way(lambda n: (max(1, n // 8), min(n, 8)), lambda params, n: tensor_specs(params), True),
    "sliced (jit)": Way(lambda n: (n, 1), sliced_specs, False),
    "zero (explicit)": Way(lambda n: (n, 1), sliced_specs, False, explicit=True),
}


def make_mesh(way: Way, count: int) -> Mesh:
    kinds = (AxisType.Explicit if way.explicit else AxisType.Auto,) * 2
    return jax.make_mesh(way.mesh_shape(count), ("data", "model"), kinds, devices=jax.devices()[:count])


def make_step(way: Way, shape: Shape, mesh: Mesh, params: Any) -> tuple[Callable, Any, Any]:
    """The step ``(params, state, tokens) -> (params, state, loss)``, and the shardings of parameters and state."""
    specs = way.specs(params, mesh.size)
    if way.manual:
        axis = "model" if mesh.shape["model"] > 1 else None

        @functools.partial(jax.shard_map, mesh=mesh, in_specs=(specs, P("data")), out_specs=P())
        def total_loss(params, tokens):
            return jax.lax.pmean(loss(LanguageModel(shape, axis), params, tokens), "data")
    else:
        total_loss = functools.partial(loss, LanguageModel(shape))

    on = lambda spec: NamedSharding(mesh, spec)
    of_params = jax.tree.map(on, specs)

    def gradients(params, tokens):
        if not way.explicit:
            return jax.value_and_grad(total_loss)(params, tokens)
        whole = jax.reshard(params, on(P(reduced={"data"})))  # gathered; the gradients are partial sums over "data"
        value, grads = jax.value_and_grad(total_loss)(whole, tokens)
        return value, jax.tree.map(jax.reshard, grads, of_params)  # each device gets the sums of its slices

    def step(params, state, tokens):
        value, grads = gradients(params, tokens)
        updates, state = OPTIMIZER.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state = jax.eval_shape(OPTIMIZER.init, params)
    # The optimizer's state of a parameter has the sharding of the parameter.
    of_state = optax.tree_map_params(
        OPTIMIZER, lambda _, s: s, state, of_params, transform_non_params=lambda _: on(P())
    )
    places = (of_params, of_state)
    jitted = jax.jit(
        step, in_shardings=(*places, on(P("data"))), out_shardings=(*places, on(P())), donate_argnums=(0, 1)
    )
    return jitted, of_params, of_state


def train(way: Way, shape: Shape, mesh: Mesh, params: Any, batches: np.ndarray, after: Callable) -> Any:
    """Train. `after` is called with the loss of each step. Returns the parameters."""
    step, of_params, of_state = make_step(way, shape, mesh, params)
    state = jax.device_put(OPTIMIZER.init(params), of_state)
    params = jax.device_put(params, of_params)
    for tokens in batches:
        params, state, value = step(params, state, tokens)
        after(float(value))
    return params


def abstract_arguments(way: Way, shape: Shape, mesh: Mesh, params: Any, size: int) -> tuple[Callable, tuple]:
    """A step and the types of its arguments, for a compiler."""
    step, of_params, of_state = make_step(way, shape, mesh, params)
    typed = lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
    state = jax.eval_shape(OPTIMIZER.init, params)
    tokens = jax.ShapeDtypeStruct((size, shape.length + 1), np.int32, sharding=NamedSharding(mesh, P("data")))
    return step, (jax.tree.map(typed, params, of_params), jax.tree.map(typed, state, of_state), tokens)
