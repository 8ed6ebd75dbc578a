"""`python -m jax.explain CODE`: what an error means, with a wrong and a right program."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.inspect": ("codes", "explanation")})

if __name__ == "__main__":
    import sys

    from bedrax.inspect.explaining import main

    sys.exit(main(sys.argv[1:]))
