# SPDX-License-Identifier: Apache-2.0
"""What the measurements ran on, and how busy it was with other things."""
import os
import platform
import re
import resource
import time


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def processor_name():
    match = re.search(r"^model name\s*:\s*(.+)$", read("/proc/cpuinfo"), re.MULTILINE)
    return match.group(1).strip() if match else platform.processor() or platform.machine()


def cache_sizes():
    """{"L1d": "32K", ...} of the first CPU."""
    sizes = {}
    base = "/sys/devices/system/cpu/cpu0/cache"
    for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        level, kind, size = (read(f"{base}/{name}/{entry}").strip() for entry in ("level", "type", "size"))
        if size and kind != "Instruction":
            sizes[f"L{level}{'d' if kind == 'Data' else ''}"] = size
    return sizes


def memory_gib():
    match = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.MULTILINE)
    return round(int(match.group(1)) / 2**20, 1) if match else None


def describe_machine():
    return {"processor": processor_name(), "caches": cache_sizes(), "memory_gib": memory_gib(),
            "system": f"{platform.system()} {platform.release()}"}


class OtherLoad:
    """Share of the machine's CPU time that others used since the start, and
    that a hypervisor took away."""

    def __init__(self):
        self.start = self.sample()

    @staticmethod
    def sample():
        fields = [int(word) for word in read("/proc/stat").split("\n")[0].split()[1:]] or [0] * 8
        tick = os.sysconf("SC_CLK_TCK")
        user, nice, system, _, _, irq, softirq, stolen = fields[:8]
        own = sum(usage.ru_utime + usage.ru_stime for usage in
                  (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)))
        return {"time": time.monotonic(), "busy": (user + nice + system + irq + softirq) / tick,
                "stolen": stolen / tick, "own": own}

    def shares(self):
        now = self.sample()
        gained = {key: now[key] - self.start[key] for key in now}
        capacity = max(gained["time"], 1e-3) * os.cpu_count()
        return {"others": max(0.0, gained["busy"] - gained["own"]) / capacity,
                "stolen": gained["stolen"] / capacity}
