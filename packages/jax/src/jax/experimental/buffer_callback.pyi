from bedrax.extend.buffer_callback import *
