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
DEVICE_NAMES = {"Cpu": "CPU (x86-64)", "Cuda": "CUDA (sm_90a)"}


class TableError(Exception):
    """The tests do not look as this script expects."""


def find(pattern, text, what):
    match = re.search(pattern, text, re.DOTALL)
    if not match:
        raise TableError(f"{what} not found in {NUMERICS}")
    return match


def join(items):
    return ", ".join(str(item) for item in items)


def tested_devices(everything):
    """(name, set of what is not implemented there) of each back end."""
    devices = []
    for body in re.split(r"\bclass \w+ : public TestBackend\b", everything)[1:]:
        name = find(r'\bname\(\) const override \{\s*return "(\w+)";', body, "name of a back end").group(1)
        abilities = re.search(r"\babilities\(\) const override \{(.*?)\n  \}", body, re.DOTALL)
        lacks = set(re.findall(r"\.(\w+) = false", abilities.group(1))) if abilities else set()
        devices.append((name, lacks))
    if not devices:
        raise TableError(f"back ends not found in {NUMERICS}")
    return sorted(devices, key=lambda device: list(DEVICE_NAMES).index(device[0]))


def tested_methods(root, everything):
    """(name, whether it selects blocks) of each built-in method."""
    methods = []
    for path in list_files(root):
        if path.startswith("kernels_ir/methods/") and path.endswith(".mlir"):
            name = os.path.basename(path)[:-len(".mlir")]
            if f'"{name}"' not in everything:
                raise TableError(f"method that no test in {NUMERICS} names: {name}")
            methods.append((name, "sparge.select_blocks" in read_text(root, path)))
    return methods


def make_table(root):
    everything = "\n".join(read_text(root, path) for path in list_files(root)
                           if path.startswith(NUMERICS) and path.endswith((".h", ".cpp")))

    def numbers(name):
        body = find(rf"\b{name} = \{{([\d, ]+)\}}", everything, f"table {name}").group(1)
        return [int(number) for number in body.split(",")]

    types = [name.lower() for name in re.findall(r"DataType::(\w+)", find(
        r"#define SPARGEJIT_ON_EVERY_BACKEND_AND_TYPE\(.*?\n\n", everything + "\n\n", "data types").group())]
    first, last, step = find(
        r"headDim = (\d+);\s*headDim <= (\d+);\s*headDim \+= (\d+)", everything, "head dimensions").groups()
    if first != step:
        raise TableError("head dimensions do not start at their step")
    blocks = f"{join(numbers('kMaskBlocksQ'))} queries × {join(numbers('kMaskBlocksKv'))} keys"
    methods = tested_methods(root, everything)
    devices = tested_devices(everything)

    def row(name, cell_of):
        return f"| {name} | " + " | ".join(cell_of(lacks) for _, lacks in devices) + " |"

    return "\n".join([
        "| | " + " | ".join(DEVICE_NAMES[name] for name, _ in devices) + " |",
        "|---" * (len(devices) + 1) + "|",
        row("Data types of q, k, v, o (sums in float32)",
            lambda lacks: join(name for name in types if name not in lacks)),
        row("Head dimensions", lambda lacks: f"every multiple of {step} up to {last}"),
        row("Mask blocks", lambda lacks: blocks),
        row("Methods", lambda lacks: join(f"`{name}`" for name, selects in methods
                                          if not (selects and "selection" in lacks))
            + ("" if "selection" in lacks else ", your own `.mlir` file")),
        row("Forward pass in eight bits, of 16-bit tensors",
            lambda lacks: f"head dimensions {join(numbers('kEightBitHeadDims'))}" if "anyEightBitWidth" in lacks
            else "every head dimension"),
        row("Gradients (the same bits in every run)", lambda lacks: "no" if "gradients" in lacks else "yes"),
        row("Your own mask", lambda lacks: "lists" if "masks" in lacks else "lists or a bool mask"),
        row("Softmax scale", lambda lacks: "positive" if "anyScale" in lacks else "any finite"),
        row("Strides", lambda lacks: "last 1, none negative, 16-byte aligned rows" if "anyLayout" in lacks
            else "last 1, others any"),
    ]) + "\n"


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
