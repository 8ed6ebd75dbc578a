"""`jax.example_libraries.optimizers`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.libraries.optimizers": (
        "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant",
        "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov",
        "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
        "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.libraries.optimizers import (
        JoinPoint as JoinPoint, Optimizer as Optimizer, OptimizerState as OptimizerState,
        adagrad as adagrad, adam as adam, adamax as adamax, clip_grads as clip_grads, constant as constant,
        exponential_decay as exponential_decay, inverse_time_decay as inverse_time_decay,
        l2_norm as l2_norm, make_schedule as make_schedule, momentum as momentum, nesterov as nesterov,
        optimizer as optimizer, pack_optimizer_state as pack_optimizer_state,
        piecewise_constant as piecewise_constant, polynomial_decay as polynomial_decay, rmsprop as rmsprop,
        rmsprop_momentum as rmsprop_momentum, sgd as sgd, sm3 as sm3,
        unpack_optimizer_state as unpack_optimizer_state,
    )  # fmt: skip
