"""Text that comes with Python: its own documentation, as bytes."""

from pydoc_data.topics import topics

import numpy as np

VOCABULARY = 128


def text() -> np.ndarray:
    """The whole text, as numbers below `VOCABULARY`."""
    data = np.frombuffer("\n".join(topics.values()).encode("ascii", "ignore"), np.uint8)
    return np.minimum(data, VOCABULARY - 1).astype(np.int32)


def batches(steps: int, size: int, length: int, seed: int = 0) -> np.ndarray:
    """Pieces of the text, of shape ``(steps, size, length + 1)``. The last byte of each is only a target."""
    data = text()
    starts = np.random.default_rng(seed).integers(0, len(data) - length - 1, (steps, size))
    return data[starts[..., None] + np.arange(length + 1)]
