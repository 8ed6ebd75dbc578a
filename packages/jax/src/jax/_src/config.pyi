from bedrax.core.config import config as config, enable_x64 as enable_x64
