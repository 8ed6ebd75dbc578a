"""The data: scikit-learn's 1,797 handwritten digits, always split in the same way."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

TEST_SIZE = 360


class Digits(NamedTuple):
    """Images are float32 `(n, 8, 8, 1)` in [0, 1], labels int32 `(n,)`."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load() -> Digits:
    """Return 1,437 digits for training and 360 for testing, with the classes in equal proportions."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    labels = labels.astype(np.int32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=TEST_SIZE, stratify=labels, random_state=0
    )
    return Digits(train_images, train_labels, test_images, test_labels)
