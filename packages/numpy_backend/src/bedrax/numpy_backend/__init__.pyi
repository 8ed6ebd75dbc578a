from bedrax.numpy_backend.program_source import source_of as source_of
