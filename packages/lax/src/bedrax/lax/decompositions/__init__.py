"""Primitives as functions of other lax operations, family by family."""
