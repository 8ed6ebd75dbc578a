"""Distributions and statistics."""
