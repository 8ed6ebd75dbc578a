"""Loops and branches with programs on references: written values are carries, or further results."""

from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.state.holders import discharges_programs

discharges_programs(scan_p, while_p, cond_p)
