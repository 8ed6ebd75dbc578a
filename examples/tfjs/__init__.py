"""The tools of TF.js from PyPI and npm: its converter, and node.

Needs `uv` and `npm` on the path, and the network at the first use.
"""

import base64
import functools
import json
import os
import subprocess
from pathlib import Path

import numpy as np

HOME = Path(__file__).parent
LIBRARY = HOME / "node_modules" / "@tensorflow" / "tfjs" / "dist" / "tf.min.js"  # the file that a page loads


def convert(pairs: dict[Path, Path]) -> list[str | None]:
    """Convert SavedModels (keys) into folders of TF.js (values). Returns the error of each, or None."""
    folders = [str(path) for pair in pairs.items() for path in pair]
    command = ["uv", "run", "-q", "--no-project", "--script", str(HOME / "convert.py"), *folders]
    surroundings = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    result = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"TF.js's converter failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout.splitlines()[-1])


@functools.cache
def install() -> None:
    """Install the packages of `package-lock.json`, unless they are installed."""
    done = HOME / "node_modules" / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < (HOME / "package-lock.json").stat().st_mtime:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=HOME, check=True)


def node(script: Path, *arguments: object, given: str = "") -> str:
    """Run a CommonJS script with the installed packages. Returns its output; its errors go to stderr.

    Args:
      given: the standard input of the script.
    """
    install()
    surroundings = os.environ | {"NODE_PATH": str(HOME / "node_modules")}
    command = ["node", str(script), *map(str, arguments)]
    return subprocess.run(command, env=surroundings, check=True, input=given, stdout=subprocess.PIPE, text=True).stdout


def packed(array) -> dict:
    """An array for JSON: its shape, dtype, and elements in little-endian base64."""
    array = np.asarray(array)
    data = base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
    return {"shape": array.shape, "dtype": array.dtype.name, "data": data}


def unpacked(value: dict) -> np.ndarray:
    """The array of a result of `packed`."""
    dtype = np.dtype(value["dtype"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(value["data"]), dtype).reshape(value["shape"])


def run(folder: Path, **inputs) -> list[np.ndarray]:
    """Results of a graph model of TF.js, from its backend in plain JavaScript."""
    given = json.dumps({name: packed(array) for name, array in inputs.items()})
    return [unpacked(value) for value in json.loads(node(HOME / "run.cjs", folder, given=given))]
