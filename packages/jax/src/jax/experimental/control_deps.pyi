from bedrax.extend.unsupported import control_dep as control_dep, schedule as schedule
