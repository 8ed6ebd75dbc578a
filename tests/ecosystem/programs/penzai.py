"""Named axes, a selector that edits a model, a small transformer."""

import jax
import jax.numpy as jnp
import numpy as np
from penzai import pz
from penzai.models.transformer.variants import llamalike_common

x = pz.nx.wrap(jnp.arange(6.0).reshape(2, 3)).tag("row", "column")
total = pz.nx.nmap(jnp.sum)(x.untag("column"))
np.testing.assert_allclose(total.unwrap("row"), [3.0, 12.0])
w = pz.nx.wrap(jnp.ones((3, 4))).tag("column", "out")
product = pz.nx.nmap(jnp.dot)(x.untag("column"), w.untag("column"))
assert dict(product.named_shape) == {"row": 2, "out": 4}
doubled = pz.select({"a": 1.0, "b": [2.0, 3.0]}).at_instances_of(float).apply(lambda v: 2 * v)
assert doubled == {"a": 2.0, "b": [4.0, 6.0]}

linear = pz.nn.Affine.from_config("layer", jax.random.key(0), {"features": 3}, {"features_out": 2})
given = pz.nx.wrap(jnp.ones((4, 3))).tag("batch", "features")
params = [
    v.value
    for v in jax.tree.leaves(linear, is_leaf=lambda v: isinstance(v, pz.Parameter))
    if isinstance(v, pz.Parameter)
]
out = linear(given)
assert dict(out.named_shape) == {"batch": 4, "features_out": 2} and len(params) == 2

config = llamalike_common.LlamalikeTransformerConfig(
    num_kv_heads=1,
    query_head_multiplier=2,
    embedding_dim=16,
    projection_dim=8,
    mlp_hidden_dim=32,
    num_decoder_blocks=2,
    vocab_size=11,
    mlp_variant="swiglu",
    rope_wavelength=10_000,
    tie_embedder_and_logits=False,
    attention_type=llamalike_common.AttentionTypeGlobalCausal(),
    rms_norm_eps=1e-6,
    parameter_dtype=jnp.float32,
)
model = llamalike_common.build_llamalike_transformer(config, jax.random.key(1), name="tiny")
tokens = pz.nx.wrap(jnp.array([[1, 2, 3, 4]])).tag("batch", "seq")
logits = model(tokens)
changed = model(pz.nx.wrap(jnp.array([[1, 2, 3, 9]])).tag("batch", "seq"))
a, b = (v.unwrap("batch", "seq", "vocabulary") for v in (logits, changed))
assert a.shape == (1, 4, 11)
np.testing.assert_allclose(a[:, :3], b[:, :3], rtol=1e-4, atol=1e-5)
