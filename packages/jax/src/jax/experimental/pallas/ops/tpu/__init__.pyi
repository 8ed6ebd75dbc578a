from . import splash_attention as splash_attention
