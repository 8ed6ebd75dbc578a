"""Trees and arrays are drawn as text and as pictures."""

import jax
import jax.numpy as jnp
import treescope

tree = {"w": jnp.arange(6.0).reshape(2, 3), "f": jax.jit(jnp.sin), "s": jax.ShapeDtypeStruct((2,), jnp.int8)}
text = treescope.render_to_text(tree)
assert "w" in text and "float32(2, 3)" in text and "ShapeDtypeStruct" in text, text
page = treescope.render_to_html(tree)
assert "<" in page
picture = treescope.render_array(jnp.ones((4, 5)))
assert picture.to_html() if hasattr(picture, "to_html") else picture
