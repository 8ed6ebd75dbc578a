"""The digits model in a browser; see README.md."""
