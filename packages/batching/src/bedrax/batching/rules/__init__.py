"""The rules of batching, one module per family; `RuleTable` imports them on demand."""
