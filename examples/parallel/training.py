"""One training step, written in seven ways for many devices."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .model import LanguageModel, Shape, loss, sliced_specs, tensor_specs
from .pipeline import pipeline_loss, stacked, stage_specs

OPTIMIZER = optax.adam(3e-3)


def whole_loss(shape: Shape, mesh: Mesh, specs: Any) -> Callable:
    """The loss, written for all devices together."""
    return functools.partial(loss, LanguageModel(shape))


def loss_of_parts(shape: Shape, mesh: Mesh, specs: Any) -> Callable:
    """The loss, written for each device."""
    axis = "model" if mesh.shape["model"] > 1 else None

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(specs, P("data")), out_specs=P())
    def total_loss(params, tokens):
        return jax.lax.pmean(loss(LanguageModel(shape, axis), params, tokens), "data")

    return total_loss


def everywhere(params, devices):
    return jax.tree.map(lambda _: P(), params)


class Way(NamedTuple):
    """A way to train on many devices.

    Attributes:
      sizes: ``(devices, shape) -> sizes of the axes``.
      specs: ``(params, devices) -> a PartitionSpec per parameter``; the optimizer's state has the same specs.
      loss: ``(shape, mesh, specs) -> function(params, tokens)``.
      axes: the names of the axes.
      explicit: whether types have the split of arrays, and gradients are partial sums.
      form: the parameters as this way keeps them, from those of the model.
    """

    sizes: Callable[[int, Shape], tuple[int, int]]
    specs: Callable[[Any, int], Any] = everywhere
    loss: Callable[[Shape, Mesh, Any], Callable] = whole_loss
    axes: tuple[str, str] = ("data", "model")
    explicit: bool = False
    form: Callable[[Any], Any] = lambda params: params


def data_only(n, shape):
    return n, 1


def data_and_model(n, shape):
    return max(1, n // 8), min(n, 8)


def data_and_stages(n, shape):
    stages = min(n, shape.layers)
    return n // stages, stages


def split_model(params, n):
    return tensor_specs(params)


WAYS = {
    "data (jit)": Way(data_only),
    "data (shard_map)": Way(data_only, loss=loss_of_parts),
    "tensor (jit)": Way(data_and_model, split_model),
    "tensor (shard_map)": Way(data_and_model, split_model, loss_of_parts),
    "sliced (jit)": Way(data_only, sliced_specs),
    "zero (explicit)": Way(data_only, sliced_specs, explicit=True),
    "pipeline (shard_map)": Way(data_and_stages, stage_specs, pipeline_loss, ("data", "stage"), form=stacked),
}


def make_mesh(way: Way, shape: Shape, count: int) -> Mesh:
    kinds = (AxisType.Explicit if way.explicit else AxisType.Auto,) * 2
    return jax.make_mesh(way.sizes(count, shape), way.axes, kinds, devices=jax.devices()[:count])


def make_step(way: Way, shape: Shape, mesh: Mesh, params: Any) -> tuple[Callable, Any, Any]:
    """The step ``(params, state, tokens) -> (params, state, loss)``, and the shardings of parameters and state."""
    specs = way.specs(params, mesh.size)
    total_loss = way.loss(shape, mesh, specs)
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
    params = way.form(params)
    step, of_params, of_state = make_step(way, shape, mesh, params)
    state = jax.device_put(OPTIMIZER.init(params), of_state)
    params = jax.device_put(params, of_params)
    for tokens in batches:
        params, state, value = step(params, state, tokens)
        after(float(value))
    return params


def abstract_arguments(way: Way, shape: Shape, mesh: Mesh, params: Any, size: int) -> tuple[Callable, tuple]:
    """A step and the types of its arguments, for a compiler."""
    params = jax.eval_shape(way.form, params)
    step, of_params, of_state = make_step(way, shape, mesh, params)
    typed = lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
    state = jax.eval_shape(OPTIMIZER.init, params)
    tokens = jax.ShapeDtypeStruct((size, shape.length + 1), np.int32, sharding=NamedSharding(mesh, P("data")))
    return step, (jax.tree.map(typed, params, of_params), jax.tree.map(typed, state, of_state), tokens)
