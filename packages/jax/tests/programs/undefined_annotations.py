# ruff: noqa: F821
"""Functions with annotations of an undefined name."""


def f(x: Never, y: Never = 2.0) -> Never:
    return x * y


def jvp(primals: Never, tangents: Never) -> Never:
    return f(*primals), tangents[0] * primals[1]


def fwd(x: Never, y: Never) -> Never:
    return f(x, y), y


def bwd(y: Never, g: Never) -> Never:
    return g * y, None


def rule(size: Never, mapped: Never, x: Never, y: Never) -> Never:
    return f(x, y), True


def pair(x: Never) -> Never:
    return x, x


class Scaled:
    def __call__(self: Never, x: Never) -> Never:
        return 2.0 * x
