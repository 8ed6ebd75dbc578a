"""The report of this environment, and of the same one with wrong environment variables."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bedrax import doctor
from bedrax.core import config
from bedrax.doctor import options, probe, report

RUN = "import sys; from bedrax.doctor import main; sys.exit(main(['--json']))"


def run(tmp_path, **variables):
    """The status and the report of the command in a new process."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def errors(found):
    return {finding["code"]: finding for finding in found["findings"] if finding["level"] == "error"}


def test_this_environment(tmp_path):
    status, found = run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_ENABLE_COMPILATION_CACHE="1")
    wrong = errors(found)
    if late := "took too long" in wrong.get("ended", {}).get("message", ""):  # a machine with much other work
        del wrong["ended"]
    assert wrong == {} and found["ok"] is not late and status == late
    facts = found["facts"]
    assert facts["devices"]["default"] and facts["devices"]["devices"]
    assert facts["versions"]["distributions"]["bedrax-doctor"]
    assert facts["options"]["jax_compilation_cache_dir"] == {
        "value": str(tmp_path),
        "default": None,
        "from": "environment variable JAX_COMPILATION_CACHE_DIR",
    }
    assert facts["caches"]["compiled programs"]["folder"] == str(tmp_path)
    assert late or facts["self-test"]["seconds"].keys() == probe.TESTS.keys()


def test_the_self_test(monkeypatch):
    monkeypatch.setattr(probe, "SELF_TEST_SECONDS", 1000)
    facts, findings = probe.self_test()
    assert findings == [] and facts["seconds"].keys() == probe.TESTS.keys()
    assert all(isinstance(seconds, float) for seconds in facts["seconds"].values())


def test_several_faults_of_the_environment(tmp_path):
    tmp_path.joinpath("file").write_text("", encoding="utf-8")
    folder = str(tmp_path / "file" / "folder")
    status, found = run(
        tmp_path,
        JAX_COMPILATION_CACHE_DIR=folder,
        JAX_ENABLE_COMPILATION_CACHE="1",
        JAX_ENABEL_X64="1",
        JAX_PLATFORMS="cuda",
    )
    assert status == 1 and not found["ok"]
    wrong = errors(found)
    assert folder in wrong["cache"]["message"]
    assert wrong["misspelt-variable"]["remedy"] == "Did you mean JAX_ENABLE_X64?"
    assert "jax_platforms='cuda'" in wrong["no-device"]["message"]
    assert "self-test" in wrong


def test_a_bad_value_in_a_variable(tmp_path):
    status, found = run(tmp_path, JAX_ENABLE_X64="perhaps")
    assert status == 1
    message = errors(found)["options"]["message"]
    assert "the environment variable JAX_ENABLE_X64 has a bad value" in message and "'perhaps'" in message


def test_the_end_of_the_process_is_a_finding(tmp_path):
    # XLA ends the process if it does not know a flag.
    status, found = run(tmp_path, XLA_FLAGS="--xla_no_such_flag=1")
    assert status == 1
    message = errors(found)["ended"]["message"]
    assert "The check 'devices' failed: its process " in message and "xla_no_such_flag" in message


def test_the_process_of_the_command_does_not_load_jaxlib(tmp_path):
    # A damaged jaxlib would end it before it could report anything.
    code = "import sys; from bedrax.doctor import diagnose; diagnose(); print(*{'jaxlib', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_check_that_takes_too_long_is_ended(tmp_path):
    slow = "import time; from bedrax.doctor import probe; probe.CHECKS = {'devices': (lambda: time.sleep(60), 0.5)}"
    file = tmp_path / "results"
    done = subprocess.run(
        [sys.executable, "-c", f"{slow}; probe.main({str(file)!r})"], capture_output=True, text=True, timeout=50
    )
    results = report._read(file.read_text(encoding="utf-8"), report._end(done.returncode), done.stderr)
    (finding,) = results["devices"].findings
    assert finding.message.startswith("The check 'devices' took too long, and its process ended with status 1.")


def test_options_name_their_origin(monkeypatch):
    flag = config.find("jax_log_compiles") if "bedrax.xla_backend" in sys.modules else config.debug_nans
    before = flag.global_value, flag._set_by
    try:
        flag.set(True)
        assert options.options({}).facts[flag.name] == {"value": True, "default": False, "from": "code"}
        assert options.for_a_child()[flag.env] == "True"
    finally:
        flag.set(before[0])
        flag._set_by = before[1]
    with flag(True):
        assert options.options({}).facts[flag.name]["from"] == "code"
    assert flag.name not in options.options({}).facts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JAX_ENABLE_X46", "JAX_ENABLE_X64"),
        ("jax_enable_x64", "JAX_ENABLE_X64"),
        ("JX_ENABLE_X64", "JAX_ENABLE_X64"),
        ("JAX_PLATFORM", "JAX_PLATFORMS"),
        ("BEDRAX_PYTREE_ENGIN", "BEDRAX_PYTREE_ENGINE"),
        ("JAX_COMPILATION_CACHE_DIRECTORY", "JAX_COMPILATION_CACHE_DIR"),
    ],
)
def test_a_misspelt_variable(name, expected):
    (finding,) = options.misspelt({name: "1"}, {"JAX_ENABLE_X64", "JAX_PLATFORMS", "JAX_COMPILATION_CACHE_DIR"})
    assert (finding.level, finding.remedy) == ("error", f"Did you mean {expected}?")


def test_variables_of_others_are_no_error():
    found = [*options.misspelt({"HOME": "/", "PATH": "", "JAX_PORT_OF_SOMETHING_ELSE": "1"}, {"JAX_ENABLE_X64"})]
    assert [finding.level for finding in found] == ["note"]


ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not (ROOT / "packages/processes/src").exists(), reason="needs the sources of all packages")
def test_the_list_of_variables_is_complete():
    read = re.compile(r"""environ\.get\(\s*"([A-Z_]+)"|env\.get\("([A-Z_]+)"|"([A-Z_]+)" in env\b|env\["([A-Z_]+)"\]""")
    names = {
        next(filter(None, match))
        for file in ROOT.glob("packages/*/src/**/*.py")
        for match in read.findall(file.read_text(encoding="utf-8"))
    }
    ours = {name for name in names if name.startswith(("JAX_", "BEDRAX_"))}
    assert ours and ours <= options.VARIABLES


def test_hardware_without_a_plugin(tmp_path, monkeypatch):
    file = tmp_path / "nvidia0"
    file.touch()
    row = ("cuda", "a plugin", "CUDA_VISIBLE_DEVICES", "no_such_plugin")
    monkeypatch.setattr(probe, "_HARDWARE", {str(file): row})
    assert probe._without_plugin({"cpu"}, {}, {})["cuda"].endswith(
        "no plugin is installed. Install a plugin, of the version of jaxlib."
    )
    assert probe._without_plugin({"cpu"}, {}, {"CUDA_VISIBLE_DEVICES": "-1"}) == {
        "cuda": "CUDA_VISIBLE_DEVICES='-1' hides the devices."
    }
    assert probe._without_plugin({"gpu"}, {}, {}) == {}
    assert probe._without_plugin({"cpu"}, {"cuda": "it failed"}, {}) == {}


def test_a_wrong_result_fails_the_self_test(monkeypatch):
    def wrong():
        raise AssertionError("3 is not 4")

    monkeypatch.setattr(probe, "TESTS", {"sums": wrong})
    result = probe.self_test()
    assert result.findings[0].message == "The self-test 'sums' failed: AssertionError: 3 is not 4"


def test_the_text_counts_the_errors():
    text = doctor.Report({}, [doctor.Finding("error", "x", "A.", "Do B."), doctor.Finding("note", "y", "C.")]).to_text()
    assert text == "Worth knowing\n  [y] C.\n\nWrong\n  [x] A.\n      Do B.\n\n1 thing is wrong."
    assert doctor.Report({"versions": {}}, []).to_text() == "Versions\n  none\n\nNothing is wrong."
