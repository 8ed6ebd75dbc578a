from bedrax.extend.unsupported import fused as fused
