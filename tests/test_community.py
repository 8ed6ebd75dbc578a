"""The files for contributors agree with the repository: workflows, forms of issues, CITATION.cff, decisions."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="comes with Flax")

ROOT = Path(__file__).parents[1]
WORKFLOWS = {
    file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in ROOT.glob(".github/workflows/*.yml")
}
FORMS = sorted(file for file in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml") if file.stem != "config")
DECISIONS = sorted(file for file in ROOT.glob("docs/decisions/*.md") if file.stem != "README")
PROJECT = tomllib.loads((ROOT / "packages/bedrax/pyproject.toml").read_text(encoding="utf-8"))["project"]

SESSIONS = {
    node.name
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(d) for d in node.decorator_list)
}


def test_workflows_run_sessions_that_exist():
    steps = [step for w in WORKFLOWS.values() for job in w["jobs"].values() for step in job["steps"]]
    named = {s for step in steps for s in re.findall(r"nox -s ([a-z ]+)", step.get("run", "")) for s in s.split()}
    named |= set(WORKFLOWS["nightly"]["jobs"]["sessions"]["strategy"]["matrix"]["session"])
    assert {"types", "docs", "newest"} <= named <= SESSIONS


def test_workflows_run_every_python_of_the_metadata():
    prefix = "Programming Language :: Python :: "
    versions = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix + "3.")]
    jobs = WORKFLOWS["tests"]["jobs"]
    assert jobs["pythons"]["strategy"]["matrix"]["python"] == versions
    setup = next(s for s in jobs["all"]["steps"] if "setup-python" in s.get("uses", ""))
    assert setup["with"]["python-version"].split() == [versions[-1], versions[0]]


def test_workflows_run_the_command_of_the_readme():
    (command,) = (
        step["run"] for step in WORKFLOWS["tests"]["jobs"]["pythons"]["steps"] if "pytest" in step.get("run", "")
    )
    command, _, share = command.partition(" --sample=")
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert int(share) > 0


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_workflows_have_few_rights_and_an_end(workflow):
    assert WORKFLOWS[workflow]["permissions"] == {"contents": "read"}
    assert all(0 < job["timeout-minutes"] <= 360 for job in WORKFLOWS[workflow]["jobs"].values())


@pytest.mark.parametrize("form", FORMS, ids=lambda file: file.stem)
def test_each_form_has_a_required_question(form):
    form = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in questions}) == len(questions)
    assert all(part["attributes"]["label"] for part in questions)
    assert any(part.get("validations", {}).get("required") for part in questions)


def test_the_citation_has_the_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


@pytest.mark.parametrize("page", DECISIONS, ids=lambda file: file.stem)
def test_a_decision_has_its_parts_and_a_line_in_the_index(page):
    text = page.read_text(encoding="utf-8")
    title = re.match(r"# (\d+)\. (.+)\n", text)
    parts = re.findall(r"^\*\*(Question|Decision|Reasons|Cost|Before|The other way)\.\*\*", text, re.MULTILINE)
    assert parts[:4] == ["Question", "Decision", "Reasons", "Cost"] and len(parts) == 5
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    assert f"| [{title[1]}]({page.name}) | {title[2]} |" in index


def test_the_commands_for_contributors_are_files_and_sessions_of_the_repository():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {s for some in re.findall(r"nox -s ([a-z ]+)", text) for s in some.split()} <= SESSIONS
    files = re.findall(r"python (tools/\w+\.py)|`(\.ci/run)`", text)
    assert files and all((ROOT / (a or b)).exists() for a, b in files)
