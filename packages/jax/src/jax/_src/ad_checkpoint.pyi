from bedrax.lax.primitives.calls import name_p as name_p, remat_p as remat_p
