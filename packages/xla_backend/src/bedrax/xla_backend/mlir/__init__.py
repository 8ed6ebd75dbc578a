"""Programs and lowering rules written by libraries with MLIR's own Python builders.

Needed by Equinox (`register_lowering`, `lower_fun`), and by libraries that call their own kernels.
"""
