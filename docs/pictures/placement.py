"""One array of 8 x 8 elements over a mesh of 4 x 2 devices, with four specs; the parts are those of the sharding."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

SPECS = [P("x", "y"), P("x", None), P(None, "y"), P(("x", "y"), None)]


def draw(palette):
    """A square for each spec; a rectangle for each part, with the devices that hold it."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), devices=jax.devices()[:8])
    figure = Figure(figsize=(11, 3.3))
    for axes, spec in zip(figure.subplots(1, len(SPECS)), SPECS, strict=True):
        holders = {}
        for device, index in NamedSharding(mesh, spec).devices_indices_map((8, 8)).items():
            holders.setdefault(tuple(s.indices(8)[:2] for s in index), []).append(device.id)
        for ((top, bottom), (left, right)), devices in holders.items():
            colour = palette["colours"][devices[0] % 8]
            place = (left + 0.08, top + 0.08)
            axes.add_patch(
                Rectangle(place, right - left - 0.16, bottom - top - 0.16, fc=palette["fill"], ec=colour, lw=2)
            )
            middle = (left + right) / 2, (top + bottom) / 2
            axes.text(*middle, " ".join(map(str, sorted(devices))), ha="center", va="center", fontsize=10)
        axes.set(xlim=(0, 8), ylim=(8, 0), aspect="equal", xticks=[], yticks=[])
        axes.set_title(str(spec).replace("PartitionSpec", "P"), family="DejaVu Sans Mono", fontsize=10)
        for side in axes.spines.values():
            side.set_visible(False)
    figure.text(
        0.5, 0.01, "the numbers are the devices that hold a part; two numbers are two copies", ha="center", fontsize=10
    )
    return figure
