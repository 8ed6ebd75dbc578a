"""Checks of the built manual: its links, and the pages in a headless Chromium."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

SIZES = {"phone": (390, 844), "desk": (1440, 900)}
SCHEMES = ("light", "dark")
# A query and a page that must be among the results.
QUERIES = {"quantile": "reference/jax.numpy.html", "donate": "reference/jax.html", "saved model": "tensorflow"}
LOADED = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src"}


class _Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loaded.append(found[LOADED[tag]])


def wrong_links(folder: Path) -> Iterator[str]:
    """Links to pages or anchors that do not exist, and files that come from another host."""
    paths = [path for path in sorted(folder.glob("**/*.html")) if "_static" not in path.parts]
    pages = {path.relative_to(folder).as_posix(): _Page(path.read_text(encoding="utf-8")) for path in paths}
    for name, page in pages.items():
        for target in page.loaded:
            if "//" in target and not target.startswith("data:"):
                yield f"{name} loads {target}"
        for link in dict.fromkeys((*page.links, *page.loaded)):
            if "://" in link or link.startswith(("mailto:", "data:", "javascript:")):
                continue
            there, anchor = urldefrag(urljoin(f"/{name}", link))
            there = unquote(there).lstrip("/").partition("?")[0]
            there += "index.html" if there.endswith("/") or not there else ""
            if there not in pages:
                if not (folder / there).is_file():
                    yield f"{name}: no file for {link}"
            elif anchor and unquote(anchor) not in pages[there].anchors:
                yield f"{name}: no anchor for {link}"


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".js": "text/javascript"}

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder on the loopback address, and give its URL."""
    handler = functools.partial(_Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def chromium() -> str:
    """The path of a Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError("no Chromium: install it, or set the variable CHROMIUM to its path")
    return found


def _watched(page: Any, address: str) -> list[str]:
    """A list to which the page adds its errors, its warnings, and loads from another host."""
    found: list[str] = []
    page.on("console", lambda m: found.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("requestfailed", lambda request: found.append(f"failed: {request.url}"))
    page.on("request", lambda r: None if r.url.startswith((address, "data:")) else found.append(f"loads {r.url}"))
    return found


def in_browser(folder: Path, names: list[str], shots: Path) -> Iterator[str]:
    """Open pages at each size and in each colour scheme, use the search, and save pictures of the pages in `shots`."""
    from playwright.sync_api import sync_playwright

    shots.mkdir(parents=True, exist_ok=True)
    with served(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for scheme in SCHEMES:
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
                )
                page = context.new_page()
                found = _watched(page, address)
                for name in names:
                    where = f"{name} ({size}, {scheme})"
                    page.goto(address + name, wait_until="load")
                    theme = page.evaluate("document.documentElement.dataset.theme")
                    if theme != scheme:
                        yield f"{where}: the page is {theme}"
                    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    if wide > 0:
                        yield f"{where}: {wide} pixels wider than the window: {page.evaluate(WIDEST)}"
                    page.screenshot(path=shots / f"{name.removesuffix('.html').replace('/', '.')}-{size}-{scheme}.png")
                    yield from (f"{where}: {each}" for each in found)
                    found.clear()
                for query, expected in QUERIES.items():
                    page.goto(f"{address}search.html?q={query.replace(' ', '+')}", wait_until="load")
                    page.wait_for_selector("#search-results .search-summary", timeout=30_000)
                    page.wait_for_function(
                        "!document.querySelector('#search-results h2').innerText.includes('Searching')"
                    )
                    links = page.eval_on_selector_all("#search-results ul.search li a", "all => all.map(a => a.href)")
                    if not any(expected in link for link in links):
                        yield f"search for {query!r} ({size}, {scheme}): {len(links)} results, none of {expected}"
                page.screenshot(path=shots / f"search-{size}-{scheme}.png")
                yield from (f"search ({size}, {scheme}): {each}" for each in found)
                context.close()
        browser.close()


WIDEST = """(() => {
  const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  return wide.slice(0, 5).map(e => e.tagName + '.' + e.className).join(' ');
})()"""
