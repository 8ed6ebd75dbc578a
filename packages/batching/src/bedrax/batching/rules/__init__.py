"""The rules of batching, one module per family; `Column` imports them on demand."""
