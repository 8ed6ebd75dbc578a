from bedrax.batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
