# SPDX-License-Identifier: Apache-2.0
"""Recall and error of selections, as tables and as a picture."""
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # after the choice of a back end without a display

METHODS = {"topk": ("top-k", "-"), "topp": ("top-p", "--"), "spargeattention2": ("hybrid", ":")}
MARKERS = "osD^v<>"


def as_table(one):
    """One row for each mask block and density; for each rule its density, recall and relative L1."""
    header = ["mask block, density wanted"]
    for label, _ in METHODS.values():
        header += [f"{label}: density", "recall", "relative L1"]
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    cases = dict.fromkeys((row["mask_block_q"], row["mask_block_kv"], row["wanted_density"]) for row in one["rows"])
    found = {(row["mask_block_kv"], row["wanted_density"], row["method"]): row for row in one["rows"]}
    for block_q, block, density in cases:
        cells = [f"{block_q}×{block}, {100 * density:g} %"]
        for method in METHODS:
            row = found[block, density, method]
            cells += [f"{100 * row['density']:.2f} %", f"{row['recall']:.3f}", f"{row['relative_l1']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(inputs, path):
    """A PNG: recall and relative L1 over density, a row of fields for each of the inputs."""
    figure, grid = plt.subplots(len(inputs), 2, figsize=(11, 4.2 * len(inputs)), constrained_layout=True, squeeze=False)
    for fields, one in zip(grid, inputs):
        blocks = list(dict.fromkeys(row["mask_block_kv"] for row in one["rows"]))
        for axes, key, label in zip(fields, ("recall", "relative_l1"), ("recall", "relative L1")):
            for number, block in enumerate(blocks):
                for method, (name, style) in METHODS.items():
                    rows = [row for row in one["rows"] if (row["mask_block_kv"], row["method"]) == (block, method)]
                    axes.plot([100 * row["density"] for row in rows], [row[key] for row in rows],
                              MARKERS[number] + style, color=f"C{number}", label=f"{name}, 128×{block}", markersize=4)
            axes.set(xscale="log", xlabel="density, %", ylabel=label, title=one["name"])
            densities = sorted({100 * row["wanted_density"] for row in one["rows"]})
            axes.set_xticks(densities, [f"{density:g}" for density in densities])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        fields[0].legend(fontsize=6, ncols=2)
    figure.savefig(path, dpi=80)
    plt.close(figure)
