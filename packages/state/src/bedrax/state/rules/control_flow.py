"""Loops and branches over programs with references: what they write is carried, or is a further result."""

from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.state.holders import discharges_programs

discharges_programs(scan_p, while_p, cond_p)
