"""`python -m jax` prints a report about the installation (`bedrax.doctor`)."""

import sys

from bedrax.doctor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], prog="python -m jax"))
