# SPDX-License-Identifier: Apache-2.0
"""One picture of a run: speed, gain, growth."""
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # after the choice of a back end without a display

from report.figures import growth_line

MARKERS = "osD^v<>"


def plot_dense(axes, sections):
    peak = 0
    for marker, (key, one) in zip(MARKERS, [item for item in sections.items() if item[0].startswith("dense_")]):
        rows = one["rows"]
        axes.plot([row["length"] for row in rows], [row["gflops"] for row in rows], marker + "-",
                  label=f"{one['dtype']}, head dim {one['head_dim']}")
        peak = max(peak, one["peak_gflops"])
    axes.axhline(peak, color="black", linewidth=1, label="float32 multiply-add peak")
    axes.axhline(0.65 * peak, color="black", linewidth=1, linestyle=":", label="65 % of it")
    axes.set(xscale="log", xlabel="length", ylabel="GFLOP/s", title="Dense attention", ylim=(0, None))


def plot_speed_up(axes, sections):
    sparse = sections["sparse"]
    rows = [row for row in sparse["rows"] if row["method"] == "topk"]
    for marker, block in zip(MARKERS, dict.fromkeys(row["mask_block_kv"] for row in rows)):
        points = [(row["density"], row["speed_up"]) for row in rows if row["mask_block_kv"] == block]
        axes.plot(*zip(*points), marker + "-", label=f"mask block 128×{block}")
    densities = sorted(row["density"] for row in rows)
    axes.plot(densities, [1 / density for density in densities], "k:", linewidth=1, label="1 / density")
    axes.set(xscale="log", yscale="log", xlabel="density", ylabel="times faster than dense",
             title=f"Selection + attention, length {sparse['length']}")


def plot_pairs(axes, sections):
    growth = sections["growth"]
    for marker, key, label in (("o", "over_density", f"length {growth['over_density']['length']}, any density"),
                               ("s", "over_length", f"any length, density {growth['over_length']['density']}")):
        points = [(row["visited_pairs"], row["attention"]["ms"]) for row in growth[key]["rows"]]
        line = growth_line(growth, key, "visited_pairs")
        drawn = axes.plot(*zip(*points), marker, label=f"{label} (residual {100 * line.worst:.1f} %)")
        ends = [points[0][0], points[-1][0]]
        axes.plot(ends, [line.start + line.slope * x for x in ends], "-", linewidth=1, color=drawn[0].get_color())
    axes.set(xlabel="visited pairs of blocks", ylabel="attention, ms", title="Growth with visited blocks",
             xlim=(0, None), ylim=(0, None))


def plot_lengths(axes, sections):
    few = sections["growth"]["over_length_few_blocks"]
    lengths = [row["length"] for row in few["rows"]]
    for marker, part in zip(MARKERS, ("attention", "select")):
        axes.plot(lengths, [row[part]["ms"] for row in few["rows"]], marker, label=part)
    line = growth_line(sections["growth"], "over_length_few_blocks", "length")
    ends = [lengths[0], lengths[-1]]
    axes.plot(ends, [line.start + line.slope * x for x in ends], "-", linewidth=1, color="C0")
    axes.set(xlabel="length", ylabel="ms", title=f"Growth with length, {few['blocks_in_row']} key blocks a row",
             xlim=(0, None), ylim=(0, None))


def draw(results, path):
    """Writes a PNG; what was not measured stays an empty field."""
    figure, grid = plt.subplots(2, 2, figsize=(11, 8), constrained_layout=True)
    for axes, plot in zip(grid.flat, (plot_dense, plot_speed_up, plot_pairs, plot_lengths)):
        try:
            plot(axes, results["sections"])
        except KeyError:
            axes.set_title("not measured")
            continue
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    machine = results["machine"]["processor"]
    figure.suptitle(f"spargejit on {machine}, {results['date']}", fontsize=10)
    figure.savefig(path, dpi=80)
    plt.close(figure)
