"""The split of products: batch axes, then free axes of both operands. Contracted axes must not be split in both."""

from bedrax.lax.primitives import contractions as p
from bedrax.parallel.explicit import sharding_rules


@sharding_rules.rule(p.dot_general_p)
def _dot_general(op, *, dimension_numbers, **params):
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs = op.specs
    for i, j in zip(lc, rc, strict=True):
        if lhs[i] is not None and rhs[j] is not None:
            how = f"both over {lhs[i]!r}" if lhs[i] == rhs[j] else f"over {lhs[i]!r} and over {rhs[j]!r}"
            raise op.error(
                f"the contracted axes ({i} of the first operand, {j} of the second) are split {how}",
                "State the sharding of the result, with out_sharding=P(...)",
            )
    batch = op.joined([tuple([lhs[i] for i in lb]), tuple([rhs[j] for j in rb])]) if lb else ()
    free = lambda spec, *taken: [e for d, e in enumerate(spec) if not any(d in t for t in taken)]
    return [(*batch, *free(lhs, lc, lb), *free(rhs, rc, rb))]
