"""Random numbers without hidden state: keys and samplers."""

from bedrax.random.continuous import *  # noqa: F403
from bedrax.random.counts import *  # noqa: F403
from bedrax.random.discrete import *  # noqa: F403
from bedrax.random.gamma import *  # noqa: F403
from bedrax.random.keys import *  # noqa: F403
from bedrax.random.uniform import *  # noqa: F403
