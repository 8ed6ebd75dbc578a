"""Forward mode of operations that hold programs: a tangent has the role of its value."""

from __future__ import annotations

from bedrax.autodiff.forward import jvp_jaxpr
from bedrax.autodiff.tables import Zero, flags, instantiate, jvp_rules
from bedrax.core.holders import lift
from bedrax.core.tracing import Primitive


def pushes_programs(*prims: Primitive, kind: str = "program") -> None:
    """Register the jvp row of operations that hold programs."""
    for prim in prims:

        def rule(primals, tangents, prim=prim, **params):
            def prepare(lifted):
                return primals, [instantiate(t) if m else t for t, m in zip(tangents, lifted.marks, strict=True)]

            out, active, moved = lift(prim, params, primals, flags(tangents), jvp_jaxpr, tangents, prepare=prepare)
            return out, [t if a else Zero.of(x) for x, a, t in zip(out, active, moved, strict=True)]

        jvp_rules.add(prim, rule, kind)
