"""Write the page on the promises in the documents of the TensorFlow bridges: their state, and the tests that show it.

    python tools/tensorflow_page.py            writes build/evidence/tensorflow.md, a page of the manual

A row is (promise, state, test); a test is ``file::function`` under ``packages``. A limitation is the name of a case of
``jax2tf/tests/test_limitations.py``. That case fails when the limitation is gone.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "build" / "evidence" / "tensorflow.md"
HOLDS, DIFFERS = "holds", "holds, differently"

API, CHECKS, GRADIENTS = "jax2tf/tests/test_api.py", "jax2tf/tests/test_checks.py", "jax2tf/tests/test_gradients.py"
RECORDS = "jax2tf/tests/test_native_records.py"
CONVERT, NATIVE, GRAPHS = "jax2tf/tests/test_convert.py", "jax2tf/tests/test_native.py", "jax2tf/tests/test_graphs.py"
COMPOSED, MATRIX, WORLD = (
    "jax2tf/tests/test_composed.py",
    "jax2tf/tests/test_matrix.py",
    "jax2tf/tests/test_other_parts_of_tensorflow.py",
)
EAGER, STAGED = "call_tf/tests/test_eager.py", "call_tf/tests/test_staged.py"
MADE, TRIP = "call_tf/tests/test_transformed.py", "jax/tests/test_round_trip.py"
EXPRESSIONS, SPECS = "shape_poly/tests/test_expressions.py", "shape_poly/tests/test_specs.py"
HUB, WEB = "../tests/integration/with_tensorflow_hub.py", "../examples/digits/tests/test_web.py"
LIMITS, SHARDING = "jax2tf/tests/test_limitations.py", "jax2tf/tests/test_sharding.py"

PROMISES = {
    "Functions": [
        ("a function that can be jitted can be converted: every primitive", HOLDS, f"{MATRIX}::test_equals_numpy"),
        ("a converted function runs eagerly, in a graph, and compiled by XLA", HOLDS, f"{CONVERT}::test_compiled_by_tensorflows_xla"),
        ("`convert(jit(f))` is compiled", "holds with the option `jax2tf_compile_jitted`; otherwise graphs run without XLA, too",
         f"{CONVERT}::test_jitted_functions_are_compiled_on_request"),
        ("arguments and results are nested containers of tensors, variables, numbers", HOLDS, f"{CONVERT}::test_trees_in_and_out"),
        ("registered containers can be arguments, eagerly and of `tf.function`", "holds, with gradients with respect to them", f"{API}::test_registered_containers"),
        ("containers that `tf.Module` wraps are unwrapped", HOLDS, f"{CONVERT}::test_trees_in_and_out"),
        ("arrays of keys are arguments (their words are the tensor)", HOLDS, f"{API}::test_keys_are_their_words"),
        ("an argument that is not a function is rejected by `convert` itself", HOLDS, f"{API}::test_only_functions"),
        ("a converted function raises inside transformations, and works inside `call_tf`", HOLDS, f"{API}::test_not_inside_transformations"),
        ("64-bit values follow our flag; `dtype_of_val` returns the dtype", HOLDS, f"{API}::test_dtype_of_val"),
        ("`eval_polymorphic_shape`", HOLDS, f"{API}::test_eval_polymorphic_shape"),
        ("`split_to_logical_devices`", HOLDS, f"{API}::test_split_to_logical_devices"),
    ],
    "Saved models": [
        ("a saved model needs neither this project nor its Python", HOLDS, f"{CONVERT}::test_a_saved_model_runs_without_our_packages"),
        ("parameters are variables, and can be trained after loading", HOLDS, f"{WORLD}::test_trained_after_loading"),
        ("TensorFlow Serving's signatures; sessions of the bare graph", HOLDS, f"{WORLD}::test_session_of_the_graph"),
        ("signatures have names, dtypes and unknown batch sizes; `saved_model_cli show` prints them", HOLDS, f"{WORLD}::test_command_line_shows"),
        ("`saved_model_cli` runs them", HOLDS, f"{WORLD}::test_command_line"),
        ("Keras uses them as layers", HOLDS, f"{WORLD}::test_keras_layer"),
        ("Keras trains the variables of such a layer", "holds, with optimizers that do not store state by the names of variables", f"{WORLD}::test_keras_trains_the_layer"),
        ("`tensorflow_hub` loads them, and pipelines map them, without this project", HOLDS, f"{HUB}::test_loaded"),
        ("`hub.KerasLayer` can be part of a model that is fitted, and be fine-tuned", HOLDS, f"{HUB}::test_fine_tuned"),
        ("`tf.data` pipelines map converted functions", HOLDS, f"{WORLD}::test_pipeline"),
        ("TFLite runs them", HOLDS, f"{CONVERT}::test_tflite_runs_the_network"),
        ("TFLite draws random numbers", "better: with known sizes, the same numbers as here", f"{COMPOSED}::test_tflite_draws_the_same_random_numbers"),
        ("TFLite and TF.js run scans, scattered sums and small triangular systems (`tests/zoo`)", HOLDS, f"{COMPOSED}::test_graphs_have_no_operations_that_tfjs_lacks"),
        ("TF.js runs graphs without assertions and without gradients that raise (`examples/digits/web`)", HOLDS, f"{WEB}::test_two_graphs_are_the_network"),
        ("constants that a function closes over are stored once", "better: the documents expect them twice", f"{GRAPHS}::test_large_constants_are_held_once"),
    ],
    "Gradients": [
        ("TensorFlow's gradient is the derivative of this `jax`, custom rules included", HOLDS, f"{GRADIENTS}::test_tapes_outside"),
        ("gradients of any order, tapes inside or outside of functions", HOLDS, f"{GRADIENTS}::test_tapes_outside_and_inside"),
        ("a saved model has first-order gradients", "better: `with_gradient=n` saves n orders", f"{GRADIENTS}::test_saved_orders"),
        ("a derivative beyond the saved order is an error with the reason", HOLDS, f"{GRADIENTS}::test_saved_orders"),
        ("`with_gradient=False` refuses gradients", HOLDS, f"{CONVERT}::test_without_gradient"),
        ("saved without `experimental_custom_gradients`, a gradient is TensorFlow's error", "holds; the name of the operation in it tells what to save", f"{GRADIENTS}::test_a_model_saved_without_gradients_names_the_option"),
        ("gradients with respect to integers are None, to unused arguments zero; `float0` is int32", HOLDS, f"{CONVERT}::test_gradients_of_unused_and_integer_arguments"),
    ],
    "Unknown sizes": [
        ("one graph serves all sizes that `polymorphic_shapes` names", HOLDS, f"{CONVERT}::test_network_with_unknown_batch"),
        ("specifications: `_`, `...`, prefixes of pytrees, expressions", HOLDS, f"{SPECS}::test_specifications"),
        ("equality, order and division of dimensions, as documented", HOLDS, f"{EXPRESSIONS}::test_documented_comparisons"),
        ("dimensions are operands of programs", HOLDS, f"{SPECS}::test_dimensions_are_operands_of_programs"),
        ("sizes that do not fit raise eagerly", HOLDS, f"{CHECKS}::test_refused_eagerly"),
        ("graphs may miss sizes that do not fit", "better: graphs raise, compiled or not", f"{CHECKS}::test_sizes_that_do_not_fit_are_refused"),
        ("the same in saved models", "better, likewise", f"{CHECKS}::test_refused_when_saved"),
        ("the check can be left out", HOLDS, f"{CHECKS}::test_switched_off"),
    ],
    "Graphs": [
        ("plain operations, one or few per primitive", HOLDS, f"{GRAPHS}::test_operations"),
        ("random numbers make large graphs", "better: all uses share functions", f"{GRAPHS}::test_generators_are_functions_that_uses_share"),
        ("`enable_xla=False` converts the same programs as `enable_xla=True`", "better: the documents have a list of exceptions", f"{MATRIX}::test_column_is_complete"),
        ("native programs are one `XlaCallModule`", HOLDS, f"{NATIVE}::test_is_one_operation"),
        ("linear algebra in native programs (TensorFlow has none of jaxlib's kernels)",
         "better: StableHLO's own operations, and compositions", f"{NATIVE}::test_linear_algebra"),
        ("native programs compute what `jit` computes",
         "holds, but on the CPU TensorFlow's XLA ignores nan in one operand of a maximum or minimum; `XLA_FLAGS=--xla_cpu_enable_fast_min_max=false` changes that",
         f"{RECORDS}::test_nan_and_signs_of_zeros_with_exact_maxima"),
        ("native programs for several platforms", HOLDS, f"{NATIVE}::test_platforms"),
        ("calls of exported programs", HOLDS, f"{COMPOSED}::test_calls_of_exported_programs"),
        ("no `pmap`", "better: `pmap` and `shard_map` run on one device", f"{TRIP}::test_programs_for_devices_in_plain_graphs"),
        ("`XlaSharding` marks arguments and results that are split over devices, in graphs only", HOLDS, f"{SHARDING}::test_splits_are_marked"),
    ],
    "call_tf": [
        ("eagerly, TensorFlow runs the function", HOLDS, f"{EAGER}::test_trees_go_in_and_out"),
        ("memory is shared on the CPU", HOLDS, f"{EAGER}::test_memory_is_shared_but_never_that_of_numpy"),
        ("inside `jit` and control flow, its HLO is part of the program", HOLDS, f"{STAGED}::test_the_function_is_part_of_the_program"),
        ("reverse-mode derivatives are TensorFlow's, custom gradients included", HOLDS, f"{EAGER}::test_custom_gradients_are_respected"),
        ("no forward mode", "better: `jvp`, `jacfwd`, `hessian`", f"{MADE}::test_forward_mode"),
        ("no `vmap`", "better: vectorized by TensorFlow, or one call for each element", f"{MADE}::test_vmap"),
        ("effects happen once for each element, in order", HOLDS, f"{MADE}::test_effects_of_every_element"),
        ("results may have another structure for other types", HOLDS, f"{MADE}::test_structure_by_signature"),
        ("arguments of unknown sizes, if results are static", HOLDS, f"{STAGED}::test_symbolic_shapes_in_native_programs"),
        ("results of unknown sizes raise", "better: TensorFlow's shape inference at some sizes finds their sizes", f"{MADE}::test_inferred_symbolic_shapes"),
        ("results of unknown sizes cannot be declared", "better: `output_shape_dtype` takes expressions of dimensions", f"{MADE}::test_declared_symbolic_shapes"),
        ("round trips, custom gradients and saved models included", HOLDS, f"{TRIP}::test_to_tensorflow_and_back_with_a_custom_gradient"),
    ],
}  # fmt: skip

# name of the case -> (what does not work, what to do)
LIMITATIONS = {
    "strings under jit": ("functions of strings inside `jit`", "call them outside: eagerly they work"),
    "values as shapes under jit": ("sizes that are values, inside `jit`", "call the function outside"),
    "shapes that depend on values under jit": ("results whose shapes depend on values, inside `jit`", "`output_shape_dtype`, if the shape is in fact fixed"),
    "writing to variables under jit": ("variables that are written inside `jit`", "pass them as arguments, return their values"),
    "ordered calls under jit": ("`call_tf(..., ordered=True)` inside `jit`", "`call_tf_graph=True` in a native conversion"),
    "results of unknown sizes": ("results whose sizes are not simple expressions of unknown sizes, and are not declared", "`output_shape_dtype` with expressions of the arguments' dimensions"),
    "nonlinear sizes": ("specifications from which a dimension does not follow linearly", "name the dimension in another argument"),
    "underdetermined sizes": ("specifications with more dimensions than equations", "likewise"),
    "unknown sizes against numbers": ("an unknown size where a number is expected, even if it equals that number", "write the number in `polymorphic_shapes`"),
    "gradients of while loops": ("gradients of `while_loop`, which has none; the function can be saved, and its gradient raises", "`scan`, `fori_loop` with known bounds"),
    "sharding without a graph": ("`split_to_logical_devices` of eager tensors", "`tf.function`"),
    "enable_xla=False natively": ("`enable_xla=False` with native serialization", "one of the two"),
}  # fmt: skip

HEAD = """# TensorFlow: promises and their state

This page is made by `tools/tensorflow_page.py`. Each row is a promise, or an admitted limitation, of the
documentation of jax2tf, with its state here and the test (under `packages`) that shows it.
"""


def page() -> str:
    """The text of the page."""
    out = [HEAD]
    for title, rows in PROMISES.items():
        out += [f"## {title}\n", "| promise | state | test |", "|---|---|---|"]
        out += [f"| {promise} | {state} | `{test}` |" for promise, state, test in rows] + [""]
    out += ["## Limitations\n", f"Each is a case of `{LIMITS}`, which fails when the limitation is gone.\n"]
    out += ["| what does not work | what to do | case |", "|---|---|---|"]
    out += [f"| {what} | {advice} | {case} |" for case, (what, advice) in LIMITATIONS.items()]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
