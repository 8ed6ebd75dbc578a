"""Aliases of types, as programs use them at run time."""

import typing

import numpy as np

from bedrax.core.typing import ArrayLike


def test_an_array_like_is_one_of_some_classes():
    members = typing.get_args(ArrayLike)
    assert all(isinstance(member, type) for member in members), members
    for value in (np.ones(2), np.float32(1), np.bool_(True), 1, 1.0, 1j, True):
        assert isinstance(value, members)
    assert not isinstance([1.0], members)
