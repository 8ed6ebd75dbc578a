"""Train, convert and test the page: `python -m examples.digits.web`. With `--serve`, serve it until Ctrl-C."""

import argparse
import functools
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported

import jax
import numpy as np

from examples import tfjs
from examples.digits import data, linen_model, training
from examples.digits.web import export

HOME = Path(__file__).parent
BUILD = HOME / "build"
LIMIT = 1e-5  # of differences of probabilities and gradients


def build(epochs: int) -> None:
    """Make all files that the page loads, and the values that it must compute."""
    digits, model = data.load(), linen_model.MODEL
    optimizer = training.make_optimizer(epochs, len(digits.train_labels))
    init_key, train_key = jax.random.split(jax.random.key(0))
    state = training.init(model, optimizer, init_key)
    state = training.train(model, optimizer, state, digits, epochs, train_key, lambda loss, accuracy: None)

    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pairs = {}
        for name, module in export.modules(state.params, state.stats).items():
            export.save(module, Path(folder, name))
            pairs[Path(folder, name)] = BUILD / name
        if any(wrong := tfjs.convert(pairs)):
            raise RuntimeError(f"TF.js's converter rejects the graphs: {wrong}")
    export.write_json(BUILD / "digits.json", export.page_data(digits, state.params))
    export.write_json(BUILD / "expected.json", export.expected(digits, state.params, state.stats))
    tfjs.install()
    shutil.copy(tfjs.LIBRARY, BUILD)


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".js": "text/javascript"}

    def log_message(self, *_):
        pass


@contextmanager
def served(port: int = 0):
    """Serve the page, and give its address; port 0 stands for any free port."""
    handler = functools.partial(Handler, directory=HOME)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def wrongs(found: dict) -> list[str]:
    """The requirements that the answers of `check.cjs` do not meet."""
    lesson = found["lesson"]
    close = lambda differences: np.max(list(differences.values())) <= LIMIT  # False if there is a NaN
    claims = {
        "all probabilities and gradients are those computed here": close(found["differences"]),
        "ten drawn digits are read": "".join(found["read"]) == "0123456789",
        "an open eight is not read at first": lesson["first"] != "8",
        "a lesson teaches it": lesson["then"] == "8",
        "and little else is forgotten": lesson["before"] >= 350 and lesson["after"] >= 340,
        "the lesson can be undone": lesson["forgotten"] == lesson["first"] and close(found["again"]),
        "there are no errors": not found["errors"],
        "nothing is loaded from elsewhere": len(found["hosts"]) == 1,
    }
    return [claim for claim, holds in claims.items() if not holds]


def check(picture: Path) -> list[str]:
    """Use the page in a headless Chromium. Returns the requirements that are not met."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise FileNotFoundError("no Chromium: install it, or set the variable CHROMIUM to its path")
    with served() as address:
        found = json.loads(tfjs.node(HOME / "check.cjs", address, BUILD / "expected.json", picture, chromium))
    print(json.dumps(found, indent=2))
    return wrongs(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.digits.web", description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--keep", action="store_true", help="use what an earlier run has built")
    parser.add_argument("--picture", type=Path, default=BUILD / "page.png", help="file of the screenshot")
    parser.add_argument("--serve", action="store_true", help="keep the page open for you, without checking it")
    args = parser.parse_args()
    if not args.keep:
        build(args.epochs)
    if args.serve:
        with served(8000) as address:
            print(f"{address} (until Ctrl-C)")
            threading.Event().wait()
    if wrong := check(args.picture):
        sys.exit("not so: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
