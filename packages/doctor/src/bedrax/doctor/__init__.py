"""The state of an installation: versions, devices, caches, options, conflicts, a self-test.

`bedrax doctor` and `python -m jax` print it.
"""

from bedrax.doctor.command import main
from bedrax.doctor.findings import Finding
from bedrax.doctor.report import Report, diagnose

__all__ = ["Finding", "Report", "diagnose", "main"]
