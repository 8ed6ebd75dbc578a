"""Internals that well-known libraries use. The stub of each module names the libraries."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".": (
            "ad_checkpoint",
            "ad_util",
            "api",
            "api_util",
            "checkify",
            "config",
            "core",
            "dispatch",
            "distributed",
            "dtypes",
            "earray",
            "effects",
            "flatten_util",
            "flattree",
            "interpreters",
            "lax",
            "lib",
            "literals",
            "numpy",
            "pjit",
            "public_test_util",
            "random",
            "scipy",
            "sharding_impls",
            "source_info_util",
            "state",
            "test_util",
            "traceback_util",
            "tree_util",
            "typing",
            "util",
            "xla_bridge",
        )
    },
    renamed={
        # Chex replaces `backend_compile_and_load` by assignment: this is the backend's own module, so that it takes effect.
        "bedrax.xla_backend": {"compiler": "compile"}
    },
)
