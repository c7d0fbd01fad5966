# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown."""
from report.figures import (GROWTH_SERIES, NotMeasured, attention_kernels, call_lines, growth_line,
                            promised_figures)


def table(header, rows):
    """Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def number(value, digits=3):
    """`digits` significant ones, no exponent."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text else text


def spread(series):
    """Median and range of one series, ms."""
    return f"{number(series['ms'])} ({number(series['min_ms'])} … {number(series['max_ms'])})"


def percent(value):
    return f"{100 * value:.1f} %"


def peak_part(sections):
    peak = sections["peak"]
    rows = [[f"{name}, {one['threads']} thread{'s' * (one['threads'] > 1)}", number(one["gflops"], 4),
             number(one["median_gflops"], 4), number(one["min_gflops"], 4)]
            for name, one in (("one core", peak["one_core"]), ("all cores", peak["all_cores"]))]
    return (f"Loop: {peak['loop']}, {'fused' if peak['fused'] else 'not fused'}.\n\n"
            + table(["float32 multiply-adds", "best GFLOP/s", "median", "least"], rows))


def dense_part(sections):
    rows = []
    for key, one in sections.items():
        if not key.startswith("dense_"):
            continue
        for row in one["rows"]:
            rows.append([f"{one['dtype']}, {row['heads']}×{row['length']}×{one['head_dim']}", spread(row),
                         number(row["gflops"]), number(one["peak_gflops"], 4), percent(row["share"]),
                         percent(row["best_share"]), f"{row['cores']:.2f}", percent(row["busy_share"])])
    return table(["heads × length × head dimension", "ms", "GFLOP/s", "peak", "share", "share of fastest",
                  "cores busy", "share of busy cores"], rows)


def sparse_part(sparse):
    rows = [[f"{row['method']}, 128×{row['mask_block_kv']}", percent(row["density"]), spread(row["select"]),
             spread(row["attention"]), number(row["attention_gflops"]), f"{row['speed_up']:.2f}",
             f"{1 / row['density']:.1f}", f"{row['best_speed_up']:.2f}"] for row in sparse["rows"]]
    head = (f"{sparse['dtype']}, one head, length {sparse['length']}, head dimension {sparse['head_dim']}; "
            f"dense in the same run: {spread(sparse['dense'])} ms, {number(sparse['dense_gflops'])} GFLOP/s.")
    return head + "\n\n" + table(
        ["method, mask block", "density", "selection, ms", "attention, ms", "GFLOP/s on visited blocks",
         "times faster", "1 / density", "times faster, fastest runs"], rows)


def backward_part(sections):
    backward = sections["backward"]
    rows = [[f"128×{row['mask_block_kv']}", percent(row["density"]), spread(row["backward"]),
             number(row["gflops"]), f"{row['speed_up']:.2f}", f"{1 / row['density']:.1f}",
             f"{row['best_speed_up']:.2f}"] for row in backward["rows"]]
    head = (f"{backward['dtype']}, one head, length {backward['length']}, head dimension {backward['head_dim']}; "
            f"dense in the same run: {spread(backward['dense'])} ms, {number(backward['dense_gflops'])} GFLOP/s.")
    return head + "\n\n" + table(
        ["mask block", "density", "backward pass, ms", "GFLOP/s, five products of visited blocks",
         "times faster", "1 / density", "times faster, fastest runs"], rows)


def growth_part(sections):
    growth, parts = sections["growth"], []
    for key, what, abscissa in GROWTH_SERIES:
        line = growth_line(growth, key, abscissa)
        rows = [[row["length"], percent(row["density"]), f"{row['visited_pairs']:.0f}", spread(row["select"]),
                 spread(row["attention"]), number(1e3 * row["attention"]["ms"] / row["visited_pairs"])]
                for row in growth[key]["rows"]]
        each = "pair of blocks" if abscissa == "visited_pairs" else "token"
        parts.append(f"Over {what}: time = {number(line.start)} ms + {number(1e3 * line.slope)} µs for each "
                     f"{each}; largest residual {percent(line.worst)}; exponent {line.exponent:.3f}.\n\n"
                     + table(["length", "density", "visited pairs of blocks", "selection, ms",
                              "attention, ms", "µs a pair"], rows))
    return "\n\n".join(parts)


def compile_part(sections):
    rows, seen = [], set()
    for key, one in sections.items():
        if not key.startswith("compile_"):
            continue
        rows.append([f"method {one['method']}, {one['dtype']}: all, in a fresh process", number(one["cold_ms"])])
        for kernel in one["kernels"]:
            if kernel["kernel"] not in seen:
                seen.add(kernel["kernel"])
                rows.append([f"`{kernel['kernel']}`", number(kernel["ms"])])
    return table(["what", "ms"], rows)


def calls_part(sections):
    calls = sections["calls"]
    rows = []
    for method, line in call_lines(calls).items():
        first = next(row for row in calls["rows"] if row["method"] == method)
        rows.append([method, f"{first['us']:.1f} ({first['p10_us']:.1f} … {first['p90_us']:.1f})",
                     f"{line.start:.1f}", f"{line.slope:.1f}"])
    return table([f"method, one token, head dimension {calls['head_dim']}", "whole call, µs (10 … 90 %)",
                  "overhead, µs", "work of one head, µs"], rows)


def lengths_part(sections):
    lengths = sections["lengths"]
    rows = [[row["method"], row["kernels_of_first"], row["kernels_of_others"]] for row in lengths["rows"]]
    return (table(["method", "kernels of the first length", f"of {len(lengths['lengths']) - 1} others"], rows)
            + f"\n\nAttention kernels among them: {len(attention_kernels(lengths))}. "
            f"Lengths drawn with seed {lengths['seed']}.")


def memory_part(sections):
    one = sections["memory"]
    return table([f"method {one['method']}, one head, length {one['length']}, density {percent(one['density'])}",
                  "value"],
                 [["first call (compiles, selects, attends), ms", number(one["first_call"]["ms"])],
                  ["GFLOP/s on visited blocks", number(one["gflops"])],
                  ["q, k, v, o, MiB", number(one["inputs_and_output_mib"])],
                  ["most memory before the call, MiB", number(one["peak_before_mib"])],
                  ["most memory ever, MiB", number(one["peak_mib"])]])


def gate_part(sections):
    figures = promised_figures(sections)
    return table(["figure", "value", "bound", "kept"],
                 [[figure.name, f"{figure.value:.4g}{figure.unit}",
                   f"{'≥' if figure.at_least else '≤'} {figure.bound:g}{figure.unit}",
                   "yes" if figure.kept else "**no**"] for figure in figures])


PARTS = (
    ("Promises", gate_part),
    ("Peak", peak_part),
    ("Dense attention", dense_part),
    ("Sparse attention", lambda sections: sparse_part(sections["sparse"])),
    ("Sparse attention, long", lambda sections: sparse_part(sections["sparse_long"])),
    ("Backward pass", backward_part),
    ("Growth", growth_part),
    ("Compilation", compile_part),
    ("Warm calls", calls_part),
    ("Kernels over lengths", lengths_part),
    ("Long sequence", memory_part),
)


def load_sentence(results):
    load = results["load"]
    text = f"Other processes used {percent(load['others'])} of the machine's CPU time meanwhile"
    if load["stolen"] > 0.001:
        text += f", and its host took {percent(load['stolen'])}"
    shared = load["others"] + load["stolen"] > 0.05
    return text + (": the machine was shared, and times are too long." if shared else ".")


def machine_part(results):
    machine, program = results["machine"], results["sections"].get("machine", {})
    rows = [["processor", f"{machine['processor']} ({program.get('cpu', '?')}), {program.get('cores', '?')} cores"],
            ["caches", ", ".join(f"{name} {size}" for name, size in machine["caches"].items()) or "?"],
            ["memory", f"{machine['memory_gib']} GiB"],
            ["system", machine["system"]],
            ["spargejit", f"{program.get('version', '?')}, commit {results['commit']}"],
            ["built by", program.get("compiler", "?")],
            ["kernels made by", program.get("code_generator", "?")],
            ["command", f"`{results['command']}`"],
            ["date, duration", f"{results['date']}, {results['seconds']:.0f} s"]]
    lines = ["| | |", "|---|---|"] + [f"| {name} | {value} |" for name, value in rows]
    return "\n".join(lines) + "\n\n" + load_sentence(results)


def as_markdown(results, picture):
    """The whole report; parts that were not measured are left out."""
    parts = [f"# Benchmark of the CPU back end, {results['date']}",
             "What each number means: `bench/README.md`. Times are medians (least … greatest).",
             machine_part(results), f"![plots]({picture})"]
    for title, make in PARTS:
        try:
            text = make(results["sections"])
        except (KeyError, NotMeasured):
            continue
        if text.count("\n") > 1:
            parts.append(f"## {title}\n\n{text}")
    return "\n\n".join(parts) + "\n"
