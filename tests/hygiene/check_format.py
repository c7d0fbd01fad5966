# SPDX-License-Identifier: Apache-2.0
"""Every C++ source is as clang-format leaves it (`./run format` mends it)."""
import subprocess

from source_tree import list_files, run_check

TOOL = "clang-format-22"


def find_problems(root):
    sources = [path for path in list_files(root) if path.endswith((".h", ".cpp"))]
    if not sources:
        return ["no sources found"]
    result = subprocess.run([TOOL, "--dry-run", "-Werror", *sources], cwd=root, text=True,
                            capture_output=True, check=False)
    if result.returncode == 0:
        return []
    found = sorted({line.split(":")[0] for line in result.stderr.split("\n") if ": error:" in line})
    return [f"{path}: not as {TOOL} leaves it" for path in found] or [result.stderr]


if __name__ == "__main__":
    run_check(__doc__, find_problems)
