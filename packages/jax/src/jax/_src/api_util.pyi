from bedrax.extend.api_util import (
    debug_info as debug_info,
    flatten_fun as flatten_fun,
    flatten_fun_nokwargs as flatten_fun_nokwargs,
    infer_argnums_and_argnames as infer_argnums_and_argnames,  # e3nn-jax
    shaped_abstractify as shaped_abstractify,
)
