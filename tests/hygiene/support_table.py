# SPDX-License-Identifier: Apache-2.0
"""README.md's table of what is supported, made from the tables that the tests
of tests/numerics/ run over. Without --write: is README's table that one?
"""
import argparse
import os
import re
import sys

from source_tree import list_files, read_text

BEGIN, END = "<!-- support table -->\n", "<!-- end of support table -->\n"
NUMERICS = "tests/numerics/"
DEVICE_NAMES = {"Cpu": "CPU (x86-64)", "Cuda": "CUDA"}


class TableError(Exception):
    """The tests do not look as this script expects."""


def find(pattern, text, what):
    match = re.search(pattern, text, re.DOTALL)
    if not match:
        raise TableError(f"{what} not found in {NUMERICS}")
    return match


def join(items):
    return ", ".join(str(item) for item in items)


def tested_rows(root):
    """(row's name, what is tested) pairs."""
    files = list_files(root)
    texts = {path: read_text(root, path) for path in files if path.startswith(NUMERICS)
             and path.endswith((".h", ".cpp"))}
    everything = "\n".join(texts.values())

    def numbers(name):
        body = find(rf"\b{name} = \{{([\d, ]+)\}}", everything, f"table {name}").group(1)
        return [int(number) for number in body.split(",")]

    devices = re.findall(r'\bname\(\) const override \{\s*return "(\w+)";', everything)
    if not devices:
        raise TableError(f"back ends not found in {NUMERICS}")
    types = re.findall(r"DataType::(\w+)", find(
        r"#define SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE\(.*?\n\n", everything + "\n\n", "data types").group())
    first, last, step = find(
        r"headDim = (\d+);\s*headDim <= (\d+);\s*headDim \+= (\d+)", everything, "head dimensions").groups()
    if first != step:
        raise TableError("head dimensions do not start at their step")
    methods = sorted(os.path.basename(path)[:-len(".mlir")] for path in files
                     if path.startswith("kernels_ir/methods/") and path.endswith(".mlir"))
    untested = [method for method in methods if f'"{method}"' not in everything]
    if untested or not methods:
        raise TableError(f"methods that no test in {NUMERICS} names: {join(untested) or 'all'}")
    return [
        ("Devices", join(DEVICE_NAMES.get(device, device) for device in devices)),
        ("Data types of q, k, v, o", join(name.lower() for name in types) + " (sums in float32)"),
        ("Head dimensions", f"every multiple of {step} up to {last}"),
        ("Mask blocks", f"{join(numbers('kMaskBlocksQ'))} queries × {join(numbers('kMaskBlocksKv'))} keys"),
        ("Methods", join(f"`{method}`" for method in methods) + ", and your own `.mlir` file"),
    ]


def make_table(root):
    lines = ["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in tested_rows(root)]
    return "\n".join(lines) + "\n"


def replace_table(readme, table):
    begin, end = readme.find(BEGIN), readme.find(END)
    if begin < 0 or end < begin:
        raise TableError("README.md: no place for the table")
    return readme[:begin + len(BEGIN)] + table + readme[end:]


def find_problems(root):
    try:
        readme = read_text(root, "README.md")
        if replace_table(readme, make_table(root)) != readme:
            return ["README.md: the support table is not what the tests cover (support_table.py --write)"]
    except TableError as error:
        return [str(error)]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="top of the repository")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    if arguments.write:
        readme = read_text(arguments.root, "README.md")
        with open(os.path.join(arguments.root, "README.md"), "w", encoding="utf-8") as file:
            file.write(replace_table(readme, make_table(arguments.root)))
    problems = find_problems(arguments.root)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
