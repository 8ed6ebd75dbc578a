"""`jax.extend.linear_util`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.linear_util": (
        "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
        "transformation_with_aux", "transformation_with_aux2", "wrap_init",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.linear_util import (
        StoreException as StoreException, WrappedFun as WrappedFun, cache as cache,
        merge_linear_aux as merge_linear_aux, transformation as transformation,
        transformation2 as transformation2, transformation_with_aux as transformation_with_aux,
        transformation_with_aux2 as transformation_with_aux2, wrap_init as wrap_init,
    )  # fmt: skip
