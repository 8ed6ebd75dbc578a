"""The only modules that use jaxlib's private names.

`runtime`: devices, executables, and the interface of C++ dispatch; `arrays`: the private fields of jaxlib's arrays;
`kernels`: compiled functions that XLA calls by name; `mlir`: MLIR's Python bindings, which are
loaded at the first lowering; `versions`: the differences between the supported versions of jaxlib. A new jaxlib release
needs changes in these files only.
"""
