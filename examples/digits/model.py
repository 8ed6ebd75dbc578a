"""The interface of a model for training and export. It does not depend on the neural network library."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Model(NamedTuple):
    """A model as two functions over nested dictionaries of arrays.

    `init(key)` returns `(params, stats)`: the parameters that the optimizer changes, and the running
    statistics of batch normalization. `apply(params, stats, images, key)` returns `(logits, stats)`. With
    a key it is in training mode (dropout, statistics of the batch), with None in inference mode.
    """

    name: str
    init: Callable[[jax.Array], tuple[Any, Any]]
    apply: Callable[[Any, Any, jax.Array, jax.Array | None], tuple[jax.Array, Any]]
