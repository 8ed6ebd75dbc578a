"""Arrays in SciPy, scikit-learn and array-api-compat, by the standard of array libraries."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
import array_api_compat
import jax.numpy as jnp
import numpy as np
import scipy.special
import sklearn
from sklearn.linear_model import Ridge

x = jnp.linspace(0.1, 1.0, 5)
assert array_api_compat.is_jax_array(x) and array_api_compat.array_namespace(x) is jnp
assert x.__array_namespace__() is jnp
found = scipy.special.erf(x)
assert array_api_compat.is_jax_array(found)
np.testing.assert_allclose(found, scipy.special.erf(np.asarray(x)), rtol=1e-5)
data = np.random.RandomState(0).standard_normal((20, 2))
model = Ridge(1e-3).fit(jnp.asarray(data), jnp.asarray(data @ [1.0, 2.0]))
np.testing.assert_allclose(model.coef_, [1, 2], rtol=1e-2)
assert sklearn.__version__
