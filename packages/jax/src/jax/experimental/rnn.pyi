from bedrax.core.array import Array as _Array
from bedrax.lax.primitives.elementwise import tanh as tanh
from bedrax.libraries.rnn import *
from bedrax.nn.activations import sigmoid as sigmoid

PRNGKeyArray = _Array
