# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = [
#     "tensorflowjs==4.22.0",
#     "tensorflow==2.17.*",
#     "tensorflow-decision-forests==1.10.*",
#     "setuptools<81",
# ]
# ///
"""TF.js's own converter, in its own environment: ``uv run --script convert.py SAVED TARGET SAVED TARGET ...``

Every SavedModel becomes a graph model of TF.js. The last printed line is a JSON list: the error of each conversion, or
null.
"""

import json
import sys

from tensorflowjs.converters import convert_tf_saved_model


def attempt(saved: str, target: str) -> str | None:
    try:
        convert_tf_saved_model(saved, target)
    except ValueError as error:  # the message names the operations that TF.js lacks
        return str(error)
    return None


if __name__ == "__main__":
    folders = sys.argv[1:]
    print("\n" + json.dumps([attempt(*pair) for pair in zip(folders[::2], folders[1::2])]))
