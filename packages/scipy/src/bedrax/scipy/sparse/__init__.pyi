from . import linalg as linalg
