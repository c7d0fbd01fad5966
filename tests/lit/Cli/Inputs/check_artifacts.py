# SPDX-License-Identifier: Apache-2.0
"""check_artifacts.py FOLDER: a pack, in which every manifest agrees with its
code; one line of kernel and parameters, or of what it is, each."""
import json
import os
import sys

with open(os.path.join(sys.argv[1], "pack.json"), encoding="utf-8") as file:
    index = sorted(entry["folder"] for entry in json.load(file)["entries"])
names = sorted(name for name in os.listdir(sys.argv[1]) if name != "pack.json")
if index != names:
    sys.exit(f"the index has {index}, the folder {names}")
for name in names:
    folder = os.path.join(sys.argv[1], name)
    if os.stat(folder).st_mode & 0o055 != 0o055:
        sys.exit(f"{folder} cannot be read by others")
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    if not name.endswith(manifest["key"]):
        sys.exit(f"{folder} has the key {manifest['key']}")
    if manifest["kind"] != "kernel":
        print(manifest["kind"], "of", name.split("-")[1])
        continue
    if sorted(os.listdir(folder)) != ["kernel.o", "manifest.json"]:
        sys.exit(f"{folder} holds {os.listdir(folder)}")
    content = manifest["content"]
    with open(os.path.join(folder, manifest["file"]), "rb") as file:
        code = file.read()
    launch = content["launch"]
    expected = {
        "folder": (f"{content['kernel']}-{manifest['key']}", name),
        "bytes": (manifest["bytes"], len(code)),
        "ELF": (code[:4], b"\x7fELF"),
        "entry": (launch["entry"].encode() in code, True),
        "digest": (len(manifest["xxh3_128"]), 32),
        "architecture": (content["target"]["architecture"], "host"),
        "cpu": (content["target"]["cpu"] != "", True),
    }
    for what, (got, wanted) in expected.items():
        if got != wanted:
            sys.exit(f"{folder}: {what}: expected {wanted!r}, got {got!r}")
    slot = 0
    for argument in launch["arguments"]:
        if argument["first_slot"] != slot:
            sys.exit(f"{folder}: argument {argument['name']} begins at a wrong slot")
        slot += 1 + 2 * argument["rank"] if argument["kind"] == "tensor" else 1
    parameters = sorted(content["parameters"].items())
    print(content["kernel"], *(f"{key}={value}" for key, value in parameters))
