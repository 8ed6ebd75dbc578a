from bedrax.extend.metadata import program_order as program_order
