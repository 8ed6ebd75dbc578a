"""`jax.experimental.key_reuse`: no names. The option `jax_debug_key_reuse` enables checks of key reuse.

    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        jax.random.normal(key)
        jax.random.normal(key)   # raises jax.errors.KeyReuseError

An operation that makes random numbers, or splits, consumes its keys, in programs and their loops and branches, too.
Slices of arrays of keys are checked key by key. `fold_in` consumes no key, and `clone` makes a key that may be used
again. Untyped keys (`PRNGKey`) are not checked.
"""
