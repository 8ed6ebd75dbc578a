"""The aims for whole groups of cases, and why a case or a group is above its target."""

from typing import NamedTuple


class Aim(NamedTuple):
    """The geometric mean of a set of ratios.

    title: the row in the table of aims.
    pattern: a regular expression for the names of the cases.
    limit: the upper limit of the geometric mean.
    peer: the position of the peer among the peers of a case.
    """

    title: str
    pattern: str
    limit: float
    peer: int = 0


AIMS = (
    Aim("first start", "^first start/", 0.45),
    Aim("second start, to upstream's default", "^second start/", 0.22),
    Aim("second start, to upstream's with its cache", "^second start/", 0.45, 1),
    Aim("eager operations", "^eager/", 0.40),
    Aim("eager transformations", "^eager transformations/", 0.15),
    Aim("calls of compiled functions", "^jit dispatch/", 0.85),
    Aim("traces of gradients", "^trace/.*gradient", 0.12),
    Aim("lowering", "^lower/", 0.20),
    Aim("run of compiled operations", "^compiled/(?!.*compile)", 0.85),
    Aim("run of compiled Flax models", "^compiled models/(?!.*compile)", 0.85),
    Aim("compilation of operations", "^compiled/.*compile", 0.85),
    Aim("compilation of Flax models", "^compiled models/.*compile", 0.85),
    Aim("gradients on NumPy, to autograd", "^NumPy-only gradients/", 1.0),
    Aim("jitted gradients on NumPy, to autograd", "^NumPy-only jitted gradients/", 0.35),
    Aim("pytrees without jaxlib, to optree", "^NumPy-only pytrees/", 1.5),
)

# By a regular expression for names of cases or titles of aims. The first entry that matches holds.
REASONS: dict[str, str] = {
    r"^eager/(jnp.sin\(x\)|jnp.where|m @ m|jnp.linspace)": (
        "Both sides make one call of jaxlib's compiled function or more, which takes 2.7 µs; ours checks types in one frame of "
        "Python before, and upstream's function is jaxlib's function itself."
    ),
    "^eager operations": (
        "Half of the rows are one call of jaxlib's compiled function on both sides: 2.7 µs of 3.1 to 4 µs. The others have the "
        "ratios 0.04 to 0.5."
    ),
    "^eager transformations/(jvp|vmap)": (
        "Each of 26 (`jvp`) and 7 (`vmap`) operations is a call of a compiled function, which takes 2.7 µs on both sides."
    ),
    "^eager transformations$": (
        "Each operation is a call of a compiled function, which takes 2.7 µs on both sides; with fewer calls, the first "
        "derivative of a function would need more compilations."
    ),
    "^calls of compiled functions": "A call runs no Python: the function is jaxlib's own, as upstream's is.",
    "^traces of gradients": (
        "A quarter of the traces of Flax models is Flax's own Python, and the rest is spread evenly over recording equations: no "
        "function takes more than 3.5 %."
    ),
    "start/saved model": "TensorFlow's import takes 2.2 s and its functions 0.2 s: three quarters of upstream's whole time.",
    "^imports/.*first jit, memory": "jaxlib compiles this program in 146 MB without Bedrax: 0.76 of upstream's memory.",
    "^compilation of operations": (
        "For 50 of 115 programs XLA makes the same numbers of the same instructions from both inputs. "
        "The compile times of these have the ratio 0.98, those of the others 0.90."
    ),
    "^second start/sine": "In 8 rounds the ratios are 0.37 and 0.39; a start of Python with NumPy takes half of the time.",
    "^lowering": "MLIR needs 0.75 to 1.0 µs to create an operation, on both sides; the chain of single operations has 0.37.",
    "^trace/(cnn|transformer), forward": "Flax's own Python takes 45 to 49 % of our time; it is the same on both sides.",
    "^NumPy-only gradients/logistic": (
        "NumPy's functions take 8 µs of it; the rest records seven operations and checks their types, in Python. "
        "`jit(grad(f))` runs without it."
    ),
    "^compiled/cum(prod|max|logsumexp), compile forward": (
        "Ours has more instructions and runs in 0.03 to 0.42 of upstream's time."
    ),
    "^compiled/(sort|depthwise conv|max pool|average pool), compile": (
        "XLA generates code for ours. Upstream's program is a call of a library or of a general loop: the run of ours takes "
        "0.01 to 0.95 of its time, but for the forward pass of large pooling."
    ),
    "^compiled/max pool, forward, large": (
        "Ours is a loop over slices. Its gradient takes 0.08 of upstream's time and is compiled in 0.28 of it."
    ),
    "^compiled/(tanh, forward|pad, reflect, forward|fori_loop, gradient|interp, gradient), large": (
        "In one process (`python -m benchmarks.paired`) the ratios are 1.01, 1.02, 0.99 and 0.39: the processes differ."
    ),
    "^compiled/prod, gradient, small": "The program is another one: 0.77 and 0.54 at the larger sizes, 0.48 to compile.",
    "^compiled/cumprod, gradient, large": (
        "The program is another one, without divisions: 0.83 at the medium size, 0.20 to compile."
    ),
    "^compiled/attention, gradient, small": "The program is another one: 0.68 and 0.85 at the larger sizes.",
    "^compiled/random.categorical": (
        "Ours writes out the rotations of the random bits. `random.normal` gains by that (0.89), this one loses."
    ),
    "^compiled/logsumexp, compile": "Ours has one `is_finite` and one `select` more; both run in the same time.",
    "^run of compiled Flax models": (
        "In one process 13 of the 16 programs have ratios from 0.97 to 1.02, and the others 0.55, 0.82 and 0.95."
    ),
    "^compilation of Flax models": (
        "Most programs have nearly the same work for XLA: in one process 13 of 16 run in the same time as upstream's."
    ),
    "^eager transformations/hessian": (
        "An operation is recorded when it is linearized the first 32 times in a process: with `--rounds 8` the ratio is 0.15."
    ),
    "^compiled models/convolutional network, compile forward": (
        "XLA generates code for ours where upstream's program calls a library. The gradient is compiled in 0.65 of the time and "
        "runs in 0.54."
    ),
}
