from bedrax.xla_backend.jaxlib_door import ifrt_programs as ifrt_programs
