from bedrax.extend.services import reset_cache as reset_cache, set_cache_dir as set_cache_dir
