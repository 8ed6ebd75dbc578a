"""`jax.extend.source_info_util`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.source_info": (
        "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
        "register_exclusion", "summarize",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.source_info import (
        NameStack as NameStack, SourceInfo as SourceInfo, current as current,
        current_name_stack as current_name_stack, extend_name_stack as extend_name_stack,
        register_exclusion as register_exclusion, summarize as summarize,
    )  # fmt: skip
