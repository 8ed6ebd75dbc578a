from . import compilation_cache as compilation_cache
