"""`jax.experimental.source_mapper`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.debugging.source_maps": (
            "MappingsGenerator",
            "Pass",
            "SourceMap",
            "SourceMapDump",
            "all_passes",
            "canonicalize_filename",
            "compile_with_env",
            "create_mlir_sourcemap",
            "filter_passes",
            "generate_sourcemaps",
            "register_pass",
        )
    },
)
