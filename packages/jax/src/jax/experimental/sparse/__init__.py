"""`jax.experimental.sparse`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.sparse": (
        "BCOO", "BCSR", "JAXSparse",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.sparse import (
        BCOO as BCOO, BCSR as BCSR, JAXSparse as JAXSparse,
    )  # fmt: skip
