from bedrax.autodiff.taylor import *
from bedrax.autodiff.taylor import SeriesTrace as _SeriesTrace, SeriesTracer as _SeriesTracer
from bedrax.extend.wrapped_series import *

JetTrace = _SeriesTrace
JetTracer = _SeriesTracer
