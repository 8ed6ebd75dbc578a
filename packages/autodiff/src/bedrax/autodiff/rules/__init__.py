"""The rules of jvp, transpose and linearize, one module per family; `Column` imports them on demand."""
