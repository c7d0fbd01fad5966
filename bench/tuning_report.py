# SPDX-License-Identifier: Apache-2.0
"""A table and a picture of tuning records: for each problem the default, the
configuration that calls use, and everything else that was tried.

    python3 bench/tuning_report.py records.jsonl -o FOLDER

writes FOLDER/tuning.md and FOLDER/tuning.png.
"""
import argparse
import json
import pathlib
import sys

ENVIRONMENT = ("device", "target", "driver", "assembler", "generator", "kernel_text")


def read_records(paths):
    """All records of the files; lines without a kernel are headers."""
    records = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                print(f"skipped: {path}:{number}: {error}", file=sys.stderr)
                continue
            if "kernel" in record:
                records.append(record)
    return records


def key_of(record):
    problem = {name: value for name, value in record["problem"].items() if name != "name"}
    environment = [record["environment"][name] for name in ENVIRONMENT]
    return record["kernel"], *environment, json.dumps(problem, sort_keys=True)


def by_problem(records):
    """One dictionary a problem and environment, in the order of the files: its
    default, the chosen one, all records. Of one trial the latest counts."""
    groups = {}
    for record in records:
        trials = groups.setdefault(key_of(record), {})
        trial = json.dumps(record["config"], sort_keys=True)
        if trial not in trials or record["date"] >= trials[trial]["date"]:
            trials[trial] = record
    found = []
    for trials in groups.values():
        every = list(trials.values())
        default = next((r for r in every if r["is_default"] and not r["failure"]), None)
        if default is None:
            continue
        winners = sorted((r for r in every if r["is_winner"]), key=lambda r: r["date"])
        found.append({"default": default, "chosen": winners[-1] if winners else default, "all": every})
    return found


def teraflops(record):
    """Two products of every visited pair of query and key, five for gradients (the scores
    again and four), a multiply-add being two operations."""
    p = record["problem"]
    products = 5 if record["kernel"].startswith("attention_bwd") else 2
    operations = 2 * products * p["batch"] * p["q_heads"] * p["q_len"] * p["kv_len"] * p["density"] * p["head_dim"]
    return operations / record["median_us"] / 1e6


def describe(config, default):
    """The parameters that differ from the default's."""
    changed = [f"{name}={value}" for name, value in config.items() if default.get(name) != value]
    return ", ".join(changed) or "the default"


def table(groups):
    lines = ["| Kernel | Problem | default | tuned | gain | tuned speed | tuned configuration | tried (failed) |",
             "|---|---|---|---|---|---|---|---|"]
    for group in groups:
        default, chosen, every = group["default"], group["chosen"], group["all"]
        gain = 100 * (default["median_us"] / chosen["median_us"] - 1)
        failed = sum(1 for record in every if record["failure"])
        lines.append(
            f"| {default['kernel']} | {default['problem']['name']} | {default['median_us']:.1f} ± {default['spread_us']:.1f} µs "
            f"| {chosen['median_us']:.1f} ± {chosen['spread_us']:.1f} µs | {gain:+.1f} % "
            f"| {teraflops(chosen):.0f} TFLOP/s | {describe(chosen['config'], default['config'])} "
            f"| {len(every)} ({failed}) |")
    return "\n".join(lines)


def plot(groups, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.33 * len(groups)), constrained_layout=True)
    for row, group in enumerate(groups):
        measured = [record for record in group["all"] if not record["failure"]]
        axes.plot([teraflops(r) for r in measured], [row] * len(measured), ".", color="0.7", markersize=5)
        axes.plot(teraflops(group["default"]), row, "s", color="tab:blue", fillstyle="none")
        axes.plot(teraflops(group["chosen"]), row, "x", color="tab:red")
    for marker, colour, label in ((".", "0.7", "tried"), ("s", "tab:blue", "default"), ("x", "tab:red", "used")):
        axes.plot([], [], marker, color=colour, label=label)
    axes.set(xlabel="TFLOP/s of visited blocks", xlim=(0, None), title=groups[0]["default"]["environment"]["device"])
    axes.set_yticks(range(len(groups)), [f"{g['default']['kernel']} {g['default']['problem']['name']}" for g in groups])
    axes.invert_yaxis()
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder to write to")
    options = parser.parse_args()
    groups = by_problem(read_records(options.records))
    if not groups:
        sys.exit("error: no problem with a measured default in the records")
    environment = groups[0]["default"]["environment"]
    dates = sorted(record["date"] for group in groups for record in group["all"])
    options.output.mkdir(parents=True, exist_ok=True)
    text = (f"{environment['device']} ({environment['target']}), driver {environment['driver']}, assembler "
            f"{environment['assembler']}, {environment['generator']}; {dates[0]} to {dates[-1]}.\n\n"
            "Medians and distances of the quartiles; a configuration takes the default's place when it is faster "
            "by more than either distance, in a comparison in turns.\n\n"
            f"{table(groups)}\n\n![Speeds of all configurations tried](tuning.png)\n")
    (options.output / "tuning.md").write_text(text)
    plot(groups, options.output / "tuning.png")
    print(table(groups))


if __name__ == "__main__":
    main()
