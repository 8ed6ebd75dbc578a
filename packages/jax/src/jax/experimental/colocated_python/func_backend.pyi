"""No names: a call returns its results, so no store keeps them for later look-ups."""
