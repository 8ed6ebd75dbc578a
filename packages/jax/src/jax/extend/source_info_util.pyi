from bedrax.extend.source_info import (
    NameStack as NameStack, SourceInfo as SourceInfo, current as current,
    current_name_stack as current_name_stack, extend_name_stack as extend_name_stack,
    register_exclusion as register_exclusion, summarize as summarize,
)  # fmt: skip
