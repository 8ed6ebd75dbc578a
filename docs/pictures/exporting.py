"""The ways out of Python, with the sizes of one small model in each form."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export
from sketch import arrow, box, canvas


def model(x):
    return jax.nn.softmax(jnp.tanh(x @ jnp.full((16, 32), 0.1)) @ jnp.full((32, 4), 0.1))


def sizes():
    """Form -> bytes; the forms of TensorFlow are absent without it."""
    shape = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    lowered = jax.jit(model).lower(shape)
    found = {"stablehlo": len(lowered.as_text()), "export": len(export.export(jax.jit(model))(shape).serialize())}
    try:
        import tensorflow as tf
        from jax.experimental import jax2tf
    except ImportError:
        return found
    for native in (False, True):
        module = tf.Module()
        converted = jax2tf.convert(model, polymorphic_shapes=["(b, 16)"], native_serialization=native)
        signature = [tf.TensorSpec([None, 16], tf.float32)]
        module.f = tf.function(converted, autograph=False, input_signature=signature)
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder)
            found["native" if native else "plain"] = sum(
                p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()
            )
    return found


def draw(palette):
    """Boxes from the function on the left to the places of use on the right."""
    size = {name: f"{number / 1000:.0f} kB" for name, number in sizes().items()}
    figure, axes = canvas(11, 5.2)
    wide = {"size": (2.3, 0.72)}
    box(axes, (1.2, 2.7), "a traced function", palette, **wide)
    ways = [
        (
            4.3,
            "jax.export",
            f"StableHLO, versioned\n{size['export']}",
            0,
            ["a process without\nyour sources", "upstream's jax"],
        ),
        (
            2.7,
            "jax2tf, plain",
            f"TensorFlow operations\n{size.get('plain', '')}",
            2,
            ["SavedModel, Serving", "TFLite, TF.js"],
        ),
        (1.1, "jax2tf, native", f"one XLA operation\n{size.get('native', '')}", 1, ["SavedModel, with XLA"]),
    ]
    for y, call, text, colour, uses in ways:
        box(axes, (5.7, y), text, palette, colour=colour, **wide)
        arrow(axes, (2.4, 2.7), (4.5, y), palette, call, colour=colour, shift=(0.1, 0.12))
        for n, use in enumerate(uses):
            z = y + (0.4 - 0.8 * n if len(uses) > 1 else 0)
            box(axes, (9.6, z), use, palette, colour=colour, size=(2.3, 0.64), fontsize=10)
            arrow(axes, (6.9, y), (8.4, z), palette)
    arrow(
        axes,
        (9.6, 0.76),
        (1.2, 2.32),
        palette,
        "call_tf: back into a program",
        colour=3,
        bend=-0.2,
        shift=(-1.2, -1.45),
    )
    return figure
