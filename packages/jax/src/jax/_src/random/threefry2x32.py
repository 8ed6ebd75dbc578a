"""`jax._src.random.threefry2x32`: names that Quax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {},
    renamed={
        # Quax, examples.prng
        "bedrax.random.threefry": {"threefry_random_bits": "bits", "threefry_seed": "seed", "threefry_split": "split"}
    },
)
