from bedrax.state.types import AbstractRef as AbstractRef  # nnx.variablelib
