"""The model as a pipeline: each device of the axis "stage" has some of the blocks, and passes its results to the next one.

The batch of a device is cut into micro-batches. In each round, a stage computes its blocks for one micro-batch and
sends the result to the next stage. The gradient of this program is a pipeline in the other direction: the transpose
of `ppermute` sends cotangents back.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .model import Block, LanguageModel, cross_entropy


def stacked(params):
    """The parameters with one array for each parameter of all blocks: its first axis is the block."""
    blocks = sorted((name for name in params if name.startswith("block_")), key=lambda name: int(name[6:]))
    others = {name: value for name, value in params.items() if name not in blocks}
    return {**others, "blocks": jax.tree.map(lambda *xs: jnp.stack(xs), *[params[name] for name in blocks])}


def stage_specs(params, devices):
    """Each stage has its blocks; all stages have the other parameters."""
    specs = jax.tree.map(lambda _: P(), params)
    return {**specs, "blocks": jax.tree.map(lambda _: P("stage"), params["blocks"])}


def pipeline_loss(shape, mesh, specs):
    """The loss of a batch, computed in stages."""
    model, stages = LanguageModel(shape), mesh.shape["stage"]

    @jax.checkpoint  # the backward pass computes the blocks again from the input of the stage
    def blocks(x, params):
        return lax.scan(lambda x, own: (Block(shape).apply({"params": own}, x), None), x, params)[0]

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(specs, P("data")), out_specs=P())
    def total_loss(params, tokens):
        stage = lax.axis_index("stage")
        pieces = tokens.reshape(2 * stages, -1, tokens.shape[-1])  # the micro-batches
        first = model.apply({"params": params}, pieces[..., :-1], method="start")
        # A stage has its first micro-batch after as many rounds as there are stages before it.
        first = jnp.pad(first, ((0, stages - 1), (0, 0), (0, 0), (0, 0)))
        # Cotangents of values that are equal on several devices are summed over them where the values are cast to
        # varying ones. The casts are before the loop, so the sums are after the backward loop and not in each round.
        first = lax.pcast(first, "stage", to="varying")
        own = lax.pcast(params["blocks"], "data", to="varying")

        def round_(received, x):
            y = blocks(jnp.where(stage == 0, x, received), own)
            return lax.ppermute(y, "stage", [(i, i + 1) for i in range(stages - 1)]), y

        _, results = lax.scan(round_, jnp.zeros_like(first[0]), first)
        # The last stage has all results. Each stage gets two micro-batches of them, and computes their loss.
        results = jnp.where(stage == stages - 1, results[stages - 1 :], 0)
        mine = lax.psum_scatter(results, "stage", tiled=True)
        targets = lax.dynamic_slice_in_dim(pieces[..., 1:], 2 * stage, 2)
        logits = model.apply({"params": params}, mine, method="end")
        return lax.pmean(cross_entropy(logits, targets), ("data", "stage"))

    return total_loss
