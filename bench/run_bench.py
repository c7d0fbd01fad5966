#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs spargejit-bench section by section and writes results as JSON, Markdown
and a picture. `./run bench` builds, then calls this with its own options.

Exit status: 0 done, 1 failed or, with --gate, a promised figure missed, 2 wrong usage.
"""
import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time

from report import figures, plots, tables
from report.machine import OtherLoad, describe_machine

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(FOLDER)

# (name of the section, command of spargejit-bench, its options, and what
# --quick changes among them)
SECTIONS = (
    ("machine", "machine", {}, {}),
    ("peak", "peak", {}, {"samples": "3", "milliseconds": "5"}),
    ("dense_float32_128", "dense", {"lengths": "1024,2048,4096,8192,16384"}, {"lengths": "256,512"}),
    ("dense_float32_64", "dense", {"head-dim": "64", "lengths": "1024,4096"}, {"lengths": "256"}),
    ("dense_float32_256", "dense", {"head-dim": "256", "lengths": "1024,4096"}, {"lengths": "256"}),
    ("dense_bfloat16_128", "dense", {"dtype": "bfloat16", "lengths": "1024,4096"}, {"lengths": "256"}),
    ("dense_float16_128", "dense", {"dtype": "float16", "lengths": "1024,4096"}, {"lengths": "256"}),
    ("sparse", "sparse", {"length": "8192", "densities": "0.02,0.05,0.1,0.2,0.5,1"},
     {"length": "1024", "densities": "0.1,1", "rounds": "2"}),
    ("sparse_long", "sparse", {"length": "16384", "densities": "0.02,0.05,0.1", "hybrid": "true"},
     {"length": "1024", "densities": "0.1", "rounds": "2"}),
    ("backward", "backward", {"densities": "0.02,0.05,0.1,0.2", "mask-blocks": "32,64,128"},
     {"length": "1024", "densities": "0.1", "mask-blocks": "64", "rounds": "2"}),
    ("growth", "growth", {}, {"fixed-length": "1024", "densities": "0.2,1", "lengths": "512,1024",
                              "few-blocks-lengths": "512,1024", "fixed-blocks": "4", "rounds": "2"}),
    ("compile_dense", "compile", {}, {}),
    ("compile_block_sparse", "compile", {"method": "block_sparse"}, {}),
    ("compile_topk", "compile", {"method": "topk"}, {}),
    ("compile_dense_bfloat16", "compile", {"dtype": "bfloat16"}, {}),
    ("calls", "calls", {}, {"calls": "100"}),
    ("lengths", "lengths", {}, {"lengths": "5"}),
    ("memory", "memory", {}, {"length": "4096"}),
)


class Failed(Exception):
    """A message for standard error and exit status 1."""


def progress(text):
    print(text, file=sys.stderr, flush=True)


def git_commit():
    """The commit, with a plus where the tree differs from it."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)
    try:
        head, status = git("rev-parse", "--short", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    except FileNotFoundError:
        return "unknown"
    return head.stdout.strip() + "+" * bool(status.stdout.strip()) if head.returncode == 0 else "unknown"


def chosen_sections(only):
    names = [section[0] for section in SECTIONS]
    for word in only:
        if not any(name.startswith(word) for name in names):
            raise Failed(f"--only: no section begins with '{word}'; there are {', '.join(names)}")
    return [section for section in SECTIONS
            if not only or section[0] == "machine" or any(section[0].startswith(word) for word in only)]


def measure(program, command, options, title):
    arguments = [command] + [f"--{name}={value}" for name, value in options.items()]
    shown = f"{os.path.basename(program)} {' '.join(arguments)}"
    progress(f"{title}: {shown}")
    load = OtherLoad()
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"{shown}: exit status {result.returncode}")
    return {**json.loads(result.stdout), "load": load.shares()}


def measure_all(options):
    program = os.path.join(options.build_dir, "bin", "spargejit-bench")
    if not os.path.exists(program):
        raise Failed(f"no {program}: `./run build` makes it")
    chosen = chosen_sections(options.only)
    load, start, sections = OtherLoad(), time.monotonic(), {}
    for number, (name, command, usual, quick) in enumerate(chosen, 1):
        title = f"[{time.monotonic() - start:4.0f} s] {number} of {len(chosen)}, {name}"
        sections[name] = measure(program, command, {**usual, **quick} if options.quick else usual, title)
    return {"date": datetime.date.today().isoformat(), "seconds": time.monotonic() - start,
            "command": "./run bench" + "".join(f" {word}" for word in options.words), "commit": git_commit(),
            "machine": describe_machine(), "load": load.shares(), "sections": sections}


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_results(results, folder):
    os.makedirs(folder, exist_ok=True)
    write_text(os.path.join(folder, "results.json"), json.dumps(results, indent=1) + "\n")
    plots.draw(results, os.path.join(folder, "results.png"))
    write_text(os.path.join(folder, "results.md"), tables.as_markdown(results, "results.png"))
    progress(f"written: {', '.join(os.path.join(folder, 'results' + end) for end in ('.md', '.png', '.json'))}")


def record(results, source, target):
    """Keeps a dated copy of report and picture: <date>-<cpu>.md and .png."""
    words = f"{results['machine']['processor']} {results['sections']['machine']['cpu']}"
    name = results["date"] + "-" + "-".join(re.findall(r"[a-z0-9]+", words.lower()))
    os.makedirs(target, exist_ok=True)
    path = os.path.join(target, name)
    shutil.copyfile(os.path.join(source, "results.png"), path + ".png")
    write_text(path + ".md", tables.as_markdown(results, name + ".png"))
    progress(f"recorded: {path}.md, {path}.png")


def check_gate(results):
    """Prints each promised figure; whether all are kept."""
    promised = figures.promised_figures(results["sections"])
    print(tables.load_sentence(results))
    for figure in promised:
        print(figure.text())
    missed = sum(not figure.kept for figure in promised)
    print(f"{len(promised) - missed} figures kept, {missed} missed")
    return missed == 0


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"), help="build folder (default: build/)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only sections whose name begins so; may be given several times")
    parser.add_argument("--quick", action="store_true", help="tiny problems: shows that everything runs")
    parser.add_argument("--gate", action="store_true", help="fail when a promised figure is missed")
    parser.add_argument("--record", action="store_true", help="keep a dated copy in bench/results/")
    parser.add_argument("--output", help="folder for results (default: bench/ in the build folder)")
    parser.add_argument("--from", dest="source", metavar="FILE",
                        help="measure nothing: report on a results.json of an earlier run")
    options = parser.parse_args(arguments)
    if options.record and (options.quick or options.only):
        parser.error("--record: wants a complete run, without --quick and --only")
    folders = {"--build-dir", "--output", options.build_dir, options.output}
    options.words = [word for word in arguments if word not in folders]
    options.build_dir = os.path.relpath(options.build_dir)
    options.output = options.output or os.path.join(options.build_dir, "bench")
    return options


def main(arguments):
    options = parse(arguments)
    if options.source:
        with open(options.source, encoding="utf-8") as file:
            results = json.load(file)
    else:
        results = measure_all(options)
    write_results(results, options.output)
    if options.record:
        record(results, options.output, os.path.join(FOLDER, "results"))
    if not options.gate:
        with open(os.path.join(options.output, "results.md"), encoding="utf-8") as file:
            print(file.read())
        return 0
    return 0 if check_gate(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Failed, figures.NotMeasured) as error:
        print(f"error: {'not measured: ' * isinstance(error, figures.NotMeasured)}{error}", file=sys.stderr)
        sys.exit(1)
