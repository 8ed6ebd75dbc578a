"""The output: a table, a picture of the curves and times, and the split of a parameter."""

import jax
import numpy as np


def table(curves, times):
    print(f"\n{'way':20} {'first loss':>10} {'last loss':>10} {'first step':>11} {'a step':>9}")
    for name, losses in curves.items():
        first, later = times[name]
        print(f"{name:20} {losses[0]:10.4f} {losses[-1]:10.4f} {first:9.2f} s {later * 1e3:6.1f} ms")


def show_split(name, params):
    """Print a line with the rows and columns of one parameter on each device."""
    block = "blocks" if "blocks" in params else "block_0"
    x = params[block]["up"]["kernel"]
    parts = {}
    for shard in x.addressable_shards:
        place = ", ".join(f"{s.start or 0}:{n if s.stop is None else s.stop}" for s, n in zip(shard.index, x.shape))
        parts.setdefault(place, []).append(shard.device.id)
    held = "; ".join(f"[{place}] on {ids}" for place, ids in parts.items())
    print(f"{name}: {block}/up, {jax.typeof(x).str_short()}: {held}")


def picture(curves, times, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for i, (name, losses) in enumerate(curves.items()):
        left.plot(losses, label=name, linewidth=6 - i, alpha=0.6)
    left.set(xlabel="step", ylabel="loss (nats per byte)")
    left.legend()
    right.barh(list(times), [later * 1e3 for _, later in times.values()])
    right.set(xlabel="ms per step (median)")
    right.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    assert np.all([len(c) == len(next(iter(curves.values()))) for c in curves.values()])
