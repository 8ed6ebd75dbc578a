"""Monte Carlo tree search prefers the action that is rewarded."""

import jax
import jax.numpy as jnp
import mctx
import numpy as np

REWARDS = jnp.array([0.0, 1.0, 0.2])


def recurrent(params, key, action, embedding):
    batch = action.shape[0]
    out = mctx.RecurrentFnOutput(
        reward=REWARDS[action],
        discount=jnp.full(batch, 0.5),
        prior_logits=jnp.zeros((batch, 3)),
        value=jnp.zeros(batch),
    )
    return out, embedding + 1


root = mctx.RootFnOutput(prior_logits=jnp.zeros((4, 3)), value=jnp.zeros(4), embedding=jnp.zeros(4))
for policy in (mctx.gumbel_muzero_policy, mctx.muzero_policy):
    search = jax.jit(lambda key: policy({}, key, root, recurrent, num_simulations=32, max_depth=4))  # noqa: B023
    out = search(jax.random.PRNGKey(0))
    np.testing.assert_array_equal(np.argmax(out.action_weights, 1), 1)
