#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How close top-k, top-p and the hybrid come to dense attention, by density and
mask block: writes quality.json, quality.md and quality.png.

    run_quality.py --file INPUTS.safetensors [--file ...] [--output FOLDER] [--record]

Exit status: 0 done, 1 failed, 2 wrong usage.
"""
import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys

from report import quality
from report.machine import describe_machine

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(FOLDER)
ABOUT = """float32 on the CPU, made from the tensors of the file; query blocks of 128.
Density is selected over all pairs of blocks. Recall: the mean over query rows of the share
of the dense softmax that lies on the selected blocks. Relative L1: sum |dense - sparse| / sum |dense|
of the output. top-k keeps k = density · blocks; top-p has the p whose density comes nearest to the
one wanted; the hybrid has k for four fifths of it, and the p that brings the rest. Nobody trained the
model with these masks."""


def measure(options):
    program = os.path.join(options.build_dir, "bin", "spargejit-bench")
    command = [program, "quality"] + [f"--file={name}" for name in options.file]
    if options.quick:
        command += ["--synthetic=1,2,1024,64", "--densities=0.1,0.3", "--mask-blocks=64,16"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"error: spargejit-bench quality: exit status {result.returncode}")
    machine = describe_machine()["processor"]
    return {"date": datetime.date.today().isoformat(), "machine": machine, **json.loads(result.stdout)}


def as_markdown(results, picture, words):
    parts = [f"# Quality of selections, {results['date']}", ABOUT,
             f"{results['machine']}; `bench/run_quality.py {' '.join(words)}`.", f"![plots]({picture})"]
    for one in results["inputs"]:
        parts.append(f"## {one['name']}\n\n{one['heads']} head{'s' * (one['heads'] > 1)} × {one['length']} tokens × "
                     f"{one['head_dim']}.\n\n{quality.as_table(one)}")
    return "\n\n".join(parts) + "\n"


def check(results):
    """What must hold of any inputs; a list of what does not."""
    faults = []
    for one in results["inputs"]:
        series = {}
        for row in one["rows"]:
            where = f"{one['name']}, {row['method']}, {row['mask_block_kv']}"
            if not (0 < row["recall"] <= 1.0001 and 0 <= row["relative_l1"] < 10 and 0 < row["density"] <= 1):
                faults.append(f"{where}: {row}")
            series.setdefault(where, []).append((row["density"], row["recall"]))
        for where, points in series.items():
            points.sort()
            # Float32 leaves no more than this of a share that more blocks cannot lower.
            if any(after[1] < before[1] - 1e-5 for before, after in zip(points, points[1:])):
                faults.append(f"{where}: recall falls with density: {points}")
    return faults


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", default=[], help=".safetensors with q, k, v; may be repeated")
    parser.add_argument("--quick", action="store_true", help="tiny made-up inputs: shows that everything runs")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"), help="build folder (default: build/)")
    parser.add_argument("--output", help="folder for results (default: bench/ in the build folder)")
    parser.add_argument("--record", action="store_true", help="keep a dated copy in bench/results/")
    options = parser.parse_args(arguments)
    if bool(options.file) == options.quick or options.record and options.quick:
        parser.error("expected --file, or --quick without --record")
    output = options.output or os.path.join(options.build_dir, "bench")
    os.makedirs(output, exist_ok=True)
    results = measure(options)
    words = [f"--file {os.path.basename(name)}" for name in options.file] + ["--quick"] * options.quick
    picture = os.path.join(output, "quality.png")
    quality.draw(results["inputs"], picture)
    write(os.path.join(output, "quality.json"), json.dumps(results, indent=1) + "\n")
    write(os.path.join(output, "quality.md"), as_markdown(results, "quality.png", words))
    if options.record:
        name = os.path.join(FOLDER, "results", results["date"] + "-quality")
        shutil.copyfile(picture, name + ".png")
        write(name + ".md", as_markdown(results, os.path.basename(name) + ".png", words))
    for fault in check(results):
        print(f"error: {fault}", file=sys.stderr)
    return 1 if check(results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
