"""What each primitive computes, in NumPy: one module per family; `RuleTable` imports them on demand."""
