from bedrax.xla_backend.door.runtime import ifrt_programs as ifrt_programs
