from bedrax.extend.interpreters import (
    axis_primitive_batchers as axis_primitive_batchers, batch_jaxpr_axes as batch_jaxpr_axes,
    bdim_at_front as bdim_at_front,
    broadcast as broadcast, defbroadcasting as defbroadcasting, defreducer as defreducer,
    defvectorized as defvectorized, fancy_primitive_batchers as fancy_primitive_batchers,
    moveaxis as moveaxis, not_mapped as not_mapped, primitive_batchers as primitive_batchers,
    register_vmappable as register_vmappable, unregister_vmappable as unregister_vmappable,
    zero_if_mapped as zero_if_mapped,
)  # fmt: skip
