# SPDX-License-Identifier: Apache-2.0
"""A process that finds its kernels on disk is ready in under 5 ms: the first
prepare() of a method that selects, in processes of their own. The best of
several counts, since other processes may have the machine.

    warm_disk_test.py SPARGEJIT_BENCH
"""
import json
import os
import subprocess
import sys
import tempfile

PROMISED_MS = 5
PROCESSES = 5


def first_prepare(program, cache):
    environment = dict(os.environ, SPARGEJIT_CACHE="on", SPARGEJIT_CACHE_DIR=cache)
    output = subprocess.run([program, "compile", "--method", "spargeattention2"], env=environment, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)


def main(program):
    with tempfile.TemporaryDirectory() as cache:
        cold = first_prepare(program, cache)
        warm = [first_prepare(program, cache) for _ in range(PROCESSES)]
    times = sorted(one["cold_ms"] for one in warm)
    print(f"cold disk {cold['cold_ms']:.0f} ms, warm disk {times[0]:.2f} to {times[-1]:.2f} ms")
    assert cold["kernels_compiled"] > 0, "the first process compiles"
    assert all(one["kernels_compiled"] == 0 for one in warm), "the others do not"
    assert times[0] < PROMISED_MS, f"expected under {PROMISED_MS} ms, got {times[0]:.2f}"


if __name__ == "__main__":
    main(sys.argv[1])
