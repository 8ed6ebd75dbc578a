"""Random numbers without hidden state: keys and samplers."""

from bedrax.core.array import NUMPY_METHODS, install_on_demand
from bedrax.random.continuous import *  # noqa: F403
from bedrax.random.counts import *  # noqa: F403
from bedrax.random.discrete import *  # noqa: F403
from bedrax.random.gamma import *  # noqa: F403
from bedrax.random.keys import *  # noqa: F403
from bedrax.random.uniform import *  # noqa: F403

# The numbers have their methods; bedrax.numpy is imported when one is used.
install_on_demand("bedrax.numpy.methods", NUMPY_METHODS)
