"""`jax.experimental.key_reuse`: it names nothing. Keys are watched with the option `jax_debug_key_reuse`.

    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        jax.random.normal(key)
        jax.random.normal(key)   # raises jax.errors.KeyReuseError

An operation that makes random numbers, or splits, uses its keys up, in programs and their loops and branches, too; slices
of arrays of keys are watched key by key. `fold_in` uses nothing up, and `clone` makes a key that may be used again.
Untyped keys (`PRNGKey`) are not watched.
"""
