from bedrax.extend.source_info import *
