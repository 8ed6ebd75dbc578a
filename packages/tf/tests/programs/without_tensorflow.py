"""Runs a statement where TensorFlow cannot be found: python without_tensorflow.py STATEMENT

An import of this module hides TensorFlow from `find_spec` and from `import`, on a machine that has it and on one that
has not.
"""

import importlib.machinery
import sys


class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "tensorflow" else super().find_spec(name, path, target)


sys.meta_path[:] = [Finder if f is importlib.machinery.PathFinder else f for f in sys.meta_path]

if __name__ == "__main__":
    exec(sys.argv[1])
