"""The only modules that touch jaxlib's private names.

`runtime`: devices, executables, and what C++ dispatch asks of a Python layer; `arrays`: the fields of arrays that
jaxlib keeps private; `kernels`: compiled functions that XLA calls by name; `mlir`: MLIR's Python bindings, which are
loaded at the first lowering. A new jaxlib release is the work of these files. Written for 0.10.2, tolerates 0.11.
"""
