from bedrax.xla_backend.stages import (
    ArgInfo as ArgInfo,
    Compiled as Compiled,
    CompilerOptions as CompilerOptions,
    Lowered as Lowered,
    Traced as Traced,
    Wrapped as Wrapped,
)
