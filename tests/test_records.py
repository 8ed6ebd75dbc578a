"""Every primitive is tested: core's by the records of `bedrax.testing`, the others' by named tests."""

import importlib
import pkgutil
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

import bedrax
from bedrax.core.tracing import Primitive
from bedrax.testing.records import all_cases, unsampled

ROOT = Path(__file__).parents[1]

SPARSE = """
    bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_spdot_general bcoo_sum_duplicates bcoo_todense bcoo_transpose
    bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense coo_fromdense coo_matmat coo_matvec coo_todense
    csr_fromdense csr_matmat csr_matvec csr_todense spsolve todense
""".split()

# primitive -> the file of its tests
ELSEWHERE = {
    "addupdate": "packages/state/tests/test_operations.py",
    "call_exported": "packages/xla_backend/tests/test_export.py",
    "call_tf": "packages/call_tf/tests/test_staged.py",
    "call_tf_tangent": "packages/call_tf/tests/test_transformed.py",
    "check": "packages/checkify/tests/test_checks.py",
    "custom_vmap_call": "packages/autodiff/tests/test_custom_vmap.py",
    "dim_as_value": "packages/jax/tests/test_symbolic_programs.py",
    "empty_ref": "packages/state/tests/test_operations.py",
    "ffi_call": "packages/xla_backend/tests/test_ffi.py",
    "free_ref": "packages/state/tests/test_operations.py",
    "from_edtype": "packages/extend/tests/test_element_dtypes.py",
    "freeze": "packages/state/tests/test_operations.py",
    "global_array_to_host_local_array": "packages/processes/tests/test_one_process.py",
    "get": "packages/state/tests/test_operations.py",
    "hi_call": "packages/state/tests/test_hi_prims.py",
    "hi_linear": "packages/state/tests/test_hi_prims.py",
    "host_local_array_to_global_array": "packages/processes/tests/test_one_process.py",
    "new_ref": "packages/state/tests/test_operations.py",
    "own_part": "packages/processes/tests/test_runs.py",
    "random_bits": "packages/random/tests/test_matrix.py",
    "random_clone": "packages/random/tests/test_matrix.py",
    "random_fold_in": "packages/random/tests/test_matrix.py",
    "random_gamma": "packages/random/tests/test_samplers.py",
    "random_seed": "packages/random/tests/test_matrix.py",
    "random_split": "packages/random/tests/test_matrix.py",
    "random_unwrap": "packages/random/tests/test_matrix.py",
    "random_wrap": "packages/random/tests/test_matrix.py",
    "shard_map": "packages/parallel/tests/test_shard_map.py",
    "to_edtype": "packages/extend/tests/test_element_dtypes.py",
    "swap": "packages/state/tests/test_operations.py",
    **dict.fromkeys(SPARSE, "packages/sparse/tests/test_sparse.py"),
    "whole_array": "packages/processes/tests/test_runs.py",
}


@pytest.mark.needs("tensorflow")  # all packages are imported
def test_every_primitive_is_sampled():
    sampled = {case.primitive for case in all_cases()} | set(unsampled())
    found = set()
    for info in pkgutil.walk_packages(bedrax.__path__, "bedrax."):
        if info.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, Primitive) and value not in sampled:
                found.add(value.name)
    assert found == set(ELSEWHERE)


def test_the_named_tests_exist():
    assert not [path for path in ELSEWHERE.values() if not (ROOT / path).exists()]
