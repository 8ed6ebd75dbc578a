"""The output: tables with rich in the terminal, and a PNG with matplotlib."""

from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table

matplotlib.use("Agg")  # draws into files, without a display
from matplotlib import pyplot as plt
from sklearn.metrics import confusion_matrix


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def print_summary(console: Console, name: str, accuracy, required, sizes, agreements, seconds) -> None:
    """Print the accuracy, sizes in bytes, the agreement of every path, and seconds of every stage."""
    good = accuracy >= required
    console.print(f"\n[bold]{name}[/]: test accuracy {verdict(good, f'{accuracy:.2%}')} (at least {required:.0%})")
    table = Table("path", "what", "largest value", "largest difference", title="agreement with jax")
    for (path, what), each in agreements.items():
        table.add_row(path, what, f"{each.scale:.3g}", verdict(each.good, f"{each.difference:.1e}"))
    console.print(table)
    table = Table("file", "kB", title="sizes")
    for file, size in sizes.items():
        table.add_row(file, f"{size / 1000:.0f}")
    console.print(table)
    table = Table("stage", "seconds", title="time")
    for stage, elapsed in {**seconds, "total": sum(seconds.values())}.items():
        table.add_row(stage, f"{elapsed:.1f}")
    console.print(table)


def verdict(good: bool, text: str) -> str:
    return f"[green]{text} ✓[/]" if good else f"[bold red]{text} ✗[/]"


def draw(path: Path, history, images, labels, probs, norms) -> None:
    """Draw the training curve, the confusion matrix, and the test digits with the largest gradients."""
    losses, accuracies = np.transpose(history)
    predicted = probs.argmax(-1)
    figure = plt.figure(figsize=(12, 8), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(3, 2))
    curve, matrix = top.subplots(1, 2)
    epochs = np.arange(1, len(losses) + 1)
    curve.semilogy(epochs, losses, color="tab:blue")
    curve.set(title="Training", xlabel="epoch")
    curve.set_ylabel("training loss", color="tab:blue")
    right = curve.twinx()
    right.plot(epochs, 100 * accuracies, color="tab:orange")
    right.set_ylim(90, 100)
    right.set_ylabel("test accuracy (%)", color="tab:orange")

    counts = confusion_matrix(labels, predicted)
    matrix.imshow(np.log1p(counts), cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if row == column else "black"
            matrix.text(column, row, count, ha="center", va="center", color=color)
    matrix.set(title="Test digits", xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))

    bottom.suptitle("The test digits that would still change the model most (norm of their own gradient)")
    for axes, i in zip(bottom.subplots(2, 10).flat, np.argsort(-norms)):
        axes.imshow(images[i, ..., 0], cmap="gray_r")
        color = "green" if predicted[i] == labels[i] else "red"
        axes.set_title(f"{labels[i]} → {predicted[i]}  {norms[i]:.1f}", color=color, fontsize=9)
        axes.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)
