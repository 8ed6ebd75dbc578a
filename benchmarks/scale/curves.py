"""The table of curves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """One program at growing sizes.

    program: a name in `programs.PROGRAMS`.
    unit: what the sizes count.
    sizes: from the smallest to the largest.
    warm: the size of the run before the measured one.
    devices: the number of pretended CPU devices.
    collector: whether Python's garbage collector runs.
    note: a sentence for the page.
    """

    program: str
    unit: str
    sizes: tuple[int, ...]
    warm: int
    devices: int = 1
    collector: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        return self.program + (", garbage collector on" if self.collector else "")

    @property
    def file(self) -> str:
        """The name of its picture."""
        return self.name.replace(",", "").replace(" ", "-") + ".svg"


CHAIN = (100, 1_000, 10_000, 100_000)
WIDE = (100, 1_000, 10_000)
DEEP = (1, 2, 4, 8, 12)
MANY = (10, 100, 1_000)

COLLECTED = (
    "From some ten thousand operations on, Python's garbage collector reads the growing program several times. It does so"
    " when a quarter of all objects is new, so its time per operation is bounded."
)

POOL = (
    "XLA's pool for CPU devices has three threads per device here, and one in upstream, where overlapping calls of several"
    " threads can wait for each other forever. XLA takes longer to give work to the larger pool. With 8 and 16 devices, the"
    " fastest calls are faster here, and the slowest are slower."
)

NOTES = {
    "cond": "A level returns the residuals of all levels in it, so the program grows with the square of the depth.",
    "checkpoint": "A level computes all levels in it again, so the program grows with the square of the depth.",
}

CURVES = (
    Curve("chain, trace", "operation", CHAIN, 50),
    Curve("chain, trace", "operation", CHAIN, 50, collector=True, note=COLLECTED),
    Curve("chain, lower", "operation", CHAIN, 50),
    Curve("chain, trace of the gradient", "operation", CHAIN, 50),
    Curve("chain, trace of the gradient", "operation", CHAIN, 50, collector=True),
    Curve("chain, lower the gradient", "operation", CHAIN, 50),
    Curve("chain, compile", "operation", (100, 1_000, 10_000), 50, note="This is XLA's time, in both."),
    Curve("parameters, flatten and unflatten", "parameter", WIDE, 10),
    Curve("parameters, trace of the gradient", "parameter", WIDE, 10),
    Curve("parameters, lower the gradient", "parameter", WIDE, 10),
    Curve("parameters, call a compiled function", "parameter", WIDE, 10),
    Curve("parameters, call a compiled update", "parameter", WIDE, 10),
    *(
        Curve(f"nested {kind}, trace and lower the gradient", "level", DEEP, 2, note=NOTES.get(kind, ""))
        for kind in ("jit", "scan", "cond", "vmap", "checkpoint", "all in turn")
    ),
    Curve("nested while, trace and lower", "level", DEEP, 2),
    Curve(
        "nested grad, trace",
        "level",
        DEEP,
        2,
        note="The program itself grows with each level: a derivative of a product has two terms.",
    ),
    Curve("shapes, first calls", "shape", MANY, 3),
    Curve("shapes, further calls", "shape", MANY, 3),
    Curve("shapes, eager operations", "shape", MANY, 3),
    Curve("devices, trace and lower", "device", MANY, 2, devices=1_000),
    Curve("devices, trace and lower shard_map", "device", MANY, 2, devices=1_000),
    Curve("devices, compile", "device", MANY, 2, devices=1_000),
    Curve("devices, put an array", "device", MANY, 2, devices=1_000),
    Curve("devices, call a compiled function", "device", MANY, 2, devices=1_000, note=POOL),
)
