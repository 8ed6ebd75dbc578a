"""Gradient descent and similar methods (`jax.example_libraries.optimizers`).

An optimizer is a triple of functions: ``init(params) -> state``, ``update(i, gradients, state) -> state`` and
``get_params(state) -> params``. Each maker states the rule for one array, whose state is a tuple of arrays; `optimizer`
extends it to pytrees.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.core.array import Array

__all__ = [
    "InitFn",
    "Params",
    "ParamsFn",
    "Schedule",
    "State",
    "Step",
    "UpdateFn",
    "Updates",
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]


# Arguments and results of the functions of an optimizer.
Params = State = Updates = Any  # pytrees of arrays
Step = int
Schedule = Callable[[Step], Any]
InitFn = Callable[[Params], "OptimizerState"]
UpdateFn = Callable[[Step, Updates, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Params]


class Optimizer(NamedTuple):
    """Three functions.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.sgd(0.5)
      >>> state = opt.init_fn(jnp.array(4.))
      >>> for step in range(3):  # of x ** 2 / 2, whose gradient is x
      ...     state = opt.update_fn(step, opt.params_fn(state), state)
      ...
      >>> opt.params_fn(state)
      Array(0.5, dtype=float32, weak_type=True)
    """

    init_fn: Callable[..., Any]
    update_fn: Callable[..., Any]
    params_fn: Callable[..., Any]


OptimizerState: Final = namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
OptimizerState.__doc__ = """The states of all parameters: flat, with the structure of the parameters and of each state.

Examples:

  >>> from jax.example_libraries import optimizers

  >>> state = optimizers.momentum(0.1, 0.9).init_fn([1., 2.])
  >>> type(state) is optimizers.OptimizerState, len(jax.tree.leaves(state))  # each parameter has a velocity
  (True, 4)
"""
pytree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


def _pack(tree, states) -> OptimizerState:
    flat, structures = [], []
    for state in states:
        leaves, structure = pytree.tree_flatten(state)
        flat.append(tuple(leaves))
        structures.append(structure)
    return OptimizerState(tuple(flat), tree, tuple(structures))


def _states(state: OptimizerState) -> list:
    return [pytree.tree_unflatten(d, x) for d, x in zip(state.subtree_defs, state.packed_state, strict=True)]


def optimizer(
    opt_maker: Callable[..., tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]],
) -> Callable[..., Optimizer]:
    """Decorator: extends a maker of optimizers of one array to a maker of optimizers of pytrees.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> @optimizers.optimizer
      ... def signs(step_size):
      ...     def init(x):
      ...         return x
      ...
      ...     def update(i, g, x):
      ...         return x - step_size * jnp.sign(g)
      ...
      ...     def get_params(x):
      ...         return x
      ...
      ...     return init, update, get_params
      ...
      >>> opt = signs(0.25)
      >>> opt.params_fn(opt.update_fn(0, [jnp.array(-7.), jnp.array(3.)], opt.init_fn([1., 1.])))
      [Array(1.25, dtype=float32, weak_type=True), Array(0.75, dtype=float32, weak_type=True)]
    """

    @functools.wraps(opt_maker)
    def make(*args, **kwargs) -> Optimizer:
        init_one, update_one, params_one = opt_maker(*args, **kwargs)

        def init(params) -> OptimizerState:
            leaves, tree = pytree.tree_flatten(params)
            return _pack(tree, [init_one(x) for x in leaves])

        def update(i, gradients, state: OptimizerState) -> OptimizerState:
            leaves, tree = pytree.tree_flatten(gradients)
            if tree != state.tree_def:
                raise TypeError(f"the gradient tree {tree} must be like the parameters, {state.tree_def}")
            new = _pack(tree, [update_one(i, g, s) for g, s in zip(leaves, _states(state), strict=True)])
            if new.subtree_defs != state.subtree_defs:
                raise TypeError(f"update got states {state.subtree_defs} and returned {new.subtree_defs}")
            return new

        def params(state: OptimizerState):
            return pytree.tree_unflatten(state.tree_def, [params_one(s) for s in _states(state)])

        return Optimizer(init, update, params)

    return make


class JoinPoint:
    """A subtree of a pytree of parameters that marks where the state of one parameter begins.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": 1.})
      >>> optimizers.unpack_optimizer_state(state)["w"].subtree
      (1.0, Array(0., dtype=float32, weak_type=True))
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a pytree like the parameters, with a `JoinPoint` for each of them; for saving.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": 1., "b": 2.})
      >>> marked = optimizers.unpack_optimizer_state(state)
      >>> {name: point.subtree for name, point in sorted(marked.items())}  # parameter, velocity
      {'b': (2.0, Array(0., dtype=float32, weak_type=True)), 'w': (1.0, Array(0., dtype=float32, weak_type=True))}
    """
    return pytree.tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.momentum(0.1, 0.9)
      >>> state = opt.update_fn(0, {"w": 5.}, opt.init_fn({"w": 1.}))
      >>> saved = optimizers.unpack_optimizer_state(state)
      >>> opt.params_fn(optimizers.pack_optimizer_state(saved)) == opt.params_fn(state)
      True
    """
    points, tree = pytree.tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint, as unpack_optimizer_state makes them")
    return _pack(tree, [p.subtree for p in points])


# ---- optimizers -----------------------------------------------------------------------------------------
# Each takes `step_size`, a number or a schedule: a function of the number of the step.


@optimizer
def sgd(step_size: float) -> tuple[Callable[..., Any], ...]:
    """Gradient descent: ``x -= step_size * g``.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> init, update, params = optimizers.sgd(0.1)
      >>> state = init({"w": jnp.array([1., 2.])})
      >>> params(update(0, {"w": jnp.array([10., 0.])}, state))
      {'w': Array([0., 2.], dtype=float32)}
    """
    step_size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - step_size(i) * g, lambda x: x


@optimizer
def momentum(step_size: float, mass: float) -> tuple[Callable[..., Any], ...]:
    """Gradient descent with momentum: ``v = mass * v + g``, ``x -= step_size * v``.

    Args:
      step_size: a number, or a function of the step.
      mass: the share of the velocity that stays, in [0, 1].

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.momentum(0.1, mass=0.5)
      >>> state = opt.init_fn(jnp.array(0.))
      >>> for step in range(2):  # velocities 1, 1.5
      ...     state = opt.update_fn(step, jnp.array(1.), state)
      ...
      >>> opt.params_fn(state).round(4)
      Array(-0.25, dtype=float32, weak_type=True)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, v = state
        v = mass * v + g
        return x - step_size(i) * v, v

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: float, mass: float) -> tuple[Callable[..., Any], ...]:
    """Nesterov's momentum: as `momentum`, with the step along ``mass * v + g`` for the new v.

    Args:
      step_size: a number, or a function of the step.
      mass: the share of the velocity that stays, in [0, 1].

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.nesterov(0.1, mass=0.5)
      >>> state = opt.update_fn(0, jnp.array(1.), opt.init_fn(jnp.array(0.)))
      >>> opt.params_fn(state).round(4)  # 0.1 * (0.5 * 1 + 1)
      Array(-0.14999999, dtype=float32, weak_type=True)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, v = state
        v = mass * v + g
        return x - step_size(i) * (mass * v + g), v

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


def _inverse_root(x):
    return jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


@optimizer
def adagrad(step_size: float, momentum: float = 0.9) -> tuple[Callable[..., Any], ...]:
    """Adagrad (Duchi, Hazan and Singer 2011), with momentum: gradients over the root of their sum of squares.

    Args:
      step_size: a number, or a function of the step.
      momentum: the share of the earlier steps in a step, in [0, 1].

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.adagrad(0.1, momentum=0.)
      >>> state = opt.init_fn(jnp.array([0., 0.]))
      >>> state = opt.update_fn(0, jnp.array([3., -100.]), state)
      >>> opt.params_fn(state).round(4)  # the size of a gradient does not matter in the first step
      Array([-0.09999999,  0.09999999], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, m = state
        squares = squares + g * g
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - step_size(i) * m, squares, m

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: float, gamma: float = 0.9, eps: float = 1e-8) -> tuple[Callable[..., Any], ...]:
    """RMSProp (Hinton): gradients over the root of the running mean of their squares.

    Args:
      step_size: a number, or a function of the step.
      gamma: the share of the earlier squares in their mean, in [0, 1].
      eps: is added to the mean, so that the root is not 0.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.rmsprop(0.1, gamma=0.75)
      >>> state = opt.update_fn(0, jnp.array([3., -100.]), opt.init_fn(jnp.zeros(2)))
      >>> opt.params_fn(state).round(4)
      Array([-0.19999999,  0.19999999], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean = state
        mean = gamma * mean + (1 - gamma) * g * g
        return x - step_size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(
    step_size: float, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> tuple[Callable[..., Any], ...]:
    """`rmsprop` with momentum of its steps.

    Args:
      step_size, gamma, eps: as in `rmsprop`.
      momentum: the share of the earlier steps in a step, in [0, 1].

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.rmsprop_momentum(0.1, gamma=0.75, momentum=0.5)
      >>> state = opt.init_fn(jnp.array(0.))
      >>> for step in range(2):
      ...     state = opt.update_fn(step, jnp.array(2.), state)
      ...
      >>> opt.params_fn(state).round(3)
      Array(-0.45100003, dtype=float32, weak_type=True)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, m = state
        mean = gamma * mean + (1 - gamma) * g * g
        m = momentum * m + step_size(i) * g / jnp.sqrt(mean + eps)
        return x - m, mean, m

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple[Callable[..., Any], ...]:
    """Adam (Kingma and Ba 2015): running means of gradients and of their squares, without their bias to 0.

    Args:
      step_size: a number, or a function of the step.
      b1, b2: the shares of the earlier gradients, and of the earlier squares, in their means.
      eps: is added to the root, so that it is not 0.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.adam(0.1)
      >>> state = opt.init_fn(jnp.array([5., -1.]))
      >>> for step in range(200):
      ...     state = opt.update_fn(step, opt.params_fn(state) - jnp.array([1., 2.]), state)
      ...
      >>> opt.params_fn(state).round(2)
      Array([1., 2.], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * g * g + b2 * v
        i = jnp.asarray(i)
        n = i.astype(m.dtype) + 1
        return x - step_size(i) * (m / (1 - b1**n)) / (jnp.sqrt(v / (1 - b2**n)) + eps), m, v

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """AdaMax (Kingma and Ba 2015): `adam` with the decaying maximum instead of the mean of squares.

    Args:
      step_size: a number, or a function of the step.
      b1, b2: the share of the earlier gradients in their mean, and the decay of the maximum.
      eps: is added to the maximum, so that it is not 0.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.adamax(0.1)
      >>> state = opt.update_fn(0, jnp.array([3., -100.]), opt.init_fn(jnp.zeros(2)))
      >>> opt.params_fn(state).round(4)
      Array([-0.09999999,  0.09999999], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, abs(g))
        i = jnp.asarray(i)
        return x - step_size(i) / (1 - b1 ** (i.astype(m.dtype) + 1)) * m / (u + eps), m, u

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil et al. 2019): Adagrad with sums of squares kept per row, column, ... instead of per element.

    Args:
      step_size: a number, or a function of the step.
      momentum: the share of the earlier steps in a step, in [0, 1].

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> opt = optimizers.sm3(0.1, momentum=0.)
      >>> state = opt.init_fn(jnp.zeros((2, 3)))
      >>> state = opt.update_fn(0, jnp.array([[1., 0., 0.], [0., 2., 0.]]), state)
      >>> opt.params_fn(state).round(3)
      Array([[-0.1,  0. ,  0. ],
             [ 0. , -0.1,  0. ]], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x):
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), tuple(jnp.zeros(n, x.dtype) for n in x.shape)

    def update(i, g, state):
        x, m, sums = state
        ndim = len(sums)
        along = lambda s, axis: s.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))
        bound = 0 if not sums else functools.reduce(jnp.minimum, [along(s, a) for a, s in enumerate(sums)])
        total = bound + g * g
        m = (1 - momentum) * (g * _inverse_root(total)) + momentum * m
        sums = tuple(jnp.max(total, axis=[b for b in range(ndim) if b != a]) for a in range(ndim))
        return x - step_size(i) * m, m, sums

    return init, update, lambda state: state[0]


# ---- schedules ------------------------------------------------------------------------------------------


def constant(step_size: float) -> Callable[..., Any]:
    """The same step size for all steps.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> schedule = optimizers.constant(0.1)
      >>> schedule(0), schedule(100)
      (0.1, 0.1)
    """
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: int, decay_rate: float) -> Callable[..., Any]:
    """The schedule ``step_size * decay_rate ** (i / decay_steps)``, a function of the step i.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps after which the value is multiplied by `decay_rate`.
      decay_rate: the factor.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> schedule = optimizers.exponential_decay(1., decay_steps=10, decay_rate=0.5)
      >>> [schedule(i) for i in (0, 10, 20)]
      [1.0, 0.5, 0.25]
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Callable[..., Any]:
    """The schedule ``step_size / (1 + decay_rate * i / decay_steps)``, a function of the step i.

    Args:
      step_size: the value at step 0.
      decay_steps, decay_rate: as in the formula.
      staircase: whether the quotient ``i / decay_steps`` is rounded down.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> schedule = optimizers.inverse_time_decay(1., decay_steps=10, decay_rate=1.)
      >>> print([round(float(schedule(i)), 3) for i in (0, 10, 30)])
      [1.0, 0.5, 0.25]
    """
    whole = jnp.floor if staircase else lambda x: x
    return lambda i: step_size / (1 + decay_rate * whole(i / decay_steps))


def polynomial_decay(
    step_size: float, decay_steps: int, final_step_size: float, power: float = 1.0
) -> Callable[..., Any]:
    """From `step_size` to `final_step_size` within `decay_steps`, along ``(1 - i / decay_steps) ** power``.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps.
      final_step_size: the value from then on.
      power: the exponent.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> schedule = optimizers.polynomial_decay(1., decay_steps=10, final_step_size=0.5)
      >>> print([float(schedule(i)) for i in (0, 5, 10, 99)])
      [1.0, 0.75, 0.5, 0.5]
    """

    def schedule(i):
        rest = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return (step_size - final_step_size) * rest**power + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Callable[..., Any]:
    """``values[k]`` for steps up to ``boundaries[k]``, in order; one value more than boundaries.

    Args:
      boundaries: steps, ascending: a vector.
      values: a vector with one element more.

    Raises:
      ValueError: the lengths do not fit.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> schedule = optimizers.piecewise_constant([10, 20], [1., 0.5, 0.25])
      >>> print([float(schedule(i)) for i in (0, 9, 15, 25)])
      [1.0, 1.0, 0.5, 0.25]
    """
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if boundaries.ndim != 1 or values.ndim != 1 or values.shape[0] != boundaries.shape[0] + 1:
        raise ValueError(
            "piecewise_constant: boundaries and values must be vectors, values one longer; got shapes "
            f"{boundaries.shape} and {values.shape}"
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: float) -> Callable[..., Any]:
    """A schedule unchanged; a number as a constant schedule.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> optimizers.make_schedule(0.5)(7), optimizers.make_schedule(lambda i: 1 / i)(4)
      (0.5, 0.25)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size must be a number or a function, got {type(scalar_or_schedule)}")


# ---- gradients ------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The Euclidean norm of all elements of a pytree.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> optimizers.l2_norm({"w": jnp.array([2., 4.]), "b": jnp.array([5., 2.])})
      Array(7., dtype=float32)
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in pytree.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: float) -> dict[str, Array]:
    """Gradients, scaled down to `max_norm` if their `l2_norm` is larger.

    Args:
      grad_tree: a pytree of arrays.
      max_norm: the limit.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> optimizers.clip_grads([jnp.array([3., 4.])], 1.)
      [Array([0.6, 0.8], dtype=float32)]
      >>> optimizers.clip_grads([jnp.array([0.3, 0.4])], 1.)
      [Array([0.3, 0.4], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return pytree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
