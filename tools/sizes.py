"""Print the number of lines of each package: sources and tests. A report; no test limits them."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines(folder):
    """(lines of the Python files and stubs below a folder, number of files), without hidden folders."""
    paths = [path for kind in ("py", "pyi") for path in folder.rglob(f"*.{kind}")]
    shown = [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return sum(path.read_text().count("\n") for path in shown), len(shown)


def main():
    rows = []
    for package in sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")):
        rows.append((package.name, *lines(package / "src"), lines(package / "tests")[0]))
    rows += [(name, *lines(ROOT / name), 0) for name in ("benchmarks", "examples", "tools")]
    rows.append(("together", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    print(f"{'':16}{'source':>8}{'files':>7}{'tests':>8}")
    for name, source, files, tests in rows:
        print(f"{name:16}{source:8,}{files:7}{tests:8,}")


if __name__ == "__main__":
    main()
