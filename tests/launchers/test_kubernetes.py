"""The file of docs/launchers/kubernetes.md: `initialize` reads the variables that Kubernetes sets by it."""

from pathlib import Path

import pytest

from bedrax.processes import clusters, distributed

yaml = pytest.importorskip("yaml")
FILE = Path(__file__).parents[2] / "docs/launchers/kubernetes.yaml"


def test_the_file_agrees_with_the_detection():
    service, job = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
    assert (service["kind"], job["kind"], job["spec"]["completionMode"]) == ("Service", "Job", "Indexed")
    name, count, pod = job["metadata"]["name"], job["spec"]["completions"], job["spec"]["template"]["spec"]
    assert count == job["spec"]["parallelism"] > 1  # the processes wait for each other
    # Pods have addresses <hostname>.<subdomain>, if a headless service of that name selects them.
    assert service["spec"]["clusterIP"] == "None" and service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["selector"] == {"job-name": name}  # Kubernetes gives the pods of a job this label
    (container,) = pod["containers"]
    given = {variable["name"]: variable["value"] for variable in container["env"]}
    assert all(isinstance(value, str) for value in given.values())  # Kubernetes refuses numbers here
    found = []
    for index in range(count):
        kubernetes = {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "HOSTNAME": f"{name}-{index}",
            "JOB_COMPLETION_INDEX": str(index),
        }
        found.append(distributed._settings(None, None, None, None, {**kubernetes, **given}))
    assert [f.process_id for f in found] == list(range(count))
    ((address, number, run),) = {(f.coordinator_address, f.num_processes, f.run) for f in found}
    assert (address, number) == (f"{name}-0.{pod['subdomain']}:{clusters.ports(run)[0]}", count)
    assert container["command"][-1] == "train.py" and FILE.with_name("train.py").exists()
