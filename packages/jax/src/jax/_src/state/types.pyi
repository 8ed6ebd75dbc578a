from bedrax.extend.unsupported import AbstractRef as AbstractRef  # nnx.variablelib
