"""The table of the code blocks of the mission documents, and the way to run each; see `run_mission`.

The documents belong to others and are not part of the repository. A row names a block by its number among the fenced
blocks, or by its first and last line in a document without fences. It also has the code that the block needs.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One block.

    Attributes:
      at: its number, or (first line, last line).
      indent: levels of indentation of its lines, if the document has lost them; "-" for a continued line.
      before: code that runs first: definitions that the text around the block assumes.
      edits: ``(regular expression, replacement)`` pairs for its text; a comment in this file has the reason.
      raises: a part of the message of its exception; "" for no exception.
      warns: a part of a warning.
      prints: the expected output; None for any output.
      code: the number of the block to run, if this block is the output of that one.
      options: `jax.config` options.
      why: the reason, if it is not run.
    """

    at: int | tuple[int, int]
    indent: str = ""
    before: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    raises: str = ""
    warns: str = ""
    prints: str | None = None
    code: int | None = None
    options: dict = {}
    why: str = ""


_CLASS = "011122-12322"
_UPDATE = "import numpy as np\nupdate_fn = lambda params, state: (params, state)\nparams, state = np.ones((8, 2)), np.ones((8, 3))"
_PAIR = "import jax, numpy as np\nx, y = (jax.device_put(np.ones((2, 3))) for _ in range(2))"
_EQUATION = (r"^(.*\)) ==> (\w+\.?).*$", r"same(\1, float('\2'))")  # a result follows ==>
_SAVED = (r"'/some/directory'", "FOLDER")

FAQ = (
    Row(0, "0001101", prints="Inside: 0 Result: 0 Inside: 1 Result: 2 Inside: 2 Result: 4"),
    Row(1, why="the output of block 0"),
    Row(2, "0001101", code=0, edits=((r"# @jit.*", "@jit"),), prints="Inside: 0 Result: 0 Result: 1 Result: 2",
        before="from jax import jit"),
    Row(3, "000100", prints="0.572365"), Row(4, prints="0.5723649"), Row(5, "0100", prints="inf"), Row(6, prints="100.0"),
    Row(7, "000122-11232"), Row(8, raises="CustomClass"),
    Row(9, "00122-120012 1".replace(" ", "")), Row(10, prints="6"),
    Row(11, "0122-111232"), Row(12, prints="6"), Row(13, prints="6"), Row(14, "0122-11232-12-122"),
    Row(15, "0122-11232-1222-112-0011"), Row(16, prints="6 3 6"),
    Row(17, edits=((r"\.device_buffer\.device\(\)", ".device"),), prints="0"),  # `device_buffer` is gone upstream
    Row(18, edits=((r"\.device_buffer\.device\(\)", ".device"),), prints="2"),
    Row(19, "00001000000"), Row(20, "0110", prints="Traced<"), Row(21, "01"), Row(22, before=_UPDATE),
    Row(23, "010000 0".replace(" ", ""), before="import numpy as np"), Row(24, before=_UPDATE),
    # the document lacks two parentheses
    Row(25, "010000 0".replace(" ", ""), before="from typing import List\nfrom jax import Array",
        edits=((r"\(2, 3\)\),", "(2, 3))),"), (r"\(3, 4\)\)\]", "(3, 4)))]"))),
    Row(26, before=_PAIR, raises="delete"), Row(27, before=_PAIR, warns="donated buffers were not usable"),
    Row(28, before=_PAIR, warns="donated buffers were not usable"),
    Row(29, "0100", edits=(_EQUATION,)), Row(30, "0100", edits=(_EQUATION,)),
    Row(31, "011", edits=((r"1\.\), y\)", "1.)), y)"),)),  # the document lacks a parenthesis
    Row(32, "00001000000", prints="f(x) = [0. 0. 0. 1. 1.] df(x) = [0. 0. 0. 0. 0.]"),
    Row(33, "010001111", prints="g(x) = [0. 0.27 0.5 0.73 1. ] dg(x) = [0. 0.2 0.25 0.2 0. ]"),
    Row(34, "00110", before="from jax.interpreters import partial_eval", prints="Tracer"),
    Row(35, why="block 34 prints the name of upstream's tracer class"),
)  # fmt: skip

TRACING = (Row(0, prints="Traced<ShapedArray(float32[])"), Row(1))

_X34 = "x, y = np.ones((3, 4), np.float32), np.ones((3, 8), np.float32)"
_SELF = (
    "import types\nself = types.SimpleNamespace(assertEqual=np.testing.assert_equal,"
    " assertAllClose=lambda a, b: np.testing.assert_allclose(a, b))"
)
_TEXT = "no code: the output of another implementation"

JAX2TF = (
    Row(0, edits=((r"random\(\.\.\.\)", "random(3).astype(np.float32)"),)),  # the document leaves the shape open
    Row(1, before="import jax\nx = np.float32(0.5)"), Row(2), Row(3, edits=(_SAVED,)), Row(4, edits=(_SAVED,)),
    Row(5, before="param0, param1 = 1.0, 2.0"),
    Row(6, before="params = [np.float32(1), np.float32(2)]", edits=((r"save\(my_model\)", "save(my_model, FOLDER)"),)),
    Row(7, before="model, path = my_model, FOLDER"), Row(8, why=_TEXT), Row(9, why=_TEXT), Row(10, why=_TEXT),
    Row(11), Row(12), Row(13), Row(14, before="import jax, jax.numpy as jnp"), Row(15), Row(16, raises="shape"),
    Row(17, raises="contract"), Row(18, raises="shape"), Row(19, raises="inconclusive"), Row(20, raises="divide"),
    Row(21), Row(22), Row(23), Row(24), Row(25, before=_X34), Row(26), Row(27, options={"jax_enable_x64": True}),
    Row(28, before="jax_fun = jnp.sin"),
    Row(29, before="preprocess_tf_fun_not_compileable = postprocess_tf_fun_not_compileable = lambda x: x\n"
                   "compute_jax_fn = jnp.sin"),
    Row(30, before=_SELF),
    Row(31, before="import os\nf_tf = jax2tf.convert(f_jax)",
        edits=((r"os\.path\.join\(.*\)$", "FOLDER"),)),  # a name of a test framework
    Row(32), Row(33),
    # the document lacks a parenthesis, and uses a tape twice that works once
    Row(34, edits=((r"\*xs0$", "*xs)"), (r"GradientTape\(\)", "GradientTape(persistent=True)"))),
    Row(35, edits=((r"#Any data object", "{'a': np.ones(2), 'b': [1, 2]}"),)), Row(36),
    # graphs refuse such sizes here, too: docs/tensorflow.md
    Row(37, before="import jax, numpy as np, tensorflow as tf\n" + _SELF, raises="must have integer value >= 1"),
    Row(38, raises="'b' corresponding to multiple values"),
    Row(39), Row(40, why=_TEXT),
    Row(41, edits=((r"np\.float\(", "np.float32("),), raises="compil"),  # NumPy has no such name any more
    Row(42, raises="dynamic shape"), Row(43),
    Row(44, edits=((r"\.write\(", ".assign("), (r"tf\.constant\(2\.\)", "np.float32(2)")), raises="writes to variables"),  # jit takes no tensors
    Row(45, edits=((r"var1\)$", "var1):"),)),  # a colon is missing in the document
    Row(46, before="x = np.ones((3, 2), np.float32)"),  # it fails in the document; here shapes are inferred
    Row(47),
)  # fmt: skip

_NET = (
    "import jax, jax.numpy as jnp\nfrom jax import grad, hessian, jit, jvp, random, vjp, vmap\n"
    "key = random.PRNGKey(0)\nsigmoid = lambda x: 0.5 * (jnp.tanh(x / 2) + 1)\n"
    "predict = lambda W, b, inputs: sigmoid(jnp.dot(inputs, W) + b)\n"
    "inputs = jnp.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])\n"
    "W, b = random.normal(key, (3,)), 0.1"
)
_SIGNATURE = "a type signature, in no language that runs"
_TIMES = "times of another machine"

AUTODIFF = (
    Row((41, 50), before=_NET), Row((54, 54), why=_SIGNATURE), Row((92, 103)), Row((107, 107), why=_SIGNATURE),
    Row((121, 122)), Row((136, 140)), Row((146, 157), edits=((r"^True$", ""),), prints="True"), Row((163, 166)),
    Row((170, 185)), Row((186, 193), why=_TIMES),
    Row((201, 229), edits=((r"vjp_fun\(mi\) for", "vjp_fun(mi)[0] for"),)),  # jnp.vstack takes arrays, not tuples
    Row((230, 234), why=_TIMES), Row((235, 254)), Row((255, 259), why=_TIMES), Row((265, 287)),
    Row((293, 304), edits=((r"^\(DeviceArray.*$", ""),), prints="3.1415927"), Row((312, 317)),
    Row((333, 372), edits=((r"^True$", ""),), prints="True True True"), Row((383, 423), edits=((r"^True$", ""),)),
    Row((429, 435), edits=((r"^(grad.*)$", r"print(\1)"), (r"^DeviceArray.*$", "")), prints="(6-8j)"),
    Row((441, 446), edits=((r"^(grad.*)$", r"print(\1)"), (r"^DeviceArray.*$", "")), prints="(-27.03494"),
    Row((450, 455), edits=((r"^(grad.*\))  #.*$", r"print(\1)"), (r"^DeviceArray.*$", "")), prints="(1-0j)"),
    Row((467, 475), edits=((r"^grad(.*)$", r"print(grad\1[0, 0])"),), prints="-0.753418"),
    Row((476, 481), why="what the block above prints"),
)  # fmt: skip

# An older edition of the document above, from a page without fences, where lines were lost. Code that stands there,
# too, is run there; here are the other lines.
OLDER = (
    Row((24, 24)), Row((73, 73), why="the line is cut off"), Row((104, 104), why="block 6 of the document above, without autograph"),
    Row((118, 118), why="the line is cut off"), Row((222, 222), why="the line is cut off"),
    Row((236, 236), why="block 19 of the document above, with == for >="),
    Row((245, 257), edits=((r"^>>.*$|^\{.*$|^ +(in|[a-z] ).*$|^ +let.*$", ""),), before="import jax, jax.numpy as jnp, numpy as np\nfrom jax.experimental import jax2tf"),
    Row((263, 267), why="how the function above might look in TensorFlow"),
    Row((366, 366), why="block 32 of the document above, with a parenthesis too many"),
    Row((407, 408), why="block 34 of the document above, with a name misspelt"),
    Row((449, 449), why="the line is cut off"), Row((486, 486), why="block 26 of the document above"),
    Row((498, 498), why="block 27 of the document above"), Row((508, 508), why="block 28 of the document above, with a parenthesis missing"),
    Row((531, 535), why="block 37 of the document above, with a parenthesis too many"),
    Row((553, 553), why="block 38 of the document above"),
)  # fmt: skip

# The beginning of a document's name -> its rows, and whether it has fences.
DOCUMENTS = {
    "000": (FAQ, True),
    "001": (TRACING, True),
    "002": (JAX2TF, True),
    "003": (AUTODIFF, False),
    "004": (OLDER, False),
}
