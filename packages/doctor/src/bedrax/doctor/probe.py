"""The checks that load jaxlib: options, devices, the compilation cache, a self-test. `python -m bedrax.doctor.probe FILE`.

They run in a process of their own, because a damaged jaxlib, a wrong flag of XLA or an old processor can end the process.
Each check writes a line when it starts and a line with its result, so the check that ended the process is known.
A watchdog ends a check that takes too long.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bedrax.doctor import options
from bedrax.doctor.findings import Finding, Result, error, note, one_line

SELF_TEST_SECONDS: Final = 10


def devices() -> Result:
    """The devices, the default one, and the reason why other platforms are not used."""
    from bedrax.xla_backend import clients

    findings: list[Finding] = []
    with warnings.catch_warnings(record=True):  # the reasons follow below
        warnings.simplefilter("always")
        try:
            found = clients.devices()
        except Exception as problem:
            found = []
            findings.append(error("no-device", f"No device can be used: {one_line(problem)}"))
    unused = dict(clients.unused())
    failed = {name: why for name, why in unused.items() if not why.startswith("jax_platforms")}
    used = {d.platform for d in found}
    for name, why in failed.items():
        findings.append(error("plugin-failed", f"The platform {name} is not used, because its start failed: {why}"))
    for platform, why in _without_plugin(used, unused, os.environ).items():
        unused[platform] = why
        findings.append(note("no-plugin", f"The platform {platform} is not used: {why}"))
    facts: dict[str, Any] = {
        "default": found[0].platform if found else None,
        "devices": [_device(each) for each in found],
        "processes": clients.process_count() if found else None,
        "not used": unused,
    }
    return Result(facts, findings)


def _device(device: Any) -> dict[str, Any]:
    facts = {"id": device.id, "platform": device.platform, "kind": device.device_kind}
    try:
        memory = device.memory_stats() or {}
    except Exception:  # a device without such statistics
        memory = {}
    return {**facts, **{name: memory[name] for name in ("bytes_limit", "bytes_in_use") if name in memory}}


# A file that exists if the machine has such a device -> platform, the plugin that uses it, what hides the device.
_HARDWARE = {
    "/dev/nvidia0": ("cuda", "jax-cuda13-plugin and jax-cuda13-pjrt", "CUDA_VISIBLE_DEVICES", "xla_cuda"),
    "/dev/kfd": ("rocm", "the ROCm plugin", "HIP_VISIBLE_DEVICES", "xla_rocm"),
    "/dev/accel0": ("tpu", "libtpu", "TPU_VISIBLE_CHIPS", "libtpu"),
}


def _without_plugin(used: set[str], unused: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The platforms of devices that this machine seems to have and that no installed plugin uses."""
    found = {}
    for file, (platform, plugin, variable, module) in _HARDWARE.items():
        if not os.path.exists(file) or platform in unused or {platform, "gpu"} & used:
            continue
        if environ.get(variable) in ("", "-1"):
            found[platform] = f"{variable}={environ[variable]!r} hides the devices."
        elif not _is_installed(module):
            found[platform] = f"{file} exists, but no plugin is installed. Install {plugin}, of the version of jaxlib."
    return found


def _is_installed(module: str) -> bool:
    if importlib.util.find_spec(module) is not None:
        return True
    spec = importlib.util.find_spec("jax_plugins")
    places = spec.submodule_search_locations if spec else None
    return any(path.name.startswith(module) for place in places or () for path in Path(place).iterdir())


def caches() -> Result:
    """The folder of compiled programs: its size, its limit, and whether it can be written to."""
    from bedrax.xla_backend import compilation_cache, flags

    if not flags.enable_compilation_cache.value:
        return Result({"compiled programs": "off (jax_enable_compilation_cache is False)"}, [])
    state = compilation_cache.state()
    findings = []
    if state.problem is not None:
        remedy = "Set JAX_COMPILATION_CACHE_DIR to a folder that you can write to, or JAX_ENABLE_COMPILATION_CACHE=0."
        findings.append(error("cache", f"Compiled programs cannot be kept in {state.path}: {state.problem}.", remedy))
    facts = {
        "folder": state.path,
        "programs": state.entries,
        "bytes": state.bytes,
        "limit in bytes": "none" if state.limit is None else state.limit,
    }
    return Result({"compiled programs": facts}, findings)


def self_test() -> Result:
    """Small programs whose results are compared with NumPy's. It ends after ten seconds."""
    started, facts, findings = time.monotonic(), {}, []
    for name, test in TESTS.items():
        if time.monotonic() - started > 0.8 * SELF_TEST_SECONDS:
            facts[name] = "left out: the time is over"
            findings.append(note("slow", f"The self-test took {SELF_TEST_SECONDS} s and left out {name!r}."))
            continue
        before = time.monotonic()
        try:
            test()
        except Exception as problem:
            facts[name] = one_line(problem)
            findings.append(error("self-test", f"The self-test {name!r} failed: {facts[name]}"))
        else:
            facts[name] = round(time.monotonic() - before, 3)
    return Result({"seconds": facts}, findings)


def _arrays() -> None:
    import numpy as np

    import bedrax.numpy as jnp

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(np.asarray(x @ x.T), [[5, 14], [14, 50]])
    np.testing.assert_array_equal(np.asarray(x[:, ::-1].sum(axis=0)), [7, 5, 3])


def _compiled() -> None:
    import numpy as np

    import bedrax.numpy as jnp
    from bedrax.xla_backend import jit

    x = np.linspace(0, 1, 7, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(jit(lambda x: jnp.tanh(x) ** 2)(x)), np.tanh(x) ** 2, rtol=1e-5, atol=1e-6)


def _derivatives() -> None:
    import numpy as np

    import bedrax.numpy as jnp
    from bedrax.autodiff import grad
    from bedrax.batching import vmap
    from bedrax.xla_backend import jit

    x = np.array([0.0, 0.5, 2.0], np.float32)
    found = jit(vmap(grad(lambda x: jnp.sin(x) * x)))(x)
    np.testing.assert_allclose(np.asarray(found), np.cos(x) * x + np.sin(x), rtol=1e-5, atol=1e-6)


def _random() -> None:
    import numpy as np

    from bedrax import random

    a, b = random.split(random.key(0))
    first, again, other = (np.asarray(random.uniform(key, (1000,))) for key in (a, a, b))
    np.testing.assert_array_equal(first, again)
    if (first == other).any() or not 0.4 < first.mean() < 0.6 or not (0 <= first).all() or not (first < 1).all():
        raise AssertionError("random numbers of two keys are equal, or are not uniform in [0, 1)")


def _linear_algebra() -> None:
    import numpy as np

    import bedrax.numpy as jnp

    a = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
    np.testing.assert_allclose(a @ np.asarray(jnp.linalg.solve(a, a)), a, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(jnp.linalg.eigvalsh(a)), np.linalg.eigvalsh(a), rtol=1e-4)


def _small_floats() -> None:
    import numpy as np

    import bedrax.numpy as jnp

    for dtype in (jnp.float16, jnp.bfloat16):
        np.testing.assert_array_equal(np.asarray(jnp.arange(8, dtype=dtype) * 0.5, np.float32), np.arange(8) / 2)


def _each_device() -> None:
    from bedrax.xla_backend import clients, device_put

    for device in clients.local_devices():
        x = device_put(3.0, device)
        if float(x * x) != 9 or x.devices() != {device}:
            raise AssertionError(f"a product on {device} is not there, or wrong")


TESTS: Final[dict[str, Callable[[], None]]] = {
    "arrays": _arrays,
    "each device": _each_device,
    "jit": _compiled,
    "derivatives": _derivatives,
    "random numbers": _random,
    "linear algebra": _linear_algebra,
    "16-bit floats": _small_floats,
}

# The checks in their order, with the seconds after which a watchdog ends the process.
CHECKS: Final[dict[str, tuple[Callable[[], Result], float]]] = {
    "options": (options.options, 60),
    "devices": (devices, 60),
    "caches": (caches, 20),
    "self-test": (self_test, SELF_TEST_SECONDS),
}


def main(file: str) -> None:
    """Run the checks. Writes a line of JSON into a file at the start and at the end of each."""
    with open(file, "a", encoding="utf-8") as out:
        for name, (check, seconds) in CHECKS.items():
            print(json.dumps({"started": name}), file=out, flush=True)
            faulthandler.dump_traceback_later(seconds, exit=True)
            try:
                result = check()
            except Exception as problem:
                result = Result({}, [error("broken", f"The check {name!r} failed: {one_line(problem)}")])
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps({"ended": name, "result": result}), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
