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
    """Return the number of weights of an LSTM, which is the length of the vector for `lstm`.

    Args:
      input_size: the number of features of an input.
      hidden_size: the number of features of a hidden state.
      num_layers: the number of layers.
      bidirectional: whether each layer also has a backward direction.

    Examples:

      >>> from jax.experimental import rnn

      >>> inputs, hidden = 2, 3
      >>> 4 * hidden * (inputs + hidden + 2)  # four gates: two matrices and two biases each
      84
      >>> rnn.get_num_params_in_lstm(inputs, hidden, num_layers=1, bidirectional=False)
      84
      >>> rnn.get_num_params_in_lstm(inputs, hidden, num_layers=1, bidirectional=True)
      168
    """
    return sum(int(np.prod(s)) for *_, s in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Return random weights of an LSTM in one vector.

    They are uniform in ``[-b, b)`` for ``b = 1 / sqrt(hidden_size)``.

    Args:
      rng: a random key.
      input_size: the number of features of an input.
      hidden_size: the number of features of a hidden state.
      num_layers: the number of layers.
      bidirectional: whether each layer also has a backward direction.

    Returns:
      A float32 vector of the length `get_num_params_in_lstm`.

    Examples:

      >>> from jax.experimental import rnn

      >>> weights = rnn.init_lstm_weight(jax.random.key(0), 2, 4, 1, False)
      >>> weights.shape, float(jnp.abs(weights).max().round(1))
      ((128,), 0.5)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = np.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), np.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """Split the vector of weights into the matrices and biases of each layer and direction.

    Args:
      weights: the vector of weights for `lstm`.
      input_size: the number of features of an input.
      hidden_size: the number of features of a hidden state.
      num_layers: the number of layers.
      bidirectional: whether each layer also has a backward direction.

    Returns:
      four dictionaries by number (layer after layer, of each the directions): ``W_ih [4 * hidden_size, inputs]``,
      ``W_hh [4 * hidden_size, hidden_size]``, ``b_ih`` and ``b_hh [4 * hidden_size]``. The rows are those of the gates
      input, forget, cell, output.

    Raises:
      ValueError: the vector has another length.

    Examples:

      >>> from jax.experimental import rnn

      >>> inputs, hidden, layers = 2, 1, 1
      >>> weights = jnp.arange(20.)
      >>> W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(weights, inputs, hidden, layers, False)
      >>> print(W_ih[0])
      [[0. 1.]
       [2. 3.]
       [4. 5.]
       [6. 7.]]
      >>> print(W_hh[0].T, b_ih[0], b_hh[0])
      [[ 8.  9. 10. 11.]] [12. 13. 14. 15.] [16. 17. 18. 19.]
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
    """Return the weights with the gates "cell" and "output" exchanged. Other libraries have this order.

    Args:
      weights: the vector of weights for `lstm`, or one in the order of the other libraries.
      input_size: the number of features of an input.
      hidden_size: the number of features of a hidden state.
      num_layers: the number of layers.
      bidirectional: whether each layer also has a backward direction.

    Returns:
      A vector of the same shape and dtype.

    Raises:
      ValueError: `weights` has another length than these sizes need.

    Examples:

      >>> from jax.experimental import rnn

      >>> sizes = 1, 1, 1, False  # inputs, hidden states, layers, bidirectional
      >>> weights = jnp.arange(16.)
      >>> swapped = rnn.swap_lstm_gates(weights, *sizes)
      >>> print(swapped.reshape(4, 4))
      [[ 0.  1.  3.  2.]
       [ 4.  5.  7.  6.]
       [ 8.  9. 11. 10.]
       [12. 13. 15. 14.]]
    """
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
    """Run an LSTM on a batch of sequences.

    Args:
      x: ``[batch, time, input_size]``.
      h_0, c_0: the first hidden states and cells, ``[layers * directions, batch, hidden_size]``.
      W_ih, W_hh, b_ih, b_hh: see `unpack_lstm_weights`.
      seq_lengths: ``[batch]``: the length of each sequence; the rest is padding, with outputs of 0.
      dropout: only 0.
      input_size, hidden_size: the numbers of features of an input and of a hidden state.
      num_layers: the number of layers.
      bidirectional: whether each layer also has a backward direction.
      precision: the `jax.lax.Precision` of the matrix products.

    Returns:
      (outputs ``[batch, time, directions * hidden_size]``, the last hidden states and cells, like the first ones).

    Examples:

      >>> from jax.experimental import rnn

      >>> parts = {0: jnp.zeros((4, 1))}, {0: jnp.zeros((4, 1))}, {0: jnp.array([9., 9., 1., 9.])}, {0: jnp.zeros(4)}
      >>> x, start, lengths = jnp.zeros((1, 3, 1)), jnp.zeros((1, 1, 1)), jnp.array([3])
      >>> _, _, cells = rnn.lstm_ref(x, start, start, *parts, lengths, 1, 1, 1, 0., False)  # all gates are open:
      >>> print(cells.round(2), 3 * np.tanh(1.).round(3))  # each round adds the same to the cell
      [[[2.28]]] 2.286
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
    """Run an LSTM on a batch of sequences: `lstm_ref` with all weights in one vector.

    It is a loop on every platform. No kernel of a GPU library is called.

    Args:
      x, h_0, c_0, seq_lengths: as in `lstm_ref`.
      weights: the vector of weights, as `init_lstm_weight` returns it.
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as in `lstm_ref`.

    Returns:
      (outputs, last hidden states, last cells), as `lstm_ref`.

    Raises:
      ValueError: `weights` has another shape than ``(get_num_params_in_lstm(...),)``.
      NotImplementedError: `dropout` is not 0.

    Examples:

      >>> from jax.experimental import rnn

      >>> sizes = dict(input_size=2, hidden_size=3, num_layers=1, dropout=0., bidirectional=False)
      >>> weights = rnn.init_lstm_weight(jax.random.key(0), 2, 3, 1, False)
      >>> x, start, lengths = jnp.ones((2, 4, 2)), jnp.zeros((1, 2, 3)), jnp.array([4, 2])
      >>> outputs, hidden, cells = rnn.lstm(x, start, start, weights, lengths, **sizes)
      >>> outputs.shape, bool(jnp.all(hidden[0, 1] == outputs[1, 1]))  # the last of the second sequence
      ((2, 4, 3), True)
      >>> print(outputs[1, 2:])  # behind its end
      [[0. 0. 0.]
       [0. 0. 0.]]
    """
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
    """Return the results of `lstm`, and the residuals for `lstm_bwd`.

    Args:
      x, h_0, c_0, seq_lengths: as in `lstm`.
      w: the vector of weights.
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as in `lstm`.

    Examples:

      >>> from jax.experimental import rnn

      >>> args = jnp.ones((1, 2, 1)), jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)), jnp.ones(16), jnp.array([2])
      >>> sizes = 1, 1, 1, 0., False  # inputs, hidden states, layers, dropout, bidirectional
      >>> results, residuals = rnn.lstm_fwd(*args, *sizes)
      >>> bool(jnp.all(results[0] == rnn.lstm(*args, *sizes)[0])), [r.shape for r in residuals]
      (True, [(1, 2, 1), (1, 1, 1), (1, 1, 1), (16,), (1,)])
    """
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
    """Return the cotangents of the arguments of `lstm` for cotangents of its results.

    Args:
      input_size, hidden_size, num_layers, dropout, bidirectional, precision: as in `lstm`.
      residuals: the second result of `lstm_fwd`.
      gradients: the cotangents of (outputs, last hidden states, last cells), of their shapes.

    Returns:
      The cotangents of `x`, `h_0`, `c_0` and `weights`, and None for `seq_lengths`.

    Examples:

      >>> from jax.experimental import rnn

      >>> args = jnp.ones((1, 2, 1)), jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)), jnp.ones(16), jnp.array([2])
      >>> sizes = 1, 1, 1, 0., False  # inputs, hidden states, layers, dropout, bidirectional
      >>> results, residuals = rnn.lstm_fwd(*args, *sizes)
      >>> gradients = jnp.ones_like(results[0]), jnp.zeros_like(results[1]), jnp.zeros_like(results[2])
      >>> to_x, _, _, to_weights, _ = rnn.lstm_bwd(*sizes, None, residuals, gradients)
      >>> loss = lambda x: rnn.lstm(x, *args[1:], *sizes)[0].sum()
      >>> bool(jnp.allclose(to_x, jax.grad(loss)(args[0]))), to_weights.shape
      (True, (16,))
    """
    *given, lengths = residuals
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    _, back = vjp(lambda *args: lstm(*args, lengths, *sizes), *given)
    return (*back(tuple(gradients)), None)
