import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the tables of the test are modules in this folder
