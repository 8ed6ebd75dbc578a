"""The compared environments, made with uv under `benchmarks/.envs`."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = Path(__file__).parent / ".envs"
PYTHON = "3.11"

TENSORFLOW = "tensorflow-cpu>=2.21; python_version < '3.14'"
NEWEST = ["jax==0.12.0.1", "jaxlib==0.12.0.1", "flax==0.12.12", TENSORFLOW]  # upstream on a newer Python
REQUIREMENTS = {
    "upstream": ["jax==0.10.2", "jaxlib==0.10.2", "flax==0.12.8", TENSORFLOW],
    # One of the last releases that convert to plain TensorFlow operations, and its dependencies.
    "upstream-0.4.30": [
        "jax==0.4.30",
        "jaxlib==0.4.30",
        "flax==0.8.5",
        "tensorflow-cpu==2.17.*",
        "numpy<2",
        "scipy<1.14",
    ],
    "autograd": ["autograd"],
    "optree": ["optree"],
}
NAMES = ("ours", *REQUIREMENTS)

# One thread per process: the machine may be shared, and CPU time is counted. Byte code is kept, as usual.
VARIABLES = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "0",  # compilation is measured, too
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "",
}


class Environment:
    """An interpreter and its environment variables."""

    def __init__(self, name: str, python: Path, sources: bool = False):
        self.name = name
        self.python = Path(python)
        self.variables = {**os.environ, **VARIABLES}
        self.variables.pop("PYTHONPATH", None)
        if sources:
            self.variables["PYTHONPATH"] = os.pathsep.join(sorted(map(str, ROOT.glob("packages/*/src"))))

    def versions(self) -> dict[str, str]:
        """The versions of the relevant distributions, for the record."""
        code = (
            "import importlib.metadata as m, json, platform\n"
            "found = {'python': platform.python_version()}\n"
            "for name in 'jax jaxlib numpy flax tensorflow-cpu autograd optree'.split():\n"
            "    try: found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(found))"
        )
        result = subprocess.run([self.python, "-c", code], env=self.variables, check=True, capture_output=True)
        return json.loads(result.stdout)


def make(name: str, on: str | None = None) -> Environment:
    """Return the environment. Makes it if it does not exist, with uv and packages from its cache or the index.

    Args:
      name: one of NAMES.
      on: the path of a newer Python; with it, jaxlib and upstream are those of the newest release.
    """
    folder, requirements, wanted = HOME / name, REQUIREMENTS, PYTHON
    if on and name != "upstream-0.4.30":  # which has no newer Python
        wanted, requirements = on, REQUIREMENTS | {"upstream": NEWEST}
        folder = HOME / Path(on).name / name
    python = folder / "bin" / "python"
    if name == "ours":
        # From wheels, as a user installs it: an editable install reads more files when Python starts.
        variables = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)}
        command = ["uv", "sync", "-q", "-p", wanted, "--all-packages", "--no-default-groups", "--no-editable"]
        packages = [
            tomllib.loads(path.read_text())["project"]["name"] for path in ROOT.glob("packages/*/pyproject.toml")
        ]
        new = [f"--reinstall-package={package}" for package in packages]  # uv would keep wheels of older sources
        options = ["--locked", "--compile-bytecode", "--extra=tf", "--group=ecosystem"]
        subprocess.run([*command, *options, *new], cwd=ROOT, env=variables, check=True)
    elif not python.exists():
        subprocess.run(["uv", "venv", "-q", "-p", wanted, folder], check=True)
        subprocess.run(["uv", "pip", "install", "-q", "-p", python, *requirements[name]], check=True)
    return Environment(name, python)
