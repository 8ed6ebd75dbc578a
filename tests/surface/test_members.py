"""Public names that are not functions of arrays: a use of each, in a line or two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_shardings():
    mesh = jax.make_mesh((1,), ("i",))
    place = jax.NamedSharding(mesh, jax.P("i", None))
    assert place.spec_axes == ("i",)
    assert place.check_compatible_aval((4, 4)) is None
    assert place.without_dimension(1).spec == jax.P("i") and place.replicated_axes == frozenset()
    assert place.settled(place) == place and place.sharding_of_type(jax.typeof(X)).spec == place.spec
    assert place.num_devices == 1 and place.is_fully_addressable
    assert jax.sharding.make_single_device_sharding(jax.devices()[0]).device_set == set(jax.devices()[:1])
    from jax.extend.sharding import GSPMDSharding

    assert GSPMDSharding.get_replicated(jax.devices()[:1]).is_fully_replicated


def test_specs_and_meshes():
    assert jax.P("i", None).partitions == ("i", None) and jax.P("i").to_lo() == [jax.P("i")]
    mesh = jax.make_mesh((1, 1), ("i", "j"))
    assert mesh.shape_tuple == (("i", 1), ("j", 1)) and mesh.device_ids.shape == (1, 1)
    assert not mesh.is_multi_process and mesh.local_mesh == mesh and mesh.is_scalar
    assert mesh.are_all_axes_auto + mesh.are_all_axes_explicit + mesh.are_all_axes_manual == 1
    abstract = mesh.abstract_mesh
    manual = abstract.update_axis_types({"i": jax.sharding.AxisType.Manual})
    assert manual.axis_types[0] == jax.sharding.AxisType.Manual and manual.axis_sizes == (1, 1)
    with jax.sharding.use_abstract_mesh(abstract):
        assert jax.sharding.get_abstract_mesh() == abstract


def test_parts_of_arrays():
    x = jnp.asarray(X)
    (shard,) = x.addressable_shards
    assert isinstance(shard, jax.Shard) and shard.data.shape == x.shape and x in jax.live_arrays()
    assert jax.host_count() == jax.process_count() and jax.host_ids() == jax.process_indices()
    assert jax.dlpack.is_supported_dtype(np.float32) and not jax.dlpack.is_supported_dtype(np.dtype("M8[s]"))
    assert jax.extend.backend.get_default_device() in jax.devices()


def test_policies():
    policies = jax.checkpoint_policies
    for policy in (jax.checkpoint_policies.checkpoint_dots, jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims):
        np.testing.assert_allclose(
            jax.grad(jax.checkpoint(lambda x: jnp.sin(x @ X.T).sum(), policy=policy))(X),
            jnp.cos(X @ X.T) @ X,
            rtol=1e-4,
        )
    from jax.ad_checkpoint import Offloadable, Recompute, Saveable

    moved = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"],
        names_which_can_be_offloaded=["b"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    name_p = jax.make_jaxpr(lambda x: jax.ad_checkpoint.checkpoint_name(x, "a"))(1.0).eqns[0].primitive
    assert isinstance(moved(name_p, name="b"), Offloadable) and moved(name_p, name="b").dst == "pinned_host"
    assert moved(name_p, name="a") is Saveable and moved(name_p, name="c") is Recompute


def test_arguments_as_leaves():
    from jax import api_util
    from jax.extend import linear_util

    assert api_util.safe_map(lambda a, b: a + b, [1, 2], [3, 4]) == [4, 6]
    assert api_util.shaped_abstractify(X) == jax.typeof(jnp.asarray(X))
    assert api_util.rebase_donate_argnums((2,), (0,)) == (1,)
    tree = jax.tree.structure((((1, 2), 3), {}))
    assert api_util.donation_vector((0,), (), tree) == (True, True, False)
    fun = linear_util.wrap_init(lambda a, b: a - b, debug_info=api_util.debug_info("t", max, (1, 2), {}))
    partial, rest = api_util.argnums_partial(fun, (1,), (5, 3))
    assert partial.call_wrapped(*rest) == 2 and isinstance(partial, linear_util.WrappedFun)


def test_wrapped_functions():
    from jax.api_util import debug_info
    from jax.extend import linear_util as lu

    @lu.transformation_with_aux
    def doubled(*args):
        out = yield args, {}
        yield 2 * out, "extra"

    fun, aux = doubled(lu.wrap_init(lambda x: x + 1, debug_info=debug_info("t", max, (1,), {})))
    with pytest.raises(lu.StoreException):
        aux()
    assert fun.call_wrapped(3) == 8 and aux() == "extra"
    assert lu.merge_linear_aux(lambda: (_ for _ in ()).throw(lu.StoreException), lambda: 1) == (False, 1)


def test_trees_with_paths():
    tree = {"a": 1, "b": (2,)}
    leaves, structure = jax.tree.flatten_with_path(tree)
    assert (
        [jax.tree_util.keystr(p) for p, _ in leaves]
        == ["['a']", "['b'][0]"]
        == [jax.tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(tree)]
    )
    assert jax.tree.map_with_path(lambda p, x: len(p) * x, tree) == {"a": 1, "b": (4,)}
    assert jax.tree.reduce_associative(lambda a, b: a + b, tree) == 3

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    jax.tree_util.register_pytree_with_keys(
        Pair,
        lambda p: (((jax.tree_util.GetAttrKey("a"), p.a), (jax.tree_util.GetAttrKey("b"), p.b)), None),
        lambda _, c: Pair(*c),
    )
    assert jax.tree_util.keystr(jax.tree.leaves_with_path(Pair(1, 2))[1][0]) == ".b"


def test_monitoring():
    from jax import monitoring

    heard = []
    span = lambda event, start, end, **more: heard.append((event, end - start))
    scalar = lambda event, value, **more: heard.append((event, value))
    event, seconds = (lambda event, **more: heard.append(event)), (lambda event, s, **more: heard.append((event, s)))
    monitoring.register_event_time_span_listener(span)
    monitoring.register_scalar_listener(scalar)
    monitoring.register_event_listener(event)
    monitoring.register_event_duration_secs_listener(seconds)
    monitoring.record_event("/a")
    monitoring.record_event_duration_secs("/b", 2.0)
    monitoring.record_event_time_span("/c", 1.0, 4.0)
    monitoring.record_scalar("/d", 5)
    assert heard == ["/a", ("/b", 2.0), ("/c", 3.0), ("/d", 5)]
    monitoring.unregister_event_time_span_listener(span)
    monitoring.unregister_scalar_listener(scalar)
    monitoring.unregister_event_listener(event)
    monitoring.unregister_event_duration_listener(seconds)
    monitoring.record_scalar("/e", 5)
    monitoring.record_event("/e")
    assert len(heard) == 4


def test_stages():
    traced = jax.jit(lambda x: {"a": jnp.sin(x)}).trace(X)
    lowered = traced.lower()
    assert isinstance(lowered, jax.stages.Lowered) and isinstance(jax.jit(jnp.sin), jax.stages.Wrapped)
    (info,) = jax.tree.leaves(lowered.args_info)
    assert isinstance(info, jax.stages.ArgInfo) and info.shape == (2, 3) and not info.donated
    assert "stablehlo.sine" in str(lowered.compiler_ir())
    compiled = lowered.compile()
    assert compiled.runtime_executable() is not None and len(jax.tree.leaves(compiled.input_shardings)) == 1


def test_programs():
    from jax.extend import core

    closed = jax.make_jaxpr(lambda x: jax.jit(lambda y: y * 2)(x) + 1)(1.0)
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr.debug_info, core.DebugInfo)
    assert core.jaxpr_as_fun(closed)(3.0)[0] == 7
    assert len(list(core.subjaxprs(closed.jaxpr))) == 1 and len(list(core.jaxprs_in_params(closed.eqns[0].params))) == 1
    program = closed.jaxpr
    parts = (program.constvars, program.invars, program.outvars, program.eqns)
    again = core.Jaxpr(*parts, program.effects, program.debug_info, False, program.consts)
    assert core.jaxpr_as_fun(again)(3.0)[0] == 7 and str(again) == str(closed)
    assert core.jaxpr_as_fun(core.Jaxpr(again, program.consts))(3.0)[0] == 7 and core.ClosedJaxpr(again) is again
    assert core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr=again, consts=[]))(3.0)[0] == 7
    for wrong in ((program.constvars, program.invars), (again, [1.0]), (again, [], program.outvars), ()):
        with pytest.raises(TypeError, match="Jaxpr"):
            core.Jaxpr(*wrong)
    import inspect

    assert list(inspect.signature(core.Jaxpr).parameters)[:4] == ["constvars", "invars", "outvars", "eqns"]
    var = core.gensym()(jax.core.ShapedArray((), np.dtype(np.float32)))
    assert isinstance(var, core.Var)
    eqn = closed.eqns[-1]
    again = core.new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params, eqn.effects)
    assert isinstance(again, core.JaxprEqn) and again.primitive is eqn.primitive
    assert core.primal_dtype_to_tangent_dtype(np.dtype(np.int32)) == jax.dtypes.float0
    assert core.unmapped_aval(3, 0, jax.typeof(X[0])).shape == (3, 3)


def test_traces():
    from jax.extend import core

    assert jax.core.trace_state_clean() and jax.core.valid_jaxtype(1.0) and not jax.core.valid_jaxtype("1")
    assert jax.core.concrete_or_error(int, np.int32(3)) == 3
    seen = {}

    def look(x):
        seen.update(
            jit=core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
            top=jax.core.find_top_trace([x]),
            clean=jax.core.trace_state_clean(),
        )
        with jax.core.eval_context():
            seen["now"] = float(jnp.sin(jnp.zeros(())))
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.core.concrete_or_error(int, x)
        return x

    jax.jit(look)(1)
    assert seen["jit"] and not seen["clean"] and seen["now"] == 0 and not core.unsafe_am_i_under_a_jit_DO_NOT_USE()

    def mapped(x):
        seen.update(
            vmap=core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
            names=core.unsafe_get_axis_names_DO_NOT_USE(),
            any=core.nonempty_axis_env_DO_NOT_USE(),
        )
        return x

    jax.vmap(mapped, axis_name="i")(X)
    assert seen["vmap"] and list(seen["names"]) == ["i"] and seen["any"] and not core.nonempty_axis_env_DO_NOT_USE()
    with core.take_current_trace() as trace, core.set_current_trace(trace):
        assert jnp.sin(0.0) == 0


def test_types():
    aval = jax.core.ShapedArray((2, 3), np.dtype(np.float32), weak_type=True)
    assert isinstance(aval, jax.core.AbstractValue) and not aval.strip_weak_type().weak_type
    assert aval.without_axis(0).shape == (3,) and aval.with_axis(0, 5).shape == (5, 2, 3)
    assert aval.to_tangent_aval().dtype == np.float32
    from jax.interpreters import ad

    assert ad.zeros_like_aval(aval).tolist() == [[0.0] * 3] * 2
    assert ad.add_tangents(1.0, 2.0) == 3 == ad.add_jaxvals(1.0, 2.0)


def test_custom_derivatives():
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching

    pair_p, halves_p = Primitive("test_pair"), Primitive("test_halves")
    for p, f in ((pair_p, lambda a, b: a * b), (halves_p, lambda a: a / 2)):
        p.def_impl(f)
        p.def_abstract_eval(lambda a, *_: jax.core.ShapedArray(a.shape, a.dtype))
    ad.defbilinear(pair_p, lambda ct, a, b: pair_p.bind(ct, b), lambda ct, a, b: pair_p.bind(a, ct))
    ad.defjvp2(halves_p, lambda t, ans, a: t / 2)
    assert jax.jvp(lambda a: pair_p.bind(a, jnp.float32(3)), (jnp.float32(2),), (jnp.float32(1),))[1] == 3
    assert jax.jvp(lambda a: halves_p.bind(a), (jnp.float32(2),), (jnp.float32(1),))[1] == 0.5
    assert ad.get_primitive_transpose(pair_p) is not None
    batching.defbroadcasting(pair_p)
    assert jax.vmap(lambda a: pair_p.bind(a, a))(jnp.arange(3.0)).tolist() == [0, 1, 4]


def test_partial_evaluation():
    from jax.interpreters import partial_eval as pe

    known, unknown = pe.PartialVal.known(1.0), pe.PartialVal.unknown(jax.typeof(1.0))
    assert (
        known.is_known() and known.get_known() == 1 and not unknown.is_known() and unknown.get_aval() == jax.typeof(1.0)
    )
    closed = jax.make_jaxpr(lambda x: (x + 1, x * 2))(1.0)
    smaller, used = pe.dce_jaxpr(closed.jaxpr, [True, False])
    assert len(smaller.eqns) == 1 and used == [True]


def test_series():
    from jax.experimental import jet

    out, terms = jet.jet(jnp.sin, (0.0,), ((1.0, 0.0, 0.0),))
    np.testing.assert_allclose([out, *terms], [0, 1, 0, -1], atol=1e-6)
    from jax.extend.core.primitives import exp_p, neg_p

    assert jet.linear_prop(neg_p, (2.0,), ((1.0, 0.0),))[0] == -2
    np.testing.assert_allclose(jet.deriv_prop(exp_p, jnp.exp, (0.0,), ((1.0, 0.0),))[1], [1, 1])


def test_stax():
    from jax.example_libraries import stax

    key = jax.random.key(0)
    for layer, shape in (
        (stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 4, (3, 3)), (1, 6, 6, 4)),
        (stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 4, (3, 3)), (1, 10, 10, 4)),
        (stax.SumPool((2, 2)), (1, 7, 7, 3)),
    ):
        init, apply = layer
        out, params = init(key, (1, 8, 8, 3))
        assert out == shape == apply(params, jnp.ones((1, 8, 8, 3))).shape
    np.testing.assert_allclose(stax.logsoftmax(X), jax.nn.log_softmax(X), rtol=1e-6)


def test_rotations_and_densities():
    from jax.scipy.spatial.transform import Rotation

    r = Rotation.from_euler("z", 90, degrees=True)
    np.testing.assert_allclose(Rotation.from_matrix(r.as_matrix()).as_quat(), r.as_quat(), atol=1e-6)
    np.testing.assert_allclose(Rotation.from_mrp(r.as_mrp()).as_quat(), r.as_quat(), atol=1e-6)
    import scipy.stats

    data = np.float32([0.0, 1.0, 3.0])
    kde = jax.scipy.stats.gaussian_kde(data)
    np.testing.assert_allclose(
        kde.integrate_box_1d(-1, 2), scipy.stats.gaussian_kde(data).integrate_box_1d(-1, 2), rtol=1e-5
    )
    for method in (lambda: kde.set_bandwidth(1.0), lambda: kde.integrate_box(-1, 2)):
        with pytest.raises(NotImplementedError):
            method()


def test_sparse():
    from jax.experimental import sparse
    from jax.experimental.sparse import bcsr, coo, test_util, util

    m = sparse.BCOO.fromdense(X)
    assert isinstance(m._info, util.SparseInfo)
    np.testing.assert_array_equal(sparse.bcoo_multiply_dense(m, X), X[X != 0] ** 2)
    np.testing.assert_array_equal(sparse.bcoo_multiply_sparse(m, m).todense(), X * X)
    np.testing.assert_array_equal(sparse.bcoo_reduce_sum(m, axes=(0,)).todense(), X.sum(0))
    np.testing.assert_array_equal(sparse.bcoo_reshape(m, new_sizes=(3, 2)).todense(), X.reshape(3, 2))
    np.testing.assert_array_equal(sparse.bcoo_update_layout(m, n_batch=0, n_dense=1, on_inefficient=None).todense(), X)
    r = sparse.BCSR.fromdense(X)
    np.testing.assert_array_equal(
        sparse.bcsr_broadcast_in_dim(r, shape=(1, 2, 3), broadcast_dimensions=(1, 2)).todense(), X[None]
    )
    np.testing.assert_array_equal(sparse.bcsr_sum_duplicates(r).todense(), X)
    np.testing.assert_array_equal(bcsr.bcsr_eliminate_zeros(r).todense(), X)
    assert sparse.ad.is_sparse(m) and not sparse.ad.is_sparse(X)
    assert coo.COOInfo((2, 3)).shape == (2, 3)
    np.testing.assert_array_equal(util.nfold_vmap(jnp.sum, 1)(X), X.sum(1))
    np.testing.assert_array_equal(util.broadcasting_vmap(jnp.add)(X, X[:1]), X + X[0])
    assert test_util.rand_sparse(np.random.RandomState(0))((4, 4), np.float32).shape == (4, 4)


def test_kernels():
    from jax.experimental import pallas as pl

    assert isinstance(pl.dslice(1, 3), pl.Slice) and pl.dslice(1, 3).size == 3
    spec = pl.BlockSpec((pl.Squeezed(), 2), lambda i: (i, 0))
    out = pl.pallas_call(
        lambda x, y: y.__setitem__(..., 2 * x[...]),
        out_shape=jax.ShapeDtypeStruct((2, 2), np.float32),
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        interpret=True,
    )(X[:, :2])
    np.testing.assert_array_equal(out, 2 * X[:, :2])
    assert pl.CostEstimate(flops=1, transcendentals=0, bytes_accessed=2).flops == 1


def test_export():
    exported = jax.export.export(jax.jit(jnp.sin))(X)
    mesh = jax.make_mesh((1,), ("i",))
    assert len(exported.out_shardings_jax(mesh)) == 1 == len(exported.in_shardings_jax(mesh))
    assert (
        jax.export.minimum_supported_calling_convention_version
        <= exported.calling_convention_version
        <= jax.export.maximum_supported_calling_convention_version
    )


def test_names_and_places():
    from jax.extend import source_info_util as s

    assert (
        "named" in str(jax.make_jaxpr(jax.named_call(lambda x: x + 1, name="named"))(1.0))
        or jax.named_call(lambda x: x + 1, name="named")(1) == 2
    )
    assert isinstance(s.current_name_stack(), s.NameStack) and isinstance(s.current(), s.SourceInfo)
    with s.set_name_stack(s.new_name_stack("a")):
        assert str(s.current_name_stack()) == "a"


def test_keys():
    import jax.experimental.rnn
    from jax.extend import random

    np.testing.assert_array_equal(
        jax.random.key_data(random.seed_with_impl(random.threefry_prng_impl, 3)), jax.random.key_data(jax.random.key(3))
    )
    assert isinstance(jax.random.key(0), jax.experimental.rnn.PRNGKeyArray)


def test_modules():
    from jax.interpreters import mlir

    module = jax.jit(jnp.sin).lower(X).compiler_ir()
    assert "stablehlo.sine" in mlir.module_to_string(module) and len(mlir.module_to_bytecode(module)) > 50
    with mlir.make_ir_context():
        (kind,) = (
            mlir.aval_to_ir_types(jax.typeof(X))
            if isinstance(mlir.aval_to_ir_types(jax.typeof(X)), (tuple, list))
            else [mlir.aval_to_ir_types(jax.typeof(X))]
        )
        assert "2x3xf32" in str(kind)


def test_representations():
    aval = jax.typeof(jnp.asarray(X))
    assert list(aval.lo_ty()) == [aval] and aval.normalize().shape == aval.shape
    assert list(aval.lower_val(X)) == [X] or len(aval.lower_val(X)) == 1
    assert aval.raise_val(X) is X


def test_zeros():
    zeros = jax.custom_derivatives.zero_from_primal((X, 1))
    assert zeros[0].tolist() == (0 * X).tolist() and zeros[1].dtype == jax.dtypes.float0
    from jax.experimental.hijax import Zero

    assert Zero.from_primal_value(X).aval.shape == X.shape


def test_optimizers():
    from jax.example_libraries import optimizers

    @optimizers.optimizer
    def descent(step):
        return lambda x: x, lambda i, g, x: x - step * g, lambda x: x

    init, update, params = descent(0.5)
    state = init({"a": 1.0})
    assert isinstance(state, optimizers.OptimizerState) and params(update(0, {"a": 1.0}, state)) == {"a": 0.5}


@pytest.mark.needs("tensorstore")
def test_checkpoints(tmp_path):
    from jax.experimental.array_serialization import pytree_serialization as p
    from jax.experimental.array_serialization import pytree_serialization_utils as u

    tree = {"a": jnp.asarray(X), "b": [jnp.ones(2)]}
    assert u.deserialize_pytreedef(u.serialize_pytreedef(jax.tree.structure(tree))) == jax.tree.structure(tree)
    p.nonblocking_save(tree, tmp_path / "c").result()
    back = p.nonblocking_load(tmp_path / "c", jax.tree.map(lambda x: x.sharding, tree)).result()
    assert jax.tree.structure(back) == jax.tree.structure(tree) and back["a"].tolist() == X.tolist()


def test_the_cache_s_folder(tmp_path):
    from jax.experimental.compilation_cache import compilation_cache

    old = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(str(tmp_path))
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
        compilation_cache.reset_cache()
    finally:
        jax.config.update("jax_compilation_cache_dir", old)


def test_layouts():
    from jax.experimental.layout import Layout

    assert jnp.asarray(X).format.layout == Layout(major_to_minor=(0, 1))


def test_kernels_for_GPUs_interpreted():
    from jax.experimental.pallas import triton

    assert float(triton.approx_tanh(jnp.float32(0.5))) == float(jnp.tanh(jnp.float32(0.5)))
    assert triton.debug_barrier() is None


def test_sparse_shapes():
    from jax.experimental import sparse

    m = sparse.BCOO.fromdense(np.ones((2, 3, 4)), n_batch=1, n_dense=1)
    assert (m.batch_shape, m.sparse_shape, m.dense_shape) == ((2,), (3,), (4,))


def test_sizes_as_values():
    from jax.interpreters import mlir

    assert mlir.flatten_ir_values([1, (2, 3)]) == [1, 2, 3]
    assert list(mlir.flatten_ir_types([1, (2, 3)])) == [1, 2, 3]


def test_messages_of_the_compiler():
    from jax.extend.sharding import get_op_sharding_from_serialized_proto

    proto = jax.make_mesh((1,), ("i",)) and jnp.asarray(X).sharding._to_xla_hlo_sharding(2).to_proto()
    assert get_op_sharding_from_serialized_proto(proto.SerializeToString()).type == proto.type
