from . import (
    ad_checkpoint as ad_checkpoint,
    ad_util as ad_util,
    api as api,
    api_util as api_util,
    checkify as checkify,
    config as config,
    core as core,
    dispatch as dispatch,
    distributed as distributed,
    dtypes as dtypes,
    earray as earray,
    effects as effects,
    flatten_util as flatten_util,
    flattree as flattree,
    interpreters as interpreters,
    lax as lax,
    lib as lib,
    literals as literals,
    pjit as pjit,
    public_test_util as public_test_util,
    sharding_impls as sharding_impls,
    state as state,
    test_util as test_util,
    traceback_util as traceback_util,
    tree_util as tree_util,
    util as util,
    xla_bridge as xla_bridge,
)

# Chex replaces `backend_compile_and_load` by assignment: this is the backend's own module, so that it takes effect.
from bedrax.xla_backend import compile as _compile

compiler = _compile
