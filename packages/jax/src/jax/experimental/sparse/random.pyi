from bedrax.sparse.creation import random_bcoo as random_bcoo
