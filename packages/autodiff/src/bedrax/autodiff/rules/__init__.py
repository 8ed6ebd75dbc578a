"""The rules of jvp, transpose and linearize, one module per family; `RuleTable` imports them on demand."""
