"""Recurrent networks with the weights of cuDNN (`jax.experimental.rnn`): LSTMs, as a loop over time.

All weights are one vector: for each layer and direction the matrices of the input and of the hidden state, then for
each of them the two biases. Gates are in the order input, forget, cell, output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.autodiff import vjp
from bedrax.core.array import Array

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_bwd",
    "lstm_fwd",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int, tuple]]:
    """(kind, number, shape) of each part of the weights, in order; kinds: input and hidden matrix, their biases."""
    directions = 2 if bidirectional else 1
    for number in range(num_layers * directions):
        width = input_size if number < directions else hidden_size * directions
        yield 0, number, (4 * hidden_size, width)
        yield 1, number, (4 * hidden_size, hidden_size)
    for number in range(num_layers * directions):
        yield 2, number, (4 * hidden_size,)
        yield 3, number, (4 * hidden_size,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of weights of an LSTM: the length of the vector for `lstm`."""
    return sum(int(np.prod(s)) for *_, s in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Random weights in one vector, uniform between ``-1 / sqrt(hidden_size)`` and that; float32. `rng` is a key."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = np.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), np.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """The vector of weights as matrices of inputs and of hidden states, and their biases, by layer and direction.

    Returns:
      four dictionaries by number (layer after layer, of each the directions): ``W_ih [4 * hidden_size, inputs]``,
      ``W_hh [4 * hidden_size, hidden_size]``, ``b_ih`` and ``b_hh [4 * hidden_size]``. The rows are those of the gates
      input, forget, cell, output.

    Raises:
      ValueError: the vector has another length.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if jnp.shape(weights) != (count,):
        raise ValueError(f"this LSTM has {count} weights in one vector, got an array of shape {jnp.shape(weights)}")
    parts: tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any]] = ({}, {}, {}, {})
    at = 0
    for kind, number, shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        size = int(np.prod(shape))
        parts[kind][number] = weights[at : at + size].reshape(shape)
        at += size
    return parts


def swap_lstm_gates(weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """The vector of weights with the gates of cell and output exchanged, the order of other libraries."""
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    out = []
    for kind, number, _ in _shapes(input_size, hidden_size, num_layers, bidirectional):
        gates = jnp.split(parts[kind][number], 4)
        out.append(jnp.concatenate([gates[0], gates[1], gates[3], gates[2]]).reshape(-1))
    return jnp.concatenate(out)


def _run(x, h, c, w_ih, w_hh, bias, present, precision, reverse: bool) -> tuple:
    """One direction of one layer: ``x [T, B, I]``, ``present [T, B]``; (outputs, last hidden state, last cell)."""

    def step(state, inputs):
        h, c = state
        x, here = inputs
        gates = jnp.matmul(x, w_ih.T, precision=precision) + jnp.matmul(h, w_hh.T, precision=precision) + bias
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        new_c = lax.logistic(f) * c + lax.logistic(i) * jnp.tanh(g)
        new_h = lax.logistic(o) * jnp.tanh(new_c)
        here = here[:, None]
        state = jnp.where(here, new_h, h), jnp.where(here, new_c, c)
        return state, jnp.where(here, new_h, jnp.zeros_like(new_h))

    (h, c), y = lax.scan(step, (h, c), (x, present), reverse=reverse)
    return y, h, c


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """An LSTM on a batch of sequences.

    Args:
      x: ``[batch, time, input_size]``.
      h_0, c_0: the first hidden states and cells, ``[layers * directions, batch, hidden_size]``.
      W_ih, W_hh, b_ih, b_hh: see `unpack_lstm_weights`.
      seq_lengths: ``[batch]``: the length of each sequence; the rest is padding, with outputs of 0.
      dropout: only 0.

    Returns:
      (outputs ``[batch, time, directions * hidden_size]``, the last hidden states and cells, like the first ones).
    """
    if dropout:
        raise NotImplementedError(f"an LSTM without dropout only, got {dropout=}; apply it between LSTMs of one layer")
    directions = 2 if bidirectional else 1
    y = jnp.swapaxes(x, 0, 1)
    present = np.arange(y.shape[0])[:, None] < seq_lengths
    hs, cs = [], []
    for layer in range(num_layers):
        outs = []
        for n in range(layer * directions, (layer + 1) * directions):
            out, h, c = _run(
                y, h_0[n], c_0[n], W_ih[n], W_hh[n], b_ih[n] + b_hh[n], present, precision, reverse=bool(n % directions)
            )
            outs.append(out)
            hs.append(h)
            cs.append(c)
        y = jnp.concatenate(outs, -1)
    return jnp.swapaxes(y, 0, 1), jnp.stack(hs), jnp.stack(cs)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """`lstm_ref` with all weights in one vector. It is a loop on every platform; no kernel of a GPU library is
    called."""
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(
        x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional, precision
    )


def lstm_fwd(
    x: Array,
    h_0: Array,
    c_0: Array,
    w: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, ...]:
    """(the results of `lstm`, the residuals for `lstm_bwd`)."""
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    return lstm(x, h_0, c_0, w, seq_lengths, *sizes), (x, h_0, c_0, w, seq_lengths)


def lstm_bwd(
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
    residuals: tuple[Any, ...],
    gradients: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The cotangents of the arguments of `lstm` from those of its results; None for `seq_lengths`."""
    *given, lengths = residuals
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    _, back = vjp(lambda *args: lstm(*args, lengths, *sizes), *given)
    return (*back(tuple(gradients)), None)
