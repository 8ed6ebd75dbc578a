"""A cluster of Slurm with one node, this machine, in a folder: its own munged, slurmctld and slurmd, on loopback."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time

NEEDS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={next}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""


def absent():
    """Why Slurm cannot run here, or None."""
    missing = [name for name in NEEDS if shutil.which(name, path=SBIN) is None]
    if missing:
        return f"Slurm: {', '.join(missing)} not installed (Debian: slurm-wlm munge)"
    return None if os.getuid() == 0 else "Slurm: its daemons start as root here only"


@contextlib.contextmanager
def cluster(folder, port):
    """Run the daemons. Returns the environment for its commands."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(host=host, port=port, next=port + 1, folder=folder, user="root"), encoding="utf-8")
    environment = {**os.environ, "PATH": SBIN, "SLURM_CONF": str(conf)}
    paths = [f"--{n}={folder}/munged.{n.partition('-')[0]}" for n in ("log-file", "pid-file", "seed-file")]
    munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket", *paths]
    daemons = [munged, ["slurmctld", "-D", "-c", "-f", str(conf)], ["slurmd", "-D", "-f", str(conf), "-N", host]]
    started = []
    try:
        for command in daemons:
            with open(folder / f"{command[0]}.out", "w", encoding="utf-8") as out:
                started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT))
            time.sleep(1)
        for _ in range(60):
            state = subprocess.run(
                ["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True, timeout=60
            ).stdout.strip()
            if state == "idle":
                break
            time.sleep(1)
        else:
            logs = "\n".join(p.read_text(encoding="utf-8", errors="replace")[-1500:] for p in folder.glob("*.log"))
            raise RuntimeError(f"the node is {state!r} after a minute\n{logs}")
        yield environment
    finally:
        for daemon in reversed(started):
            daemon.terminate()
        for daemon in started:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
