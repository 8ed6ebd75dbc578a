"""Runs of two processes with four devices each, on jaxlib's coordination service and gloo."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from bedrax.xla_backend.door import versions

PROGRAM = pathlib.Path(__file__).with_name("run_of_two.py")
# Ports below those of outgoing connections. No other process has this number, so no other test has these ports.
PORTS = itertools.cycle(20000 + (8 * os.getpid() + i) % 12000 for i in range(8))


def run(what, count=2, limit=120, more=()):
    """(exit code, output) of each process, and the seconds that it took."""
    port = next(PORTS)
    started = time.monotonic()
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), what, str(i), str(count), str(port), *more],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for i in range(count)
    ]
    try:
        outputs = [p.communicate(timeout=limit)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    return [(p.returncode, out) for p, out in zip(processes, outputs, strict=True)], time.monotonic() - started


def test_values_across_two_processes():
    found, _ = run("values")
    for i, (code, out) in enumerate(found):
        assert code == 0 and f"done values {i}" in out, out


def test_pmap_spans_the_devices_of_all_processes():
    """Each process's `pmap` was over the first devices of the run, so a sum had the values of one process only."""
    for i, (code, out) in enumerate(run("mapped", limit=200)[0]):
        assert code == 0 and f"done mapped {i}" in out, out[-3000:]


def authority(folder, name):
    """An authority, and (of the first) a certificate of this host, made by openssl."""
    ssl = lambda *words: subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    new = ["-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    ssl("req", "-x509", *new, "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    if name == "ca":
        (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1", encoding="utf-8")
        ssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "node.key", "-out", "node.csr")
        ssl(
            "x509",
            "-req",
            "-in",
            "node.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "node.pem",
        )


@pytest.mark.skipif(
    not versions.has("mutual TLS among processes"), reason=str(versions.missing("mutual TLS among processes"))
)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_processes_authenticate_by_certificates(tmp_path):
    authority(tmp_path, "ca")
    authority(tmp_path, "stranger")
    for i, (code, out) in enumerate(run("certified", more=(str(tmp_path), "ca"))[0]):
        assert code == 0 and f"done certified {i}" in out, out
    found, _ = run("certified", more=(str(tmp_path), "stranger"), limit=90)
    assert found[1][0] != 0 and "done" not in found[1][1], found[1][1][-2000:]


def test_the_thread_guard_refuses_computations_of_all_processes_in_other_threads():
    found, _ = run("one_thread")
    for i, (code, out) in enumerate(found):
        assert code == 0 and f"done one_thread {i}" in out, out


def test_the_others_end_with_an_error_if_a_process_dies():
    (zero, one), seconds = run("train", limit=90)
    assert one[0] == 17
    assert zero[0] not in (0, None), zero[1]
    assert "done" not in zero[1] and seconds < 60
    # The collective that waits for it fails immediately; without one, the coordination service misses its heartbeat.
    missed = "tasks are unhealthy (stopped sending heartbeats):\n1\n" in zero[1]
    assert missed or re.search(r"process 1 \(at \S+:\d+\) of the 2 of this run is gone", zero[1]), zero[1][-2000:]


def test_a_dead_process_is_named_in_a_process_without_collectives():
    (zero, one), seconds = run("wait", limit=90)
    assert one[0] == 17 and zero[0] != 0 and "done" not in zero[1] and seconds < 60
    assert re.search(r"process 1 \(at \S+:\d+\) of the 2 of this run is gone", zero[1]), zero[1][-2000:]


def test_arrays_of_different_shapes_are_not_equal():
    found, _ = run("shapes", limit=60)
    for i, (code, out) in enumerate(found):
        assert code == 0 and f"done shapes {i}" in out, out[-2000:]


@pytest.mark.needs("tensorstore")
def test_all_processes_refuse_to_overwrite(tmp_path):
    """Only process 0 raised an error. The others waited for it."""
    (tmp_path / "kept").write_text("x", encoding="utf-8")
    found, _ = run("exists", limit=60, more=(str(tmp_path),))
    for i, (code, out) in enumerate(found):
        assert code == 0 and "refused: " in out and f"done exists {i}" in out, out[-2000:]
    assert "is not empty; overwrite=True" in found[0][1] and "process 0 could not make the folder" in found[1][1]


def test_writes_of_two_managers_do_not_wait_for_each_other():
    found, _ = run("managers", limit=60)
    for i, (code, out) in enumerate(found):
        assert code == 0 and f"waited {i}" in out and f"done managers {i}" in out, out[-2000:]


def test_a_process_that_ends_early_waits_for_the_others():
    found, _ = run("leave", limit=60)
    for i, (code, out) in enumerate(found):
        assert code == 0 and f"done leave {i}" in out, out[-2000:]


def test_a_process_that_ends_by_an_exception_does_not_wait():
    (zero, one), seconds = run("fail", limit=90)
    assert one[0] == 1 and "the loss is NaN" in one[1] and seconds < 40
    assert zero[0] != 0 and "done" not in zero[1]
    assert re.search(r"process 1 \(at \S+:\d+\) of the 2 of this run is gone", zero[1]), zero[1][-2000:]


def test_the_error_names_a_process_that_never_started():
    (zero, _), seconds = run("late", limit=60)
    assert zero[0] != 0 and seconds < 40
    assert "did not join the run" in zero[1] and "no connection from process 1" in zero[1], zero[1][-2000:]


def test_two_processes_of_one_number():
    found, _ = run("wrong", limit=90)
    assert all(code != 0 for code, _ in found)
    assert any("another process may be the coordinator" in out for _, out in found), [o[-1500:] for _, o in found]


def test_two_processes_disagree():
    (zero, one), _ = run("disagree", limit=60)
    for code, out in (zero, one):
        assert code != 0 and "process 1 has num_processes=3, process 0 has 2" in out, out[-1500:]
