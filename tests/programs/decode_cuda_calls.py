"""Check on a machine without a GPU whether jaxlib's CUDA kernels accept the calls in the records' programs.

A kernel first checks the number, names and types of its operands, results and attributes, and reports all errors.
Registered for the CPU, it lacks one thing: its stream. So each different call is compiled for the CPU and run. The
missing stream must be the only error.

Needs the package jax-cuda12-plugin (`nox -s accelerators` has it). Prints the wrong calls, and fails.
"""

import importlib
import re
import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax.core import config
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend import platforms
from bedrax.xla_backend.door import kernels, runtime
from bedrax.xla_backend.lowering import modules, types

EXPECTED = "bad operands at: 0)", "Failed to get platform stream: XLA FFI GPU context is not available"


def register():
    """The names of CUDA's kernels. Afterwards XLA calls these kernels on the CPU."""
    names = set()
    for library in set(platforms.PLATFORMS["cuda"].kernels.values()):
        registrations = getattr(importlib.import_module(f"jaxlib.{library}"), "registrations", dict)()
        for name, value, version in registrations.get("CUDA", ()):
            kernels.register_custom_call_target(name, value, platform="cpu", api_version=version)
            names.add(name)
    return names


def programs_of(case):
    """Modules as text, each with one of the calls of a record's program; and the name and the types of each call."""
    with checks.x64_if_needed(case):
        lowered = xla.jit(case.fun).trace(*case.make_args()).lower(lowering_platforms=("cuda",))
    module = lowered._lowered.program.module
    for op in modules.operations(module):
        if op.name != "stablehlo.custom_call":
            continue
        given, found = ([str(v.type) for v in values] for values in (op.operands, op.results))
        call = re.sub(r"^\s*(%\S+ = )?(\S+)\([^)]*\)", "", op.get_asm(print_generic_op_form=True, assume_verified=True))
        call = re.sub(r", sdy.sharding_rule = #sdy.*custom>", "", call)
        names = ", ".join(f"%a{i}" for i in range(len(given)))
        main = ", ".join(f"%a{i}: {t}" for i, t in enumerate(given))
        left = f"%r:{len(found)} = " if found else ""
        right = f"{', '.join(f'%r#{i}' for i in range(len(found)))} : {', '.join(found)}" if found else ""
        yield (
            op.attributes["call_target_name"].value,
            f'func.func public @main({main}) -> ({", ".join(found)}) {{ {left}"{op.name}"({names}){call}\n return {right} }}',
            [np.zeros(v.type.shape, types.dtype_of(v.type.element_type)) for v in op.operands],
        )


def complaint(text: str, arguments) -> str:
    """The error message of the kernel."""
    (device,) = devices = xla.devices()[:1]
    program = device.client.compile_and_load(text, runtime.DeviceList(tuple(devices)), runtime.CompileOptions())
    with config.enable_x64(True):
        arrays = [xla.device_put(a, device) for a in arguments]
    try:
        results = program.execute_sharded(arrays)
        [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]
    except runtime.JaxRuntimeError as error:
        return str(error)
    return "it ran"


def main(part="") -> int:
    ours, tried, wrong = register(), {}, []
    for case in all_cases():
        for target, text, arguments in programs_of(case) if part in case.id else ():
            if target in ours and text not in tried:
                tried[text] = target
                message = complaint(text, arguments)
                if not (EXPECTED[0] in message and message.endswith(EXPECTED[1])):
                    wrong.append(f"{case.id}: {target}: {message}\n{text}")
    target, text, arguments = next(found for c in all_cases() for found in programs_of(c) if "lower = " in found[1])
    assert "upper vs lower" in complaint(text.replace("lower = ", "upper = "), arguments), "the check sees nothing"
    print("\n".join(wrong))
    print(f"{len(tried)} calls of {len(set(tried.values()))} kernels, {len(wrong)} do not fit")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
