"""Print how many lines of source serve what the first edition did, and how many serve what is new since.

A feature is new if the first edition (commit `FIRST`) refused it or did not know its names; `--evidence` looks the
names up in that commit. Files that the first edition had in the place of a new one (names, and an error when they are
called) count as if the new ones still had these lines.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = "6b0fd12"

# feature: names that the first edition did not know, what serves it now (a folder, a module, or definitions of a
# module), lines that the first edition had in its place.
NEW = {
    "sparse arrays": ("bcoo_dot_general sparsify", "sparse jax/experimental/sparse", 33),
    "references, high-level types": (
        "RefPrimitive cur_qdd",
        "state core/avals:Held,LibraryType,held_or_type core/tracing:lent"
        " autodiff/linear_maps:GradRef,GradValue,DidntWant,DontWant,NotNeeded"
        " lax/primitives/control_flow:_scan_over_references",
        127,
    ),
    "kernels over grids": ("pallas_call BlockSpec", "pallas jax/experimental/pallas", 0),
    "run-time checks as values": ("Collector nan_checked", "checkify", 68),
    "runs of several processes": (
        "live_devices get_tensorstore_spec wrap_class",
        "processes jax/experimental/array_serialization jax/experimental/multihost_utils",
        290,
    ),
    "shard_map, pmap, types of meshes' axes": (
        "map_blocks ManualAxisType reshard ShardingTypeError pvary_p psum_invariant_p",
        "parallel/mapping parallel/pmapping parallel/primitives parallel/rules parallel/explicit parallel/sharding"
        " parallel/device_meshes parallel/specs:ManualAxisType,refuse_partial_sums,_manual_axis_type"
        " xla_backend/lowering/shard_map xla_backend/lowering/collectives lax/decompositions/collectives"
        " core/tables:_varying core/tracing:cast_operands,_varying_types,_Cast,cast_together,varying_axes,_cast_to"
        " xla_backend/placement:claims,claims_inside,meshes_inside,reshard,partitioned_axes,Asked,Claim"
        " lax/primitives/collectives autodiff/rules/collectives batching/rules/collectives",
        603,
    ),
    "explanations of how programs are split": ("Explanation _duration", "parallel/explaining", 0),
    "partitioning by users, Shardy's rules": (
        "custom_partitioning SdyShardingRule",
        "parallel/partitioning jax/experimental/custom_partitioning parallel/shardy_rules xla_backend/lowering/partitioned_calls"
        " xla_backend/lowering/exported_shardy",
        0,
    ),
    "pictures, alike and inspected shardings": (
        "visualize_sharding shard_alike inspect_array_sharding",
        "xla_backend/pictures jax/experimental/shard_alike xla_backend/lowering/placement:_inspect,_alike,_reshard"
        " lax/primitives/placement:shard_alike,inspect_array_sharding",
        0,
    ),
    "the public format of exported programs": (
        "_read_hlo _check_proto",
        "xla_backend/export_public xla_backend/flat_tables",
        0,
    ),
    "executables as bytes, topologies, compute_on": (
        "deserialize_and_load topologies compute_on",
        "jax/experimental/serialize_executable jax/experimental/topologies jax/experimental/compute_on xla_backend/executables xla_backend/topologies xla_backend/compute_on",
        0,
    ),
    "guards of transfers": ("_set_thread_guard", "xla_backend/guards", 0),
    "dtypes of libraries": ("primal_tangent_dtype supports_inf", "extend/element_dtypes lax/element_types", 0),
    "source maps": ("create_mlir_sourcemap", "extend/source_maps jax/experimental/source_mapper", 0),
    "a debugger": ("breakpoint", "extend/debugger", 0),
    "callbacks on buffers": ("buffer_callback", "extend/buffer_callback jax/experimental/buffer_callback", 0),
    "services of the backend": ("register_backend_factory", "extend/services", 0),
    "modules of MLIR for libraries": ("merge_mlir_modules", "extend/mlir_modules", 0),
    "values of libraries under vmap": (
        "register_vmappable",
        "extend/interpreters:register_vmappable,unregister_vmappable batching/api:Vmappable",
        0,
    ),
    "what libraries ask the inside for": (
        "TypedInt attr_get JaxIrContext earray control_dep",
        "extend/literals extend/attributes extend/mlir_contexts jax/_src/ad_checkpoint jax/_src/api jax/_src/api_util"
        " jax/_src/earray jax/_src/effects jax/_src/lax jax/_src/lib jax/_src/literals jax/_src/pjit"
        " jax/_src/public_test_util jax/_src/test_util jax/_src/util jax/_src/xla_bridge jax/ad jax/extend/pallas"
        " jax/extend/sharding jax/extend/xla jax/experimental/fused jax/experimental/profiler jax/experimental/roofline"
        " jax/experimental/scheduling_groups jax/experimental/transfer jax/experimental/xla_metadata"
        " jax/experimental/control_deps jax/experimental/compilation_cache/compilation_cache",
        0,
    ),
    "ciphers of blocks as generators": ("BlockCipher", "random/block_ciphers", 40),
    "recurrent networks": ("lstm_ref", "libraries/rnn jax/experimental/rnn", 0),
    "reuse of keys": ("new_marks", "random/reuse", 0),
    "eigenvalues, singular values where no kernel is": (
        "_tall_svd _triangular_vectors",
        "lax/decompositions/eigenvalues",
        161,
    ),
    "generators that count by themselves": ("stateful_rng", "random/stateful jax/experimental/random", 0),
    "programs as Python source": ("source_of", "numpy_backend/program_source", 0),
    "operations that TFLite and grappler know": ("_leaky_relu", "jax2tf/fusions", 0),
    "gradients of any order in saved models": ("_pulled_back", "jax2tf/gradients", 0),
    "sizes checked in graphs": ("checked_sizes", "jax2tf/checks", 0),
    "questions about conversion": ("eval_polymorphic_shape", "jax2tf/inspection", 0),
    "derivatives and shapes of TensorFlow's functions": (
        "pushed_forward inferred_shapes",
        "call_tf/derived call_tf/inference",
        0,
    ),
    "Legendre functions of negative order": ("lpmn_values", "scipy/special/harmonics:lpmn_values,lpmn", 0),
    "options that changed nothing": (
        "log_plan _told",
        "autodiff/flags parallel/flags autodiff/checkpointing:log_plan xla_backend/clients:_told xla_backend/flags:_visible",
        0,
    ),
}


def sources():
    """Module ("core/ir", "jax/numpy/linalg") -> its files, stubs included."""
    found = {}
    for path in sorted(ROOT.glob("packages/*/src/**/*.py*")):
        if path.suffix in (".py", ".pyi"):
            name = re.sub(r".*/src/(bedrax/)?", "", str(path.with_suffix("")))
            found.setdefault(name, []).append(path)
    return found


def lines_of(place, modules):
    """Lines of a folder, a module, or of definitions of a module; the place must exist."""
    module, _, names = place.partition(":")
    if not names:
        files = [f for name, fs in modules.items() if name == module or name.startswith(module + "/") for f in fs]
        assert files, f"no such place: {place}"
        return sum(f.read_text().count("\n") for f in files)
    tree = ast.parse(modules[module][0].read_text()).body
    spans = {d.name: d.end_lineno - d.lineno + 1 for d in tree if isinstance(d, ast.ClassDef | ast.FunctionDef)}
    return sum(spans[name] for name in names.split(","))


def main():
    modules = sources()
    rows = {f: sum(lines_of(p, modules) for p in places.split()) - had for f, (_, places, had) in NEW.items()}
    together = sum(f.read_text().count("\n") for files in modules.values() for f in files)
    for feature, n in rows.items():
        print(f"{feature:52}{n:8,}")
    new = sum(rows.values())
    print(f"{'new since the first edition':52}{new:8,}\n{'what the first edition did':52}{together - new:8,}")
    if "--evidence" in sys.argv:
        for name in " ".join(names for names, _, _ in NEW.values()).split():
            where = ["--", "packages/*/src/*.py"]
            if subprocess.run(["git", "grep", "-q", "-w", name, FIRST, *where], cwd=ROOT).returncode != 1:
                raise SystemExit(f"the first edition knew {name}")


if __name__ == "__main__":
    main()
