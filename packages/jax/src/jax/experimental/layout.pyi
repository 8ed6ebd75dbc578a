from bedrax.xla_backend.layout import (
    Format as Format,
    Layout as Layout,
    explicit_layout as explicit_layout,
    with_layout_constraint as with_layout_constraint,
)
