"""Every record, lowered for every platform: its custom calls exist, with these attributes and layouts.

The names for CUDA are those that `registrations()` of the modules of jax-cuda12-plugin and jax-cuda13-plugin 0.10.2
return. The attributes are those that these kernels accept (`tests/programs/decode_cuda_calls.py` reads them).
`jax.export` documents the names for TPU as stable, and those that XLA has on every platform.
"""

import re

import pytest

import bedrax.xla_backend as xla
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend.lowering import modules

# Names of custom calls -> the required attributes, with their types.
ANYWHERE = {"annotate_device_placement": None, "Sharding": None}
GPU = {
    "{v}solver_getrf_ffi": "",
    "{v}solver_geqrf_ffi": "",
    "{v}solver_orgqr_ffi": "",
    "{v}_lu_pivots_to_permutation": "",
    "{v}solver_ormqr_ffi": "left:i1 transpose:i1",
    "{v}solver_potrf_ffi": "lower:i1",
    "{v}solver_sytrd_ffi": "lower:i1",
    "{v}solver_syevd_ffi": "algorithm:ui8 lower:i1",
    "{v}solver_gesvd_ffi": "compute_uv:i1 full_matrices:i1 transposed:i1",
    "{v}solver_gesvdj_ffi": "compute_uv:i1 full_matrices:i1",
    "{v}hybrid_eig_real": "left:i1 magma:str right:i1",
    "{v}hybrid_eig_comp": "left:i1 magma:str right:i1",
    "{v}hybrid_geqp3": "magma:str",
    "xla_ffi_python_gpu_callback": "index:ui64",
}
NAMES = {
    "cuda": {
        **{name.format(v="cu"): attributes for name, attributes in GPU.items()},
        "cusolver_gesvdp_ffi": "compute_uv:i1 full_matrices:i1",
        "cusparse_gtsv2_ffi": "",
        "cu_tridiagonal_solve_perturbed": "",
    },
    "rocm": {name.format(v="hip"): attributes for name, attributes in GPU.items()},
    "tpu": dict.fromkeys(("Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr")),
}
# Records that a platform rejects -> the message.
REFUSED = {
    ("linalg-svd-qr_algorithm", "tpu"): "QR is not available",
    **{(case.id, "tpu"): "callbacks into Python" for case in all_cases() if case.primitive.family == "callbacks"},
}


def calls_of(case, platform):
    """The custom calls of a record's program."""
    with checks.x64_if_needed(case):
        lowered = xla.jit(case.fun).trace(*case.make_args()).lower(lowering_platforms=(platform,))
    module = lowered._lowered.program.module  # must outlive the operations
    for op in modules.operations(module):
        if op.name == "stablehlo.custom_call":
            yield op


def attribute(op, name):
    return str(op.attributes[name]) if name in op.attributes else ""


def misfits(op, names) -> list[str]:
    """The faults of a custom call, as messages."""
    target = attribute(op, "call_target_name").strip('"')
    if target not in names:
        return [f"{target}: no library registers it"]
    wrong, wanted = [], names[target]
    config = re.findall(r'(\w+) = (".*?"|\w+)(?: : (\w+))?', attribute(op, "backend_config"))
    given = " ".join(f"{n}:{t or ('str' if v.startswith(chr(34)) else 'i1')}" for n, v, t in config)
    if wanted is not None and given != wanted:
        wrong.append(f"{target}: attributes {given}, {wanted} wanted")
    batch = re.search(r'num_batch_dims = "(\d+)"', attribute(op, "mhlo.frontend_attributes"))
    if batch:
        wrong += [f"{target}: {w}" for w in wrong_layouts(op, int(batch[1]))]
    return wrong


def wrong_layouts(op, batch):
    """Kernels take column-major matrices behind row-major batch axes. gesvd takes transposed ones row-major."""
    by_rows = "transposed = true" in attribute(op, "backend_config")
    for kind, values in (("operand", op.operands), ("result", op.results)):
        given = re.findall(r"dense<(.*?)> : tensor<(\d)xindex>", attribute(op, f"{kind}_layouts"))
        if len(given) != len(values):
            yield f"{len(given)} layouts for {len(values)} {kind}s"
        for value, (order, _) in zip(values, given):
            rank = value.type.rank
            matrix = [rank - 1, rank - 2] if by_rows else [rank - 2, rank - 1]
            wanted = [*matrix, *range(rank - 3, -1, -1)] if rank == batch + 2 else [*range(rank - 1, -1, -1)]
            found = [int(i) for i in re.findall(r"\d+", order)]
            if found != (wanted if rank != 1 else [0]):
                yield f"{kind} {value.type} has the layout {found}, {wanted} is wanted"


@pytest.mark.parametrize("platform", NAMES)
def test_calls_are_those_of_registered_kernels(platform):
    names, wrong, met = NAMES[platform] | ANYWHERE, [], set()
    for case in all_cases():
        if (case.id, platform) in REFUSED:
            with pytest.raises(NotImplementedError, match=REFUSED[case.id, platform]):
                list(calls_of(case, platform))
            continue
        for op in calls_of(case, platform):
            met.add(attribute(op, "call_target_name").strip('"'))
            wrong += [f"{case.id}: {w}" for w in misfits(op, names)]
    assert not wrong, "\n".join(wrong)
    assert set(NAMES[platform]) - met <= {"cusolver_gesvdp_ffi"}, set(NAMES[platform]) - met  # only with this algorithm


def test_the_check_reports_wrong_names_attributes_and_layouts():
    """The check reports a wrong name, attribute and layout."""
    case = next(c for c in all_cases() if c.primitive.name == "eigh")
    op = next(calls := calls_of(case, "cuda"))
    good = NAMES["cuda"]["cusolver_syevd_ffi"]
    assert misfits(op, {"cusolver_syevd_ffi": good}) == []
    assert "no library" in misfits(op, {})[0]
    assert "attributes" in misfits(op, {"cusolver_syevd_ffi": good + " more:i1"})[0]
    assert list(wrong_layouts(op, 7))
    assert list(calls) == []
