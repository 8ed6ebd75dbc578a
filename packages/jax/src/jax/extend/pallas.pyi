from bedrax.extend.unsupported import GridMapping as GridMapping, register_lowering_rule as register_lowering_rule
