from . import (
    splash_attention_kernel as splash_attention_kernel, splash_attention_mask as splash_attention_mask,
)  # fmt: skip
