"""`jax.experimental.sparse`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {}
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "ad", "api", "bcoo", "bcsr", "coo", "csr", "linalg", "random", "test_util", "transform", "util",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.experimental.sparse import ad as ad
    from jax.experimental.sparse import api as api
    from jax.experimental.sparse import bcoo as bcoo
    from jax.experimental.sparse import bcsr as bcsr
    from jax.experimental.sparse import coo as coo
    from jax.experimental.sparse import csr as csr
    from jax.experimental.sparse import linalg as linalg
    from jax.experimental.sparse import random as random
    from jax.experimental.sparse import test_util as test_util
    from jax.experimental.sparse import transform as transform
    from jax.experimental.sparse import util as util
