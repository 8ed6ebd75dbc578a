"""Records checks in a new table of Pythons, and prints its rows: python record_of_pythons.py TOOLS TABLE"""

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import pythons

pythons.TABLE = Path(sys.argv[2])
pythons.TABLE.write_text('{"3.8": {"jaxlib": "0.4.1", "passed": ["smoke"]}}', encoding="utf-8")
for version, what in ("1", "demo"), ("1", "tests"), ("2", "smoke"):
    importlib.metadata.version = lambda name, version=version: version
    pythons.record([what])
    print(*(f"{row['jaxlib']}:{'+'.join(row['passed'])}" for row in pythons.table().values()))
try:
    pythons.record(["everything"])
except SystemExit as error:
    print(error)
