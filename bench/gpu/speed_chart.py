#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of how many times faster than cuDNN's dense attention, from what
run_gpu_bench.py has written: forward passes, calls that select, backward passes and
calls in eight bits, each beside cuDNN in the same run.

    speed_chart.py RESULT.json... -o FILE.png
"""
import argparse
import json
import sys

# shape of run_gpu_bench.py: what a reader calls it
NAMES = {"wan-1.3b-480p": "12 heads × 32 760 tokens", "wan-14b-720p": "40 heads × 75 600 tokens",
         "wan-14b-720p-8-heads": "8 heads × 75 600 tokens"}
EIGHT_BITS = {"fp8_exact": "exact", "fp8_balanced": "balanced", "fp8_fast": "fast"}


def ratio(result, ours):
    """Short bursts: cuDNN's time over ours."""
    return result["cudnn dense"]["short_ms"] / ours["short_ms"]


def bars_of(result):
    """(label, times) of one case; what a reader would not compare gives none."""
    if "precisions" in result:
        for precision, figures in result["precisions"].items():
            yield (f"blocks chosen, {100 * result['density']:.0f} %, eight bits ({EIGHT_BITS[precision]})",
                   ratio(result, figures["whole call"]))
    elif "variants" in result:
        for name in result["variants"]:
            if name == "dense":
                yield "backward pass, dense", ratio(result, result[name])
            else:
                listed, blocks = (int(part) for part in name.split(" of "))
                yield f"backward pass, {100 * listed / blocks:.0f} % of the blocks", ratio(result, result[name])
    elif result["mask_block"] != 64:
        return
    elif "whole call" in result:
        yield f"blocks chosen, {100 * result['density']:.0f} %", ratio(result, result["whole call"])
    elif not result["unequal"]:
        density = result["density"]
        label = "dense" if density is None else f"{100 * density:.0f} % of the blocks"
        yield label, ratio(result, result["spargejit"])


def collect(documents):
    """{shape: {label: times}}; of two results of one case the later counts."""
    shapes = {}
    for document in documents:
        for result in document["results"]:
            if result["shape"] in NAMES:
                shapes.setdefault(result["shape"], {}).update(bars_of(result))
    return {shape: bars for shape, bars in shapes.items() if bars}


def draw(shapes, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(shapes), figsize=(5.4 * len(shapes), 0.9 + 0.3 * max(map(len, shapes.values()))),
                                squeeze=False, constrained_layout=True)
    for ax, (shape, bars) in zip(axes[0], shapes.items()):
        ordered = sorted(bars.items(), key=lambda bar: bar[1])
        drawn = ax.barh([label for label, _ in ordered], [times for _, times in ordered], color="tab:green")
        ax.bar_label(drawn, fmt="%.1f", padding=3, fontsize="small")
        ax.axvline(1, color="0.3", linewidth=0.8, linestyle=":")
        ax.margins(x=0.12)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(NAMES[shape])
    figure.supxlabel("times as fast as cuDNN's dense attention in the same run", fontsize="medium")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON files of run_gpu_bench.py")
    parser.add_argument("-o", "--output", required=True, help="PNG file")
    args = parser.parse_args()
    documents = []
    for path in args.results:
        with open(path, encoding="utf-8") as file:
            documents.append(json.load(file))
    shapes = collect(documents)
    if not shapes:
        sys.exit("error: no result of a shape that the picture has: " + ", ".join(NAMES))
    draw(shapes, args.output)


if __name__ == "__main__":
    main()
