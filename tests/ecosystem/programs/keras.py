"""Keras on its JAX backend: fit, evaluate, predict, save and load; layers of several kinds."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
Y = np.arange(128) % 2
X = (np.random.RandomState(0).standard_normal((128, 8, 8, 1)) + 0.7 * (2 * Y - 1)[:, None, None, None]).astype(
    "float32"
)
model = keras.Sequential(
    [layers.Input((8, 8, 1)), layers.Conv2D(4, 3), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
     layers.Flatten(), layers.Dropout(0.1), layers.Dense(16, "gelu"), layers.Dense(2, "softmax")]
)  # fmt: skip
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(X, Y, epochs=12, batch_size=32, verbose=0).history
assert history["loss"][-1] < 0.5 * history["loss"][0], history
assert model.evaluate(X, Y, verbose=0)[1] > 0.9
assert isinstance(model.trainable_variables[0].value, jax.Array)
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/m.keras")
    again = keras.models.load_model(folder + "/m.keras")
np.testing.assert_allclose(again.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-4, atol=1e-5)

tokens = keras.Input((6,), dtype="int32")
h = layers.Embedding(10, 8)(tokens)
h = layers.MultiHeadAttention(2, 4)(h, h)
h = layers.LayerNormalization()(layers.Bidirectional(layers.LSTM(4, return_sequences=True))(h))
text = keras.Model(tokens, layers.Dense(1)(layers.GlobalAveragePooling1D()(layers.GRU(4, return_sequences=True)(h))))
text.compile(keras.optimizers.AdamW(1e-2), "mse")
T = np.random.RandomState(0).randint(0, 10, (32, 6))
losses = text.fit(T, T.mean(1), epochs=8, verbose=0).history["loss"]
assert losses[-1] < losses[0], losses
