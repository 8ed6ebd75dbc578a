"""The interfaces of `interpreters` to classes of libraries and to derivatives."""

from dataclasses import dataclass

import numpy as np
import pytest

from bedrax import lax, pytree
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.extend import interpreters

ONES = np.ones(3, np.float32)


def test_classes_of_libraries_say_how_they_are_mapped():
    @pytree.register_pytree_node_class
    @dataclass
    class Sized:
        x: object
        size: int

        def tree_flatten(self):
            return (self.x,), self.size

        @classmethod
        def tree_unflatten(cls, size, children):
            return cls(children[0], size)

    interpreters.register_vmappable(
        Sized,
        int,
        int,
        lambda cont, get, s, axis: Sized(cont(s.x, axis), s.size - 1),
        lambda cont, n, s, axis: Sized(cont(n, s.x, axis), s.size + 1),
        None,
    )
    sizes = []
    out = vmap(lambda s: (sizes.append(s.size), Sized(lax.neg(s.x), s.size))[1])(Sized(ONES, 1))
    assert sizes == [0] and out.size == 1
    np.testing.assert_array_equal(out.x, -ONES)
    interpreters.unregister_vmappable(Sized)
    assert vmap(lambda s: s)(Sized(ONES, 1)).size == 1
    with pytest.raises(NotImplementedError, match="axes"):
        interpreters.register_vmappable(Sized, str, int, None, None, None)


def test_values_of_libraries_are_read_as_arrays():
    class Variable:
        shape, dtype, ndim = (3,), np.dtype(np.float64), 1

        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    handlers = interpreters.canonicalize_dtype_handlers
    with pytest.raises(NotImplementedError, match="Variable"):
        handlers[Variable] = np.asarray
    handlers[Variable] = handlers[np.ndarray]
    interpreters.pytype_aval_mappings[Variable] = interpreters.pytype_aval_mappings[np.ndarray]
    out = jit(lambda x: lax.neg(x))(Variable())
    np.testing.assert_array_equal(out, [0, -1, -2])
    assert out.dtype == np.float32 and handlers[np.ndarray](np.arange(2.0)).dtype == np.float32


def test_tangents_of_flat_functions():
    outs, moved = interpreters.jvp(
        lambda x, y: [lax.mul(x, y), y], [ONES, 2 * ONES], [ONES, interpreters.Zero.of(ONES)]
    )
    np.testing.assert_array_equal(moved[0], 2 * ONES)
    np.testing.assert_array_equal(moved[1], 0 * ONES)
    outs, moved, aux = interpreters.jvp(lambda x: ([x], "more"), [ONES], [ONES], has_aux=True)
    assert aux == "more" and len(outs) == len(moved) == 1
