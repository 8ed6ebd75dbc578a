"""Compile every record for an NVIDIA GPU and for a TPU, on a machine without them.

The compilers of both platforms are packages. They take devices as descriptions (`jax.experimental.topologies`).
The program of each record goes through the whole compiler, down to machine code; nothing is run. A compiler may end
its process, so a child process compiles. After its end a new one continues behind the record that ended it.

Needs the packages jax-cuda13-plugin, jax-cuda13-pjrt and libtpu (`nox -s accelerators` has them).
``compile_for_accelerators.py [part of the names of records]`` prints the outcomes that differ from `EXPECTED`, and
fails.
"""

import os
import re
import subprocess
import sys
import time

# The expected error of a record, by platform and a pattern for its name, and the reason.
EXPECTED = {
    "cuda": {},
    "tpu": {
        "callbacks-.*": "callbacks into Python cannot be compiled for platform 'tpu'",
        "linalg-svd-qr_algorithm": "not available",
        # This compiler supports float64 in parts, and complex128 hardly anywhere.
        "linalg-(eig-complex|eig-vectors|hessenberg-complex|tridiagonal-packed_upper)": "ended its process|RET_CHECK",
        "conversions-convert_element_type-f64 c128": "ended its process",
        "conversions-reduce_precision-f64": r"X\{64\|128\} element types",
        "fft-fft-(ifft|rfft_odd)": r"Unexpected operand type for FFT|X\{64\|128\} element",
        "sorting-sort-int4 front": "INT2 is not supported",
        "windows-select_and_scatter_add-.*": "^$|not implemented for TPU",  # windows in the two minor-most dimensions
    },
}

# The description of an H200, in XLA's form.
GPU = """
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 4800000000000 l2_cache_size: 62914560 clock_rate_ghz: 1.98 device_memory_size: 150754820096
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 12 } device_description_str: "NVIDIA H200"
"""
TPU_SETTINGS = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "TPU_LOG_DIR": "disabled",
}


def topology(platform):
    """The description of the devices, from the plugin of the platform."""
    from bedrax.xla_backend import topologies

    if platform == "cuda":
        return topologies.get_topology_desc("one", "cuda", target_config=GPU, topology="1x1x1")
    return topologies.get_topology_desc("v5e:2x2", "tpu")


# Slices of TPUs, and a mesh over each.
SLICES = {
    ("v4:2x2x1", None): (4, 2),
    ("v5e:4x2", None): (2, 4),
    ("v5e:2x2", 2): (2, 4),
    ("v5p:2x2x2", None): (4, 2),
    ("tpu7x:2x2x1", None): (4, 2),
}


def compile_over_slices():
    """Compile a program for a mesh over each slice."""
    import jax
    import numpy as np
    from jax.experimental import mesh_utils, topologies

    for (name, slices), shape in SLICES.items():
        options = {} if slices is None else {"num_slices": slices}
        described = topologies.get_topology_desc(name, "tpu", **options)
        if slices is None:
            mesh = topologies.make_mesh(described, shape, ("x", "y"))
        else:
            devices = mesh_utils.create_hybrid_device_mesh((1, shape[1]), (slices, 1), described.devices)
            mesh = jax.sharding.Mesh(devices, ("x", "y"))
            assert all(len({d.slice_index for d in row}) == 1 for row in devices)
        place = jax.sharding.NamedSharding(mesh, jax.P("x", "y"))
        x = jax.ShapeDtypeStruct((8, 128), np.float32, sharding=place)
        text = jax.jit(lambda x: x @ x.T).lower(x).compile().as_text()
        assert "all-" in text, name
        print("slice", name, mesh.devices.shape, flush=True)


def compile_records(platform, ids):
    """Compile in this process, and print a line before and after each record."""
    import bedrax.xla_backend as xla
    from bedrax.testing import checks
    from bedrax.testing.records import all_cases
    from bedrax.xla_backend import flags

    device = topology(platform).devices[0]
    for case in all_cases():
        if case.id not in ids:
            continue
        print("start", case.id, sep="\t", flush=True)
        try:
            with checks.x64_if_needed(case):
                traced = xla.jit(case.fun).trace(*case.make_args())
                with flags.default_device(device):
                    text = traced.lower().compile().as_text()
            message = "" if "ENTRY" in text else "no program came out"
        except Exception as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
        print("end", case.id, message, sep="\t", flush=True)


def outcomes(platform, ids):
    """The outcome of each record: "" or the message of an error."""
    found, left = {}, list(ids)
    while left:
        done = subprocess.run(
            [sys.executable, __file__, "--child", platform],
            input="\n".join(left),
            text=True,
            timeout=3600,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **TPU_SETTINGS},
        )
        lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith(("start\t", "end\t"))]
        found.update((name, message) for kind, name, *rest in lines if kind == "end" for message in rest)
        started = [name for kind, name, *_ in lines if kind == "start"]
        if not started:
            raise RuntimeError(f"the compiler for {platform} did not start (exit code {done.returncode})")
        if started[-1] not in found:
            found[started[-1]] = f"the compiler ended its process ({done.returncode})"
        left = [i for i in left if i not in found]
    return found


def main(part="") -> int:
    from bedrax.testing.records import all_cases

    ids, wrong = [case.id for case in all_cases() if part in case.id], 0
    for platform, expected in EXPECTED.items():
        began = time.monotonic()
        found = outcomes(platform, ids)
        for name, message in found.items():
            wanted = [words for pattern, words in expected.items() if re.fullmatch(pattern, name)]
            if (not re.search(wanted[0], message)) if wanted else message:
                wrong += 1
                print(f"{platform}: {name}: {message or 'compiled, although an error is expected'}"[:400], flush=True)
        good = sum(not message for message in found.values())
        print(
            f"{platform}: {good} of {len(found)} records compiled, {time.monotonic() - began:.0f} seconds", flush=True
        )
    command = [sys.executable, __file__, "--slices"]
    done = subprocess.run(command, env={**os.environ, **TPU_SETTINGS}, timeout=600, stderr=subprocess.DEVNULL)
    return wrong + bool(done.returncode)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        compile_records(sys.argv[2], set(sys.stdin.read().split("\n")))
    elif sys.argv[1:2] == ["--slices"]:
        compile_over_slices()
    else:
        sys.exit(bool(main(*sys.argv[1:])))
