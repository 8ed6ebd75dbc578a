"""Build the manual and check it: `python tools/manual`.

    python tools/manual                builds build/site/html, checks its links, opens it in a headless Chromium
    python tools/manual --no-browser   leaves the browser out
    python tools/manual --serve        serves what was built, on the loopback address, until Ctrl-C

Sphinx fails on a warning. The screenshots are in build/site/screenshots.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

os.environ["JAX_NUM_CPU_DEVICES"] = "8"  # for the picture of placement
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2]))

import checks
import generated
import stage

BUILD = stage.ROOT / "build" / "site"


def build() -> None:
    """Make the pages."""
    started = time.monotonic()
    sources = stage.Sources(BUILD / "source")
    sources.write(generated.pages())
    generated.draw(BUILD / "source" / "pictures")
    wrong = [*sources.wrong, *stage.external_links(BUILD / "source")]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"sources: {time.monotonic() - started:.0f} s", flush=True)
    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-j", "2", "-d", str(BUILD / "doctrees")]
    # In its own process: Sphinx forks, and XLA has started threads in this one.
    command = [sys.executable, "-m", "sphinx", *arguments, str(BUILD / "source"), str(BUILD / "html")]
    if status := subprocess.run(command, check=False).returncode:
        sys.exit(status)
    print(f"pages: {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tools/manual", description=__doc__.partition("\n")[0])
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--keep", action="store_true", help="check what was built before")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--pages", help="pages to open, separated by commas; default: those of generated.OPENED")
    args = parser.parse_args()
    if args.serve:
        with checks.served(BUILD / "html", 8000) as address:
            print(f"{address} (until Ctrl-C)")
            threading.Event().wait()
    if not args.keep:
        build()
    wrong = list(checks.wrong_links(BUILD / "html"))
    if not args.no_browser:
        opened = args.pages.split(",") if args.pages else generated.opened(BUILD / "html")
        wrong += checks.in_browser(BUILD / "html", opened, BUILD / "screenshots")
        print(f"{len(opened)} pages opened", flush=True)
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"the manual: {BUILD / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
