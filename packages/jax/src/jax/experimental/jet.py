"""`jax.experimental.jet`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.autodiff.taylor": "*", "bedrax.extend.wrapped_series": "*"},
    renamed={"bedrax.autodiff.taylor": {"JetTrace": "SeriesTrace", "JetTracer": "SeriesTracer"}},
)
