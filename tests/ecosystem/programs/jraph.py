"""A graph network passes messages along edges, padded and under jit."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

graph = jraph.GraphsTuple(
    nodes=jnp.array([[1.0], [2.0], [4.0]]),
    edges=jnp.array([[1.0], [10.0]]),
    senders=jnp.array([0, 1]),
    receivers=jnp.array([2, 2]),
    n_node=jnp.array([3]),
    n_edge=jnp.array([2]),
    globals=jnp.zeros((1, 1)),
)
net = jraph.GraphNetwork(
    update_edge_fn=lambda e, s, r, g: e * s, update_node_fn=lambda n, s, r, g: n + r, update_global_fn=lambda n, e, g: n
)
out = jax.jit(net)(graph)
np.testing.assert_allclose(out.nodes, [[1.0], [2.0], [25.0]])
np.testing.assert_allclose(out.globals, [[28.0]])
padded = jraph.pad_with_graphs(graph, 5, 4, 2)
np.testing.assert_allclose(jax.jit(net)(padded).nodes[:3], out.nodes)
two = jraph.batch([graph, graph])
np.testing.assert_allclose(jraph.unbatch(net(two))[1].nodes, out.nodes)
np.testing.assert_allclose(jraph.segment_softmax(jnp.array([0.0, 0.0, 3.0]), jnp.array([0, 0, 1])), [0.5, 0.5, 1])
