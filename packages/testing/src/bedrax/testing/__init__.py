"""Shared op records and helpers for the tests of the Bedrax packages.

Only tests import it: the import contract forbids it to every `src/`.
"""
