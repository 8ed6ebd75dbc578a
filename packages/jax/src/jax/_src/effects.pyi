from bedrax.core.effects import Effect as Effect, Effects as Effects, no_effects as no_effects
