from bedrax.extend.refs import AbstractRef as AbstractRef  # nnx.variablelib
