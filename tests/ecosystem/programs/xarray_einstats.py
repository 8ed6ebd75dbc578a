"""Linear algebra on labelled arrays compared with arrays computed here."""

import jax.numpy as jnp
import numpy as np
import xarray as xr
from xarray_einstats import linalg

a = np.asarray(jnp.linalg.inv(jnp.array([[[2.0, 1.0], [1.0, 3.0]]])))
labelled = xr.DataArray(a, dims=("batch", "row", "column"))
back = linalg.inv(labelled, dims=("row", "column"))
np.testing.assert_allclose(back.values[0], [[2, 1], [1, 3]], rtol=1e-5)
np.testing.assert_allclose(linalg.det(labelled, dims=("row", "column")), np.linalg.det(a), rtol=1e-5)
