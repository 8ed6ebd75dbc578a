"""Options of array functions."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

numpy_rank_promotion: Final = flag(
    "jax_numpy_rank_promotion",
    "allow",
    "what to do when NumPy broadcasting joins arrays of different ranks",
    choices=("allow", "warn", "raise"),
    keyed=True,
    users_only=True,
)
check_static_indices: Final = flag(
    "jax_check_static_indices", False, "reading at a known index that is out of bounds is an error", keyed=True
)
default_matmul_precision: Final = flag(
    "jax_default_matmul_precision",
    None,
    "precision of products and convolutions that do not name theirs",
    choices=(
        "default",
        "high",
        "highest",
        "bfloat16",
        "tensorfloat32",
        "float32",
        "ANY_F8_ANY_F8_F32",
        "ANY_F8_ANY_F8_F32_FAST_ACCUM",
        "ANY_F8_ANY_F8_ANY",
        "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
        "F16_F16_F16",
        "F16_F16_F32",
        "BF16_BF16_BF16",
        "BF16_BF16_F32",
        "BF16_BF16_F32_X3",
        "BF16_BF16_F32_X6",
        "BF16_BF16_F32_X9",
        "TF32_TF32_F32",
        "TF32_TF32_F32_X3",
        "F32_F32_F32",
        "F64_F64_F64",
    ),
    keyed=True,
)
