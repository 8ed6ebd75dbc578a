"""`jax.extend.random`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.random.defining": (
            "define_prng_impl",
            "random_seed",
            "rbg_prng_impl",
            "seed_with_impl",
            "threefry2x32_p",
            "threefry_2x32",
            "threefry_prng_impl",
            "unsafe_rbg_prng_impl",
        )
    },
)
