from bedrax.random.stateful import StatefulPRNG as StatefulPRNG, stateful_rng as stateful_rng
