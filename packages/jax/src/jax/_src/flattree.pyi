from bedrax.lax.groups import FlatTree as FlatTree, nones as nones, pack as pack  # Quax
