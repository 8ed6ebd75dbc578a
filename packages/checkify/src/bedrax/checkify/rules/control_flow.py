"""Checks inside control flow: loops carry the error, branches return it."""

from bedrax.checkify.holders import checks_programs
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p

checks_programs(scan_p, while_p, cond_p)
