"""`python -m bedrax.inspect module:function`."""

import sys

from bedrax.inspect.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
