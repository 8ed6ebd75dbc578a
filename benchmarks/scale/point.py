"""Measures one program at one size, in a new process: `python point.py NAME SIZE WARM COLLECTOR`.

Prints `{"seconds": ..., "megabytes": ...}`: the CPU time of the run and the growth of the peak memory. The same program
of size WARM runs before, so imports and the caches of inner functions do not count.
"""

import gc
import json
import sys
import time
import warnings
from pathlib import Path

ENOUGH = 0.05  # CPU seconds of repeated runs


def main(name: str, size: int, warm: int, collector: bool) -> dict[str, float]:
    warnings.simplefilter("ignore")
    root = Path(__file__).parents[2]
    sys.path.append(str(root))
    from benchmarks.scale.programs import PROGRAMS, REPEATABLE
    from benchmarks.worker import peak

    PROGRAMS[name](warm)()
    run = PROGRAMS[name](size)
    gc.collect()
    if not collector:
        gc.disable()
    before = peak()
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    after = peak()
    del result
    if name in REPEATABLE:
        end = start + max(ENOUGH, 2 * seconds)
        while time.process_time() < end:
            again = time.process_time()
            run()
            seconds = min(seconds, time.process_time() - again)
    return {"seconds": seconds, "megabytes": (after - before) / 1024}


if __name__ == "__main__":
    name, size, warm, collector = sys.argv[1:]
    print(json.dumps(main(name, int(size), int(warm), collector == "True")))
