from bedrax.autodiff.linear_maps import (
    DidntWant as DidntWant,
    DontWant as DontWant,
    GradRef as GradRef,
    GradValue as GradValue,
    NotNeeded as NotNeeded,
    NotSaveable as NotSaveable,
)
