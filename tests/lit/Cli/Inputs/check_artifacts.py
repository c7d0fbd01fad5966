# SPDX-License-Identifier: Apache-2.0
"""check_artifacts.py FOLDER: every manifest below agrees with its object; one
line of kernel and parameters each."""
import json
import os
import sys

for name in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], name)
    if sorted(os.listdir(folder)) != ["kernel.o", "manifest.json"]:
        sys.exit(f"{folder} holds {os.listdir(folder)}")
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    with open(os.path.join(folder, manifest["file"]), "rb") as file:
        code = file.read()
    launch = manifest["launch"]
    expected = {
        "folder": (f"{manifest['kernel']}-{manifest['key']}", name),
        "bytes": (manifest["bytes"], len(code)),
        "ELF": (code[:4], b"\x7fELF"),
        "entry": (launch["entry"].encode() in code, True),
        "digest": (len(manifest["xxh3_128"]), 32),
        "architecture": (manifest["target"]["architecture"], "host"),
        "cpu": (manifest["target"]["cpu"] != "", True),
    }
    for what, (got, wanted) in expected.items():
        if got != wanted:
            sys.exit(f"{folder}: {what}: expected {wanted!r}, got {got!r}")
    slot = 0
    for argument in launch["arguments"]:
        if argument["first_slot"] != slot:
            sys.exit(f"{folder}: argument {argument['name']} begins at a wrong slot")
        slot += 1 + 2 * argument["rank"] if argument["kind"] == "tensor" else 1
    parameters = sorted(manifest["parameters"].items())
    print(manifest["kernel"], *(f"{key}={value}" for key, value in parameters))
