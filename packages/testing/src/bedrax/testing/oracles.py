"""Functions that older versions of NumPy and SciPy lack or compute wrongly: tests that compare with them are skipped
there.

The packages run over these versions, which are no oracle for the functions of this table. `nox -s bounds` runs
the tests over the oldest versions that the metadata allow.
"""

import importlib
import re

import pytest

# What a test compares with: (the first version that is right, what is wrong before).
SINCE = {
    "numpy.cumulative_prod": ("2.1", "it is missing"),
    "numpy.cumulative_sum": ("2.1", "it is missing"),
    "numpy.matvec": ("2.2", "it is missing"),
    "numpy.vecmat": ("2.2", "it is missing"),
    "scipy.spatial.transform.Rotation.from_euler": ("1.17", "one angle gives a rotation with an axis"),
    "scipy.special.assoc_legendre_p_all": ("1.15", "it is missing"),
    "scipy.special.expi": ("1.16.3", "it is NaN at infinity"),
    "scipy.special.gamma": ("1.15", "it is infinite at negative integers"),
    "scipy.special.gammainc": ("1.16", "it is a number for NaN"),
    "scipy.special.gammaincc": ("1.16", "it is a number for NaN"),
    "scipy.special.gammasgn": ("1.15", "it is 0 at negative integers"),
    "scipy.special.sph_harm_y": ("1.15", "it is missing"),
    "scipy.stats.gumbel_l.logcdf": ("1.15", "it loses digits in the tail"),
    "scipy.stats.gumbel_r.logsf": ("1.15", "it loses digits in the tail"),
}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.match(r"\d+(\.\d+)*", version)[0].split(".")))


def require(*names: str) -> None:
    """Skips the test if the library of a name (`scipy.special.gamma`) is older than its row of `SINCE`; others are
    fine."""
    for name in names:
        since, before = SINCE.get(name, ("0", ""))
        library = name.partition(".")[0]
        version = importlib.import_module(library).__version__
        if numbers(version) < numbers(since):
            pytest.skip(f"{name} is not an oracle in {library} {version}: before {since}, {before}")
