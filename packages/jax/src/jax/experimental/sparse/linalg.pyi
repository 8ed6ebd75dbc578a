from bedrax.sparse.linalg import lobpcg_standard as lobpcg_standard, spsolve as spsolve, spsolve_p as spsolve_p
