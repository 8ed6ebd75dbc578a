"""The whole example: train, checkpoint, export, use elsewhere, and import. `python -m examples.digits --help`."""

import argparse
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # both before TensorFlow is imported
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import checkpoint, data, training
from .parts import CHECKPOINTS, EXPORTS, why_left_out

REQUIRED_ACCURACY = 0.97
KINDS = ["plain", "native"]  # exports as SavedModels
LIMIT = 1e-5  # of differences, relative to the largest value if that is above 1
ROOT = Path(__file__).parents[2]


def fit(model, optimizer, state, digits, epochs, key, console):
    """Train with a progress bar. Returns the final state and the list of `(loss, accuracy)`."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    history = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("train", total=epochs)

        def after_epoch(loss, accuracy):
            history.append((loss, accuracy))
            text = f"{model.name}: loss {loss:.4f}, test accuracy {accuracy:.2%}"
            progress.update(task, advance=1, description=text)

        state = training.train(model, optimizer, state, digits, epochs, key, after_epoch)
    return state, history


def reference(model, params, stats, batches, targets):
    """The expected results of every other path, with the names that `consume` and `roundtrip` use."""

    def score(images, params):
        probs = training.predict(model, params, stats, images)
        return jnp.log(probs[jnp.arange(len(targets)), targets]).sum()

    answers = {f"probs{n}": training.predict(model, params, stats, x) for n, x in batches.items()}
    grads = jax.jit(jax.grad(score, argnums=(0, 1)))(batches["7"], params)
    answers.update({f"grad{i}": grad for i, grad in enumerate(jax.tree.leaves(grads))})
    return answers


class Agreement(NamedTuple):
    """The largest difference between two computations of the same values, and the largest value."""

    difference: float
    scale: float

    @property
    def good(self) -> bool:
        return self.difference <= LIMIT * max(1.0, self.scale)  # False for NaN, too


def agreement(pairs) -> Agreement:
    """The agreement of pairs of arrays `(expected, actual)`."""
    both = [(np.asarray(expected), np.asarray(answer)) for expected, answer in pairs]
    for expected, answer in both:
        if expected.shape != answer.shape:
            raise ValueError(f"expected an array of shape {expected.shape}, got {answer.shape}")
    difference = np.max([np.abs(expected - answer).max() for expected, answer in both])
    return Agreement(float(difference), float(np.max([np.abs(expected).max() for expected, _ in both])))


def chosen(requested: str | None, names: list[str], parser: argparse.ArgumentParser, console: Console) -> list[str]:
    """The available parts, after a printed line for each unavailable one. A requested part must be available."""
    lines = {name: why_left_out(name) for name in names}
    for line in filter(None, lines.values()):
        if requested:
            parser.error(line.removeprefix("left out: "))
        console.print(line, highlight=False, soft_wrap=True)
    return [name for name, line in lines.items() if line is None]


def run(api: str, epochs: int, out: Path, checkpoint_format: str, exports: list[str], console: Console) -> bool:
    """Run all steps with one model. Returns whether all requirements are met."""
    seconds: dict[str, float] = {}
    agreements: dict[tuple[str, str], Agreement] = {}
    out.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def stage(name):
        start = time.perf_counter()
        console.print(f"[dim]{api}: {name}[/]")
        yield
        seconds[name] = time.perf_counter() - start

    def compare(path, expected, answers):
        for kind, prefix in ("probabilities", "probs"), ("gradients", "grad"):
            names = [name for name in answers if name.startswith(prefix)]
            if names:
                agreements[path, kind] = agreement((expected[name], answers[name]) for name in names)

    with stage("train"):
        model = import_module(f".{api}_model", __package__).MODEL
        digits = data.load()
        init_key, train_key = jax.random.split(jax.random.key(0))
        optimizer = training.make_optimizer(epochs, len(digits.train_labels))
        state = training.init(model, optimizer, init_key)
        state, history = fit(model, optimizer, state, digits, epochs, train_key, console)
        probs = np.asarray(training.predict(model, state.params, state.stats, digits.test_images))
        accuracy = float((probs.argmax(-1) == digits.test_labels).mean())
        norms = np.asarray(
            training.gradient_norms(model, state.params, state.stats, digits.test_images, digits.test_labels)
        )

    with stage("checkpoint"):
        save, restore = checkpoint.FORMATS[checkpoint_format]
        file = out / f"checkpoint.{checkpoint_format}"
        save(file, state)
        restored = restore(file, training.init(model, optimizer, init_key))
        leaves = zip(jax.tree.leaves(state), jax.tree.leaves(restored), strict=True)
        agreements["checkpoint", "training state"] = agreement(leaves)
        params, stats = restored.params, restored.stats  # from here on, the restored model

    with stage("export"):
        for name in exports:
            module, function = EXPORTS[name].writer.split(".")
            getattr(import_module(f".{module}", __package__), function)(model, params, stats, out / name)

    batches = {str(n): digits.test_images[:n] for n in (1, 7, 360)}
    targets = (digits.test_labels[:7] + 1) % 10  # the next digit, for each
    np.savez(out / "inputs.npz", targets=targets, **{f"images{n}": x for n, x in batches.items()})
    expected = reference(model, params, stats, batches, targets)
    for library in dict.fromkeys(EXPORTS[name].used_with for name in exports):
        with stage(f"use with {library} alone"):
            paths = [name for name in exports if EXPORTS[name].used_with == library]
            command = [sys.executable, "-m", "examples.digits.consume", out.absolute(), library, *paths]
            subprocess.run(command, cwd=ROOT, check=True)
            with np.load(out / f"outputs_{library}.npz") as outputs:
                for path in paths:
                    answers = {name.split("/")[1]: outputs[name] for name in outputs if name.startswith(path + "/")}
                    compare(path, expected, answers)

    if kinds := [name for name in KINDS if name in exports]:
        with stage("back"):
            from . import roundtrip

            for kind in kinds:
                compare(f"call_tf({kind})", expected, roundtrip.run(out / kind, batches["7"], targets))

    with stage("picture"):
        from . import report

        report.draw(out / "digits.png", history, digits.test_images, digits.test_labels, probs, norms)

    files = [file, *(out / name for name in exports), out / "digits.png"]
    sizes = {path.name: report.size_of(path) for path in files}
    report.print_summary(console, api, accuracy, REQUIRED_ACCURACY, sizes, agreements, seconds)
    console.print(f"written to {out}\n")
    return accuracy >= REQUIRED_ACCURACY and all(each.good for each in agreements.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=__doc__)
    parser.add_argument("--api", choices=["linen", "nnx", "both"], default="both", help="Flax's two ways")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="folder for all files")
    parser.add_argument("--checkpoint", choices=CHECKPOINTS, help="the default is the first available one")
    parser.add_argument("--kind", choices=[*KINDS, "both"], help="SavedModels; the default is every available kind")
    args = parser.parse_args()
    logging.set_verbosity("error")  # TensorFlow warns that it saves no second derivatives: none are needed
    console = Console()
    kinds = [args.kind] if args.kind in KINDS else KINDS
    names = [name for name in EXPORTS if name not in KINDS or name in kinds]
    if "plain" not in kinds:
        names.remove("model.tflite")  # it needs plain operations
    exports = chosen(args.kind, names, parser, console)
    (checkpoint_format, *_) = chosen(
        args.checkpoint, [args.checkpoint] if args.checkpoint else [*CHECKPOINTS], parser, console
    )
    apis = ["linen", "nnx"] if args.api == "both" else [args.api]
    good = [run(api, args.epochs, args.out / api, checkpoint_format, exports, console) for api in apis]
    if not all(good):
        console.print("[bold red]A requirement is not met: see the red entries above.[/]")
        sys.exit(1)


if __name__ == "__main__":
    main()
