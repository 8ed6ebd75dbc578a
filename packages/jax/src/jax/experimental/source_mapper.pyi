from bedrax.extend.source_maps import (
    MappingsGenerator as MappingsGenerator,
    Pass as Pass,
    SourceMap as SourceMap,
    SourceMapDump as SourceMapDump,
    all_passes as all_passes,
    canonicalize_filename as canonicalize_filename,
    compile_with_env as compile_with_env,
    create_mlir_sourcemap as create_mlir_sourcemap,
    filter_passes as filter_passes,
    generate_sourcemaps as generate_sourcemaps,
    register_pass as register_pass,
)
