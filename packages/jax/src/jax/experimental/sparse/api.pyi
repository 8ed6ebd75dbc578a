from bedrax.sparse.creation import empty as empty, eye as eye
from bedrax.sparse.transform import todense as todense, todense_p as todense_p
