"""Prints whether C modules are loaded, and the number of calls inside their loaders."""

import sys


def in_a_loader(frame):
    while frame := frame.f_back:
        loader = frame.f_locals.get("self") if frame.f_code.co_name in ("create_module", "exec_module") else None
        if type(loader).__name__ == "ExtensionFileLoader" and "jaxlib" in loader.path:
            return True


calls = []
sys.setprofile(lambda frame, event, arg: calls.append(event) if event == "call" and in_a_loader(frame) else None)

import jax
import jax.numpy as jnp
from jax.extend.mlir.dialects import mpmd, sparse_tensor, stablehlo

jax.jit(jnp.sin)(jnp.ones(3)), jnp.linalg.norm(jnp.ones(3)), jnp.linalg.eigh(jnp.eye(3))
jax.profiler.ProfileData, stablehlo.AddOp, mpmd, sparse_tensor
sys.setprofile(None)
print("jaxlib.cpu._lapack" in sys.modules, "jaxlib.mlir._mlir_libs._stablehlo" in sys.modules, len(calls))
