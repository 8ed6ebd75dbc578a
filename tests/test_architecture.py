"""The sources do what the pyproject files declare.

The import contracts of the root's pyproject.toml have the order of the layers; these tests use
the declarations. Both read the sources and import nothing, so they need no installed package.
"""

import ast
import graphlib
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

grimp = pytest.importorskip("grimp", reason="comes with the group `layers`")

ROOT = Path(__file__).parents[1]
PYPROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))
TABLES = {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in PYPROJECTS}
PROJECTS = {table["project"]["name"]: table["project"] for table in TABLES.values()}
MODULES = {
    "bedrax": "bedrax.command",
    "absl-py": "absl",
    "ml-dtypes": "ml_dtypes",
    "tensorflow-cpu": "tensorflow",
}  # import packages with another name

PLUGINS = {"jax_plugins"}  # a namespace for plugins of the user; no distribution has this name


def dist(requirement):
    return re.match(r"[\w.-]+", requirement)[0]


def module(requirement):
    """The import package of a distribution."""
    name = dist(requirement)
    return MODULES.get(name) or name.replace("bedrax-", "bedrax.", 1).replace("-", "_")


def package(name):
    """The first parts of a module's name, which identify its package."""
    return ".".join(name.split(".")[: 1 + name.startswith("bedrax.")])


def requirements(project):
    extras = project.get("optional-dependencies", {}).values()
    return [requirement for group in (project["dependencies"], *extras) for requirement in group]


GRAPH = {module(name): {module(r) for r in requirements(p)} for name, p in PROJECTS.items()}

STANDARD = sys.stdlib_module_names | {"annotationlib"}  # Python 3.14 has it


def graph(**options):
    sys.path[:0] = added = [str(path.parent / "src") for path in PYPROJECTS]
    try:
        return grimp.build_graph("bedrax", "jax", include_external_packages=True, cache_dir=None, **options)
    finally:
        del sys.path[: len(added)]


@pytest.fixture(scope="module")
def imports():
    return graph()


@pytest.fixture(scope="module")
def executed():
    """The imports that a program executes: a type may name a type of a module that imports its own."""
    return graph(exclude_type_checking_imports=True)


def test_every_import_is_declared(imports):
    undeclared = []
    for importer in sorted(imports.modules):
        if imports.is_module_squashed(importer) or importer == "bedrax":
            continue
        allowed = GRAPH[package(importer)] | {package(importer)} | PLUGINS | STANDARD
        for imported in sorted(imports.find_modules_directly_imported_by(importer)):
            if package(imported) not in allowed:
                what = "a module that does not exist" if imported == "bedrax" else imported
                undeclared.append(f"{importer} imports {what}")
    assert not undeclared, "imports that their pyproject.toml does not declare:\n" + "\n".join(undeclared)


def reached(names):
    """The packages of this repository that the installation of these brings."""
    found, rest = set(), [name for name in names if name in GRAPH]
    while rest:
        if (name := rest.pop()) not in found:
            found.add(name)
            rest += GRAPH[name] & set(GRAPH)
    return found


@pytest.mark.parametrize("folder", TABLES)
def test_the_tests_of_a_package_import_only_what_it_brings(folder):
    """So `nox -s isolated`, which runs them with the declared requirements alone, can import them."""
    table = TABLES[folder]
    group = [r for r in table.get("dependency-groups", {}).get("test", ()) if isinstance(r, str)]
    brought = reached(map(module, (table["project"]["name"], *group)))
    offenders = []
    for path in sorted((ROOT / "packages" / folder / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        skipped = {package(name) for name in re.findall(r"importorskip\(\s*[\"']([\w.]+)", text)}
        for node in at_import_time(ast.parse(text)):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [] if node.level else [f"{node.module}.{name}" for name in names]
            others = {package(name) for name in names} & set(GRAPH) - brought - skipped
            offenders += [f"{path.relative_to(ROOT)}:{node.lineno} imports {name}" for name in sorted(others)]
    assert not offenders, "what the package and its test group do not bring:\n" + "\n".join(offenders)


def named(folder):
    """The imports of a package, in its stubs as well, and the modules that its strings name."""
    paths = (ROOT / "packages" / folder / "src").rglob("*.py*")
    for path in paths:
        if path.suffix in (".py", ".pyi"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)
                elif isinstance(node, ast.Constant) and re.match(r"bedrax\.|tensorflow$", str(node.value)):
                    yield node.value


@pytest.mark.parametrize("folder", [name for name in TABLES if name != "bedrax"])  # whose requirements are its contents
def test_every_declaration_is_used(folder):
    used = {package(name) for name in named(folder)}
    idle = [r for r in TABLES[folder]["project"]["dependencies"] if module(r) not in used]
    assert not idle, f"packages/{folder}/pyproject.toml declares requirements that no module imports: {idle}"


def rings(imports, name):
    """The rings of a package: sets of modules each of which imports every other, directly or indirectly."""
    modules = {m for m in imports.modules if package(m) == name}
    parent = {m: m for m in modules}

    def root(m):
        while parent[m] != m:
            m = parent[m]
        return m

    for importer in sorted(modules):
        for imported in imports.find_modules_directly_imported_by(importer) & modules:
            if root(importer) != root(imported) and imports.chain_exists(imported, importer):
                parent[root(importer)] = root(imported)
    found = {}
    for m in modules:
        found.setdefault(root(m), set()).add(m)
    return [sorted(ring) for ring in found.values() if len(ring) > 1]


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_no_modules_import_each_other_in_a_ring(executed, name):
    found = rings(executed, name)
    ways = [" -> ".join([*executed.find_shortest_chain(ring[0], ring[1]), "..."]) + f" in {ring}" for ring in found]
    assert not found, "rings of imports:\n" + "\n".join(ways)


def test_the_graph_sees_every_package(imports):
    # The test above passes for a missing package; this one does not.
    seen = {package(name) for name in imports.modules if not imports.is_module_squashed(name)} - {"bedrax"}
    assert seen == set(GRAPH)


def test_sibling_bounds_hold_the_siblings_version():
    for name, project in PROJECTS.items():
        for requirement in requirements(project):
            sibling = PROJECTS.get(dist(requirement))
            if sibling is None:
                continue
            if dist(requirement) == "jax":  # a range would let a resolver take another `jax`
                expected = f"=={sibling['version']}"
            else:
                major, minor, _ = map(int, sibling["version"].split("."))
                expected = f">={major}.{minor},<{major}.{minor + 1}"
            required = requirement.removeprefix(dist(requirement)).partition("]")
            assert (required[2] or required[0]) == expected, f"{name} requires {requirement}; write {expected}"


def test_the_distribution_bedrax_requires_all_others():
    face, whole = PROJECTS["jax"], PROJECTS["bedrax"]
    assert {dist(r) for r in whole["dependencies"]} == {"jax"}
    all_of = {dist(r) for r in requirements(face)} | {"jax", "bedrax", "bedrax-testing"}
    below = {dist(r) for name in all_of for r in requirements(PROJECTS.get(name, face))}
    assert PROJECTS.keys() - all_of - below == set()
    assert set(whole["optional-dependencies"]) == set(face["optional-dependencies"])


def test_declarations_have_no_cycle():
    graphlib.TopologicalSorter(GRAPH).prepare()


def test_every_member_is_a_workspace_source():
    sources = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["sources"]
    assert sources == {name: {"workspace": True} for name in PROJECTS}


def test_ci_runs_the_command_of_the_readme():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    (command,) = (line for line in lines if " pytest -n 2 --timeout=" in line)
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[-1].endswith("nox -s newest -- --sample")  # which reads the command in README.md


AT_ROOT = {
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "benchmarks",
    "conftest.py",
    "docs",
    "examples",
    "noxfile.py",
    "packages",
    "pyproject.toml",
    "tests",
    "tools",
    "uv.lock",
}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs git's list of the files")
def test_the_root_has_only_the_listed_files():
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {file.partition("/")[0] for file in files} == AT_ROOT


def test_the_lock_names_only_the_public_index():
    # A mirror's address would make the lock useless on other machines.
    registries = set(re.findall(r'registry = "([^"]*)"', (ROOT / "uv.lock").read_text(encoding="utf-8")))
    hosts = set(re.findall(r'url = "(https?://[^/"]*)', (ROOT / "uv.lock").read_text(encoding="utf-8")))
    assert registries == {"https://pypi.org/simple"}
    assert hosts == {"https://files.pythonhosted.org"}


def test_every_folder_that_the_environment_adds_to_the_path_exists():
    # Python 3.15 prints a line at every start for a folder that does not exist.
    for file in Path(sysconfig.get_path("purelib")).glob("*.pth"):
        lines = [
            line
            for line in file.read_text(encoding="utf-8").splitlines()
            if line.strip() and not line.startswith(("import ", "#"))
        ]
        missing = [line for line in lines if not (file.parent / line).is_dir()]
        assert not missing, f"{file.name} names folders that do not exist: {missing}"


def test_the_formatter_leaves_out_only_tables():
    # A table of rows that the formatter would break into their elements may keep its own lines.
    files = [
        *ROOT.glob("*.py"),
        *(f for d in ("packages", "tests", "tools", "examples", "benchmarks") for f in (ROOT / d).rglob("*.py*")),
    ]
    mark = "# fmt: " + "skip"
    found = [
        file
        for file in files
        if file.suffix in (".py", ".pyi") and ".envs" not in file.parts  # environments of the benchmarks
        for line in file.read_text(encoding="utf-8").splitlines()
        if mark in line
    ]
    assert 10 < len(found) <= 60


def test_no_package_owns_the_namespace():
    # One such file would hide every other member of the namespace.
    assert not list(ROOT.glob("packages/*/src/bedrax/__init__.py"))
    assert not list(ROOT.glob("packages/*/tests/__init__.py"))


def test_every_folder_inside_a_package_is_a_package():
    # Tools that look for modules, such as this file's graph of imports, do not search other folders.
    namespaces = set(ROOT.glob("packages/*/src/bedrax"))
    folders = {path.parent for path in ROOT.glob("packages/*/src/**/*.py")} - namespaces
    assert not [str(f.relative_to(ROOT)) for f in folders if not (f / "__init__.py").is_file()]


@pytest.mark.parametrize("name", TABLES)
def test_a_member_is_complete(name):
    here = ROOT / "packages" / name
    home = here / "src" / module(TABLES[name]["project"]["name"]).replace(".", "/")
    assert TABLES[name]["tool"]["uv"]["build-backend"]["module-name"] == ".".join(home.relative_to(here / "src").parts)
    for file in (here / "README.md", here / "CHANGELOG.md", home / "__init__.py", home / "py.typed"):
        assert file.is_file(), f"{file.relative_to(ROOT)} is missing"
    assert (here / "LICENSE").resolve() == ROOT / "LICENSE"
    version = TABLES[name]["project"]["version"]
    assert version in (here / "CHANGELOG.md").read_text(encoding="utf-8"), f"the CHANGELOG does not mention {version}"


def test_tensorflow_is_imported_only_inside_functions():
    # The import contract limits who imports it. This test: the import of a bridge must not import it.
    offenders = []
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in at_import_time(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(name.split(".")[0] == "tensorflow" for name in names):
                offenders.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not offenders, f"import TensorFlow where it is used, not at import time: {offenders}"


def at_import_time(tree):
    """The import statements that run when the module does."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from at_import_time(node)
