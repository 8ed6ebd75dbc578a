"""Internals that well-known libraries reach for; each module names who needs it."""

