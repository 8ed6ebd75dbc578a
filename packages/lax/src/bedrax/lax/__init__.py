"""The vocabulary of array programs: every lax function and primitive, found in its family's file on first use.

Importing it gives arrays their arithmetic.
"""

from __future__ import annotations

import importlib

from bedrax.core import array as _array

_OPERATORS = "add sub mul truediv floordiv mod pow divmod and or xor lshift rshift".split()
_array.install_on_demand(
    "bedrax.lax.operators",
    [
        f"__{name}__"
        for name in (*_OPERATORS, "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")
    ]
    + [f"__r{name}__" for name in _OPERATORS]
    + ["__iter__"],
)

# family file -> what it exports here. A name is imported when it is first asked for, so that
# `import bedrax.lax` costs nothing and unused families are never loaded.
_HOMES: dict[str, tuple[str, ...]] = {
    "callbacks": ("debug_callback_p", "io_callback_p", "pure_callback_p"),
    "collectives": (
        "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p", "axis_size", "pmax",
        "pmax_p", "pbroadcast", "pcast", "pmean", "pmin", "pmin_p", "ppermute", "ppermute_p", "precv", "psend", "pshuffle", "psum", "psum_p", "psum_scatter",
        "pswapaxes", "ragged_all_to_all", "reduce_scatter_p",
    ),
    "random_bits": (
        "RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p",
        "threefry2x32", "threefry2x32_p",
    ),
    "special": (
        "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "digamma", "digamma_p", "erf",
        "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "igamma", "igamma_grad_a", "igamma_grad_a_p",
        "igamma_p", "igammac", "igammac_p", "lgamma", "lgamma_p", "polygamma", "polygamma_p",
        "random_gamma_grad", "random_gamma_grad_p", "regularized_incomplete_beta_p", "zeta", "zeta_p",
    ),
    "elementwise": (
        "AccuracyMode", "RoundingMethod", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh", "acosh_p",
        "add", "add_any", "add_any_p", "add_jaxvals_p", "add_p", "and_p", "asin", "asin_p", "asinh", "asinh_p",
        "atan", "atan2", "atan2_p", "atan_p", "atanh", "atanh_p", "bitwise_and", "bitwise_not", "bitwise_or",
        "bitwise_xor", "cbrt", "cbrt_p", "ceil", "ceil_p", "clamp", "clamp_p", "clz", "clz_p", "complex",
        "complex_p", "conj", "conj_p", "copy_p", "cos", "cos_p", "cosh", "cosh_p", "div", "div_p", "eq", "eq_p",
        "eq_to_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "floor", "floor_p", "ge", "ge_p", "gt",
        "gt_p", "imag", "imag_p", "integer_pow", "integer_pow_p", "is_finite", "is_finite_p", "le", "le_p",
        "le_to_p", "log", "log1p", "log1p_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "max",
        "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg", "neg_p", "nextafter",
        "nextafter_p", "not_p", "or_p", "population_count", "population_count_p", "pow", "pow_p", "real",
        "real_p", "reciprocal", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p", "select", "select_n",
        "select_n_p", "shift_left", "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p",
        "shift_right_logical", "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh", "sinh_p",
        "sqrt", "sqrt_p", "square", "square_p", "stop_gradient", "stop_gradient_p", "sub", "sub_p", "tan",
        "tan_p", "tanh", "tanh_p", "xor_p",
    ),
    "shaping": (
        "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
        "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate", "concatenate_p", "empty", "expand_dims",
        "full", "full_like", "index_in_dim", "iota", "iota_p", "pad", "pad_p", "reshape", "reshape_p", "rev", "rev_p",
        "shape_as_value", "slice", "slice_in_dim", "slice_p", "split", "split_p", "squeeze", "squeeze_p", "stack",
        "stack_p", "tile", "tile_p", "transpose", "transpose_p", "unstack", "unstack_p",
    ),
    "reductions": (
        "argmax", "argmax_p", "argmin", "argmin_p", "reduce", "reduce_and", "reduce_and_p", "reduce_max",
        "reduce_max_p", "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_p", "reduce_prod",
        "reduce_prod_p", "reduce_sum", "reduce_sum_p", "reduce_xor", "reduce_xor_p",
    ),
    "cumulative": (
        "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p", "cumsum",
        "cumsum_p",
    ),
    "sorting": (
        "approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p", "top_k", "top_k_p",
    ),
    "windows": (
        "padtype_to_pads", "reduce_window", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
        "reduce_window_shape_tuple", "reduce_window_sum_p", "select_and_gather_add_p", "select_and_scatter_add_p",
        "select_and_scatter_p",
    ),
    "conversions": (
        "asarray", "bitcast_convert_type", "bitcast_convert_type_p", "convert_element_type",
        "convert_element_type_p", "convert_to", "dtype", "reduce_precision", "reduce_precision_p",
    ),
    "control_flow": (
        "scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan", "scan_p", "while_p", "cond_p",
    ),
    "markers": (
        "after_all", "after_all_p", "create_token", "create_token_p", "dce_sink", "dce_sink_p", "platform_dependent",
        "platform_index_p", "stage", "stage_p",
    ),
    "solvers": ("linear_solve_p",),
    "calls": ("optimization_barrier", "optimization_barrier_p", "composite"),
    "indexing": (
        "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "dynamic_index_in_dim",
        "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p", "dynamic_update_index_in_dim",
        "dynamic_update_slice", "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "gather", "gather_p",
        "index_take", "scatter", "scatter_add", "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p",
        "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub", "scatter_sub_p",
    ),
    "contractions": (
        "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike",
        "RaggedDotDimensionNumbers", "batch_matmul", "dot", "dot_general", "dot_general_p", "ragged_dot",
        "ragged_dot_general", "ragged_dot_general_p", "scaled_dot", "scaled_dot_p",
    ),
    "convolution": (
        "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
        "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_p",
        "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
        "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    ),
    "fft": ("FftType", "fft", "fft_p"),
    "linalg": (
        "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
        "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "geqp3", "geqp3_p", "geqrf", "geqrf_p", "hessenberg",
        "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation",
        "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p",
        "symmetric_product", "symmetric_product_p", "triangular_solve", "triangular_solve_p", "tridiagonal",
        "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p",
    ),
}  # fmt: skip

_HOME_OF = {name: family for family, names in _HOMES.items() for name in names}


def __getattr__(name: str):
    family = _HOME_OF.get(name)
    if family is None:
        raise AttributeError(f"module 'bedrax.lax' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"bedrax.lax.primitives.{family}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(_HOME_OF)
